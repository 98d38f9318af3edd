//! The hosts that ever joined: what they offer, whether they are there, and which of the engine's nodes they are. A host
//! is one node with a pool for each of its groups. One that joined when nodes had one kind is still a node for each.

use std::collections::{BTreeMap, BTreeSet};

use yard_core::cluster::{Mask, NodeState, Slice};
use yard_core::ids::{JobId, NodeId};
use yard_core::units::Span;

use super::cards::{Cards, DriverCardPlace};
use crate::exec::{Audience, Device, GroupOnWire, HostAbilities, HostId, HostOffer, HostReach, SurvivedHost};
use crate::offers::Offers;
use crate::store::NodeRow;
use crate::views::{DeviceView, NodeView};

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) groups: Vec<GroupOnWire>,
    /// What can be done there, as it was said when it came; nothing is known of one that is away.
    pub(super) abilities: Option<HostAbilities>,
    /// Who it runs jobs for; none: nothing is on record.
    pub(super) audience: Option<Audience>,
    /// How its cards are doing, as it last said.
    pub(super) cards: Cards,
    /// The engine's nodes that it is, and where each group's devices are among theirs.
    pub(super) nodes: Vec<NodeId>,
    pub(super) places: Vec<GroupPlace>,
    /// Nodes it was before it changed, whose jobs still have to stop.
    pub(super) retiring: Vec<NodeId>,
    /// Whether it can be reached.
    pub(super) reach: HostReach,
    /// What the engine was last told of its nodes.
    pub(super) state: NodeState,
    /// Who drained it, and what for.
    pub(super) drain: Option<(String, Option<String>)>,
    /// Whether it stays.
    pub(super) stay: HostStay,
    holders: BTreeMap<(u32, u32), BTreeSet<JobId>>,
}

/// Whether a host stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostStay {
    /// It does.
    Stays,
    /// It goes away in good order.
    Leaves,
    /// An admin removed it; jobs may still hold its devices.
    Removing,
    /// It was removed. Its number is not given again.
    Gone,
}

/// Where a group's devices are: behind this many others of a node of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupPlace {
    pub(super) node: NodeId,
    pub(super) first: u32,
}

/// Devices of one of a host's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupMask {
    pub(super) group: u32,
    pub(super) mask: Mask,
}

impl Host {
    pub(super) fn new(row: NodeRow, nodes: Vec<NodeId>) -> Host {
        let places = places(&nodes, &row.groups);
        Host {
            name: row.name,
            address: row.address,
            groups: row.groups,
            abilities: None,
            audience: row.audience,
            cards: Cards::default(),
            nodes,
            places,
            retiring: Vec::new(),
            reach: HostReach::Away,
            state: NodeState::Up,
            drain: row.drain,
            stay: HostStay::Stays,
            holders: BTreeMap::new(),
        }
    }

    /// A host that has just come.
    pub(super) fn of(offer: &HostOffer, nodes: Vec<NodeId>) -> Host {
        let row = NodeRow {
            name: offer.name.clone(),
            address: offer.address.clone(),
            groups: offer.groups.clone(),
            drain: None,
            audience: None,
        };
        Host::new(row, nodes)
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

    /// As a backend has to know it after a restart.
    pub(super) fn survived(&self, host: HostId) -> SurvivedHost {
        SurvivedHost {
            host,
            name: self.name.clone(),
            address: self.address.clone(),
            groups: self.groups.clone(),
            audience: self.audience.clone(),
            lost: self.state == NodeState::Down,
        }
    }

    /// Whether it can be reached.
    pub(super) fn is_there(&self) -> bool {
        self.reach == HostReach::Here
    }

    /// Whether it was removed.
    pub(super) fn is_gone(&self) -> bool {
        self.stay == HostStay::Gone
    }

    /// Whether the devices are the same as before: as many of the same kinds, in the same order.
    pub(super) fn offers(&self, groups: &[GroupOnWire]) -> bool {
        let like =
            |(a, b): (&GroupOnWire, &GroupOnWire)| a.kind == b.kind && a.devices.len() == b.devices.len();
        self.groups.len() == groups.len() && self.groups.iter().zip(groups).all(like)
    }

    /// It is these nodes from now on.
    pub(super) fn become_nodes(&mut self, nodes: Vec<NodeId>, groups: &[GroupOnWire]) {
        self.places = places(&nodes, groups);
        self.nodes = nodes;
    }

    /// Which of a group's devices are among these of a node, if any are.
    fn held(&self, node: NodeId, mask: Mask) -> Option<GroupMask> {
        let groups = (0..).zip(&self.groups).zip(&self.places);
        groups.filter(|(_, place)| place.node == node).find_map(|((group, own), place)| {
            let all = low_bits(own.devices.len() as u32);
            let mask = mask.checked_shr(place.first).unwrap_or(0) & all;
            (mask != 0).then_some(GroupMask { group, mask })
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

    pub(super) fn hold(&mut self, group: u32, device: u32, job: JobId) {
        self.holders.entry((group, device)).or_default().insert(job);
    }

    pub(super) fn put_down(&mut self, group: u32, device: u32, job: JobId) {
        self.holders.entry((group, device)).or_default().remove(&job);
        self.cards.put_down((group, device), job);
    }

    /// The jobs that hold a device.
    pub(super) fn holders(&self, place: DriverCardPlace) -> impl Iterator<Item = JobId> {
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
            domains: BTreeMap::new(),
            heard_s: None,
        }
    }

    fn device_view(
        &self,
        place: DriverCardPlace,
        kind: &str,
        device: &Device,
        now: Span,
        idle: Span,
    ) -> DeviceView {
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
        if self.stay == HostStay::Removing {
            return ("down", Some("it was removed, and disappears once its jobs are given up".into()));
        }
        if self.state == NodeState::Down {
            let reason = if self.stay == HostStay::Leaves {
                "it left"
            } else {
                "no contact for so long that its jobs were given up"
            };
            return ("down", Some(reason.into()));
        }
        match self.reach {
            HostReach::Here => {}
            HostReach::Silent(why) => return ("unreachable", Some(why.into())),
            HostReach::Away => return ("unreachable", Some("it is not connected".into())),
        }
        match &self.drain {
            Some((user, None)) => ("draining", Some(format!("drained by {user}"))),
            Some((user, Some(reason))) => ("draining", Some(format!("drained by {user}: {reason}"))),
            None if self.state == NodeState::Up => ("up", None),
            None => ("draining", Some("its devices changed; jobs on the old ones are stopping".into())),
        }
    }
}

/// All hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub(super) list: Vec<Host>,
    by_name: BTreeMap<String, HostId>,
    of_node: BTreeMap<NodeId, HostId>,
}

impl Hosts {
    pub(super) fn add(&mut self, host: Host) -> HostId {
        let id = HostId(self.list.len() as u32);
        self.by_name.insert(host.name.clone(), id);
        self.list.push(host);
        self.index(id);
        id
    }

    /// Notes which nodes a host is, after they changed.
    pub(super) fn index(&mut self, id: HostId) {
        for node in &self.list[id.index()].nodes {
            self.of_node.insert(*node, id);
        }
    }

    /// A host's devices are others from now on; returns the nodes it was.
    pub(super) fn retire_all(&mut self, id: HostId) -> Vec<NodeId> {
        let host = self.get_mut(id);
        host.holders.clear();
        host.cards = Cards::default();
        host.places.clear();
        let nodes = std::mem::take(&mut host.nodes);
        nodes.iter().for_each(|node| self.retire(id, *node));
        nodes
    }

    /// A node that a host was: its jobs are the host's still, its devices are no group any more.
    pub(super) fn retire(&mut self, id: HostId, node: NodeId) {
        self.of_node.insert(node, id);
        let retiring = &mut self.get_mut(id).retiring;
        if !retiring.contains(&node) {
            retiring.push(node);
        }
    }

    pub(super) fn get(&self, id: HostId) -> &Host {
        &self.list[id.index()]
    }

    pub(super) fn get_mut(&mut self, id: HostId) -> &mut Host {
        &mut self.list[id.index()]
    }

    pub(super) fn named(&self, name: &str) -> Option<HostId> {
        self.by_name.get(name).copied()
    }

    /// Whose node it is.
    pub(super) fn of_node(&self, node: NodeId) -> Option<HostId> {
        self.of_node.get(&node).copied()
    }

    /// Whose devices these are, as the host numbers them. Those of a node that it was once are in no group of it.
    pub(super) fn holder_of(&self, slice: &Slice) -> Option<(HostId, GroupMask)> {
        let host = self.of_node(slice.node)?;
        let former = GroupMask { group: u32::MAX, mask: slice.mask };
        Some((host, self.get(host).held(slice.node, slice.mask).unwrap_or(former)))
    }

    /// A host is on record and can be reached.
    pub(super) fn admit(&mut self, id: HostId, abilities: HostAbilities) {
        // How its cards are doing is not known yet.
        self.leave(id);
        let host = self.get_mut(id);
        (host.reach, host.stay, host.abilities) = (HostReach::Here, HostStay::Stays, Some(abilities));
    }

    /// A host cannot be reached any more.
    pub(super) fn leave(&mut self, id: HostId) {
        let host = self.get_mut(id);
        (host.cards, host.reach, host.abilities) = (Cards::default(), HostReach::Away, None);
    }

    /// A host was removed: its name is free.
    pub(super) fn forget(&mut self, id: HostId) {
        let host = self.get_mut(id);
        (host.stay, host.state) = (HostStay::Gone, NodeState::Down);
        host.groups.clear();
        host.nodes.clear();
        host.places.clear();
        let name = host.name.clone();
        self.by_name.remove(&name);
    }

    /// What jobs can be served with. What a host can do is known while it is here; one that may come back may be
    /// able to do anything, and one that was given up serves nobody.
    pub(super) fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        let may_serve = |host: &&Host| host.reach != HostReach::Away || host.state != NodeState::Down;
        for host in self.list.iter().filter(may_serve) {
            host.groups.iter().for_each(|group| offers.add(group, host.abilities.as_ref()));
        }
        offers
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.list.len() as u32).map(HostId)
    }
}

/// Where each group's devices are: all on one node, or each on its own.
fn places(nodes: &[NodeId], groups: &[GroupOnWire]) -> Vec<GroupPlace> {
    if let [node] = nodes {
        let mut next = 0;
        let place = |group: &GroupOnWire| {
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
pub(super) fn former_name(host: &str, groups: &[GroupOnWire], group: usize) -> String {
    if groups.len() == 1 { host.to_owned() } else { format!("{host}/{}", groups[group].kind) }
}

/// Devices of a group that are out of service.
pub(super) fn bad(group: &GroupOnWire) -> Mask {
    let broken = (0..).zip(&group.devices).filter(|(_, device)| device.problem.is_some());
    broken.fold(0, |mask, (at, _)| mask | 1 << at)
}
