//! More and more devices for fewer and fewer jobs as the deadline comes near (after Liaw et al., "HyperSched: Dynamic
//! Resource Reallocation for Model Development on a Deadline", SoCC 2019). Reconstructed for jobs in place of the
//! paper's trials, whose accuracy a scheduler of jobs does not see: how far a job is stands for it.
//!
//! Objective: max Σ_j progress_j at the deadline that is next. Early, when much time is left (explore), all jobs go in
//! their smallest sizes; later (exploit) those that are furthest, and can still be done, go first and in the largest
//! size they use well: at least `worth` of the speed per device of their smallest. The part of its time that is gone
//! decides: a job exploits once (now − submitted) / (deadline − submitted) ≥ `from`. Who cannot be done in time goes last.
//! Reads: deadlines and promises, submission times, steps done, speeds of all shapes.
//! Cost: O(jobs · shapes) per plan.
//! Not to be used where every deadline counts: it gives up those who are behind.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "hypersched",
    live: "",
    family: "deadline",
    paper: "after Liaw et al., SoCC 2019 (reconstructed)",
    there: "explore, then exploit as the deadline comes near",
    missing: "trials and their accuracy: how far a job is stands for it",
    about: "All jobs small at first; near their deadlines those that are furthest grow, and those that are behind wait",
    params: &[
        ("from", "the part of its time after which a job grows [0.5]"),
        ("worth", "the least part of its speed per device that a larger size must keep [0.5]"),
    ],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Progress, Knowledge::Speeds],
    make: |params| {
        let from = params.positive("from")?.unwrap_or(0.5);
        let worth = params.positive("worth")?.unwrap_or(0.5);
        Ok(Box::new(HyperSched { from, worth }))
    },
};

struct HyperSched {
    from: f64,
    worth: f64,
}

impl Policy for HyperSched {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let shares = view.active().filter_map(|job| self.share(view, job)).collect();
        Ok(Allocation::preemptive(Shares::All(shares)))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

impl HyperSched {
    fn share(&self, view: &View, job: JobIdx) -> Option<Share> {
        let (spec, run) = (view.spec(job), view.run(job));
        let devices = |shape: &u16| spec.shapes[*shape as usize].devices();
        let smallest = spec.usable().min_by_key(|shape| (devices(shape), *shape))?;
        let each = |shape: u16| view.speed(job, shape) / f64::from(devices(&shape).max(1));
        let well = spec.usable().filter(|shape| each(*shape) >= self.worth * each(smallest));
        let largest =
            well.max_by_key(|shape| (devices(shape), std::cmp::Reverse(*shape))).unwrap_or(smallest);
        let by = run.promise.or(spec.deadline);
        let gone = by.map_or(0.0, |by| {
            (view.now - run.submitted).secs() / (by - run.submitted).secs().max(f64::MIN_POSITIVE)
        });
        let exploits = gone >= self.from;
        let left = view.steps_left(job) / view.speed(job, largest);
        let lost = by.is_some_and(|by| view.now.secs() + left > by.secs());
        let done = 1.0 - view.steps_left(job) / view.steps_in_all(job);
        let class = if lost { 2.0 } else { f64::from(u8::from(!exploits)) };
        let shape = if exploits && !lost { largest } else { smallest };
        let within = if exploits { -done } else { run.submitted.secs() };
        Some(Share { shape: Some(shape), ..Share::whole(job, Rank(class, within)) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::ids::KindId;
    use yard_core::job::Shape;

    use super::*;
    use crate::testing::World;

    #[test]
    fn a_job_grows_when_its_deadline_comes_near_and_waits_once_it_is_lost() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, 30.0)]);
        let spec = Arc::make_mut(&mut Arc::make_mut(&mut world.view.specs)[0]);
        spec.shapes = [1, 2, 4].map(|devices| Shape::of(KindId(0), devices)).into();
        spec.speeds = Arc::from([1.0, 1.6, 1.7]);
        world.set_deadline(0, 60.0);
        let hyper = HyperSched { from: 0.5, worth: 0.5 };
        let share = |world: &World| hyper.share(&world.view, JobIdx(0)).expect("a share");
        assert_eq!((share(&world).shape, share(&world).rank.0), (Some(0), 1.0));
        world.advance(35.0);
        assert_eq!((share(&world).shape, share(&world).rank.0), (Some(1), 0.0));
        world.advance(20.0);
        assert_eq!((share(&world).shape, share(&world).rank.0), (Some(0), 2.0));
    }
}
