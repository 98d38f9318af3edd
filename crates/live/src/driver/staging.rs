//! What waits to be made durable, and what happens once it is. Two halves: what was heard of hosts and jobs is kept until
//! it can be written; what clients ask is refused where it cannot be.

mod commit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_core::cluster::{Kinds, NodeSpec, Resources};
use yard_core::ids::{JobId, KindId, LeaseId, NodeId};
use yard_core::message::{Input, NodeChange};
use yard_core::units::Span;

use super::Driver;
use super::jobs::RecordSum;
use crate::exec::{HostAbilities, HostId};
use crate::handle::Reply;
use crate::request::JobRequest;
use crate::store::{AuditRow, Facts, NewJob, NodeRow, StoreError};
use crate::views::JobView;

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
    after: Vec<StagedAfter>,
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
pub(super) enum StagedAfter {
    /// A job was submitted, or was before under the same key.
    Submitted(JobId, Vec<String>, Reply<JobView>),
    /// A job was withdrawn.
    Cancelled(JobId, Reply<JobView>),
    /// A job was held, released, started again or edited; with what it asked for before, where that changed.
    Steered(JobId, Option<Edited>, Vec<String>, Reply<JobView>),
    /// A node was drained or resumed.
    Drained(HostId, Option<(String, Option<String>)>, bool, Reply<()>),
    /// A node is to be removed.
    Removed(HostId, Reply<()>),
    /// A host that offered itself, by the number of its offer.
    Admitted(HostId, u64, HostAbilities),
    /// How a job ended need not be remembered elsewhere.
    Durable(LeaseId, JobId),
}

/// What waits to be made durable.
#[derive(Default)]
pub(super) struct Staged {
    heard: Half,
    clients: Half,
    /// Jobs of which something was heard that should be written with whatever is written next.
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
        self.tick || !self.heard.is_empty() || !self.clients.is_empty()
    }

    pub(super) fn tick(&mut self) {
        self.tick = true;
    }

    /// Something that was heard, or that the driver itself caused: it is kept until it is durable.
    pub(super) fn keep(&mut self, input: Input) {
        self.heard.input(input);
    }

    /// The same, with its JSON at hand.
    pub(super) fn keep_text(&mut self, input: Input, text: String) {
        self.heard.inputs.push((input, text));
    }

    /// What a node is now. Only the last row of a node is written.
    pub(super) fn keep_node(&mut self, row: NodeRow) {
        match self.heard.nodes.iter_mut().find(|known| known.name == row.name) {
            Some(known) => *known = row,
            None => self.heard.nodes.push(row),
        }
    }

    pub(super) fn forget_node(&mut self, name: String) {
        self.heard.nodes.retain(|row| row.name != name);
        self.heard.forgotten.push(name);
    }

    pub(super) fn keep_after(&mut self, after: StagedAfter) {
        self.heard.after.push(after);
    }

    pub(super) fn cancel(&mut self, job: JobId, input: Input, facts: Facts, reply: Reply<JobView>) {
        self.clients.input(input);
        self.clients.facts.push((job, facts));
        self.clients.after.push(StagedAfter::Cancelled(job, reply));
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
        self.clients.after.push(StagedAfter::Steered(job, edited, warnings, reply));
    }

    /// What a job asks for after all.
    pub(super) fn keep_request(&mut self, job: JobId, request: Arc<JobRequest>) {
        self.heard.requests.push((job, request));
    }

    /// Whether a job will ask for something else once all that waits is durable.
    pub(super) fn edits(&self, job: JobId) -> bool {
        self.clients.requests.iter().any(|(other, _)| *other == job)
    }

    /// What will be known of a job once all that waits is durable, where that changes.
    pub(super) fn facts_of(&self, job: JobId) -> Option<&Facts> {
        self.clients.facts.iter().rfind(|(other, _)| *other == job).map(|(_, facts)| facts)
    }

    pub(super) fn drain(&mut self, host: HostId, row: NodeRow, evict: bool, reply: Reply<()>) {
        self.clients.after.push(StagedAfter::Drained(host, row.drain.clone(), evict, reply));
        self.clients.nodes.push(row);
    }

    pub(super) fn remove(&mut self, host: HostId, reply: Reply<()>) {
        self.clients.after.push(StagedAfter::Removed(host, reply));
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
    pub(super) fn submissions(&self) -> RecordSum {
        RecordSum { jobs: self.clients.jobs.len(), bytes: self.clients.bytes }
    }

    /// The same of one user.
    pub(super) fn submissions_of(&self, user: &str) -> RecordSum {
        let own = self.clients.jobs.iter().filter(|job| job.user == user);
        own.fold(RecordSum::default(), |sum, job| RecordSum {
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
        self.clients.after.push(StagedAfter::Submitted(job, Vec::new(), reply));
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
        half.after.push(StagedAfter::Submitted(new.id, warnings, reply));
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
        assert_eq!(staged.heard.nodes, [row("n1", "c"), row("n2", "b")]);
    }
}
