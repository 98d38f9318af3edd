//! The agents that ever joined: what they offer, whether they are there, and which of the engine's nodes they are. An agent
//! is one node with a pool for each of its groups. One that joined when nodes had one kind is still a node for each.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use yard_core::cluster::{Mask, NODE_DEVICES_MAX, NodeState, Slice};
use yard_core::ids::{AgentId, JobId, NodeId};
use yard_core::part::Held;
use yard_core::units::Span;

use super::cards::{Cards, Place};
use super::hellos;
use crate::offers::Offers;
use crate::store::NodeRow;
use crate::views::{DeviceView, NodeView};
use crate::wire::{Abilities, Audience, Device, Group, Hello, ToAgent, WIRE_VERSION};

/// Longest name of a node.
const NAME_MAX: usize = 128;

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) groups: Vec<Group>,
    /// What it can do, as it said when it last came; nothing is known of one that has not been here since the start.
    pub(super) abilities: Abilities,
    /// Who it runs jobs for; none: nothing is on record.
    pub(super) audience: Option<Audience>,
    /// How its cards are doing, as it last said.
    pub(super) cards: Cards,
    /// The engine's nodes that it is, and where each group's devices are among theirs.
    pub(super) nodes: Vec<NodeId>,
    pub(super) places: Vec<GroupPlace>,
    /// Nodes it was before it changed, whose jobs still have to stop.
    pub(super) retiring: Vec<NodeId>,
    pub(super) link: Option<Link>,
    /// When a beat of it was last answered.
    pub(super) heard: Span,
    /// Whether it has said nothing for too many beats.
    pub(super) silent: bool,
    /// What the engine was last told of its nodes.
    pub(super) state: NodeState,
    /// Who drained it, and what for.
    pub(super) drain: Option<(String, Option<String>)>,
    /// It goes away in good order.
    pub(super) leaving: bool,
    /// The machine that is connected, as it told itself apart.
    pub(super) host: String,
    /// The same of a connection that was accepted and is not on record yet.
    pub(super) connecting: Option<String>,
    /// An admin removed it; jobs may still hold its devices.
    pub(super) removing: bool,
    /// It was removed. Its number is not given again.
    pub(super) gone: bool,
    holders: BTreeMap<(u32, u32), BTreeSet<JobId>>,
}

/// Where a group's devices are: behind this many others of a node of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupPlace {
    pub(super) node: NodeId,
    pub(super) first: u32,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: u64,
    pub(super) sender: mpsc::Sender<ToAgent>,
    /// Whether something did not fit. Nothing is sent after that: what follows a gap would be misunderstood.
    pub(super) full: Cell<bool>,
}

impl Agent {
    pub(super) fn new(row: NodeRow, nodes: Vec<NodeId>, now: Span) -> Agent {
        let places = places(&nodes, &row.groups);
        Agent {
            name: row.name,
            address: row.address,
            groups: row.groups,
            abilities: Abilities::default(),
            audience: row.audience,
            cards: Cards::default(),
            nodes,
            places,
            retiring: Vec::new(),
            link: None,
            heard: now,
            silent: false,
            state: NodeState::Up,
            drain: row.drain,
            leaving: false,
            host: String::new(),
            connecting: None,
            removing: false,
            gone: false,
            holders: BTreeMap::new(),
        }
    }

    pub(super) fn row(&self) -> NodeRow {
        NodeRow {
            name: self.name.clone(),
            address: self.address.clone(),
            groups: self.groups.clone(),
            drain: self.drain.clone(),
            audience: self.audience.clone(),
        }
    }

    /// Sends something, if it is connected.
    pub(super) fn send(&self, message: ToAgent) {
        let Some(link) = self.link.as_ref().filter(|link| !link.full.get()) else { return };
        // A closed link is told apart by `Ask::Disconnect`, and what matters is said again after it.
        if let Err(TrySendError::Full(_)) = link.sender.try_send(message) {
            link.full.set(true);
        }
    }

    /// Whether it can be reached.
    pub(super) fn is_there(&self) -> bool {
        self.link.is_some() && !self.silent
    }

    /// Whether another machine than the one that says hello is connected under this name. One that does not say which
    /// machine it is does not pass for one that did.
    pub(super) fn has_rival(&self, hello: &Hello) -> bool {
        let there = self.connecting.as_ref().or(self.is_there().then_some(&self.host));
        there.is_some_and(|host| !host.is_empty() && *host != hello.host)
    }

    /// Whether the devices are the same as before: as many of the same kinds, in the same order.
    pub(super) fn offers(&self, groups: &[Group]) -> bool {
        let like = |(a, b): (&Group, &Group)| a.kind == b.kind && a.devices.len() == b.devices.len();
        self.groups.len() == groups.len() && self.groups.iter().zip(groups).all(like)
    }

    /// It is these nodes from now on.
    pub(super) fn become_nodes(&mut self, nodes: Vec<NodeId>, groups: &[Group]) {
        self.places = places(&nodes, groups);
        self.nodes = nodes;
    }

    /// Which of a group's devices are among these of a node, if any are.
    fn held(&self, node: NodeId, mask: Mask) -> Option<Held> {
        let groups = (0..).zip(&self.groups).zip(&self.places);
        groups.filter(|(_, place)| place.node == node).find_map(|((group, own), place)| {
            let all = low_bits(own.devices.len() as u32);
            let mask = mask.checked_shr(place.first).unwrap_or(0) & all;
            (mask != 0).then_some(Held { group, mask })
        })
    }

    /// The devices of each of its nodes that are out of service.
    pub(super) fn bad(&self) -> Vec<(NodeId, Mask)> {
        let of_node = |node: &NodeId| {
            let groups = self.groups.iter().zip(&self.places).filter(|(_, place)| place.node == *node);
            (*node, groups.fold(0, |mask, (group, place)| mask | bad(group) << place.first))
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// Whether a group's devices are cards, which processes keep to themselves.
    pub(super) fn has_cards(&self, group: u32) -> bool {
        self.groups
            .get(group as usize)
            .is_some_and(|group| group.devices.iter().any(|card| card.uuid.is_some()))
    }

    pub(super) fn hold(&mut self, group: u32, device: u32, job: JobId) {
        self.holders.entry((group, device)).or_default().insert(job);
    }

    pub(super) fn put_down(&mut self, group: u32, device: u32, job: JobId) {
        self.holders.entry((group, device)).or_default().remove(&job);
        self.cards.put_down((group, device), job);
    }

    /// The jobs that hold a device.
    pub(super) fn holders(&self, place: Place) -> impl Iterator<Item = JobId> {
        self.holders.get(&place).into_iter().flatten().copied()
    }

    /// As people see it. Who has not used a device for as long as `idle` is idle there.
    pub(super) fn view(&self, now: Span, idle: Span) -> NodeView {
        let (state, reason) = self.state_now();
        let groups = (0..).zip(&self.groups);
        let devices = groups.flat_map(|(at, group)| {
            let numbered = (0..).zip(&group.devices);
            numbered.map(move |(index, device)| self.device_view((at, index), &group.kind, device, now, idle))
        });
        NodeView {
            name: self.name.clone(),
            state: state.to_owned(),
            reason,
            address: self.address.clone(),
            devices: devices.collect(),
            resources: Vec::new(),
            heard_s: Some(Span(now.0.saturating_sub(self.heard.0)).secs()),
        }
    }

    fn device_view(&self, place: Place, kind: &str, device: &Device, now: Span, idle: Span) -> DeviceView {
        let card = self.cards.get(place);
        let is_idle = |job: &JobId| self.cards.idle(place, *job, now).is_some_and(|span| span >= idle);
        DeviceView {
            kind: kind.to_owned(),
            index: place.1,
            name: device.name.clone(),
            uuid: device.uuid.clone(),
            memory_mib: device.memory_mib,
            jobs: self.holders(place).map(|job| job.0).collect(),
            problem: device.problem.clone(),
            busy: card.and_then(|card| card.busy),
            memory_used_mib: card.and_then(|card| card.memory_used_mib),
            temperature_c: card.and_then(|card| card.temperature_c),
            power_w: card.and_then(|card| card.power_w),
            throttled: card.and_then(|card| card.throttled.clone()),
            ecc: card.and_then(|card| card.ecc),
            split: device.split,
            links: device.links.clone(),
            idle_jobs: self.holders(place).filter(is_idle).map(|job| job.0).collect(),
        }
    }

    /// Its state as people call it, and why.
    pub(super) fn state_now(&self) -> (&'static str, Option<String>) {
        if self.removing {
            return ("down", Some("it was removed and goes once its jobs are given up".into()));
        }
        if self.state == NodeState::Down {
            let reason = if self.leaving {
                "it left"
            } else {
                "it was silent for so long that its jobs were given up"
            };
            return ("down", Some(reason.into()));
        }
        if !self.is_there() {
            let reason = if self.link.is_none() { "it is not connected" } else { "it has missed its beats" };
            return ("unreachable", Some(reason.into()));
        }
        match &self.drain {
            Some((user, None)) => ("draining", Some(format!("drained by {user}"))),
            Some((user, Some(reason))) => ("draining", Some(format!("drained by {user}: {reason}"))),
            None if self.state == NodeState::Up => ("up", None),
            None => ("draining", Some("its devices changed; jobs on the former ones are stopping".into())),
        }
    }
}

/// All agents.
#[derive(Debug, Default)]
pub(super) struct Agents {
    pub(super) list: Vec<Agent>,
    by_name: BTreeMap<String, AgentId>,
    by_connection: BTreeMap<u64, AgentId>,
    of_node: BTreeMap<NodeId, AgentId>,
    connections: u64,
}

impl Agents {
    pub(super) fn add(&mut self, agent: Agent) -> AgentId {
        let id = AgentId(self.list.len() as u32);
        self.by_name.insert(agent.name.clone(), id);
        self.list.push(agent);
        self.index(id);
        id
    }

    /// Notes which nodes an agent is, after they changed.
    pub(super) fn index(&mut self, id: AgentId) {
        for node in &self.list[id.index()].nodes {
            self.of_node.insert(*node, id);
        }
    }

    /// An agent's devices are others from now on; returns the nodes it was.
    pub(super) fn retire_all(&mut self, id: AgentId) -> Vec<NodeId> {
        let agent = self.get_mut(id);
        agent.holders.clear();
        agent.cards = Cards::default();
        agent.places.clear();
        let nodes = std::mem::take(&mut agent.nodes);
        nodes.iter().for_each(|node| self.retire(id, *node));
        nodes
    }

    /// A node that an agent was: its jobs are the agent's still, its devices are no group any more.
    pub(super) fn retire(&mut self, id: AgentId, node: NodeId) {
        self.of_node.insert(node, id);
        let retiring = &mut self.get_mut(id).retiring;
        if !retiring.contains(&node) {
            retiring.push(node);
        }
    }

    pub(super) fn get(&self, id: AgentId) -> &Agent {
        &self.list[id.index()]
    }

    pub(super) fn get_mut(&mut self, id: AgentId) -> &mut Agent {
        &mut self.list[id.index()]
    }

    pub(super) fn named(&self, name: &str) -> Option<AgentId> {
        self.by_name.get(name).copied()
    }

    /// Whose node it is.
    pub(super) fn of_node(&self, node: NodeId) -> Option<AgentId> {
        self.of_node.get(&node).copied()
    }

    /// Whose devices these are, as the agent knows them. Those of a node that it was once are in no group of it.
    pub(super) fn holder_of(&self, slice: &Slice) -> Option<(AgentId, Held)> {
        let agent = self.of_node(slice.node)?;
        let former = Held { group: u32::MAX, mask: slice.mask };
        Some((agent, self.get(agent).held(slice.node, slice.mask).unwrap_or(former)))
    }

    pub(super) fn of_connection(&self, connection: u64) -> Option<AgentId> {
        self.by_connection.get(&connection).copied()
    }

    /// Gives a connection a number. One that the agent had before is closed.
    pub(super) fn connect(&mut self, id: AgentId, sender: mpsc::Sender<ToAgent>, now: Span) -> u64 {
        self.connections += 1;
        let connection = self.connections;
        self.disconnect(id);
        self.by_connection.insert(connection, id);
        let agent = self.get_mut(id);
        (agent.link, agent.heard) = (Some(Link { connection, sender, full: Cell::new(false) }), now);
        (agent.silent, agent.leaving) = (false, false);
        connection
    }

    pub(super) fn disconnect(&mut self, id: AgentId) {
        // How its cards are doing is not known any more.
        self.get_mut(id).cards = Cards::default();
        if let Some(link) = self.get_mut(id).link.take() {
            self.by_connection.remove(&link.connection);
        }
    }

    /// An agent was removed: its name is free.
    pub(super) fn forget(&mut self, id: AgentId) {
        let agent = self.get_mut(id);
        (agent.gone, agent.removing, agent.state) = (true, false, NodeState::Down);
        agent.groups.clear();
        agent.nodes.clear();
        agent.places.clear();
        let name = agent.name.clone();
        self.by_name.remove(&name);
    }

    /// What jobs can be served with. What an agent can do is known while it is here; one that may come back may be
    /// able to do anything, and one that was given up serves nobody.
    pub(super) fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        let may_serve = |agent: &&Agent| agent.link.is_some() || agent.state != NodeState::Down;
        for agent in self.list.iter().filter(may_serve) {
            let abilities = agent.link.is_some().then_some(&agent.abilities);
            agent.groups.iter().for_each(|group| offers.add(group, abilities));
        }
        offers
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = AgentId> + use<> {
        (0..self.list.len() as u32).map(AgentId)
    }
}

/// Where each group's devices are: all on one node, or each on its own.
fn places(nodes: &[NodeId], groups: &[Group]) -> Vec<GroupPlace> {
    if let [node] = nodes {
        let mut next = 0;
        let place = |group: &Group| {
            let first = next;
            next += group.devices.len() as u32;
            GroupPlace { node: *node, first }
        };
        return groups.iter().map(place).collect();
    }
    nodes.iter().map(|node| GroupPlace { node: *node, first: 0 }).collect()
}

fn low_bits(count: u32) -> Mask {
    if count >= Mask::BITS { Mask::MAX } else { (1 << count) - 1 }
}

/// What the engine called the node of a group when nodes had one kind.
pub(super) fn former_name(agent: &str, groups: &[Group], group: usize) -> String {
    if groups.len() == 1 { agent.to_owned() } else { format!("{agent}/{}", groups[group].kind) }
}

/// Devices of a group that are out of service.
pub(super) fn bad(group: &Group) -> Mask {
    let broken = (0..).zip(&group.devices).filter(|(_, device)| device.problem.is_some());
    broken.fold(0, |mask, (at, _)| mask | 1 << at)
}

/// Whether an agent can be taken in, and if not, why.
pub(super) fn check(hello: &Hello) -> Result<(), String> {
    if hello.version != WIRE_VERSION {
        let found = hello.version;
        return Err(format!(
            "this server speaks version {WIRE_VERSION} with agents, not {found}; install the same version of yard on both"
        ));
    }
    hellos::check(hello)?;
    let word = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain) && !name.starts_with('.')
    };
    if !word(&hello.name) {
        return Err("a node's name has letters, digits, '-', '_' and '.' only; name it with --name".into());
    }
    let mut seen = BTreeSet::new();
    if let Some(Group { kind, .. }) =
        hello.groups.iter().find(|group| !word(&group.kind) || !seen.insert(&group.kind))
    {
        return Err(format!("the kind {kind:?} of its devices is no plain word, or comes twice"));
    }
    if let Some(name) = hello.resources.keys().find(|name| !word(name)) {
        return Err(format!(
            "{:?} is no name for a resource; use letters, digits, '-', '_' and '.'",
            hellos::shortened(name.clone(), NAME_MAX)
        ));
    }
    let all: usize = hello.groups.iter().map(|group| group.devices.len()).sum();
    if hello.groups.iter().any(|group| group.devices.is_empty())
        || !(1..=NODE_DEVICES_MAX as usize).contains(&all)
    {
        return Err(format!(
            "a node offers 1 to {NODE_DEVICES_MAX} devices, processor slots (--cpu-slots) among them, and this one {all}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str, groups: &[(&str, usize)]) -> Hello {
        let device = Device {
            name: "d".into(),
            uuid: None,
            memory_mib: None,
            problem: None,
            split: false,
            links: Vec::new(),
        };
        let group = |(kind, count): &(&str, usize)| Group {
            kind: (*kind).into(),
            devices: vec![device.clone(); *count],
        };
        Hello {
            version: WIRE_VERSION,
            name: name.into(),
            address: "127.0.0.1".into(),
            groups: groups.iter().map(group).collect(),
            parts: vec![],
            paused: vec![],
            abilities: Abilities::default(),
            host: String::new(),
            resources: BTreeMap::new(),
        }
    }

    #[test]
    fn what_an_agent_says_is_checked() {
        assert_eq!(check(&hello("n-1.lab", &[("a100", 8), ("cpu", 120)])), Ok(()));
        for bad in ["", "a/b", "a b", "..", "é", &"n".repeat(129)] {
            assert!(check(&hello(bad, &[("a100", 8)])).is_err(), "{bad:?}");
        }
        assert!(check(&hello("n", &[])).is_err());
        assert!(check(&hello("n", &[("a100", 0)])).is_err());
        assert!(check(&hello("n", &[("a100", 8), ("cpu", 121)])).is_err());
        assert!(check(&hello("n", &[("a100", 1), ("a100", 1)])).is_err());
        assert!(check(&hello("n", &[("a/b", 1)])).is_err());
        for name in ["", "a b", "\u{1b}[2J", &"n".repeat(129)] {
            let resources = [(name.to_owned(), 1)].into();
            assert!(check(&Hello { resources, ..hello("n", &[("a100", 1)]) }).is_err(), "{name:?}");
        }
        assert!(check(&Hello { version: 0, ..hello("n", &[("a100", 1)]) }).is_err());
    }
}
