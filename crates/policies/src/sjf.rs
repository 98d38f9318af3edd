//! Smallest job first, by device demand: the space half of "size" when durations are not known (a
//! baseline of Gu et al., "Tiresias", NSDI 2019).
//!
//! Objective: max Σ_j x_j s.t. Σ_j g_j x_j ≤ N, x ∈ {0,1}: as many jobs at work as the devices allow.
//! Taking the smallest first is optimal for that. Ties go by job number.
//! Reads: the devices of the shape a job likes best. Cost: O(1) per arrival.
//! Not to be used where large gangs must finish: every smaller arrival stops them.

use yard_core::job::Rank;
use yard_core::policy::Priorities;

use crate::PolicyEntry;
use crate::ranked::{Fixed, PREEMPTIVE, demand};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "sjf",
    live: "",
    family: "size",
    paper: "baseline in Gu et al., NSDI 2019",
    there: "all of it: the fewest devices first, preemptive",
    missing: "nothing",
    about: "Fewest devices first, preemptive",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make: |_| Ok(Box::new(Fixed { mode: PREEMPTIVE, rank: |view, job| Rank(demand(view, job), 0.0) })),
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{World, policy};

    #[test]
    fn smaller_arrivals_stop_larger_jobs() {
        let mut world = World::new(&[4]);
        let mut sjf = policy("sjf");
        world.submit_all(&[(4, 10.0)]);
        world.plan(&mut *sjf);
        world.submit_all(&[(2, 10.0), (1, 10.0)]);
        world.plan(&mut *sjf);
        assert_eq!(world.running(), [1, 2]);
    }

    proptest! {
        #[test]
        fn as_many_jobs_as_possible_are_at_work(
            sizes in prop::collection::vec(1u32..6, 1..10),
            devices in 1u32..16,
        ) {
            let mut world = World::new(&[devices]);
            world.submit_all(&sizes.iter().map(|size| (*size, 10.0)).collect::<Vec<_>>());
            world.plan(&mut *policy("sjf"));
            let fits = |set: &u32| {
                let chosen = (0..sizes.len()).filter(|at| set & (1 << at) != 0);
                chosen.map(|at| sizes[at]).sum::<u32>() <= devices
            };
            let best = (0..1u32 << sizes.len()).filter(fits).map(u32::count_ones).max();
            prop_assert_eq!(Some(world.running().len() as u32), best);
        }
    }
}
