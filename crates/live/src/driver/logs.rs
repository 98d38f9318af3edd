//! Jobs' logs lie with the agents that ran them; this passes requests on and hands the pieces back. Nothing of it
//! is durable: who still wants a log after a restart asks again.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use yard_core::ids::AgentId;

use super::Driver;
use super::clients::no_job;
use crate::handle::{LogRequest, Refusal, Reply, Who};
use crate::store::Ran;
use crate::wire::ToAgent;

/// Pieces of a log, or why there are none.
pub(super) type Pieces = mpsc::UnboundedReceiver<Result<String, String>>;

/// Requests that agents are answering.
#[derive(Debug, Default)]
pub(super) struct Logs {
    open: BTreeMap<u64, (AgentId, mpsc::UnboundedSender<Result<String, String>>)>,
    requests: u64,
    /// Requests whose asker is gone, to be called off.
    unwanted: Vec<(AgentId, u64)>,
}

impl Logs {
    fn begin(&mut self, agent: AgentId) -> (u64, Pieces) {
        let (sender, pieces) = mpsc::unbounded_channel();
        self.requests += 1;
        self.open.insert(self.requests, (agent, sender));
        (self.requests, pieces)
    }

    /// An agent sent a piece.
    pub(super) fn piece(
        &mut self,
        agent: AgentId,
        request: u64,
        text: String,
        end: bool,
        error: Option<String>,
    ) {
        let Some((_, asker)) = self.open.get(&request).filter(|(own, _)| *own == agent) else { return };
        let text = Some(text).filter(|text| !text.is_empty()).map(Ok);
        let heard = text.into_iter().chain(error.map(Err)).all(|piece| asker.send(piece).is_ok());
        if end {
            self.open.remove(&request);
        } else if !heard {
            self.open.remove(&request);
            self.unwanted.push((agent, request));
        }
    }

    /// An agent is gone with all it was sending.
    pub(super) fn lost(&mut self, agent: AgentId, reason: &str) {
        self.open.retain(|_, (own, asker)| {
            if *own == agent {
                let _ = asker.send(Err(reason.to_owned()));
            }
            *own != agent
        });
    }

    /// Notes who does not listen any more, and returns what to call off.
    pub(super) fn call_off(&mut self) -> Vec<(AgentId, u64)> {
        let mut unwanted = std::mem::take(&mut self.unwanted);
        self.open.retain(|request, (agent, asker)| {
            if asker.is_closed() {
                unwanted.push((*agent, *request));
            }
            !asker.is_closed()
        });
        unwanted
    }
}

impl Driver {
    pub(super) fn take_logs(&mut self, who: &Who, log: LogRequest, reply: Reply<Pieces>) {
        let _ = reply.send(self.open_log(who, log));
    }

    fn open_log(&mut self, who: &Who, log: LogRequest) -> Result<Pieces, Refusal> {
        let LogRequest { job, rank, stderr, tail, follow } = log;
        self.look_up_for(who, job)?;
        let ran = self.ran(job)?;
        let has = |ran: &&Ran| (ran.first..ran.first.saturating_add(ran.count)).contains(&rank);
        let Some(ran) = ran.iter().find(has) else {
            let world: u32 = ran.iter().map(|ran| ran.count).sum();
            let message = if world == 0 {
                format!("job {job} has not started yet, so it has no output")
            } else {
                format!("job {job} has no rank {rank}; its ranks are 0 to {}", world - 1)
            };
            return Err(Refusal::NotFound(message));
        };
        let there = self.agents.named(&ran.node).filter(|agent| self.agents.get(*agent).is_there());
        let Some(agent) = there else {
            let message = format!("the output of job {job} is on node {}, which cannot be reached", ran.node);
            return Err(Refusal::Unavailable(message));
        };
        let (request, pieces) = self.logs.begin(agent);
        self.agents.get(agent).send(ToAgent::Logs { request, job, rank, stderr, tail, follow });
        Ok(pieces)
    }

    /// Where a job ran last.
    fn ran(&self, job: yard_core::ids::JobId) -> Result<Vec<Ran>, Refusal> {
        if let Some(record) = self.records.all.get(&job) {
            return Ok(record.facts.ran.clone());
        }
        let row = self.store.job(job).map_err(|error| Refusal::Unavailable(error.to_string()))?;
        row.map(|row| row.facts.ran).ok_or_else(|| no_job(job))
    }

    /// Tells agents about askers that are gone.
    pub(super) fn call_off_logs(&mut self) {
        for (agent, request) in self.logs.call_off() {
            self.agents.get(agent).send(ToAgent::LogsEnd { request });
        }
    }
}
