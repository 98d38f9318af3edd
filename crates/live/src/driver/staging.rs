//! What waits to be made durable, and what happens once it is. Two halves: what agents said is kept until it can be
//! written; what clients ask is refused where it cannot be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::mpsc;
use yard_core::cluster::{Kinds, NodeSpec, Resources};
use yard_core::ids::{AgentId, JobId, KindId, LeaseId, NodeId};
use yard_core::message::{Input, NodeChange};
use yard_core::units::{Span, Time};

use super::Driver;
use super::clock::Stopwatch;
use super::jobs::{Record, Sum};
use crate::handle::{Refusal, Reply};
use crate::request::JobRequest;
use crate::store::{AuditRow, Facts, NewJob, NodeRow, StoreError, Write};
use crate::views::JobView;
use crate::wire::{Hello, ToAgent};

/// Longest time from one try to write to the next.
const RETRY_MAX: Span = Span::from_whole_secs(10);

/// `Input::Tick` in the journal.
const TICK: &str = "\"Tick\"";

/// Rows to be written together.
#[derive(Default)]
pub(super) struct Half {
    inputs: Vec<(Input, String)>,
    jobs: Vec<NewJob>,
    /// What their requests take in memory.
    bytes: usize,
    facts: Vec<(JobId, Facts)>,
    /// What jobs ask for from now on.
    requests: Vec<(JobId, Arc<JobRequest>)>,
    nodes: Vec<NodeRow>,
    /// Names of nodes that are forgotten.
    forgotten: Vec<String>,
    audit: Vec<AuditRow>,
    after: Vec<After>,
}

impl Half {
    fn is_empty(&self) -> bool {
        let rows = self.requests.is_empty() && self.nodes.is_empty() && self.forgotten.is_empty();
        rows && self.inputs.is_empty() && self.after.is_empty()
    }

    pub(super) fn input(&mut self, input: Input) {
        let text = serde_json::to_string(&input).expect("an input is plain data");
        self.inputs.push((input, text));
    }

    fn absorb(&mut self, other: Half) {
        self.inputs.extend(other.inputs);
        self.jobs.extend(other.jobs);
        self.bytes += other.bytes;
        self.facts.extend(other.facts);
        self.requests.extend(other.requests);
        self.nodes.extend(other.nodes);
        self.forgotten.extend(other.forgotten);
        self.audit.extend(other.audit);
        self.after.extend(other.after);
    }
}

/// What a job asked for, and what it asks for from then on.
pub(super) struct Edited {
    pub(super) before: Arc<JobRequest>,
    pub(super) after: Arc<JobRequest>,
}

/// What happens once it is durable.
pub(super) enum After {
    /// A job was submitted, or was before under the same key.
    Submitted(JobId, Vec<String>, Reply<JobView>),
    /// A job was withdrawn.
    Cancelled(JobId, Reply<JobView>),
    /// A job was held, released, started again or edited; with what it asked for before, where that changed.
    Steered(JobId, Option<Edited>, Vec<String>, Reply<JobView>),
    /// A node was drained or resumed.
    Drained(AgentId, Option<(String, Option<String>)>, bool, Reply<()>),
    /// A node is to be removed.
    Removed(AgentId, Reply<()>),
    /// An agent is connected.
    Connected(AgentId, Box<Hello>, mpsc::Sender<ToAgent>, Reply<u64>),
    /// Agents may forget how a job ended.
    Durable(LeaseId, JobId),
}

/// What waits to be made durable.
#[derive(Default)]
pub(super) struct Staged {
    agents: Half,
    clients: Half,
    /// Jobs of which agents told something that should be written with whatever is written next.
    pub(super) facts: BTreeSet<JobId>,
    keys: BTreeMap<(String, String), (JobId, Arc<JobRequest>)>,
    kinds: Option<Kinds>,
    pub(super) resources: Option<Resources>,
    joins: u32,
    tick: bool,
}

/// Nothing can be written.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) error: StoreError,
    pub(super) retry_at: Span,
    delay: Span,
}

impl Staged {
    /// Whether something waits that should not wait longer.
    pub(super) fn is_waiting(&self) -> bool {
        self.tick || !self.agents.is_empty() || !self.clients.is_empty()
    }

    pub(super) fn tick(&mut self) {
        self.tick = true;
    }

    /// Something that agents caused, or the driver itself: it is kept until it is durable.
    pub(super) fn keep(&mut self, input: Input) {
        self.agents.input(input);
    }

    /// The same, with its JSON at hand.
    pub(super) fn keep_text(&mut self, input: Input, text: String) {
        self.agents.inputs.push((input, text));
    }

    /// What a node is now. Only the last row of a node is written.
    pub(super) fn keep_node(&mut self, row: NodeRow) {
        match self.agents.nodes.iter_mut().find(|known| known.name == row.name) {
            Some(known) => *known = row,
            None => self.agents.nodes.push(row),
        }
    }

    pub(super) fn forget_node(&mut self, name: String) {
        self.agents.nodes.retain(|row| row.name != name);
        self.agents.forgotten.push(name);
    }

    pub(super) fn keep_after(&mut self, after: After) {
        self.agents.after.push(after);
    }

    pub(super) fn cancel(&mut self, job: JobId, input: Input, facts: Facts, reply: Reply<JobView>) {
        self.clients.input(input);
        self.clients.facts.push((job, facts));
        self.clients.after.push(After::Cancelled(job, reply));
    }

    pub(super) fn steer(
        &mut self,
        job: JobId,
        (input, facts): (Input, Facts),
        edited: Option<Edited>,
        warnings: Vec<String>,
        reply: Reply<JobView>,
    ) {
        self.clients.input(input);
        self.clients.facts.push((job, facts));
        self.clients.requests.extend(edited.as_ref().map(|edited| (job, edited.after.clone())));
        self.clients.after.push(After::Steered(job, edited, warnings, reply));
    }

    /// What a job asks for after all.
    pub(super) fn keep_request(&mut self, job: JobId, request: Arc<JobRequest>) {
        self.agents.requests.push((job, request));
    }

    /// Whether a job will ask for something else once all that waits is durable.
    pub(super) fn edits(&self, job: JobId) -> bool {
        self.clients.requests.iter().any(|(other, _)| *other == job)
    }

    /// What will be known of a job once all that waits is durable, where that changes.
    pub(super) fn facts_of(&self, job: JobId) -> Option<&Facts> {
        self.clients.facts.iter().rfind(|(other, _)| *other == job).map(|(_, facts)| facts)
    }

    pub(super) fn drain(&mut self, agent: AgentId, row: NodeRow, evict: bool, reply: Reply<()>) {
        self.clients.after.push(After::Drained(agent, row.drain.clone(), evict, reply));
        self.clients.nodes.push(row);
    }

    pub(super) fn remove(&mut self, agent: AgentId, reply: Reply<()>) {
        self.clients.after.push(After::Removed(agent, reply));
    }

    pub(super) fn audit(&mut self, user: &str, what: &'static str, target: String, outcome: &str) {
        self.clients.audit.push(AuditRow {
            user: user.to_owned(),
            what,
            target,
            outcome: outcome.to_owned(),
        });
    }

    /// Jobs that will be submitted.
    pub(super) fn submissions(&self) -> Sum {
        Sum { jobs: self.clients.jobs.len(), bytes: self.clients.bytes }
    }

    /// The same of one user.
    pub(super) fn submissions_of(&self, user: &str) -> Sum {
        let own = self.clients.jobs.iter().filter(|job| job.user == user);
        own.fold(Sum::default(), |sum, job| Sum {
            jobs: sum.jobs + 1,
            bytes: sum.bytes + job.request.footprint(),
        })
    }

    /// What one user is submitting.
    pub(super) fn requests_of(&self, user: &str) -> impl Iterator<Item = &JobRequest> {
        self.clients.jobs.iter().filter(move |job| job.user == user).map(|job| &*job.request)
    }

    /// Whose job it is that will be submitted under this number.
    pub(super) fn owner(&self, job: JobId) -> Option<&str> {
        self.clients.jobs.iter().find(|new| new.id == job).map(|new| new.user.as_str())
    }

    /// What will be submitted under a key.
    pub(super) fn of_key(&self, user: &str, key: &str) -> Option<(JobId, Arc<JobRequest>)> {
        self.keys.get(&(user.to_owned(), key.to_owned())).cloned()
    }

    /// An answer that must wait until the job is durable.
    pub(super) fn answer(&mut self, job: JobId, reply: Reply<JobView>) {
        self.clients.after.push(After::Submitted(job, Vec::new(), reply));
    }
}

impl Driver {
    /// The kinds as they will be once everything staged is stepped.
    pub(super) fn kinds(&self) -> &Kinds {
        self.staged.kinds.as_ref().unwrap_or_else(|| self.engine.kinds())
    }

    pub(super) fn kind(&mut self, name: &str) -> KindId {
        if let Some(kind) = self.kinds().find(name) {
            return kind;
        }
        self.staged.keep(Input::Kind(name.to_owned()));
        self.staged.kinds.get_or_insert_with(|| self.engine.kinds().clone()).intern(name)
    }

    /// A node joins; the number it will have.
    pub(super) fn join(&mut self, spec: NodeSpec) -> NodeId {
        let node = NodeId(self.engine.nodes().len() as u32 + self.staged.joins);
        self.staged.joins += 1;
        self.staged.keep(Input::Node(NodeChange::Join(spec)));
        node
    }

    /// A job is submitted; the number it will have.
    pub(super) fn submit(&mut self, new: NewJob, spec: yard_core::job::JobSpec, reply: Reply<JobView>) {
        let warnings = self.warnings(&new.request, &spec);
        let half = &mut self.staged.clients;
        half.input(Input::Submit(Box::new(spec)));
        half.after.push(After::Submitted(new.id, warnings, reply));
        if let Some(key) = &new.key {
            self.staged.keys.insert((new.user.clone(), key.clone()), (new.id, new.request.clone()));
        }
        half.bytes += new.request.footprint();
        half.jobs.push(new);
    }

    /// The number that the next job will have.
    pub(super) fn next_job(&self) -> JobId {
        JobId(self.engine.next_job().0 + self.staged.clients.jobs.len() as u64)
    }

    /// Makes everything staged durable, steps the engine and answers. A beat is taken at its own time, however late it
    /// is noticed, and before whatever happened since.
    pub(super) fn commit(&mut self, now: Time) {
        let beat = self.engine.deadline().filter(|time| *time < now);
        self.commit_after(beat, now);
    }

    /// The same without a look at the clock's beats, or with one that is due.
    pub(super) fn commit_after(&mut self, beat: Option<Time>, now: Time) {
        if !self.staged.is_waiting() {
            return;
        }
        let elapsed = self.clock.elapsed();
        if self.failing.as_ref().is_some_and(|failing| elapsed < failing.retry_at) {
            return self.refuse_clients();
        }
        let mut batch = Half::default();
        batch.absorb(std::mem::take(&mut self.staged.agents));
        let agents = Counts::of(&batch);
        batch.absorb(std::mem::take(&mut self.staged.clients));
        batch.input(Input::Tick);
        let watch = Stopwatch::start();
        match self.write(now, beat, &batch) {
            Ok(()) => {
                self.config.meter.commit(watch.took());
                self.config.meter.submitted(batch.jobs.len() as u64);
                self.committed(now, beat, batch);
            }
            Err(error) => {
                let clients = agents.split(&mut batch);
                (self.staged.agents, self.staged.clients) = (batch, clients);
                self.failed(error);
            }
        }
    }

    fn write(&mut self, now: Time, beat: Option<Time>, batch: &Half) -> Result<(), StoreError> {
        let told = self.staged.facts.iter().filter_map(|id| Some((*id, self.records.all.get(id)?)));
        // What a client changes of a job's facts goes on top of what agents told.
        let mut facts: BTreeMap<JobId, Facts> = told.map(|(id, record)| (id, record.facts.clone())).collect();
        facts.extend(batch.facts.iter().cloned());
        let facts: Vec<_> = facts.into_iter().collect();
        let tick = beat.map(|_| TICK);
        let texts = batch.inputs.iter().map(|(_, text)| text.as_str());
        let inputs: Vec<&str> = tick.into_iter().chain(texts).collect();
        let (jobs, nodes, audit) = (&batch.jobs, &batch.nodes, &batch.audit);
        let (forgotten, requests) = (&batch.forgotten, &batch.requests);
        let first = self.seq + 1;
        let inputs = &inputs;
        let write = Write {
            first,
            time: now,
            first_time: beat,
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

    fn committed(&mut self, now: Time, beat: Option<Time>, batch: Half) {
        if self.failing.take().is_some() {
            tracing::info!(file = %self.store.path().display(), "changes can be written again");
        }
        self.tell_derived();
        self.staged.facts.clear();
        self.staged.keys.clear();
        (self.staged.kinds, self.staged.resources) = (None, None);
        (self.staged.joins, self.staged.tick) = (0, false);
        for job in batch.jobs {
            self.records.insert(job.id, Record::new(job.id, &job.user, job.request, now));
        }
        for (job, facts) in batch.facts {
            if let Some(record) = self.records.all.get_mut(&job) {
                (record.facts.cancelled, record.facts.held) = (facts.cancelled, facts.held);
            }
        }
        if let Some(beat) = beat {
            self.step(beat, Input::Tick);
        }
        for (input, _) in batch.inputs {
            self.step(now, input);
        }
        for after in batch.after {
            self.after(now, after);
        }
    }

    fn after(&mut self, now: Time, after: After) {
        match after {
            After::Submitted(job, warnings, reply) => {
                self.refresh(now, job);
                self.answers.push((job, warnings, reply));
            }
            After::Cancelled(job, reply) => {
                self.refresh(now, job);
                self.answers.push((job, Vec::new(), reply));
            }
            After::Steered(job, edited, warnings, reply) => {
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
            After::Drained(agent, drain, evict, reply) => {
                self.agents.get_mut(agent).drain = drain;
                if evict {
                    self.evict(agent);
                }
                self.settle(agent);
                let _ = reply.send(Ok(()));
            }
            After::Removed(agent, reply) => self.removed(now, agent, reply),
            After::Connected(agent, hello, link, reply) => self.connected(now, agent, *hello, link, reply),
            After::Durable(lease, job) => self.durable(now, lease, job),
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
    pub(super) fn answer(&mut self) {
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
        let reason = format!("this cannot be made durable now: {cause}");
        self.staged.keys.clear();
        self.staged.tick = false;
        for after in std::mem::take(&mut self.staged.clients).after {
            let refusal = Refusal::Unavailable(reason.clone());
            match after {
                After::Submitted(_, _, reply)
                | After::Cancelled(_, reply)
                | After::Steered(_, _, _, reply) => {
                    let _ = reply.send(Err(refusal));
                }
                After::Drained(_, _, _, reply) | After::Removed(_, reply) => {
                    let _ = reply.send(Err(refusal));
                }
                After::Connected(..) | After::Durable(..) => {}
            }
        }
    }
}

fn just_started(job: JobId) -> Refusal {
    Refusal::Conflict(format!("job {job} has just got devices; yard hold {job} first, then edit it"))
}

/// How much of a batch is the agents'.
struct Counts {
    inputs: usize,
    requests: usize,
    nodes: usize,
    after: usize,
}

impl Counts {
    fn of(half: &Half) -> Counts {
        Counts {
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
            // Only what agents and the driver itself cause forgets a node.
            forgotten: Vec::new(),
            audit: std::mem::take(&mut batch.audit),
            after: batch.after.split_off(self.after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_row_of_a_node_waits() {
        let row = |name: &str, address: &str| NodeRow {
            name: name.into(),
            address: address.into(),
            groups: vec![],
            drain: None,
            audience: None,
        };
        let mut staged = Staged::default();
        [("n1", "a"), ("n2", "b"), ("n1", "c")]
            .into_iter()
            .for_each(|(name, address)| staged.keep_node(row(name, address)));
        assert_eq!(staged.agents.nodes, [row("n1", "c"), row("n2", "b")]);
    }
}
