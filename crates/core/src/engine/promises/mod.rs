//! Promises: a job with a deadline is told at submission whether it will be done in time, and what was promised is
//! kept. Each promised job has a plan (`promise`): stretches of time in which, at the latest, it has devices. All plans
//! fit together at all times; a new job is promised only what fits with them, or after all are planned anew such that
//! everybody's promise holds. Until a stretch begins the policy does as it likes, and whatever the job gets done
//! meanwhile makes its stretch begin later; from then on it has its devices before anybody's order (`keeping`).
//!
//! What breaks promises is what nobody could plan: nodes that go, jobs that are slower than believed or fail. Then as
//! many as possible are kept, earliest first, and the others are said to be at risk.

mod admission;
mod asks;
mod keeping;

pub(super) use admission::Answer;
pub(crate) use keeping::check;

use crate::ids::JobIdx;
use crate::leases::Lease;
use crate::state::State;
use crate::units::Time;

impl State {
    /// Whether a lease is kept whatever the order says: its job may not be stopped, or was promised it.
    pub(crate) fn is_kept(&self, lease: &Lease) -> bool {
        lease.is_fixed(&self.specs) || lease.is_due(&self.promises.due)
    }

    /// A job is over: its promise is kept, or nobody's concern any more.
    pub(super) fn forget_promise(&mut self, job: JobIdx) {
        self.promises.due.remove(&job);
        self.promises.kept.remove(&job);
    }

    /// When who must have devices changes next.
    pub(super) fn next_promise(&self) -> Option<Time> {
        let next = self.promises.next.filter(|_| self.settings.promises && !self.promises.kept.is_empty());
        next.map(|time| time.max(self.now).round_up(self.settings.round))
    }
}
