//! Least attained service first, in two dimensions: device-seconds received (Gu et al., "Tiresias",
//! NSDI 2019; in one dimension Nuyens and Wierman, "The Foreground–Background queue", Performance
//! Evaluation 2008).
//!
//! Objective: min Σ_j (end_j − submitted_j) with durations unknown; optimal among such policies on one
//! device where the hazard rate falls, as it does for training jobs. Place in the order = A_j = g_j·T_j.
//! Reads: attained service. Cost: O(changed + running) per plan; its order changes as time passes.
//! Not to be used where jobs are alike: equal jobs take turns and all end late. `tiresias` stops that by
//! steps.

use yard_core::job::Rank;
use yard_core::policy::{Cadence, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{Moving, finite};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "las",
    live: "sharing::twenty_jobs_take_turns_on_four_devices_and_do_each_step_once",
    family: "attained",
    paper: "2D-LAS, Gu et al., NSDI 2019",
    there: "the order by attained device time, preemptive at beats",
    missing: "nothing",
    about: "Least attained device time first, preemptive; needs no durations",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make: |_| {
        let rank = |view: &View, job| Rank(finite(view.attained(job)), 0.0);
        Ok(Box::new(Moving::new(Cadence::EveryRound, rank)))
    },
};

#[cfg(test)]
mod tests {
    use crate::testing::{World, policy};

    #[test]
    fn equal_jobs_take_turns() {
        let mut world = World::new(&[1]);
        let mut las = policy("las");
        world.submit_all(&[(1, 100.0), (1, 100.0)]);
        let mut turns = Vec::new();
        for _ in 0..4 {
            world.plan(&mut *las);
            turns.extend(world.running());
            world.advance(10.0);
        }
        assert_eq!(turns, [0, 1, 0, 1]);
    }

    #[test]
    fn wide_jobs_attain_faster() {
        let mut world = World::new(&[3]);
        let mut las = policy("las");
        world.submit_all(&[(1, 100.0), (2, 100.0)]);
        world.plan(&mut *las);
        world.advance(10.0);
        world.plan(&mut *las);
        assert_eq!(world.ranks(), [10.0, 20.0]);
    }
}
