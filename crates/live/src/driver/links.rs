//! Agents come, speak and fall silent. The node's lease is what makes silence safe: an agent stops its jobs when no
//! beat was answered for so long, so after that time and what a lapsed lease leaves its jobs to stop, they may run
//! elsewhere.

use std::collections::BTreeSet;

use tokio::sync::mpsc;
use yard_core::cluster::{KINDS_MAX, NodeState, Slice};
use yard_core::gang::ToGang;
use yard_core::ids::{AgentId, NodeId};
use yard_core::job::Usage;
use yard_core::message::{Input, NodeChange};
use yard_core::part::{PartId, Told};
use yard_core::units::{Span, Time};

use super::Driver;
use super::agents::{self, Agent};
use super::audience;
use super::hellos::{self, shortened};
use super::staging::After;
use crate::handle::{Refusal, Reply};
use crate::store::NodeRow;
use crate::wire::{Audience, FromAgent, Hello, ToAgent};

/// Beats that an agent may miss before it is taken to be out of reach.
const MISSED_MAX: u64 = 3;

impl Driver {
    pub(super) fn take_connect(&mut self, hello: Hello, link: mpsc::Sender<ToAgent>, reply: Reply<u64>) {
        let hello = hellos::tidied(hello);
        let checked = agents::check(&hello)
            .and_then(|()| self.check_kinds(&hello))
            .and_then(|()| self.check_resources(&hello))
            .and_then(|()| audience::check(&self.agents, &hello));
        if let Err(reason) = checked {
            let _ = link.try_send(ToAgent::Refused { reason: reason.clone() });
            return drop(reply.send(Err(Refusal::Invalid { field: None, message: reason })));
        }
        if let Some(reason) = self.objection(&hello) {
            return drop(reply.send(Err(Refusal::Conflict(reason))));
        }
        let agent = match self.agents.named(&hello.name) {
            Some(agent) => {
                self.rejoin(agent, &hello);
                agent
            }
            None => {
                let nodes = self.join_machine(&hello);
                let (name, address) = (hello.name.clone(), hello.address.clone());
                let row =
                    NodeRow { name, address, groups: hello.groups.clone(), drain: None, audience: None };
                self.agents.add(Agent::new(row, nodes, self.clock.elapsed()))
            }
        };
        let known = self.agents.get_mut(agent);
        (known.abilities, known.connecting) = (hello.abilities.clone(), Some(hello.host.clone()));
        known.audience = Some(Audience::of(&hello));
        self.tell_health(agent);
        self.staged.keep_node(self.agents.get(agent).row());
        self.staged.keep_after(After::Connected(agent, Box::new(hello), link, reply));
    }

    /// Refuses kinds that the engine would not take, counting those that are about to be known.
    fn check_kinds(&self, hello: &Hello) -> Result<(), String> {
        let kinds = self.kinds();
        let new = hello.groups.iter().filter(|group| kinds.find(&group.kind).is_none()).count();
        if new == 0 || kinds.len() + new <= KINDS_MAX {
            return Ok(());
        }
        let (name, known) = (&hello.name, kinds.len());
        Err(format!(
            "node {name} brings {new} new kinds of devices, and {known} of at most {KINDS_MAX} are known; \
             give its devices the names of kinds that `yard nodes` lists"
        ))
    }

    /// Why an agent cannot be taken in though what it says is right. A restarted one takes the place of its former
    /// connection; another machine does not.
    fn objection(&self, hello: &Hello) -> Option<String> {
        let known = self.agents.get(self.agents.named(&hello.name)?);
        let (name, address) = (&known.name, &known.address);
        if known.removing {
            return Some(format!(
                "node {name} is being removed; join again once `yard nodes` does not list it"
            ));
        }
        known.has_rival(hello).then(|| {
            format!(
                "node {name} is connected from another machine ({address}); give one of them another name with --name, or remove the agent's folder if it was copied"
            )
        })
    }

    fn rejoin(&mut self, agent: AgentId, hello: &Hello) {
        if !self.agents.get(agent).offers(&hello.groups) || self.may_become_one(agent) {
            let old = self.agents.retire_all(agent);
            old.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Leave(*node))));
            let nodes = self.join_machine(hello);
            // Nothing new where jobs of the former devices still run.
            nodes.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Drain(*node))));
            let changed = self.agents.get_mut(agent);
            changed.become_nodes(nodes, &hello.groups);
            changed.state = NodeState::Draining;
            self.agents.index(agent);
        }
        let known = self.agents.get_mut(agent);
        (known.address, known.groups) = (hello.address.clone(), hello.groups.clone());
        let nodes = known.nodes.clone();
        self.tell_resources(&nodes, hello);
    }

    /// Whether an agent that joined when nodes had one kind can be one node from now on: nothing runs there.
    fn may_become_one(&self, agent: AgentId) -> bool {
        let nodes = &self.agents.get(agent).nodes;
        let own = |slice: &Slice| nodes.contains(&slice.node);
        nodes.len() > 1 && !self.engine.leases().any(|held| held.placement.0.iter().any(own))
    }

    /// Tells the engine which devices of an agent are out of service.
    fn tell_health(&mut self, agent: AgentId) {
        let agent = self.agents.get(agent);
        for (node, bad) in agent.bad() {
            self.staged.keep(Input::Node(NodeChange::Health { node, bad }));
        }
    }

    /// An agent is on record: it may speak from now on.
    pub(super) fn connected(
        &mut self,
        now: Time,
        agent: AgentId,
        hello: Hello,
        link: mpsc::Sender<ToAgent>,
        reply: Reply<u64>,
    ) {
        let (lease_s, beat_s) = (self.config.lease.secs(), self.config.beat.secs());
        self.logs.lost(agent, "its node connected anew; ask again");
        let connection = self.agents.connect(agent, link, self.clock.elapsed());
        let known = self.agents.get_mut(agent);
        (known.host, known.connecting) = (hello.host, None);
        tracing::info!(node = %self.agents.get(agent).name, connection, "an agent connected");
        self.agents.get(agent).send(ToAgent::Welcome { lease_s, beat_s });
        let _ = reply.send(Ok(connection));
        self.settle(agent);
        let (parts, paused) = (hello.parts, hello.paused);
        self.gangs_step(now, ToGang::Hello { agent, parts, paused });
    }

    pub(super) fn take_disconnect(&mut self, connection: u64) {
        let Some(agent) = self.agents.of_connection(connection) else { return };
        tracing::info!(node = %self.agents.get(agent).name, connection, "an agent's connection is gone");
        self.drop_link(agent);
    }

    fn drop_link(&mut self, agent: AgentId) {
        self.agents.disconnect(agent);
        self.logs.lost(agent, "its node cannot be reached");
        self.settle(agent);
    }

    /// Agents that do not take what they are sent: they are disconnected, and come back with all they know.
    pub(super) fn look_for_full(&mut self) {
        for id in self.agents.ids() {
            let agent = self.agents.get(id);
            if agent.link.as_ref().is_some_and(|link| link.full.get()) {
                tracing::warn!(node = %agent.name, "too many orders wait for a node; its connection is closed");
                self.drop_link(id);
            }
        }
    }

    pub(super) fn take_from(&mut self, now: Time, connection: u64, message: FromAgent) {
        // What an older connection still had to say is said again on the newer one.
        let Some(agent) = self.agents.of_connection(connection) else { return };
        match message {
            FromAgent::Hello(_) => {}
            FromAgent::Beat { seq } => self.beat(agent, seq),
            FromAgent::Told { part, told } => self.told(now, agent, part, told),
            FromAgent::Health { group, device, problem } => self.health(agent, group, device, problem),
            FromAgent::Looked { cards } => self.looked(agent, cards),
            FromAgent::Used { part, busy, memory_mib } => self.used(agent, part, Usage { busy, memory_mib }),
            FromAgent::Trained { part, said } => self.trained(now, agent, part, said),
            FromAgent::Hushed { part, hushed } => self.hushed(agent, part, hushed),
            FromAgent::Logs { request, text, end, error } => {
                self.logs.piece(agent, request, text, end, error)
            }
        }
    }

    fn beat(&mut self, id: AgentId, seq: u64) {
        let now = self.clock.elapsed();
        let agent = self.agents.get_mut(id);
        let was_silent = std::mem::replace(&mut agent.silent, false);
        agent.heard = now;
        agent.send(ToAgent::Beat { seq });
        if was_silent {
            self.settle(id);
        }
    }

    fn told(&mut self, now: Time, agent: AgentId, part: PartId, told: Told) {
        self.gangs_step(now, ToGang::Told { agent, part, told: hellos::tidied_news(told) });
    }

    fn health(&mut self, id: AgentId, group: u32, device: u32, problem: Option<String>) {
        let agent = self.agents.get_mut(id);
        let before = agent.bad();
        let Some(own) = agent.groups.get_mut(group as usize) else { return };
        let Some(known) = own.devices.get_mut(device as usize) else { return };
        let problem = problem.map(|text| shortened(text, hellos::WORDS_MAX));
        if known.problem == problem {
            return;
        }
        known.problem = problem;
        let news = agent.bad().into_iter().filter(|now| !before.contains(now));
        for (node, bad) in news.collect::<Vec<_>>() {
            self.staged.keep(Input::Node(NodeChange::Health { node, bad }));
        }
        let row = agent.row();
        self.staged.keep_node(row);
        self.changed_agents.insert(id);
    }

    /// Has the engine ask everything that runs on an agent's nodes to stop.
    pub(super) fn evict(&mut self, id: AgentId) {
        let agent = self.agents.get_mut(id);
        agent.state = NodeState::Down;
        for node in agent.nodes.clone() {
            self.staged.keep(Input::Node(NodeChange::Leave(node)));
        }
    }

    /// Has the engine use an agent's nodes if it is there and nothing speaks against it.
    pub(super) fn settle(&mut self, id: AgentId) {
        self.changed_agents.insert(id);
        let agent = self.agents.get(id);
        let free = agent.drain.is_none() && !agent.leaving && agent.retiring.is_empty();
        let wanted = if agent.is_there() && free { NodeState::Up } else { NodeState::Draining };
        // A node that is down stays so until its agent is back.
        let stays_down = agent.state == NodeState::Down && (agent.leaving || !agent.is_there());
        if agent.state == wanted || stays_down {
            return;
        }
        let nodes = agent.nodes.clone();
        self.agents.get_mut(id).state = wanted;
        for node in nodes {
            let change =
                if wanted == NodeState::Up { NodeChange::Resume(node) } else { NodeChange::Drain(node) };
            self.staged.keep(Input::Node(change));
        }
    }

    /// Agents that fell silent, and those that changed and are rid of what they were.
    pub(super) fn look_for_silent(&mut self, now: Time) {
        let elapsed = self.clock.elapsed();
        for id in self.agents.ids() {
            self.finish_removal(now, id);
            let agent = self.agents.get(id);
            if agent.state == NodeState::Down && agent.link.is_none() {
                continue;
            }
            let silent = Span(elapsed.0.saturating_sub(agent.heard.0));
            if silent.0 > self.config.beat.0.saturating_mul(MISSED_MAX) && !agent.silent {
                self.agents.get_mut(id).silent = true;
                self.settle(id);
            }
            let away = !self.agents.get(id).is_there() && self.agents.get(id).state != NodeState::Down;
            if away && silent > self.config.lease + self.gangs.lapsed_grace(id) + self.config.margin {
                self.give_up(now, id);
            }
            self.retire(id);
        }
    }

    /// Declares a node failed: whatever ran there does not any more.
    fn give_up(&mut self, now: Time, id: AgentId) {
        let agent = self.agents.get_mut(id);
        tracing::warn!(node = %agent.name, "a node was silent for too long; its jobs start elsewhere");
        agent.state = NodeState::Down;
        let nodes: Vec<_> = agent.nodes.iter().chain(&agent.retiring).copied().collect();
        agent.retiring.clear();
        nodes.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Fail(*node))));
        // Should it be there after all, it must say anew what it runs.
        self.agents.disconnect(id);
        self.logs.lost(id, "its node cannot be reached");
        self.changed_agents.insert(id);
        self.gangs_step(now, ToGang::AgentLost { agent: id });
    }

    /// Nodes that an agent was are done with once they have left and nobody holds their devices.
    fn retire(&mut self, id: AgentId) {
        if self.agents.get(id).retiring.is_empty() {
            return;
        }
        let placements = self.engine.leases().flat_map(|held| held.placement.0);
        let held: BTreeSet<_> = placements.map(|slice| slice.node).collect();
        let known = self.engine.nodes();
        let left = |node: NodeId| node.index() < known.len() && known.get(node).state == NodeState::Down;
        let agent = self.agents.get_mut(id);
        agent.retiring.retain(|node| held.contains(node) || !left(*node));
        if agent.retiring.is_empty() {
            self.settle(id);
        }
    }
}
