//! First in, first out, as YARN's capacity scheduler serves one queue (the YARN-CS baseline of Gu et
//! al., "Tiresias", NSDI 2019). The first job that does not fit blocks all behind it.
//!
//! Objective: start(i) ≤ start(j) for all submitted(i) < submitted(j): nobody is overtaken.
//! Reads: submission times. Cost: O(1) per arrival.
//! Not to be used where gangs differ in size: devices idle while the head waits for enough of them. Use
//! `backfill`, which keeps the promise to the head and fills the gap.

use yard_core::allocation::Mode;
use yard_core::policy::Priorities;

use crate::PolicyEntry;
use crate::ranked::{Fixed, by_submission};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo",
    live: "same::what_happened_live_happens_again_in_simulation",
    family: "queue",
    paper: "YARN-CS baseline in Gu et al., NSDI 2019",
    there: "all of it: in order of submission, the first that does not fit blocks the rest",
    missing: "nothing",
    about: "In order of submission; the first job that does not fit blocks the rest; never stops a job",
    params: &[],
    rounds: false,
    priority: Priorities::Classes,
    needs: &[],
    make: |_| Ok(Box::new(Fixed { mode: MODE, rank: by_submission })),
};

const MODE: Mode = Mode::Ordered { preempt: false, skip: false, classes: true };

#[cfg(test)]
mod tests {
    use crate::testing::{World, run};

    #[test]
    fn the_head_blocks_a_smaller_job() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0), (1, 1.0)]);
        assert_eq!(run("fifo", &mut world), [10.0, 20.0, 21.0]);
    }
}
