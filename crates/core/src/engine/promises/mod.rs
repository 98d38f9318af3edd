//! Promises: a job with a deadline is told at submission whether it will be done in time, and what was promised is
//! kept. Each promised job has a plan (`promise`): stretches of time in which, at the latest, it has devices, and the
//! nodes where. A new job is promised only what fits with all plans, or after all are planned anew such that everybody's
//! promise holds. Until a stretch begins the policy does as it likes, and whatever the job gets done meanwhile makes its
//! stretch begin later; from then on it has its devices before anybody's order (`keeping`).
//!
//! **Why no later submission breaks a promise.** Devices of a node are spoken for (`promise::Ground`) by the stretches
//! of plans, and by *bound* leases until a time on record: those of jobs that may not be stopped, or that take longer to
//! stop than `settle`, and that do not run by plan. The invariant (`keeping::check`, always on) is that no node is ever
//! spoken for beyond what it has, from now to the end of time. It follows that a stretch has its devices within `settle`
//! of its beginning: whoever is in the way on its nodes is neither in a stretch of its own nor bound, so it may be
//! stopped and has given its devices back by then. Nobody moves for another: places are fixed with the promise, and how
//! many devices of a node are free does not depend on which. A stretch is long enough for `settle`, the job's start, its
//! loading and its work. So the promise is kept; and the invariant is kept by all that can happen:
//!
//! - *A submission* takes what is free, or all plans are replaced by plans that fit; else it is not promised. Where it
//!   could hold devices for longer than `settle` after it is told to stop, `settle` grows if all plans fit with that;
//!   else the job itself is bound whenever it runs (`admission`). Who may not be stopped and is about to have its devices
//!   keeps its plan: they may be given to it at any time.
//! - *A start by the policy* takes nothing from anybody if the job gives its devices back within `settle`. One that does
//!   not starts only where nobody else speaks for its devices until it is done (`gate`), is put on record with that
//!   time, and nobody joins it, who would make it slower. If it was promised something itself it is done in time there,
//!   its lease takes the place of its plan, and nothing stops it.
//! - *Work done early* lets a plan begin later; time that passes makes it shorter. Both only give back.
//! - *Rounding*: stretches begin where decisions are made (`Grid`), and end wherever they do; nothing is rounded down.
//! - *An end* gives back.
//!
//! What breaks promises is what nobody could plan: nodes that go, jobs that are slower than believed or fail, or that
//! cannot be stopped after all. Then plans that still fit stay, the others are planned anew, as many in time as
//! possible, and the rest are said to be at risk (`ahead`).

mod admission;
mod ahead;
mod asks;
mod gate;
mod keeping;

pub(super) use admission::Answer;
pub(crate) use keeping::check;

use crate::ids::{JobIdx, LeaseId};
use crate::leases::Lease;
use crate::state::{Promises, State};
use crate::units::Time;

impl State {
    /// Whether a lease is kept whatever the order says: its job may not be stopped, or not in time for who was promised
    /// its devices, or was promised them itself.
    pub(crate) fn is_kept(&self, id: LeaseId, lease: &Lease) -> bool {
        let Promises { due, bound, .. } = &self.promises;
        lease.is_fixed(&self.specs) || lease.is_due(due) || bound.contains_key(&id)
    }

    /// A job is over: its promise is kept, or nobody's concern any more.
    pub(super) fn forget_promise(&mut self, job: JobIdx) {
        self.promises.due.remove(&job);
        self.promises.kept.remove(&job);
    }

    /// When who must have devices changes next, at a beat.
    pub(super) fn next_look(&self) -> Option<Time> {
        let next = self.promises.next.filter(|_| self.settings.promises && !self.promises.kept.is_empty());
        next.map(|time| time.max(self.now).round_up(self.settings.round))
    }

    /// When promises want a tick: then, or when one turns out to be broken.
    pub(super) fn next_promise(&self) -> Option<Time> {
        let first = self.promises.first.filter(|_| self.settings.promises && !self.promises.kept.is_empty());
        self.next_look().into_iter().chain(first).min()
    }
}
