//! Deadlines that are promised, in every third scenario. In half of those nothing happens that nobody could plan for: no
//! faults, no cancellations, true beliefs. There every promise must be kept, whatever the policy does.

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{JobSpec, Late, Reward};

use super::Scenario;
use crate::faults::Faults;
use crate::random::Random;
use crate::record::{JobRecord, Record};

/// Whether deadlines are promised, and whether nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promises {
    pub(super) on: bool,
    pub(super) calm: bool,
}

/// Lets jobs have deadlines, soft ones among them. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, scenario: &mut Scenario, always: bool) {
    let mut random = Random::new(seed ^ 0x0dea_d11e);
    if !random.chance(0.33) && !always {
        return;
    }
    scenario.promises = Promises { on: true, calm: random.chance(0.5) || always };
    if scenario.promises.calm {
        scenario.calm_down();
    }
    let often = *random.pick(&[0.3, 0.7, 1.0]);
    let loose = *random.pick(&[1.5, 3.0, 10.0]);
    for (submitted, spec) in &mut scenario.jobs {
        set_deadline(&mut random, *submitted, spec, (often, loose));
    }
}

fn set_deadline(random: &mut Random, submitted: Time, spec: &mut JobSpec, (often, loose): (f64, f64)) {
    let fastest = spec.speeds.iter().copied().fold(0.0, f64::max);
    let seconds = 60.0 + spec.steps / fastest * (1.0 + random.unit() * loose);
    let from = spec.not_before.unwrap_or(submitted).max(submitted);
    let by = |factor: f64| Time::from_secs(from.secs() + seconds * factor);
    spec.deadline = random.chance(often).then(|| by(1.0));
    spec.late = *random.pick(&[Late::Try, Late::Refuse]);
    let rewards: Arc<[Reward]> =
        [(1.0, 10.0), (1.5, 5.0), (3.0, 2.0)].map(|(factor, worth)| Reward { by: by(factor), worth }).into();
    spec.rewards = spec.deadline.filter(|_| random.chance(0.3)).map(|_| rewards);
}

impl Scenario {
    /// Only what can be planned for.
    fn calm_down(&mut self) {
        self.script.clear();
        self.jobs.iter_mut().for_each(|(_, spec)| spec.training = None);
        self.upsets.calm_down();
        self.faults = Faults::default();
    }

    /// The job whose promise was broken, if there is one where nothing went wrong.
    pub(super) fn broken(&self, record: &Record) -> Option<String> {
        let late =
            |(_, job): &(usize, &JobRecord)| job.promise.is_some_and(|by| job.end.is_none_or(|end| end > by));
        let (id, job) = record.jobs.iter().enumerate().filter(|_| self.promises.calm).find(late)?;
        let end = job.end.map_or("never".into(), |end| end.to_string());
        Some(format!("job {id} was promised by {} and ended at {end}", job.promise.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use yard_core::allocation::{Allocation, Share, Shares};
    use yard_core::cluster::{Nodes, Placement, Slice};
    use yard_core::ids::NodeId;
    use yard_core::job::{Need, Rank, Shape, Spread};
    use yard_core::policy::{Placer, Policy, PolicyError};
    use yard_core::view::View;

    use super::*;
    use crate::chaos::Chaos;

    /// First come, first served, as whole shares that nobody is stopped for, or as equal parts of the time.
    struct Plain {
        queue: bool,
    }

    impl Policy for Plain {
        fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
            let whole = |job| Share::whole(job, Rank(view.run(job).submitted.secs(), 0.0));
            let part = |job| Share::part(job, 0.5);
            Ok(match self.queue {
                true => Allocation::queue(Shares::All(view.active().map(whole).collect()), false),
                false => Allocation::fractions(view.active().map(part).collect()),
            })
        }
    }

    /// The first devices that will do.
    struct First;

    impl Placer for First {
        fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
            let mut placement = Placement::default();
            for need in &shape.needs {
                placement.0.extend(first(nodes, *need, shape.spread)?);
            }
            Some(placement)
        }
    }

    fn first(nodes: &Nodes, need: Need, spread: Spread) -> Option<Vec<Slice>> {
        let (mut left, mut slices) = (need.devices, Vec::new());
        let whole = |node: NodeId| spread != Spread::Node || nodes.get(node).free_count() >= need.devices;
        let of_kind = |node: NodeId| nodes.get(node).spec.kind == need.kind;
        for (id, node) in nodes.iter().filter(|(id, _)| of_kind(*id) && whole(*id)) {
            let count = left.min(node.free_count());
            slices.extend((count > 0).then(|| Slice { node: id, mask: node.take(count) }));
            left -= count;
        }
        (left == 0).then_some(slices)
    }

    #[test]
    fn promises_are_kept_whatever_the_policy() {
        let mut done = 0;
        for seed in 0..200 {
            let policies: [(&str, Box<dyn Policy>); 3] = [
                ("queue", Box::new(Plain { queue: true })),
                ("parts", Box::new(Plain { queue: false })),
                ("chaos", Box::new(Chaos::new(seed))),
            ];
            for (name, mut policy) in policies {
                let tally = Scenario::calm(seed).check(&mut *policy, false, &|| Box::new(First));
                done += tally.unwrap_or_else(|broken| panic!("seed {seed}, {name}: {broken}")).done;
            }
        }
        assert!(done > 1_000, "{done} jobs were done");
    }
}
