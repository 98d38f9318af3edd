//! Smallest area first: devices times seconds left.
//!
//! Objective: min Σ_j (end_j − submitted_j) where a job's cost to others is the device time it takes.
//! Reads: seconds left, devices. Cost: O(changed + running) per plan.
//! Not to be used where durations are not known.

use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{Moving, demand, finite};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "area",
    live: "",
    family: "size",
    paper: "none",
    there: "all of it",
    missing: "nothing",
    about: "Smallest devices × seconds left first, preemptive; needs durations",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations],
    make: |_| {
        let rank = |view: &View, job| Rank(finite(demand(view, job) * view.seconds_left(job)), 0.0);
        Ok(Box::new(Moving::new(Cadence::OnChange, rank)))
    },
};

#[cfg(test)]
mod tests {
    use crate::testing::{World, run};

    const JOBS: [(u32, f64); 5] = [(2, 10.0), (1, 15.0), (1, 4.0), (2, 3.0), (1, 30.0)];

    fn ends(policy: &str, jobs: &[(u32, f64)]) -> Vec<f64> {
        let mut world = World::new(&[2]);
        world.submit_all(jobs);
        run(policy, &mut world)
    }

    #[test]
    fn a_small_area_goes_first() {
        assert_eq!(ends("area", &JOBS[..2]), [25.0, 15.0]);
    }

    #[test]
    fn it_is_srsf_where_sizes_are_fixed() {
        assert_eq!(ends("area", &JOBS), ends("srsf", &JOBS));
    }
}
