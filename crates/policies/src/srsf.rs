//! Shortest remaining service first: remaining time × devices, the two-dimensional size with full
//! knowledge (Gu et al., "Tiresias", NSDI 2019, whose yardstick it is).
//!
//! Objective: min Σ_j (end_j − submitted_j) for divisible work; place in the order = r_j · g_j.
//! Reads: seconds left and devices, in the shape a job holds or likes best.
//! Cost: O(changed + running) per plan. Asking on change is enough, for the reason given in `srtf`: only
//! running jobs move, and only forward.
//! Not to be used where durations are not known, or where large jobs must not starve.

use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{Moving, finite};
use crate::stable::with_ties;

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "srsf",
    live: "",
    family: "size",
    paper: "Gu et al., NSDI 2019",
    there: "all of it, by believed seconds left times devices",
    missing: "nothing; with wrong durations it is a guess",
    about: "Shortest remaining device time first, preemptive; needs durations",
    params: &[("artifact", "ties as in Tiresias' simulator, see `stable`: true or false [false]")],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations],
    make: |params| Ok(with_ties(Moving::new(Cadence::OnChange, rank), params.flag("artifact")?)),
};

fn rank(view: &View, job: JobIdx) -> Rank {
    Rank(finite(view.seconds_left(job) * f64::from(view.devices(job))), 0.0)
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, policy};

    #[test]
    fn service_is_time_by_devices() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(4, 10.0), (1, 30.0), (4, 5.0)]);
        world.plan(&mut *policy("srsf"));
        assert_eq!(world.running(), [2]);
        assert_eq!(world.ranks(), [40.0, 30.0, 20.0]);
    }

    #[test]
    fn what_runs_is_ranked_by_what_is_left() {
        let mut world = World::new(&[4]);
        let mut srsf = policy("srsf");
        world.submit_all(&[(4, 10.0)]);
        world.plan(&mut *srsf);
        world.advance(4.0);
        world.submit_all(&[(1, 30.0)]);
        world.plan(&mut *srsf);
        assert_eq!(world.ranks(), [24.0, 30.0]);
    }
}
