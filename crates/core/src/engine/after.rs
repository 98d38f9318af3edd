//! Jobs that come after others: held back until all of those have succeeded, cancelled once one of them can no longer
//! (Slurm's `afterok`). Numbers only grow and a job names earlier ones, so that they cannot wait in a circle.
//!
//! A job that is over has no row, so what is kept of it is whether it failed: a job that is neither on record nor
//! among those has succeeded.

use super::Engine;
use crate::ids::{JobId, JobIdx};
use crate::job::{JobSpec, JobState};
use crate::message::{Effect, Event};
use crate::state::State;
use crate::units::Time;

impl Engine {
    /// What the end of a job means for those that come after it, and for those that come after them. A loop, not a
    /// call for each: a chain may be as long as there are jobs.
    pub(super) fn settle_followers(&mut self, job: JobId, end: JobState, out: &mut Vec<Effect>) {
        let mut ended = vec![(job, end)];
        while let Some((after, end)) = ended.pop() {
            if end != JobState::Succeeded {
                self.state.after.note_failed(after);
            }
            for row in self.state.after.followers.remove(&after).unwrap_or_default() {
                if end == JobState::Succeeded {
                    self.state.await_one_less(row);
                    continue;
                }
                let job = self.state.run(row).id;
                out.push(Effect::Publish(Event::Orphaned { job, after }));
                self.end_row(row, JobState::Cancelled, out);
                ended.push((job, JobState::Cancelled));
            }
        }
    }
}

impl State {
    /// The jobs that a new one has to wait for, or why it can never start.
    pub(super) fn awaited(&self, spec: &JobSpec) -> Result<Vec<JobId>, String> {
        let next = JobId(self.ledger.submitted);
        let mut awaited = spec.after.to_vec();
        awaited.sort_unstable();
        awaited.dedup();
        for job in &awaited {
            if *job >= next {
                return Err(format!("it comes after job {job}, which does not exist: submit that one first"));
            }
            if self.after.failed.contains(job) {
                return Err(format!("it comes after job {job}, which did not succeed"));
            }
            if *job < self.after.known_from && !self.rows.contains_key(job) {
                return Err(format!(
                    "it comes after job {job}, which ended too long ago to tell whether it succeeded"
                ));
            }
        }
        awaited.retain(|job| self.rows.contains_key(job));
        Ok(awaited)
    }

    /// A job asks for nothing until these have succeeded.
    pub(super) fn hold_for(&mut self, job: JobIdx, awaited: &[JobId]) {
        self.after.left.insert(job, awaited.len() as u32);
        for other in awaited {
            self.after.followers.entry(*other).or_default().push(job);
        }
        self.hold_back(job, Time::NEVER);
    }

    /// One that a job waits for has succeeded; with the last of them it comes in, or waits for its time.
    fn await_one_less(&mut self, job: JobIdx) {
        let left = self.after.left.get_mut(&job).expect("a follower waits");
        *left -= 1;
        if *left == 0 {
            self.after.left.remove(&job);
            self.forget_delay(job);
            let later = self.specs[job.index()].not_before;
            self.enter_or_hold(job, later);
        }
    }

    /// A job that is over waits for nobody.
    pub(super) fn forget_awaited(&mut self, job: JobIdx) {
        if self.after.left.remove(&job).is_none() {
            return;
        }
        for other in &self.specs[job.index()].after {
            let Some(rows) = self.after.followers.get_mut(other) else { continue };
            rows.retain(|row| *row != job);
            if rows.is_empty() {
                self.after.followers.remove(other);
            }
        }
    }
}
