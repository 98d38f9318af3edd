//! Longest pending job first as the simulator published with Gu et al., "Tiresias" (NSDI 2019) runs it,
//! with its slip: it removes jobs from the list that it walks, so after each job that starts, the next
//! one is passed over. The walk ends at the first job that does not fit. Kept to compare with that
//! simulator, digit for digit.
//!
//! Objective: none; the order is (submitted, number), minus every job that follows a started one.
//! Reads: submission times, free devices by kind. Cost: O(running + started) per plan, plus the index.
//! Not to be used to schedule anything.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobId;
use yard_core::policy::{Policy, PolicyError, Priorities};
use yard_core::units::Time;
use yard_core::view::View;

use crate::counts::KindCounts;
use crate::index::{Index, running, waiting};
use crate::ranked::in_shape;
use crate::{OTHER, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "lpjf",
    live: "",
    family: "artifact",
    paper: "lpjf in the artifact of Gu et al., NSDI 2019",
    there: "the artifact's order with its slip, digit for digit",
    missing: "nothing; there is no paper behind it",
    about: "Longest pending first with that simulator's slip, only to compare with it",
    params: &[],
    rounds: false,
    priority: Priorities::Refused(OTHER),
    needs: &[],
    make: |_| Ok(Box::new(Lpjf::default())),
};

#[derive(Default)]
struct Lpjf {
    running: Index<()>,
    waiting: Index<(Time, JobId)>,
}

impl Policy for Lpjf {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        self.running.follow(view, |job| running(view, job));
        self.waiting.follow(view, |job| waiting(view, job));
        let mut shares: Vec<Share> =
            self.running.rows().map(|job| in_shape(view, job, view.run(job).shape)).collect();
        let mut free = KindCounts::free(view);
        let mut list = self.waiting.rows();
        while let Some(job) = list.next() {
            let shapes = &view.spec(job).shapes;
            let Some(shape) = free.first_fit(shapes) else { break };
            free.take(&shapes[shape as usize]);
            shares.push(in_shape(view, job, shape));
            list.next();
        }
        Ok(Allocation::queue(Shares::All(shares), false))
    }

    fn blocking(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, policy};

    #[test]
    fn the_one_after_a_started_job_is_passed_over() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, 10.0), (1, 10.0), (1, 10.0), (4, 10.0), (4, 10.0), (1, 10.0)]);
        let mut lpjf = policy("lpjf");
        world.plan(&mut *lpjf);
        assert_eq!(world.running(), [0, 2], "1 and 3 are passed over, 4 does not fit and ends the walk");
    }
}
