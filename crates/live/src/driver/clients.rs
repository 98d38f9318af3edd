//! What clients ask for: jobs in and out, drains, and the view for explanations. Nothing here changes anything but
//! what is staged; answers leave once that is durable.

use std::sync::Arc;

use yard_core::cluster::{Node, NodeState};
use yard_core::ids::{JobId, NodeId};
use yard_core::job::{JobSpec, Late};
use yard_core::message::Input;
use yard_core::units::Span;

use super::Driver;
use crate::handle::{Refusal, Reply, Who};
use crate::offers::Offers;
use crate::request::JobRequest;
use crate::store::NewJob;
use crate::translate::translate;
use crate::views::JobView;
use crate::warnings;

impl Driver {
    pub(super) fn take_submit(
        &mut self,
        who: &Who,
        request: JobRequest,
        key: Option<String>,
        reply: Reply<JobView>,
    ) {
        let request = Arc::new(request);
        let known = key.as_deref().map_or(Ok(None), |key| self.of_key(&who.user, key, &request));
        match known {
            Ok(Some(job)) => return self.staged.answer(job, reply),
            Ok(None) => {}
            Err(refusal) => return drop(reply.send(Err(refusal))),
        }
        let offers = self.offers_for(&request);
        let spec = self
            .serves(&who.user)
            .and_then(|()| self.room_for(&who.user, &request))
            .and_then(|()| self.grace(&request))
            .and_then(|()| self.priority(&request))
            .and_then(|()| self.deadline(&request))
            .and_then(|()| self.predecessors(who, &request))
            .and_then(|()| translate(&who.user, &request, self.kinds(), &*self.config.catalog, &offers))
            .and_then(|spec| self.within_allowance(who, &request, spec));
        match spec {
            Ok(spec) => {
                let id = self.next_job();
                self.staged.audit(&who.user, "submit", format!("job {id}"), "accepted");
                self.submit(NewJob { id, user: who.user.clone(), key, request }, spec, reply);
            }
            Err(refusal) => drop(reply.send(Err(refusal))),
        }
    }

    /// What a request can be served with; no more is gathered than it asks for.
    pub(super) fn offers_for(&self, request: &JobRequest) -> Offers {
        let known = if Offers::matter(request) { self.hosts.offers() } else { Offers::default() };
        known.counting(self.resources()).run_by(self.backend.abilities())
    }

    /// The same for all requests.
    pub(super) fn offers(&self) -> Offers {
        self.hosts.offers().counting(self.resources()).run_by(self.backend.abilities())
    }

    /// The job that was submitted under a key, if it was the same.
    fn of_key(&self, user: &str, key: &str, request: &JobRequest) -> Result<Option<JobId>, Refusal> {
        let conflict = |job: JobId| {
            Refusal::Conflict(format!("the key {key:?} was already used for job {job}, a different request"))
        };
        if let Some((job, before)) = self.staged.of_key(user, key) {
            return if *before == *request { Ok(Some(job)) } else { Err(conflict(job)) };
        }
        match self.store.job_of_key(user, key) {
            Ok(None) => Ok(None),
            Ok(Some(row)) if row.request == *request => Ok(Some(row.id)),
            Ok(Some(row)) => Err(conflict(row.id)),
            Err(error) => Err(Refusal::Unavailable(error.to_string())),
        }
    }

    /// Whether it asks for no more time to save than this server allows.
    pub(super) fn grace(&self, request: &JobRequest) -> Result<(), Refusal> {
        let most = self.config.grace_max;
        if request.checkpoint.grace_s.is_none_or(|grace| Span::from_secs(grace) <= most) {
            return Ok(());
        }
        let message = format!(
            "checkpoint: this server allows at most {most} to save and stop; use a shorter grace time, or ask an administrator to raise --grace-max"
        );
        Err(Refusal::Invalid { field: Some("checkpoint".into()), message })
    }

    /// Whether the policy honours its priority.
    pub(super) fn priority(&self, request: &JobRequest) -> Result<(), Refusal> {
        let refused = self.config.priorities.refusal(&self.config.policy).filter(|_| request.priority != 0);
        let Some(message) = refused else { return Ok(()) };
        Err(Refusal::Invalid { field: Some("priority".into()), message: format!("priority: {message}") })
    }

    /// What the policy needs and the job does not say.
    pub(super) fn warnings(&self, request: &JobRequest, spec: &JobSpec) -> Vec<String> {
        warnings::of_job(&self.config, request, spec)
    }

    /// Whether its deadline is still to come, and whether any are promised here where it insists on that.
    pub(super) fn deadline(&self, request: &JobRequest) -> Result<(), Refusal> {
        let wrong = |field: &str, message: &str| {
            Err(Refusal::Invalid { field: Some(field.to_owned()), message: message.to_owned() })
        };
        if request.deadline.is_some_and(|deadline| deadline <= self.clock.peek().secs()) {
            return wrong("deadline", "its deadline is in the past; give a later one, or none");
        }
        if request.late == Some(Late::Refuse) && !self.engine.settings().promises {
            return wrong(
                "late",
                "this server does not promise deadlines; leave out late, or start it with --promises on",
            );
        }
        Ok(())
    }

    /// Whether the jobs that it comes after are theirs and may still succeed, or have. The engine says the same of
    /// what happens until it is stepped.
    pub(super) fn predecessors(&self, who: &Who, request: &JobRequest) -> Result<(), Refusal> {
        let wrong = |message| Refusal::Invalid { field: Some("after".into()), message };
        for job in request.after.iter().copied().map(JobId) {
            if self.staged.owner(job).is_some_and(|owner| may(who, owner)) {
                continue;
            }
            let view = self.look_up_for(who, job).map_err(|refusal| wrong(format!("after: {refusal}")))?;
            if matches!(view.state.as_str(), "failed" | "cancelled" | "rejected") {
                let state = view.state;
                return Err(wrong(format!("after: job {job} has {state}, so this job could never start")));
            }
        }
        Ok(())
    }

    pub(super) fn take_cancel(
        &mut self,
        who: &Who,
        job: JobId,
        reason: Option<String>,
        force: bool,
        reply: Reply<JobView>,
    ) {
        let answer = match self.records.all.get(&job).filter(|record| may(who, &record.view.user)) {
            Some(record) => {
                let mut facts = record.facts.clone();
                facts.cancelled = Some((who.user.clone(), reason));
                let (what, input) = match force {
                    true => ("cancel by force", Input::Kill(job)),
                    false => ("cancel", Input::Cancel(job)),
                };
                self.staged.audit(&who.user, what, format!("job {job}"), "accepted");
                return self.staged.cancel(job, input, facts, reply);
            }
            None => self.look_up_for(who, job),
        };
        // A job that is over, or none at all. Withdrawing twice is harmless.
        let over = |view: JobView| match view.state.as_str() {
            "cancelled" => Ok(view),
            state => Err(Refusal::Conflict(format!("job {job} is over already: {state}"))),
        };
        let _ = reply.send(answer.and_then(over));
    }

    pub(super) fn take_drain(
        &mut self,
        who: &Who,
        node: &str,
        drain: Option<Option<String>>,
        evict: bool,
        reply: Reply<()>,
    ) {
        if !who.admin {
            return drop(
                reply.send(Err(Refusal::Forbidden("only admins can drain and resume nodes".into()))),
            );
        }
        let Some(host) = self.hosts.named(node) else {
            let message = format!("there is no node {node:?}; to list the nodes: yard nodes");
            return drop(reply.send(Err(Refusal::NotFound(message))));
        };
        let what = match (&drain, evict) {
            (None, _) => "resume",
            (Some(_), false) => "drain",
            (Some(_), true) => "drain and evict",
        };
        let mut row = self.hosts.get(host).row();
        row.drain = drain.map(|reason| (who.user.clone(), reason));
        self.staged.audit(&who.user, what, format!("node {node}"), "accepted");
        self.staged.drain(host, row, evict, reply);
    }

    /// Nodes with devices of this kind that take jobs, those first whose jobs cost least to stop.
    pub(super) fn cheapest(&self, kind: &str, count: u32) -> Result<Vec<String>, Refusal> {
        let view = self.engine.view();
        let of_kind = |node: &Node| {
            node.spec.pools.iter().any(|pool| view.kinds.get(pool.kind) == Some(kind))
                && node.state == NodeState::Up
        };
        let among: Vec<NodeId> =
            view.nodes.iter().filter(|(_, node)| of_kind(node)).map(|(id, _)| id).collect();
        if among.is_empty() {
            let message =
                format!("no node with devices of kind {kind:?} takes jobs; to list the nodes: yard nodes");
            return Err(Refusal::NotFound(message));
        }
        let nodes = self.engine.cheapest(&among, count as usize);
        let hosts = nodes.into_iter().filter_map(|node| self.hosts.of_node(node));
        Ok(hosts.map(|host| self.hosts.get(host).name.clone()).collect())
    }

    /// A job as it is.
    pub(super) fn look_up(&self, job: JobId) -> Result<JobView, Refusal> {
        if let Some(record) = self.records.all.get(&job) {
            return Ok(record.view.clone());
        }
        // What ended in this turn is not on the board yet.
        if let Some(ended) = self.derived.ended.iter().rfind(|ended| ended.view.id == job.0) {
            return Ok(ended.view.clone());
        }
        let board = self.board.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(view) = board.jobs.get(&job.0) {
            return Ok(JobView::clone(view));
        }
        drop(board);
        let row = self.store.job(job).map_err(|error| Refusal::Unavailable(error.to_string()))?;
        row.and_then(|row| row.summary).ok_or_else(|| no_job(job))
    }

    /// The same for somebody who may not see all.
    pub(super) fn look_up_for(&self, who: &Who, job: JobId) -> Result<JobView, Refusal> {
        let view = self.look_up(job)?;
        if may(who, &view.user) { Ok(view) } else { Err(no_job(job)) }
    }
}

/// Whether it is theirs to see and touch.
pub(super) fn may(who: &Who, owner: &str) -> bool {
    who.admin || who.user == owner
}

pub(super) fn no_job(job: JobId) -> Refusal {
    Refusal::NotFound(format!("you have no job {job}; to list your jobs: yard jobs --all"))
}
