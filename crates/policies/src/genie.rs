//! The fewest devices that meet each deadline, as if the job were alone (after Chen, Quan, Wang, "Deep Learning
//! Research and Development Platform: Characterizing and Scheduling with QoS Guarantees on GPU Clusters", TPDS 2020,
//! known as GENIE). Reconstructed from how Chronus and ElasticFlow describe it, without the paper's predictor, which has no
//! public program: speeds come from the belief.
//!
//! Objective: for each job min devices with now + left/speed ≤ deadline; order: least slack first,
//! slack = deadline − now − left/speed at that size. Jobs that meet no deadline at any size, and those without one, come
//! last, oldest first. What others need is not looked at: that is what `elasticflow` adds.
//! Reads: deadlines and promises, speeds of all shapes, steps left.
//! Cost: O(jobs · shapes) per plan.
//! Not to be used under load: it starts what it cannot finish, and plans no job against another.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{LAST, finite};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "genie",
    live: "",
    family: "deadline",
    paper: "after Chen et al., TPDS 2020 (reconstructed)",
    there: "the fewest devices that meet each deadline, the least slack first",
    missing: "its predictor of speeds, which has no public program: speeds come from the belief",
    about: "The fewest devices that meet each deadline as if alone, least slack first",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |_| Ok(Box::new(Genie)),
};

struct Genie;

impl Policy for Genie {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        Ok(Allocation::preemptive(Shares::All(view.active().map(|job| share(view, job)).collect())))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

fn share(view: &View, job: JobIdx) -> Share {
    let (spec, run) = (view.spec(job), view.run(job));
    let by = run.promise.or(spec.deadline);
    let slack = |shape: u16| {
        let restart =
            if view.is_running(job) && run.shape == shape { 0.0 } else { spec.costs.restart().secs() };
        Some(by?.secs() - view.now.secs() - restart - view.steps_left(job) / view.speed(job, shape))
    };
    let in_time = spec.usable().filter(|shape| slack(*shape).is_some_and(|slack| slack >= 0.0));
    match in_time.min_by_key(|shape| (spec.shapes[*shape as usize].devices(), *shape)) {
        Some(shape) => {
            let rank = Rank(0.0, finite(slack(shape).unwrap_or(LAST)));
            Share { shape: Some(shape), ..Share::whole(job, rank) }
        }
        None => Share::whole(job, Rank(1.0, run.submitted.secs())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::ids::KindId;
    use yard_core::job::Shape;

    use super::*;
    use crate::testing::{World, run};

    #[test]
    fn the_fewest_devices_that_are_in_time() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, 30.0)]);
        let spec = Arc::make_mut(&mut Arc::make_mut(&mut world.view.specs)[0]);
        spec.shapes = [4, 2, 1].map(|devices| Shape::of(KindId(0), devices)).into();
        spec.speeds = Arc::from([3.0, 1.8, 1.0]);
        for (deadline, shape) in [(40.0, Some(2)), (20.0, Some(1)), (12.0, Some(0)), (5.0, None)] {
            world.set_deadline(0, deadline);
            assert_eq!(share(&world.view, JobIdx(0)).shape, shape, "{deadline}");
        }
    }

    #[test]
    fn the_least_slack_goes_first() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 10.0), (1, 10.0), (1, 1.0)]);
        world.set_deadline(0, 30.0);
        world.set_deadline(1, 12.0);
        assert_eq!(run("genie", &mut world), [20.0, 10.0, 21.0]);
    }
}
