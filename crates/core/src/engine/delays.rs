//! Jobs that are held back until a time: their user's, or one that comes after a failure; for ever, if they wait for
//! other jobs (`after`) or are held (`holding`). Meanwhile they ask for nothing: no share names them, and a policy sees them as ended and
//! later as new.

use super::Engine;
use crate::ids::JobIdx;
use crate::state::State;
use crate::units::Time;

impl Engine {
    /// When the next job that is held back comes in.
    pub(super) fn next_entry(&self) -> Option<Time> {
        self.state.delayed.first().map(|(time, _)| *time).filter(|time| *time < Time::NEVER)
    }

    /// Lets those in whose time has come.
    pub(super) fn enter_due(&mut self) {
        let state = &mut self.state;
        while let Some((time, job)) = state.delayed.first().copied().filter(|(time, _)| *time <= state.now) {
            state.delayed.remove(&(time, job));
            state.run_mut(job).held_until = None;
            state.enter_or_hold(job, None);
        }
    }
}

impl State {
    /// A job asks for devices from now on.
    pub(super) fn enter(&mut self, job: JobIdx) {
        self.changed.added.push(job);
        self.newcomers.push(job);
        (self.dirty, self.loose) = (true, true);
    }

    /// A job asks for devices from its user's time on, and not while it is held.
    pub(super) fn enter_or_hold(&mut self, job: JobIdx, not_before: Option<Time>) {
        if self.run(job).held {
            return self.hold_back(job, Time::NEVER);
        }
        match not_before.filter(|time| *time > self.now) {
            Some(time) => self.hold_back(job, time),
            None => self.enter(job),
        }
    }

    /// A job that has no share asks for nothing until then.
    pub(super) fn hold_back(&mut self, job: JobIdx, until: Time) {
        self.run_mut(job).held_until = Some(until);
        self.delayed.insert((until, job));
    }

    /// A job is not held back any more.
    pub(super) fn forget_delay(&mut self, job: JobIdx) {
        if let Some(until) = self.run_mut(job).held_until.take() {
            self.delayed.remove(&(until, job));
        }
    }
}
