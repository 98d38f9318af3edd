//! Places within a queue. They are numbers that tell by themselves whether a job ran when it was given
//! them, so that the next look at it needs no memory: running jobs far below zero, stopped jobs at minus
//! the time of their stop, all others at the time at which they came to the queue.

use yard_core::allocation::Share;
use yard_core::job::{JobRun, Rank};
use yard_core::units::Time;
use yard_core::view::View;

/// Places of running jobs begin here, before all times that a waiting job's place can be. Small enough
/// that a microsecond added to it still makes some difference.
pub(super) const RUNNING: f64 = -1e11;

pub(super) fn is_running_place(place: f64) -> bool {
    place < RUNNING / 2.0
}

/// A running job stands before all waiting ones of its queue, behind those that ran there before it.
pub(super) fn running_place(run: &JobRun, now: Time) -> f64 {
    if is_running_place(run.rank.1) {
        return run.rank.1;
    }
    let start = if run.holds() { run.held_since } else { run.since };
    // A demoted job came to this queue later than it started; its place tells when.
    RUNNING + start.secs().max(run.rank.1).min(now.secs())
}

/// A stopped job goes before all others that wait; whoever already waits stays where it is.
pub(super) fn waiting_place(run: &JobRun) -> f64 {
    match run.last_stop {
        None => run.submitted.secs(),
        Some(stop) if is_running_place(run.rank.1) => -stop.secs(),
        Some(_) => run.rank.1,
    }
}

/// Jobs that move to one place in one plan stay in the order in which they were. In the paper's simulator those that
/// change queues come in the order of submission.
pub(super) fn keep_order(view: &View, shares: &mut [Share], artifact: bool) {
    let run = |share: &Share| view.run(share.jobs[0]);
    // New jobs are not moved: they stand by submission, and equals by number.
    let moves = |share: &&mut Share| run(share).starts > 0 && share.rank != run(share).rank;
    let mut moved: Vec<&mut Share> = shares.iter_mut().filter(moves).collect();
    moved.sort_by(|left, right| {
        let by = |to: Rank, other: Rank| to.0.total_cmp(&other.0).then(to.1.total_cmp(&other.1));
        let from = |share: &Share| {
            let (was, id) = (run(share).rank, run(share).id);
            (if artifact && share.rank.0 != was.0 { Rank::default() } else { was }, id)
        };
        let ((was, id), (other_was, other_id)) = (from(left), from(right));
        by(left.rank, right.rank).then(by(was, other_was)).then(id.cmp(&other_id))
    });
    let mut last = Rank(-1.0, 0.0);
    for share in moved {
        if share.rank.0 == last.0 && share.rank.1 <= last.1 {
            share.rank.1 = last.1.next_up();
        }
        last = share.rank;
    }
}
