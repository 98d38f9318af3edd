//! A question what would become of a job, or of all jobs if a node went: a job is checked like a submission, and a copy
//! of all that is known is handed to who asked. Nothing is staged, and the driver does no more for it than that copy.

use yard_core::message::NodeChange;
use yard_core::units::Time;

use super::Driver;
use crate::handle::{Refusal, Reply, Who};
use crate::request::JobRequest;
use crate::what_if::{OtherWay, WhatIf, WhatIfChange, WhatIfQuestion, ways};

impl Driver {
    pub(super) fn take_what_if(&self, who: &Who, asked: &WhatIf, reply: Reply<WhatIfQuestion>) {
        // Who asked may have gone.
        let _ = reply.send(self.question(who, asked));
    }

    fn question(&self, who: &Who, asked: &WhatIf) -> Result<WhatIfQuestion, Refusal> {
        let none = "this server runs without estimates";
        let (how, make) = self.forecaster.how().ok_or_else(|| Refusal::Unavailable(none.into()))?;
        Ok(WhatIfQuestion {
            ways: self.ways(who, asked)?,
            state: self.engine.state().clone(),
            at: self.clock.peek().max(self.engine.now()),
            past: self.forecaster.past(),
            moves: self.forecaster.moves(self.engine.now()),
            how,
            make,
            quick: asked.quick,
            intervals: asked.intervals.unwrap_or(true),
            seed: self.seq,
        })
    }

    fn ways(&self, who: &Who, asked: &WhatIf) -> Result<Vec<OtherWay>, Refusal> {
        match (&asked.job, &asked.drain, &asked.fail) {
            (Some(job), None, None) => {
                self.ways_of(who, job, !asked.quick && asked.alternatives.unwrap_or(true))
            }
            (None, Some(node), None) if asked.evict => {
                self.node_way(node, "drained, its jobs moved", asked.at, NodeChange::Leave)
            }
            (None, Some(node), None) => self.node_way(node, "drained", asked.at, NodeChange::Drain),
            (None, None, Some(node)) => self.node_way(node, "fails", asked.at, NodeChange::Fail),
            _ => {
                let message = "give one of: a job, a node to drain, a node that fails";
                Err(Refusal::Invalid { field: None, message: message.into() })
            }
        }
    }

    fn ways_of(&self, who: &Who, request: &JobRequest, others: bool) -> Result<Vec<OtherWay>, Refusal> {
        self.serves(&who.user)?;
        self.grace(request)?;
        self.priority(request)?;
        self.deadline(request)?;
        self.predecessors(who, request)?;
        let offers = self.offers_for(request);
        ways(&who.user, request, self.kinds(), &*self.config.catalog, &offers, others)
    }

    /// Something happens to all that a host offers.
    fn node_way(
        &self,
        name: &str,
        what: &str,
        at: Option<f64>,
        change: fn(yard_core::ids::NodeId) -> NodeChange,
    ) -> Result<Vec<OtherWay>, Refusal> {
        let Some(host) = self.hosts.named(name) else {
            return Err(Refusal::NotFound(format!(
                "there is no node {name:?}; to list the nodes: yard nodes"
            )));
        };
        if at.is_some_and(|at| !at.is_finite() || at < 0.0) {
            let message = "at is a time in seconds since 1970".to_owned();
            return Err(Refusal::Invalid { field: Some("at".into()), message });
        }
        let at = at.map_or(Time::ZERO, Time::from_secs);
        let nodes = self.hosts.get(host).nodes.iter().map(|node| (at, change(*node))).collect();
        Ok(vec![OtherWay { label: format!("{name} {what}"), change: WhatIfChange::Nodes(nodes) }])
    }
}
