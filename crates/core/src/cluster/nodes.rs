//! All nodes, and every question of what fits on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::node::{Node, NodeSpec, NodeState};
use super::piece::Piece;
use crate::amounts::{Amounts, HostNeed, Shortage};
use crate::bits::Bits;
use crate::domains::{DomainPath, Domains, Level, domain_of};
use crate::ids::{DomainId, KindId, NodeId};
use crate::job::{Need, Shape};
use crate::placement::{Mask, Placement, Slice};

/// All nodes, indexed so that a placement costs a few look-ups whatever the size of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedNodes")]
pub struct Nodes {
    list: Vec<Node>,
    kinds: Vec<KindNodes>,
    /// How many of them have a host whose amounts are counted.
    counted: u32,
    /// How many are short of amounts for all of their free devices.
    strained: u32,
    domains: Domains,
}

/// What was saved; before version 10 no domains were.
#[derive(Deserialize)]
struct SavedNodes {
    list: Vec<Node>,
    kinds: Vec<KindNodes>,
    #[serde(default)]
    counted: u32,
    #[serde(default)]
    strained: u32,
    domains: Option<Domains>,
}

impl From<SavedNodes> for Nodes {
    fn from(saved: SavedNodes) -> Nodes {
        let SavedNodes { list, kinds, counted, strained, domains } = saved;
        let locates = domains.is_none();
        let mut nodes = Nodes { list, kinds, counted, strained, domains: domains.unwrap_or_default() };
        for (at, node) in nodes.list.iter_mut().enumerate().filter(|_| locates) {
            node.located = nodes.domains.locate(NodeId(at as u32), &node.spec.domains);
        }
        nodes
    }
}

/// The nodes of one kind by how many devices they have free; only nodes that are up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct KindNodes {
    by_free: Vec<Bits>,
    free: u32,
    /// Devices in service on nodes that are up.
    up: u32,
    total: u32,
}

impl KindNodes {
    /// A node had so many devices of this kind free and in service, if it was up, and has so many now.
    fn count(&mut self, id: NodeId, before: (bool, (u32, u32)), now: (bool, (u32, u32))) {
        let ((was_up, (was_free, was_in_service)), (is_up, (free, in_service))) = (before, now);
        self.up = self.up - was_in_service + in_service;
        if (was_up, was_free) == (is_up, free) {
            return;
        }
        if was_up {
            self.by_free[was_free as usize].remove(id.0);
        }
        if is_up {
            self.by_free[free as usize].insert(id.0);
        }
        self.free = self.free - was_free + free;
    }
}

impl Nodes {
    /// Adds a node, all its devices free.
    pub fn add(&mut self, spec: NodeSpec) -> NodeId {
        assert!(spec.is_sound(), "node {}: too many devices, or a kind twice", spec.name);
        let id = NodeId(self.list.len() as u32);
        for pool in &spec.pools {
            let at = pool.kind.index();
            if self.kinds.len() <= at {
                self.kinds.resize_with(at + 1, KindNodes::default);
            }
            let kind = &mut self.kinds[at];
            kind.by_free.resize_with(kind.by_free.len().max(pool.devices as usize + 1), Bits::default);
            kind.total += pool.devices;
        }
        self.counted += u32::from(!spec.host.is_none());
        let located = self.domains.locate(id, &spec.domains);
        self.list.push(Node::new(spec, located));
        self.set_state(id, NodeState::Up);
        id
    }

    /// A node.
    pub fn get(&self, id: NodeId) -> &Node {
        &self.list[id.index()]
    }

    /// All nodes with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.list.iter().enumerate().map(|(at, node)| (NodeId(at as u32), node))
    }

    /// How many nodes there are or were.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether no node ever joined.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All kinds that any node ever was of, and those before them.
    pub fn kinds(&self) -> impl Iterator<Item = KindId> + use<> {
        (0..self.kinds.len()).map(|at| KindId(at as u16))
    }

    /// Free devices of a kind, on nodes that are up.
    pub fn free(&self, kind: KindId) -> u32 {
        self.kinds.get(kind.index()).map_or(0, |nodes| nodes.free)
    }

    /// Whether no device is free.
    pub fn is_full(&self) -> bool {
        self.kinds.iter().all(|nodes| nodes.free == 0)
    }

    /// Devices of a kind in service on nodes that are up, free or not.
    pub fn up(&self, kind: KindId) -> u32 {
        self.kinds.get(kind.index()).map_or(0, |nodes| nodes.up)
    }

    /// Devices of a kind on all nodes, whatever their state.
    pub fn total(&self, kind: KindId) -> u32 {
        self.kinds.get(kind.index()).map_or(0, |nodes| nodes.total)
    }

    /// Devices of all kinds on all nodes.
    pub fn devices(&self) -> u32 {
        self.kinds.iter().map(|nodes| nodes.total).sum()
    }

    /// Most devices that any one node of this kind has.
    pub fn largest(&self, kind: KindId) -> u32 {
        self.kinds.get(kind.index()).map_or(0, |nodes| nodes.by_free.len().saturating_sub(1) as u32)
    }

    /// The domain of a level that a node is in. Each node is one, and so are all together.
    pub fn domain(&self, id: NodeId, level: Level) -> DomainId {
        domain_of(id, &self.get(id).located, level)
    }

    /// The nodes of each domain of a level, in order.
    pub fn by_domain(&self, level: Level) -> BTreeMap<DomainId, Vec<NodeId>> {
        let mut domains: BTreeMap<DomainId, Vec<NodeId>> = BTreeMap::new();
        self.iter().for_each(|(id, _)| domains.entry(self.domain(id, level)).or_default().push(id));
        domains
    }

    /// The closest level at which a placement lies in one domain.
    pub fn level_of(&self, placement: &Placement) -> Level {
        self.level_of_slices(&placement.0)
    }

    fn level_of_slices(&self, slices: &[Slice]) -> Level {
        let one = |level: &Level| {
            let mut domains = slices.iter().map(|slice| self.domain(slice.node, *level));
            let first = domains.next();
            domains.all(|domain| Some(domain) == first)
        };
        Level::ALL.into_iter().find(one).unwrap_or_default()
    }

    /// Whether a placement lies as a shape must: on as many nodes, and as close.
    pub fn lies(&self, placement: &Placement, shape: &Shape) -> bool {
        let close = |slices: &[Slice]| self.level_of_slices(slices) <= shape.level();
        let (Some(nodes), Some(segment)) = (shape.nodes, shape.segment_nodes()) else {
            return shape.level() == Level::Any || close(&placement.0);
        };
        let alone = |at: usize| placement.0[..at].iter().all(|other| other.node != placement.0[at].node);
        let even = |slice: &Slice| Some(slice.devices()) == shape.each_node();
        placement.0.len() == nodes as usize
            && placement.0.iter().all(even)
            && (0..placement.0.len()).all(alone)
            && placement.0.chunks(segment.max(1) as usize).all(close)
    }

    /// The most that one domain of its level has free for a shape of one kind: devices, or nodes with devices for its part.
    pub(crate) fn most_free(&self, shape: &Shape) -> u32 {
        let [need] = shape.needs[..] else { return 0 };
        let room = |node: &Node| node.room(need.kind, shape.host.as_deref());
        if shape.nodes.is_some() {
            return self.most_nodes(shape, room);
        }
        let mut domains: BTreeMap<DomainId, u32> = BTreeMap::new();
        for (id, node) in self.iter() {
            *domains.entry(self.domain(id, shape.level())).or_default() += room(node);
        }
        domains.into_values().max().unwrap_or(0)
    }

    /// The shape by whose speed a gang goes that holds `shape` and lies on these devices: one that may lie anywhere and
    /// happens to lie on one node, or in one rack, is as fast as one that must.
    pub fn lying(&self, shapes: &[Shape], shape: u16, placement: &Placement) -> u16 {
        let held = &shapes[shape as usize];
        let closer = |other: &Shape| other.level() < held.level() && other.needs == held.needs;
        if !shapes.iter().any(closer) {
            return shape;
        }
        let level = self.level_of(placement);
        let lies = (0..).zip(shapes).filter(|(_, other)| closer(other) && level <= other.level());
        lies.min_by_key(|(_, other)| other.level()).map_or(shape, |(at, _)| at)
    }

    /// The most nodes that a shape which names a number of them could have as it must, each with so much room for it.
    pub(crate) fn most_nodes(&self, shape: &Shape, room: impl Fn(&Node) -> u32) -> u32 {
        let Some(each) = shape.each_node().filter(|each| *each > 0) else { return 0 };
        let mut domains: BTreeMap<DomainId, u32> = BTreeMap::new();
        for (id, _) in self.iter().filter(|(_, node)| room(node) >= each) {
            *domains.entry(self.domain(id, shape.level())).or_default() += 1;
        }
        match shape.segment {
            None => domains.into_values().max().unwrap_or(0),
            Some(segment) => domains.into_values().map(|nodes| nodes - nodes % segment.max(1)).sum(),
        }
    }

    /// Whether there is enough for a shape, as close together as it must be, if all were free and in service.
    pub fn could_hold(&self, shape: &Shape) -> bool {
        let enough = |need: &Need| self.most(shape, need.kind) >= need.devices;
        shape.devices() > 0
            && shape.needs.iter().all(enough)
            && (shape.needs.len() == 1 || shape.level() == Level::Any || self.could_hold_together(shape))
    }

    /// The same for one that needs several kinds in one place.
    fn could_hold_together(&self, shape: &Shape) -> bool {
        let host = shape.host.as_deref();
        let room = |need: &Need, id: &NodeId| self.get(*id).room_empty(need.kind, host);
        let most = |need: &Need, nodes: &[NodeId]| nodes.iter().map(|id| room(need, id)).sum::<u32>();
        let holds = |nodes: &Vec<NodeId>| shape.needs.iter().all(|need| most(need, nodes) >= need.devices);
        self.by_domain(shape.level()).values().any(holds)
    }

    /// The most devices of a kind that a shape could have in one place if all were free.
    pub fn most(&self, shape: &Shape, kind: KindId) -> u32 {
        let host = shape.host.as_deref().filter(|_| self.counted > 0);
        if shape.nodes.is_some() {
            let nodes = self.most_nodes(shape, |node| node.room_empty(kind, host));
            return nodes.saturating_mul(shape.each_node().unwrap_or(0));
        }
        let rooms = || self.iter().map(move |(id, node)| (id, node.room_empty(kind, host)));
        match (shape.level(), host) {
            (Level::Node, None) => self.largest(kind),
            (Level::Any, None) => self.total(kind),
            (Level::Node, _) => rooms().map(|(_, room)| room).max().unwrap_or(0),
            (Level::Any, _) => rooms().map(|(_, room)| room).sum(),
            (level, _) => {
                let mut domains: BTreeMap<DomainId, u32> = BTreeMap::new();
                rooms().for_each(|(id, room)| *domains.entry(self.domain(id, level)).or_default() += room);
                domains.into_values().max().unwrap_or(0)
            }
        }
    }

    /// Whether counting free devices is not enough to know where a shape fits: it asks for amounts of its hosts, or some
    /// host is short of them.
    pub fn asks_hosts(&self, shape: &Shape) -> bool {
        self.strained > 0 || (shape.host.is_some() && self.counted > 0)
    }

    /// The most devices of a kind that a shape could have on a node now.
    pub fn room(&self, id: NodeId, kind: KindId, host: Option<&HostNeed>) -> u32 {
        self.get(id).room(kind, host)
    }

    /// A placement of devices with what it has of their hosts; none where one of them has too little left.
    pub fn furnish(&self, mut placement: Placement, shape: &Shape) -> Option<Placement> {
        if self.counted == 0 {
            return Some(placement);
        }
        for at in 0..placement.0.len() {
            placement.0[at].host = self.charge(&placement.0[..=at], shape.host.as_deref());
        }
        let fits = |slice: &Slice| self.get(slice.node).host_free().covers(&placement.host_on(slice.node));
        placement.0.iter().all(fits).then_some(placement)
    }

    /// Something of which no node has enough for a shape even when it is empty, though there are devices.
    pub(crate) fn never_enough(&self, shape: &Shape) -> Option<Shortage> {
        let need =
            shape.needs.first().filter(|need| self.without_hosts().most(shape, need.kind) >= need.devices)?;
        let short = |node: &Node| {
            let whole = shape.level() == Level::Node;
            let count = if whole { need.devices } else { need.devices.min(1) };
            let needed = node.charge(need.kind, count, shape.host.as_deref(), true);
            let resource = node.spec.host.short_of(&needed)?;
            Some(Shortage { resource, needed: needed.get(resource), free: node.spec.host.get(resource) })
        };
        let of_kind = self.list.iter().filter(|node| node.of_kind(need.kind).count_ones() > 0);
        of_kind.filter_map(short).max_by_key(|short| short.free)
    }

    /// Something of which no node that has devices for a shape has enough: what it is of the node with most of it.
    pub(crate) fn short_of(&self, shape: &Shape) -> Option<Shortage> {
        let need = shape.needs.first()?;
        let short = |node: &Node| {
            let count = need.devices.min(node.free_count(need.kind));
            let (needed, free) =
                (node.charge(need.kind, count, shape.host.as_deref(), true), node.host_free());
            let resource = free.short_of(&needed).filter(|_| count > 0)?;
            Some(Shortage { resource, needed: needed.get(resource), free: free.get(resource) })
        };
        self.list.iter().filter_map(short).max_by_key(|short| short.free)
    }

    /// So many devices of a node with their part of its host.
    pub(crate) fn piece(&self, node: NodeId, kind: KindId, count: u32, host: Option<&HostNeed>) -> Piece {
        Piece { node, kind, count, host: self.get(node).charge(kind, count, host, true) }
    }

    /// What the last of these slices has of its host; what is asked once for a node, its first one there has.
    fn charge(&self, slices: &[Slice], host: Option<&HostNeed>) -> Amounts {
        let Some((slice, before)) = slices.split_last() else { return Amounts::NONE };
        let node = self.get(slice.node);
        let kind = node.spec.kind_of(slice.mask.trailing_zeros());
        let first = before.iter().all(|other| other.node != slice.node);
        kind.map(|kind| node.charge(kind, slice.devices(), host, first)).unwrap_or_default()
    }

    /// Nodes of this kind that are up and have exactly `free` devices free, in order.
    pub fn with_free(&self, kind: KindId, free: u32) -> impl Iterator<Item = NodeId> + '_ {
        let set = self.kinds.get(kind.index()).and_then(|nodes| nodes.by_free.get(free as usize));
        set.into_iter().flat_map(Bits::iter).map(NodeId)
    }

    /// Usable devices of a kind among those of a slice.
    pub(crate) fn usable(&self, slice: &Slice, kind: KindId) -> u32 {
        let node = self.get(slice.node);
        if node.state == NodeState::Up { (slice.mask & node.of_kind(kind)).count_ones() } else { 0 }
    }

    /// Whether giving up a slice makes room for who needs devices of a kind: those, or amounts of their host.
    pub(crate) fn makes_room(&self, slice: &Slice, kind: KindId) -> bool {
        let node = self.get(slice.node);
        let amounts = !slice.host.is_none() && node.of_kind(kind) != 0;
        self.usable(slice, kind) > 0 || (node.state == NodeState::Up && amounts)
    }

    /// Takes a node in or out of service.
    pub(crate) fn set_state(&mut self, id: NodeId, state: NodeState) {
        self.update(id, |node| node.state = state);
    }

    /// Takes devices of a node in or out of service.
    pub(crate) fn set_bad(&mut self, id: NodeId, bad: Mask) {
        self.update(id, |node| node.bad = bad);
    }

    /// There is so much of a node's host from now on, at least what is given out of it.
    pub(crate) fn set_host(&mut self, id: NodeId, host: Amounts, parts: &[Amounts]) {
        let was_counted = !self.get(id).spec.host.is_none();
        self.update(id, |node| {
            node.spec.host = host.at_least(&node.promised).at_least(&node.held);
            node.spec.pools.iter_mut().zip(parts).for_each(|(pool, part)| pool.part = *part);
        });
        let is_counted = !self.get(id).spec.host.is_none();
        self.counted = self.counted - u32::from(was_counted) + u32::from(is_counted);
    }

    /// A node is in these domains from now on.
    pub(crate) fn set_domains(&mut self, id: NodeId, domains: DomainPath) {
        let located = self.domains.locate(id, &domains);
        let node = &mut self.list[id.index()];
        (node.spec.domains, node.located) = (domains, located);
    }

    /// The same nodes as if nobody counted what their hosts have.
    pub(crate) fn without_hosts(&self) -> Nodes {
        let mut nodes = self.clone();
        nodes.list.iter_mut().for_each(|node| node.spec.host = Amounts::NONE);
        (nodes.counted, nodes.strained) = (0, 0);
        nodes
    }

    /// The same nodes with nothing promised to anybody.
    pub(crate) fn emptied(&self) -> Nodes {
        let mut empty = Nodes { domains: self.domains.clone(), ..Nodes::default() };
        for node in &self.list {
            let id = empty.add(node.spec.clone());
            empty.set_state(id, node.state);
            empty.set_bad(id, node.bad);
        }
        empty
    }

    /// Promises devices and amounts. They must be free: this is where nothing is given twice.
    pub(crate) fn promise(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            self.update(slice.node, |node| {
                let name = &node.spec.name;
                assert!(node.free & slice.mask == slice.mask, "a device of {name} promised twice");
                assert!(
                    node.host_free().covers(&slice.host),
                    "more of the host of {name} promised than there is"
                );
                node.free &= !slice.mask;
                node.promised = node.promised.plus(&slice.host);
            });
        }
    }

    /// Takes a promise back.
    pub(crate) fn release(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            self.update(slice.node, |node| {
                let name = &node.spec.name;
                assert!(node.free & slice.mask == 0, "a device of {name} released twice");
                assert!(
                    node.promised.covers(&slice.host),
                    "more of the host of {name} released than promised"
                );
                node.free |= slice.mask;
                node.promised = node.promised.minus(&slice.host);
            });
        }
    }

    /// Whether all of this is held by nobody.
    pub(crate) fn are_idle(&self, placement: &Placement) -> bool {
        placement.0.iter().all(|slice| {
            let node = self.get(slice.node);
            node.idle & slice.mask == slice.mask && node.host_idle().covers(&placement.host_on(slice.node))
        })
    }

    /// Hands devices and amounts over. They must be idle.
    pub(crate) fn hold(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            let node = &mut self.list[slice.node.index()];
            let name = &node.spec.name;
            assert!(node.idle & slice.mask == slice.mask, "a device of {name} held twice");
            assert!(node.host_idle().covers(&slice.host), "more of the host of {name} held than there is");
            node.idle &= !slice.mask;
            node.held = node.held.plus(&slice.host);
        }
    }

    /// Takes devices and amounts back from their holder.
    pub(crate) fn put_down(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            let node = &mut self.list[slice.node.index()];
            let name = &node.spec.name;
            assert!(node.idle & slice.mask == 0, "a device of {name} freed twice");
            assert!(node.held.covers(&slice.host), "more of the host of {name} freed than held");
            node.idle |= slice.mask;
            node.held = node.held.minus(&slice.host);
        }
    }

    /// Whether who had this could have it back: promised to nobody, and its nodes not down. A draining node keeps what
    /// it runs.
    pub(crate) fn are_free(&self, placement: &Placement) -> bool {
        placement.0.iter().all(|slice| {
            let node = self.get(slice.node);
            node.state != NodeState::Down
                && node.free & slice.mask == slice.mask
                && node.host_free().covers(&placement.host_on(slice.node))
        })
    }

    /// Whether these devices are what a shape asks for, on nodes that take jobs.
    pub(crate) fn suits(&self, placement: &Placement, shape: &Shape) -> bool {
        let up = placement.0.iter().all(|slice| self.get(slice.node).state == NodeState::Up);
        let of_kind = |need: &Need| {
            placement.0.iter().map(|slice| self.usable(slice, need.kind)).sum::<u32>() == need.devices
        };
        up && placement.devices() == shape.devices() && shape.needs.iter().all(of_kind)
    }

    /// Changes a node and keeps the indexes of its kinds in step.
    fn update(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let node = &mut self.list[id.index()];
        let count = |node: &Node, kind| (node.free_count(kind), node.up_count(kind));
        let before: SmallVec<[(u32, u32); 1]> =
            node.spec.pools.iter().map(|pool| count(node, pool.kind)).collect();
        let (was_up, was_strained) = (node.state == NodeState::Up, node.is_strained());
        change(node);
        let (is_up, is_strained) = (node.state == NodeState::Up, node.is_strained());
        self.strained = self.strained - u32::from(was_strained) + u32::from(is_strained);
        for (pool, before) in node.spec.pools.iter().zip(before) {
            let now = count(node, pool.kind);
            self.kinds[pool.kind.index()].count(id, (was_up, before), (is_up, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Mask, NODE_DEVICES_MAX, Pool, ResourceId};
    use super::*;

    fn node(devices: u32) -> NodeSpec {
        NodeSpec::of("n", KindId(0), devices)
    }

    fn slice(node: u32, mask: Mask) -> Placement {
        Placement(SmallVec::from_slice(&[Slice::of(NodeId(node), mask)]))
    }

    #[test]
    fn a_node_of_the_largest_size_has_all_its_devices() {
        let mut nodes = Nodes::default();
        let id = nodes.add(node(NODE_DEVICES_MAX));
        assert_eq!(nodes.get(id).take(KindId(0), NODE_DEVICES_MAX), Mask::MAX);
        assert_eq!(nodes.free(KindId(0)), NODE_DEVICES_MAX);
    }

    #[test]
    fn the_index_follows_promises_and_drains() {
        let mut nodes = Nodes::default();
        let id = nodes.add(node(4));
        nodes.promise(&slice(0, 0b0011));
        assert_eq!(nodes.with_free(KindId(0), 2).collect::<Vec<_>>(), [id]);
        nodes.set_state(id, NodeState::Draining);
        assert_eq!((nodes.free(KindId(0)), nodes.with_free(KindId(0), 2).count()), (0, 0));
        nodes.release(&slice(0, 0b0011));
        nodes.set_state(id, NodeState::Up);
        assert_eq!((nodes.free(KindId(0)), nodes.with_free(KindId(0), 4).count()), (4, 1));
    }

    const CORES: ResourceId = ResourceId::CORES;

    /// Four devices of one kind and two of another, and 24 cores.
    fn mixed() -> NodeSpec {
        let pool =
            |kind, devices| Pool { kind: KindId(kind), devices, memory_mib: None, part: Amounts::NONE };
        let pools = SmallVec::from_vec(vec![pool(0, 4), pool(1, 2)]);
        NodeSpec { pools, ..node(0) }.with_host(Amounts::NONE.with(CORES, 24))
    }

    fn asking(devices: u32, cores: u32) -> Shape {
        let host = HostNeed::default().per_node(CORES, cores);
        Shape { host: Some(Arc::new(host)), ..Shape::of(KindId(0), devices) }
    }

    #[test]
    fn a_node_of_two_kinds_is_in_the_index_of_both() {
        let mut nodes = Nodes::default();
        let id = nodes.add(mixed());
        nodes.promise(&slice(0, 0b010001));
        assert_eq!((nodes.free(KindId(0)), nodes.free(KindId(1))), (3, 1));
        assert_eq!(nodes.with_free(KindId(1), 1).collect::<Vec<_>>(), [id]);
        let node = nodes.get(id);
        assert_eq!((node.take(KindId(0), 2), node.take(KindId(1), 1)), (0b0110, 0b100000));
        nodes.set_bad(id, 0b100000);
        assert_eq!((nodes.up(KindId(0)), nodes.up(KindId(1)), nodes.free(KindId(1))), (4, 1, 0));
    }

    #[test]
    fn who_asks_for_nothing_has_the_part_of_its_devices() {
        let mut nodes = Nodes::default();
        nodes.add(mixed());
        let placed = nodes.furnish(slice(0, 0b0011), &Shape::of(KindId(0), 2)).unwrap();
        assert_eq!(placed.0[0].host.get(CORES), 8);
        nodes.promise(&placed);
        assert!(!nodes.asks_hosts(&Shape::of(KindId(0), 1)), "there is enough for all");
        let large = nodes.furnish(slice(0, 0b0100), &asking(1, 15)).unwrap();
        nodes.promise(&large);
        assert!(nodes.asks_hosts(&Shape::of(KindId(0), 1)), "one core is left, and a device wants four");
        assert_eq!(nodes.room(NodeId(0), KindId(1), None), 0);
        assert_eq!(nodes.furnish(slice(0, 0b1000), &Shape::of(KindId(0), 1)), None);
        assert!(nodes.furnish(slice(0, 0b1000), &asking(1, 1)).is_some());
        nodes.release(&large);
        assert_eq!(
            (nodes.room(NodeId(0), KindId(1), None), nodes.get(NodeId(0)).host_free().get(CORES)),
            (2, 16)
        );
    }

    #[test]
    #[should_panic(expected = "more of the host of n promised than there is")]
    fn nothing_of_a_host_is_promised_twice() {
        let mut nodes = Nodes::default();
        nodes.add(mixed());
        let all = |mask| Slice { host: Amounts::NONE.with(CORES, 20), ..Slice::of(NodeId(0), mask) };
        nodes.promise(&Placement(SmallVec::from_iter([all(0b01)])));
        nodes.promise(&Placement(SmallVec::from_iter([all(0b10)])));
    }

    #[test]
    fn what_no_place_could_hold_is_known() {
        let mut nodes = Nodes::default();
        nodes.add(mixed());
        nodes.add(mixed());
        nodes.add(mixed().within(Level::Rack, "r1"));
        let holds = |shape: &Shape| nodes.could_hold(shape);
        assert!(holds(&asking(1, 24)) && !holds(&asking(1, 25)));
        assert!(holds(&Shape::of(KindId(0), 12)) && !holds(&Shape::of(KindId(0), 13)));
        assert!(holds(&Shape::of(KindId(0), 8).within(Level::Rack)));
        assert!(!holds(&Shape::of(KindId(0), 9).within(Level::Rack)), "no rack has as many");
        assert!(holds(&Shape::of(KindId(0), 9).within(Level::Block)));
        assert!(!holds(&Shape::of(KindId(0), 5).within(Level::Clique)), "NVLink ends at the node");
        let both = |a, b| {
            let need = |kind, devices| Need { kind: KindId(kind), devices };
            Shape::of_needs(vec![need(0, a), need(1, b)], Level::Node)
        };
        assert!(holds(&both(4, 2)) && !holds(&both(5, 1)) && !holds(&both(1, 3)));
    }

    #[test]
    fn nodes_saved_when_they_had_one_kind_can_be_read() {
        let old = r#"{"name": "a", "kind": 0, "devices": 4, "rack": 2, "memory_mib": 80}"#;
        let spec: NodeSpec = serde_json::from_str(old).unwrap();
        assert_eq!(spec, NodeSpec::of("a", KindId(0), 4).within(Level::Rack, "2").with_memory(Some(80)));
        let text = serde_json::to_string(&mixed()).unwrap();
        assert_eq!(serde_json::from_str::<NodeSpec>(&text).unwrap(), mixed());
    }

    #[test]
    fn taking_skips_what_is_promised() {
        let mut nodes = Nodes::default();
        let id = nodes.add(node(4));
        nodes.promise(&slice(0, 0b0010));
        assert_eq!(nodes.get(id).take(KindId(0), 2), 0b0101);
    }
}
