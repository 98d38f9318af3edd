//! Largest job first, by device demand: the mirror of `sjf`, used to show what packing order costs (big
//! gangs get a whole cluster while it is empty; small ones fill the gaps).
//!
//! Objective: first-fit decreasing, the classic packing order (Johnson, "Near-optimal bin packing
//! algorithms", MIT 1973), with place in the order −g_j. Ties go by job number.
//! Reads: the devices of the shape a job likes best. Cost: O(1) per arrival.
//! Not to be used where mean completion time matters: small jobs wait for large ones.

use yard_core::job::Rank;
use yard_core::policy::Priorities;

use crate::PolicyEntry;
use crate::ranked::{Fixed, PREEMPTIVE, demand};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "ljf",
    live: "",
    family: "size",
    paper: "first-fit decreasing, Johnson, MIT 1973",
    there: "all of it: the most devices first",
    missing: "nothing",
    about: "Most devices first, preemptive",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make: |_| Ok(Box::new(Fixed { mode: PREEMPTIVE, rank: |view, job| Rank(-demand(view, job), 0.0) })),
};

#[cfg(test)]
mod tests {
    use crate::testing::{World, policy};

    #[test]
    fn the_largest_comes_first_and_small_ones_fill_the_gap() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(1, 10.0), (2, 10.0), (3, 10.0), (1, 10.0)]);
        world.plan(&mut *policy("ljf"));
        assert_eq!(world.running(), [0, 2]);
    }
}
