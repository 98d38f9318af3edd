//! What agents say on their connections, in the driver's words. Of a job only those are heard that run it.

use yard_core::gang::ToGang;
use yard_core::ids::AgentId;
use yard_core::job::Usage;
use yard_core::part::PartId;
use yard_core::units::Span;

use super::hello::{WORDS_MAX, tidied_news};
use super::{Agents, host, reach};
use crate::exec::notice::shortened;
use crate::exec::{CardReport, HostReach, JobNews, Notice};
use crate::wire::{CardNow, FromAgent, ToAgent};

impl Agents {
    pub(super) fn take(&mut self, now: Span, connection: u64, message: FromAgent, out: &mut Vec<Notice>) {
        // What an older connection still had to say is said again on the newer one.
        let Some(agent) = self.peers.of_connection(connection) else { return };
        let host = host(agent);
        match message {
            FromAgent::Hello(_) => {}
            FromAgent::Beat { seq } => self.beat(now, agent, seq, out),
            FromAgent::Told { part, told } => {
                self.step_gangs(ToGang::Told { agent, part, told: tidied_news(told) }, out);
            }
            FromAgent::Health { group, device, problem } => {
                let problem = problem.map(|text| shortened(text, WORDS_MAX));
                out.push(Notice::Device { host, group, device, problem });
            }
            FromAgent::Looked { cards } => {
                out.push(Notice::Cards { host, cards: cards.into_iter().map(report).collect() });
            }
            FromAgent::Used { part, busy, memory_mib } => {
                self.news(agent, part, JobNews::Usage(Usage { busy, memory_mib }), out);
            }
            FromAgent::Trained { part, said } => self.news(agent, part, JobNews::Trained(said), out),
            FromAgent::Hushed { part, hushed } => self.news(agent, part, JobNews::Hushed(hushed), out),
            FromAgent::Logs { request, text, end, error } => {
                out.push(Notice::Log { host, request, text, end, error });
            }
        }
    }

    fn beat(&mut self, now: Span, id: AgentId, seq: u64, out: &mut Vec<Notice>) {
        self.peers.send(id, ToAgent::Beat { seq });
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.heard = now;
        if std::mem::replace(&mut peer.silent, false) {
            out.push(reach(id, HostReach::Here));
        }
    }

    /// News of a job, if it is this agent that runs it.
    fn news(&self, agent: AgentId, part: PartId, news: JobNews, out: &mut Vec<Notice>) {
        let PartId { lease, job, .. } = part;
        if self.gangs.agents(lease, job).any(|known| known == agent) {
            out.push(Notice::Job { lease, job, news });
        }
    }

    pub(super) fn disconnected(&mut self, connection: u64, out: &mut Vec<Notice>) {
        let Some(agent) = self.peers.of_connection(connection) else { return };
        let node = self.peers.get(agent).map(|peer| peer.name.as_str());
        tracing::info!(node, connection, "an agent's connection is gone");
        self.sever(agent, out);
    }

    /// Ends an agent's connection, if it has one.
    pub(super) fn sever(&mut self, agent: AgentId, out: &mut Vec<Notice>) {
        self.peers.disconnect(agent);
        self.note_audience(agent);
        out.push(reach(agent, HostReach::Away));
    }
}

fn report(mut card: CardNow) -> CardReport {
    card.parts.sort_by_key(|(part, ..)| *part);
    CardReport {
        group: card.group,
        device: card.device,
        busy: card.busy,
        memory_used_mib: card.memory_used_mib,
        temperature_c: card.temperature_c,
        power_w: card.power_w,
        throttled: card.throttled,
        ecc: card.ecc,
        jobs: card.parts.into_iter().map(|(part, busy, _)| (part.job, busy)).collect(),
    }
}
