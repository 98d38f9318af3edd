//! Everything that is staged becomes durable in one transaction; then the engine is stepped and everybody answered. If it
//! cannot be written, what was heard is kept and clients are refused.

use std::collections::BTreeMap;

use yard_core::ids::JobId;
use yard_core::message::Input;
use yard_core::units::{Span, Time};

use super::super::Driver;
use super::super::clock::Stopwatch;
use super::super::jobs::JobPapers;
use super::{Edited, Failing, Half, StagedAfter};
use crate::exec::Directive;
use crate::handle::Refusal;
use crate::store::{Facts, StoreError, Write};
use crate::views::JobView;

/// Longest time from one try to write to the next.
const RETRY_MAX: Span = Span::from_whole_secs(10);

/// `Input::Tick` in the journal.
const TICK: &str = "\"Tick\"";

impl Driver {
    /// Makes everything staged durable, steps the engine and answers. A tick that is due is taken at its own time,
    /// however late it is noticed, and before whatever happened since.
    pub(in crate::driver) fn commit(&mut self, now: Time) {
        let tick_at = self.engine.deadline().filter(|time| *time < now);
        self.commit_after(tick_at, now);
    }

    /// The same without a look at the clock, or with a tick that is due.
    pub(in crate::driver) fn commit_after(&mut self, tick_at: Option<Time>, now: Time) {
        if !self.staged.is_waiting() {
            return;
        }
        let elapsed = self.clock.elapsed();
        if self.failing.as_ref().is_some_and(|failing| elapsed < failing.retry_at) {
            return self.refuse_clients();
        }
        let mut batch = Half::default();
        batch.absorb(std::mem::take(&mut self.staged.heard));
        let heard = CommitCounts::of(&batch);
        batch.absorb(std::mem::take(&mut self.staged.clients));
        batch.input(Input::Tick);
        let watch = Stopwatch::start();
        match self.write(now, tick_at, &batch) {
            Ok(()) => {
                self.config.meter.commit(watch.took());
                self.config.meter.submitted(batch.jobs.len() as u64);
                self.committed(now, tick_at, batch);
            }
            Err(error) => {
                let clients = heard.split(&mut batch);
                (self.staged.heard, self.staged.clients) = (batch, clients);
                self.failed(error);
            }
        }
    }

    fn write(&mut self, now: Time, tick_at: Option<Time>, batch: &Half) -> Result<(), StoreError> {
        let told = self.staged.facts.iter().filter_map(|id| Some((*id, self.records.all.get(id)?)));
        // What a client changes of a job's facts goes on top of what was heard.
        let mut facts: BTreeMap<JobId, Facts> = told.map(|(id, record)| (id, record.facts.clone())).collect();
        facts.extend(batch.facts.iter().cloned());
        let facts: Vec<_> = facts.into_iter().collect();
        let tick = tick_at.map(|_| TICK);
        let texts = batch.inputs.iter().map(|(_, text)| text.as_str());
        let inputs: Vec<&str> = tick.into_iter().chain(texts).collect();
        let (jobs, nodes, audit) = (&batch.jobs, &batch.nodes, &batch.audit);
        let (forgotten, requests) = (&batch.forgotten, &batch.requests);
        let first = self.seq + 1;
        let inputs = &inputs;
        let write = Write {
            first,
            time: now,
            first_time: tick_at,
            inputs,
            jobs,
            facts: &facts,
            requests,
            nodes,
            forgotten,
            audit,
        };
        self.store.write(&write, &self.derived)
    }

    fn committed(&mut self, now: Time, tick_at: Option<Time>, batch: Half) {
        if self.failing.take().is_some() {
            tracing::info!(file = %self.store.path().display(), "changes can be written again");
        }
        self.tell_derived();
        self.staged.facts.clear();
        self.staged.keys.clear();
        (self.staged.kinds, self.staged.resources) = (None, None);
        (self.staged.joins, self.staged.tick) = (0, false);
        for job in batch.jobs {
            self.records.insert(job.id, JobPapers::new(job.id, &job.user, job.request, now));
        }
        for (job, facts) in batch.facts {
            if let Some(record) = self.records.all.get_mut(&job) {
                (record.facts.cancelled, record.facts.held) = (facts.cancelled, facts.held);
            }
        }
        if let Some(tick_at) = tick_at {
            self.step(tick_at, Input::Tick);
        }
        for (input, _) in batch.inputs {
            self.step(now, input);
        }
        for after in batch.after {
            self.after(now, after);
        }
    }

    fn after(&mut self, now: Time, after: StagedAfter) {
        match after {
            StagedAfter::Submitted(job, warnings, reply) => {
                self.refresh(now, job);
                self.answers.push((job, warnings, reply));
            }
            StagedAfter::Cancelled(job, reply) => {
                self.refresh(now, job);
                self.answers.push((job, Vec::new(), reply));
            }
            StagedAfter::Steered(job, edited, warnings, reply) => {
                if let Some(edited) = edited
                    && !self.rewrite(job, edited)
                {
                    return drop(reply.send(Err(just_started(job))));
                }
                // Who holds it is not the engine's to say.
                self.changed_jobs.insert(job);
                self.refresh(now, job);
                self.answers.push((job, warnings, reply));
            }
            StagedAfter::Drained(host, drain, evict, reply) => {
                self.hosts.get_mut(host).drain = drain;
                if evict {
                    self.evict(host);
                }
                self.settle(host);
                let _ = reply.send(Ok(()));
            }
            StagedAfter::Removed(host, reply) => self.removed(now, host, reply),
            StagedAfter::Admitted(host, ticket, abilities) => self.admitted(now, host, ticket, abilities),
            StagedAfter::Durable(lease, job) => self.direct(now, Directive::Forget { lease, job }),
        }
    }

    /// A job asks for something else now, unless it got devices with the same batch: then what was written is taken back.
    fn rewrite(&mut self, job: JobId, edited: Edited) -> bool {
        let changed = self.records.all.get_mut(&job).is_some_and(|record| std::mem::take(&mut record.edited));
        if changed {
            self.records.rewrite(job, edited.after);
        } else {
            self.staged.keep_request(job, edited.before);
        }
        changed
    }

    /// Answers who submitted or cancelled, once the board shows it: who asks next must find it there.
    pub(in crate::driver) fn answer(&mut self) {
        for (job, warnings, reply) in std::mem::take(&mut self.answers) {
            // Who asked may have gone.
            let _ = reply.send(self.look_up(job).map(|view| JobView { warnings, ..view }));
        }
    }

    fn failed(&mut self, error: StoreError) {
        let delay = self.failing.as_ref().map_or(self.config.retry, |failing| Span(failing.delay.0 * 2));
        let delay = delay.min(RETRY_MAX.max(self.config.retry));
        if self.failing.is_none() {
            tracing::error!(%error, "nothing can be written; clients are refused and jobs run on until it can");
        }
        let retry_at = self.clock.elapsed() + delay;
        self.failing = Some(Failing { error, retry_at, delay });
        self.refuse_clients();
    }

    fn refuse_clients(&mut self) {
        let cause = self.failing.as_ref().map(|failing| failing.error.to_string()).unwrap_or_default();
        let reason = format!("cannot write to the database now: {cause}");
        self.staged.keys.clear();
        self.staged.tick = false;
        for after in std::mem::take(&mut self.staged.clients).after {
            let refusal = Refusal::Unavailable(reason.clone());
            match after {
                StagedAfter::Submitted(_, _, reply)
                | StagedAfter::Cancelled(_, reply)
                | StagedAfter::Steered(_, _, _, reply) => {
                    let _ = reply.send(Err(refusal));
                }
                StagedAfter::Drained(_, _, _, reply) | StagedAfter::Removed(_, reply) => {
                    let _ = reply.send(Err(refusal));
                }
                StagedAfter::Admitted(..) | StagedAfter::Durable(..) => {}
            }
        }
    }
}

fn just_started(job: JobId) -> Refusal {
    Refusal::Conflict(format!(
        "job {job} has just been given devices; hold it first (yard hold {job}), then edit it"
    ))
}

/// How much of a batch was heard.
struct CommitCounts {
    inputs: usize,
    requests: usize,
    nodes: usize,
    after: usize,
}

impl CommitCounts {
    fn of(half: &Half) -> CommitCounts {
        CommitCounts {
            inputs: half.inputs.len(),
            requests: half.requests.len(),
            nodes: half.nodes.len(),
            after: half.after.len(),
        }
    }

    /// Takes out again what is the clients'.
    fn split(&self, batch: &mut Half) -> Half {
        Half {
            inputs: batch.inputs.split_off(self.inputs),
            jobs: std::mem::take(&mut batch.jobs),
            bytes: std::mem::take(&mut batch.bytes),
            facts: std::mem::take(&mut batch.facts),
            requests: batch.requests.split_off(self.requests),
            nodes: batch.nodes.split_off(self.nodes),
            // Clients never forget a node at once.
            forgotten: Vec::new(),
            audit: std::mem::take(&mut batch.audit),
            after: batch.after.split_off(self.after),
        }
    }
}
