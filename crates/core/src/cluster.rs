//! Kinds and nodes, and which devices are free. Two truths are kept per device: `free` (promised to
//! nobody) decides placements; `idle` (held by nobody) decides when a promise can be granted. They
//! differ while a stopped job writes its checkpoint on devices that are already promised to the next.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::bits::Bits;
use crate::ids::{KindId, NodeId};
use crate::job::{Need, Shape, Spread};

/// A set of devices of one node, bit by bit.
pub type Mask = u128;

/// Most devices one node may have.
pub const NODE_DEVICES_MAX: u32 = Mask::BITS;

/// Most kinds; a number of theirs fits in `KindId`, and no cluster has nearly as many.
pub const KINDS_MAX: usize = 1 << 12;

/// The accelerator kinds: their names, and what they cost where that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kinds {
    names: Vec<String>,
    /// Dollars for one device and hour.
    dollars: Vec<Option<f64>>,
}

impl Kinds {
    /// The kind of this name, new if need be.
    pub fn intern(&mut self, name: &str) -> KindId {
        self.find(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.dollars.push(None);
            KindId(self.names.len() as u16 - 1)
        })
    }

    /// The kind of this name, if it is known.
    pub fn find(&self, name: &str) -> Option<KindId> {
        self.names.iter().position(|known| known == name).map(|at| KindId(at as u16))
    }

    /// A kind's name, if there is such a kind.
    pub fn get(&self, kind: KindId) -> Option<&str> {
        self.names.get(kind.index()).map(String::as_str)
    }

    /// A kind's name; `?` where there is no such kind.
    pub fn name(&self, kind: KindId) -> &str {
        self.get(kind).unwrap_or("?")
    }

    /// How many kinds there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no kind yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All kinds, in order.
    pub fn ids(&self) -> impl Iterator<Item = KindId> + use<> {
        (0..self.names.len()).map(|at| KindId(at as u16))
    }

    /// Says what one device of a kind costs for an hour.
    pub fn set_dollars(&mut self, kind: KindId, dollars: f64) {
        if let Some(known) = self.dollars.get_mut(kind.index()) {
            *known = Some(dollars);
        }
    }

    /// Dollars for one device and hour, where they are known.
    pub fn dollars(&self, kind: KindId) -> Option<f64> {
        self.dollars.get(kind.index()).copied().flatten()
    }
}

/// Whether a node takes jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeState {
    /// It does.
    Up,
    /// It keeps what it runs and takes nothing new.
    Draining,
    /// It is gone, for now or for good.
    Down,
}

/// What a node brings when it joins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// The kind of its devices.
    pub kind: KindId,
    /// How many devices, at most `NODE_DEVICES_MAX`.
    pub devices: u32,
    /// Its rack or switch.
    pub rack: u32,
    /// Memory of each device, where it is known.
    pub memory_mib: Option<u32>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it brought.
    pub spec: NodeSpec,
    /// Whether it takes jobs.
    pub state: NodeState,
    /// Devices promised to nobody.
    pub free: Mask,
    /// Devices held by nobody.
    pub idle: Mask,
    /// Devices out of service: nobody may have them.
    pub bad: Mask,
}

impl Node {
    /// All its devices.
    pub fn all(&self) -> Mask {
        low_bits(self.spec.devices)
    }

    /// How many devices a new job could have here.
    pub fn free_count(&self) -> u32 {
        if self.state == NodeState::Up { self.takeable().count_ones() } else { 0 }
    }

    /// How many of its devices are in service, free or not.
    pub fn up_count(&self) -> u32 {
        if self.state == NodeState::Up { (self.all() & !self.bad).count_ones() } else { 0 }
    }

    /// Devices promised to nobody and in service.
    fn takeable(&self) -> Mask {
        self.free & !self.bad
    }

    /// Its first `count` free devices.
    pub fn take(&self, count: u32) -> Mask {
        let mut left = self.takeable();
        for _ in 0..count {
            left &= left.wrapping_sub(1);
        }
        self.takeable() & !left
    }
}

fn low_bits(count: u32) -> Mask {
    if count >= Mask::BITS { Mask::MAX } else { (1 << count) - 1 }
}

/// Some devices of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The node.
    pub node: NodeId,
    /// Which of its devices.
    pub mask: Mask,
}

/// The exact devices of a lease.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement(pub SmallVec<[Slice; 1]>);

/// As a whole: slice by slice takes several times as long.
impl Clone for Placement {
    fn clone(&self) -> Placement {
        Placement(SmallVec::from_slice(&self.0))
    }
}

impl Placement {
    /// How many devices.
    pub fn devices(&self) -> u32 {
        self.0.iter().map(|slice| slice.mask.count_ones()).sum()
    }
}

/// All nodes, indexed so that a placement costs a few look-ups whatever the size of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Nodes {
    list: Vec<Node>,
    kinds: Vec<KindNodes>,
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

impl Nodes {
    /// Adds a node, all its devices free.
    pub fn add(&mut self, spec: NodeSpec) -> NodeId {
        assert!(spec.devices <= NODE_DEVICES_MAX, "node {}: {} devices", spec.name, spec.devices);
        let id = NodeId(self.list.len() as u32);
        let (kind, all) = (spec.kind.index(), low_bits(spec.devices));
        if self.kinds.len() <= kind {
            self.kinds.resize_with(kind + 1, KindNodes::default);
        }
        let slots = spec.devices as usize + 1;
        if self.kinds[kind].by_free.len() < slots {
            self.kinds[kind].by_free.resize_with(slots, Bits::default);
        }
        self.kinds[kind].total += spec.devices;
        self.list.push(Node { spec, state: NodeState::Down, free: all, idle: all, bad: 0 });
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

    /// Whether there are enough devices for a shape, were they all free.
    pub fn could_hold(&self, shape: &Shape) -> bool {
        shape.devices() > 0 && shape.needs.iter().all(|need| self.most(shape, need.kind) >= need.devices)
    }

    /// The most devices of a kind that a shape could be given, were they all free.
    pub fn most(&self, shape: &Shape, kind: KindId) -> u32 {
        match shape.spread {
            Spread::Node => self.largest(kind),
            Spread::Any | Spread::Rack => self.total(kind),
        }
    }

    /// Nodes of this kind that are up and have exactly `free` devices free, in order.
    pub fn with_free(&self, kind: KindId, free: u32) -> impl Iterator<Item = NodeId> + '_ {
        let set = self.kinds.get(kind.index()).and_then(|nodes| nodes.by_free.get(free as usize));
        set.into_iter().flat_map(Bits::iter).map(NodeId)
    }

    /// Whether a node is up and its devices are of this kind.
    pub(crate) fn usable(&self, id: NodeId, kind: KindId) -> bool {
        let node = self.get(id);
        node.state == NodeState::Up && node.spec.kind == kind
    }

    /// Takes a node in or out of service.
    pub(crate) fn set_state(&mut self, id: NodeId, state: NodeState) {
        self.update(id, |node| node.state = state);
    }

    /// Takes devices of a node in or out of service.
    pub(crate) fn set_bad(&mut self, id: NodeId, bad: Mask) {
        self.update(id, |node| node.bad = bad);
    }

    /// The same nodes with nothing promised to anybody.
    pub(crate) fn emptied(&self) -> Nodes {
        let mut empty = Nodes::default();
        for node in &self.list {
            let id = empty.add(node.spec.clone());
            empty.set_state(id, node.state);
            empty.set_bad(id, node.bad);
        }
        empty
    }

    /// Promises devices. They must be free: this is where no device is given twice.
    pub(crate) fn promise(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            self.update(slice.node, |node| {
                assert!(
                    node.free & slice.mask == slice.mask,
                    "a device of {} promised twice",
                    node.spec.name
                );
                node.free &= !slice.mask;
            });
        }
    }

    /// Takes a promise back.
    pub(crate) fn release(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            self.update(slice.node, |node| {
                assert!(node.free & slice.mask == 0, "a device of {} released twice", node.spec.name);
                node.free |= slice.mask;
            });
        }
    }

    /// Whether all these devices are held by nobody.
    pub(crate) fn are_idle(&self, placement: &Placement) -> bool {
        placement.0.iter().all(|slice| self.get(slice.node).idle & slice.mask == slice.mask)
    }

    /// Hands devices over. They must be idle.
    pub(crate) fn hold(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            let node = &mut self.list[slice.node.index()];
            assert!(node.idle & slice.mask == slice.mask, "a device of {} held twice", node.spec.name);
            node.idle &= !slice.mask;
        }
    }

    /// Takes devices back from their holder.
    pub(crate) fn put_down(&mut self, placement: &Placement) {
        for slice in &placement.0 {
            let node = &mut self.list[slice.node.index()];
            assert!(node.idle & slice.mask == 0, "a device of {} freed twice", node.spec.name);
            node.idle |= slice.mask;
        }
    }

    /// Whether who had these devices could have them back: promised to nobody, and their nodes not down. A
    /// draining node keeps what it runs.
    pub(crate) fn are_free(&self, placement: &Placement) -> bool {
        placement.0.iter().all(|slice| {
            let node = self.get(slice.node);
            node.state != NodeState::Down && node.free & slice.mask == slice.mask
        })
    }

    /// Whether these devices are what a shape asks for, on nodes that take jobs.
    pub(crate) fn suits(&self, placement: &Placement, shape: &Shape) -> bool {
        let up = placement.0.iter().all(|slice| self.get(slice.node).state == NodeState::Up);
        let of_kind = |need: &Need| {
            let slices = placement.0.iter().filter(|slice| self.get(slice.node).spec.kind == need.kind);
            slices.map(|slice| slice.mask.count_ones()).sum::<u32>() == need.devices
        };
        up && placement.devices() == shape.devices() && shape.needs.iter().all(of_kind)
    }

    /// Changes a node and keeps the index of its kind in step.
    fn update(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let node = &mut self.list[id.index()];
        let (up, before, in_service) = (node.state == NodeState::Up, node.free_count(), node.up_count());
        change(node);
        let (up_now, after) = (node.state == NodeState::Up, node.free_count());
        let kind = &mut self.kinds[node.spec.kind.index()];
        kind.up = kind.up - in_service + node.up_count();
        if (up, before) == (up_now, after) {
            return;
        }
        if up {
            kind.by_free[before as usize].remove(id.0);
        }
        if up_now {
            kind.by_free[after as usize].insert(id.0);
        }
        kind.free = kind.free - before + after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(devices: u32) -> NodeSpec {
        NodeSpec { name: "n".into(), kind: KindId(0), devices, rack: 0, memory_mib: None }
    }

    fn slice(node: u32, mask: Mask) -> Placement {
        Placement(SmallVec::from_slice(&[Slice { node: NodeId(node), mask }]))
    }

    #[test]
    fn a_node_of_the_largest_size_has_all_its_devices() {
        let mut nodes = Nodes::default();
        let id = nodes.add(node(NODE_DEVICES_MAX));
        assert_eq!(nodes.get(id).take(NODE_DEVICES_MAX), Mask::MAX);
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

    #[test]
    fn taking_skips_what_is_promised() {
        let mut nodes = Nodes::default();
        let id = nodes.add(node(4));
        nodes.promise(&slice(0, 0b0010));
        assert_eq!(nodes.get(id).take(2), 0b0101);
    }
}
