//! First in, first out among those that fit: a job that does not fit is passed (fit-first FIFO, called
//! `fjf` in the artifact of Gu et al., "Tiresias", NSDI 2019).
//!
//! Objective: no device idles that some waiting job could use (work conservation), oldest first.
//! Reads: submission times. Cost: O(1) per arrival.
//! Not to be used where large gangs must run some day: a stream of small jobs starves them.

use yard_core::allocation::Mode;
use yard_core::policy::Priorities;

use crate::PolicyEntry;
use crate::ranked::{Fixed, by_submission};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo-fit",
    live: "",
    family: "queue",
    paper: "fjf in the artifact of Gu et al., NSDI 2019",
    there: "all of it: in order of submission, past whoever does not fit",
    missing: "nothing",
    about: "In order of submission, passing jobs that do not fit; never stops a job",
    params: &[],
    rounds: false,
    priority: Priorities::Classes,
    needs: &[],
    make: |_| Ok(Box::new(Fixed { mode: MODE, rank: by_submission })),
};

const MODE: Mode = Mode::Ordered { preempt: false, skip: true, classes: true };

#[cfg(test)]
mod tests {
    use crate::testing::{World, run};

    #[test]
    fn a_smaller_job_passes_the_head() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0), (1, 1.0)]);
        assert_eq!(run("fifo-fit", &mut world), [10.0, 20.0, 1.0]);
    }
}
