//! Accounts of shares of time: what each was promised, and what it received.

use std::sync::Arc;

use super::{Book, Entry};
use crate::job::{JobRun, JobSpec};
use crate::turns::Turns;
use crate::units::Time;

/// What accounts are kept by.
pub(crate) struct Jobs<'a> {
    pub(crate) now: Time,
    pub(crate) turns: Turns,
    pub(crate) specs: &'a [Arc<JobSpec>],
    pub(crate) runs: &'a [JobRun],
}

impl Entry {
    /// Seconds it was promised by `now`.
    pub(crate) fn promised_by(&self, now: Time) -> f64 {
        self.promised + self.fraction * (now - self.accounted).secs()
    }

    /// Brings its account up to date.
    pub(super) fn account(&mut self, jobs: &Jobs<'_>) {
        if self.accounted == jobs.now {
            return;
        }
        let seconds = (jobs.now - self.accounted).secs();
        self.promised = self.promised_by(jobs.now);
        self.accounted = jobs.now;
        if self.lease.is_some() {
            self.received += self.received_in(seconds, jobs);
        }
    }

    /// Seconds it had devices, of the last so many.
    fn received_in(&self, seconds: f64, jobs: &Jobs<'_>) -> f64 {
        let mut holding = self.jobs.iter().filter(|job| jobs.runs[job.index()].holds());
        let Some(job) = holding.next() else { return 0.0 };
        let run = &jobs.runs[job.index()];
        let held = (jobs.now - run.held_since).secs().min(seconds);
        let speed = jobs.specs[job.index()].speeds[run.shape as usize];
        // Gavel counts the time that whole steps took.
        if jobs.turns.is_gavel() && speed > 0.0 { (held * speed).floor() / speed } else { held }
    }

    /// Ends the account of a plan that another one replaces.
    fn settle(&mut self) {
        // What nobody else wants is not owed to anybody.
        let owed = if self.is_leftover() { 0.0 } else { self.promised };
        self.deficit += owed - self.received;
        (self.promised, self.received) = (0.0, 0.0);
    }
}

impl Book {
    /// Brings the accounts of all shares that hold devices up to date.
    pub(crate) fn account(&mut self, jobs: &Jobs<'_>) {
        for row in self.holding.iter() {
            self.entries[row as usize].account(jobs);
        }
    }

    /// Closes all accounts: what a plan owed and did not give is a deficit under the next one.
    pub(super) fn settle(&mut self, jobs: &Jobs<'_>) {
        for entry in self.entries.iter_mut().filter(|entry| entry.alive) {
            entry.account(jobs);
            entry.settle();
        }
    }
}
