//! Agents that fall silent: out of reach after a few beats, and given up once nothing can run there any more.

use yard_core::gang::ToGang;
use yard_core::ids::AgentId;
use yard_core::units::Span;

use super::{Agents, host, reach};
use crate::exec::{HostReach, Notice};

/// Beats that an agent may miss before it is taken to be out of reach.
const MISSED_MAX: u64 = 3;

impl Agents {
    /// Agents that do not take what they are sent: they are disconnected, and come back with all they know.
    pub(super) fn look_for_full(&mut self, out: &mut Vec<Notice>) {
        for id in self.peers.ids() {
            let Some(peer) = self.peers.get(id) else { continue };
            if peer.link.as_ref().is_some_and(|link| link.full.get()) {
                tracing::warn!(node = %peer.name, "too many orders wait for a node; its connection is closed");
                self.sever(id, out);
            }
        }
    }

    pub(super) fn look_for_silent(&mut self, now: Span, out: &mut Vec<Notice>) {
        for id in self.peers.ids() {
            let Some(peer) = self.peers.get_mut(id).filter(|peer| !peer.lost) else { continue };
            let silent = Span(now.0.saturating_sub(peer.heard.0));
            if silent.0 > self.terms.beat.0.saturating_mul(MISSED_MAX) && !peer.silent && peer.link.is_some()
            {
                peer.silent = true;
                out.push(reach(id, HostReach::Silent("it missed its heartbeats")));
            }
            let away = !peer.is_there();
            let ended = self.terms.lease + self.gangs.lapsed_grace(id) + self.terms.margin;
            if away && silent > ended {
                self.give_up(id, out);
            }
        }
    }

    /// Whatever ran there does not any more. Should it be there after all, it must say anew what it runs.
    fn give_up(&mut self, agent: AgentId, out: &mut Vec<Notice>) {
        self.peers.disconnect(agent);
        self.note_audience(agent);
        if let Some(peer) = self.peers.get_mut(agent) {
            tracing::warn!(node = %peer.name, "a node was silent for too long; its jobs start elsewhere");
            peer.lost = true;
        }
        out.push(Notice::Lost { host: host(agent) });
        self.step_gangs(ToGang::AgentLost { agent }, out);
    }
}
