//! Facts as people see them: one line for each job that a fact is about, so that users see those of their own jobs.

use std::sync::Arc;

use serde_json::{Value, json};
use yard_core::cluster::Placement;
use yard_core::ids::{JobId, NodeId};
use yard_core::message::{Event, NodeNews, Outcome};
use yard_core::units::Time;

use super::Driver;
use super::jobs::{devices, state_name};
use super::machines::{kind_of, named};
use crate::views::EventView;

/// Events of one input that can be told apart: their numbers are those of the inputs, times this.
const EVENTS_PER_INPUT: u64 = 1 << 20;

impl Driver {
    /// Notes a fact for the history and for who listens; `n` counts those of this input.
    pub(super) fn publish(&mut self, now: Time, event: &Event, n: &mut u64) {
        for (name, job, node, detail) in self.lines(event) {
            let user = job.and_then(|job| self.owner(job));
            let id = self.seq * EVENTS_PER_INPUT + (*n).min(EVENTS_PER_INPUT - 1);
            *n += 1;
            let (event, job) = (name.to_owned(), job.map(|job| job.0));
            self.derived.events.push(Arc::new(EventView {
                id,
                time: now.secs(),
                event,
                job,
                node,
                detail,
                user,
            }));
        }
    }

    fn owner(&self, job: JobId) -> Option<String> {
        if let Some(record) = self.records.all.get(&job) {
            return Some(record.view.user.clone());
        }
        let ended = self.derived.ended.iter().rfind(|ended| ended.view.id == job.0);
        ended.map(|ended| ended.view.user.clone())
    }

    fn lines(&self, event: &Event) -> Vec<(&'static str, Option<JobId>, Option<String>, Value)> {
        let job = |name, job: &JobId, detail| vec![(name, Some(*job), None, detail)];
        match event {
            Event::Submitted { job: id } => job("submitted", id, json!({})),
            Event::Promised { job: id, by, devices } => {
                job("promised", id, json!({ "by": by.secs(), "gpus": devices }))
            }
            Event::Unpromised { job: id, earliest } => {
                job("unpromised", id, json!({ "earliest": earliest.map(Time::secs) }))
            }
            Event::AtRisk { job: id, by, likely } => {
                job("at_risk", id, json!({ "by": by.secs(), "likely": likely.map(Time::secs) }))
            }
            Event::Rejected { job: id, reason, earliest } => {
                job("rejected", id, json!({ "reason": reason, "earliest": earliest.map(Time::secs) }))
            }
            Event::Held { job: id } => job("held", id, self.held_by(*id)),
            Event::Released { job: id } => job("released", id, json!({})),
            Event::Edited { job: id } => job("edited", id, json!({})),
            Event::Orphaned { job: id, after } => job("orphaned", id, json!({ "after": after.0 })),
            Event::Granted { lease, jobs, placement } => {
                let detail = json!({
                    "lease": lease.0,
                    "gpus": placement.devices(),
                    "kind": self.kind_of(placement),
                    "placement": self.places(placement),
                });
                jobs.iter().map(|job| ("granted", Some(*job), None, detail.clone())).collect()
            }
            Event::Started { job: id } => job("started", id, json!({})),
            Event::Stopping { job: id, why, to } => {
                let to: Vec<_> = to.iter().map(|job| job.0).collect();
                job("stopping", id, json!({ "why": why, "to": to }))
            }
            Event::Stopped { job: id, steps, outcome } => {
                job("stopped", id, self.stop(*id, *steps, *outcome))
            }
            Event::Ended { job: id, state } => {
                let ended = self.derived.ended.iter().rfind(|ended| ended.view.id == id.0);
                let (code, reason) =
                    ended.map(|ended| (ended.view.exit_code, ended.view.reason.clone())).unzip();
                let detail = json!({ "state": state_name(*state), "exit_code": code.flatten(), "reason": reason.flatten() });
                job("ended", id, detail)
            }
            Event::Freed { lease, placement } => {
                vec![("freed", None, None, json!({ "lease": lease.0, "placement": self.places(placement) }))]
            }
            Event::Node { node, change } => vec![self.node_line(*node, *change)],
            Event::Planned { plan, certificate, unmet } => {
                let unmet: Vec<_> = unmet.iter().map(|job| job.0).collect();
                let (objective, bound) = (certificate.objective, certificate.bound);
                let detail =
                    json!({ "plan": plan.0, "objective": objective, "bound": bound, "unmet": unmet });
                vec![("planned", None, None, detail)]
            }
            Event::PlanFailed { plan, reason } => {
                vec![("plan_failed", None, None, json!({ "plan": plan.0, "reason": reason }))]
            }
            Event::Stale { lease, job: id } => job("stale", id, json!({ "lease": lease.0 })),
        }
    }

    fn held_by(&self, job: JobId) -> Value {
        let by = self.records.all.get(&job).and_then(|record| record.facts.held.as_ref());
        by.map_or(json!({}), |by| json!({ "by": by.user, "reason": by.reason }))
    }

    fn stop(&self, job: JobId, steps: f64, outcome: Outcome) -> Value {
        let facts = self.records.all.get(&job).map(|record| &record.facts);
        let outcome = match outcome {
            Outcome::Finished => "finished",
            Outcome::Saved => "saved",
            Outcome::Frozen => "frozen",
            Outcome::Lost => "lost",
            Outcome::Crashed => "crashed",
            Outcome::Expired => "expired",
        };
        json!({
            "outcome": outcome,
            "steps": steps,
            "exit_code": facts.and_then(|facts| facts.exit_code),
            "message": facts.and_then(|facts| facts.message.clone()),
        })
    }

    fn node_line(
        &self,
        node: NodeId,
        change: NodeNews,
    ) -> (&'static str, Option<JobId>, Option<String>, Value) {
        let host = self.hosts.of_node(node).map(|host| self.hosts.get(host));
        let reason = host.and_then(|host| host.state_now().1);
        let name = self.engine.nodes().get(node).spec.name.clone();
        ("node", None, Some(name), json!({ "change": change, "reason": reason }))
    }

    fn places(&self, placement: &Placement) -> Value {
        let place = |slice: &yard_core::cluster::Slice| {
            let (name, mask) = named(self.engine.nodes(), self.engine.kinds(), slice);
            json!({ "node": name, "devices": devices(mask).collect::<Vec<_>>() })
        };
        placement.0.iter().map(place).collect()
    }

    fn kind_of(&self, placement: &Placement) -> Option<&str> {
        kind_of(self.engine.nodes(), self.engine.kinds(), placement)
    }
}
