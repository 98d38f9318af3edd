//! The nodes of one kind among which devices are chosen, by how many each has free: all of them, read
//! from the cluster's own index, or those of one rack.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use yard_core::cluster::{Nodes, Slice};
use yard_core::ids::{KindId, NodeId};

/// Slices as a placement collects them.
pub(crate) type Slices = SmallVec<[Slice; 1]>;

/// Nodes of one kind.
pub(crate) struct Pool<'a> {
    nodes: &'a Nodes,
    kind: KindId,
    /// One rack's nodes by free devices; `None`: the whole cluster.
    rack: Option<Vec<Vec<NodeId>>>,
}

impl<'a> Pool<'a> {
    /// All nodes of a kind.
    pub(crate) fn all(nodes: &'a Nodes, kind: KindId) -> Pool<'a> {
        Pool { nodes, kind, rack: None }
    }

    /// The nodes of a kind that have devices free, rack by rack. Reads each of them once.
    pub(crate) fn by_rack(nodes: &'a Nodes, kind: KindId) -> BTreeMap<u32, Pool<'a>> {
        let largest = nodes.largest(kind) as usize;
        let mut racks = BTreeMap::new();
        for (free, node) in Pool::all(nodes, kind).emptiest_first() {
            let empty = || Pool { nodes, kind, rack: Some(vec![Vec::new(); largest + 1]) };
            let pool: &mut Pool = racks.entry(nodes.get(node).spec.rack).or_insert_with(empty);
            pool.rack.iter_mut().for_each(|by_free| by_free[free as usize].push(node));
        }
        racks
    }

    /// Most devices that any node of this kind has, in this pool or not.
    pub(crate) fn largest(&self) -> u32 {
        self.nodes.largest(self.kind)
    }

    /// Free devices in all.
    pub(crate) fn free(&self) -> u32 {
        let here = |by_free: &Vec<Vec<NodeId>>| {
            by_free.iter().enumerate().map(|(free, nodes)| (free * nodes.len()) as u32).sum()
        };
        self.rack.as_ref().map_or_else(|| self.nodes.free(self.kind), here)
    }

    /// Nodes with exactly `free` devices free, in order.
    pub(crate) fn with_free(&self, free: u32) -> impl Iterator<Item = NodeId> + '_ {
        let here = self.rack.iter().flat_map(move |by_free| by_free.get(free as usize)).flatten().copied();
        let anywhere = self.rack.is_none().then(|| self.nodes.with_free(self.kind, free));
        here.chain(anywhere.into_iter().flatten())
    }

    /// Nodes with devices free, those with most first, each with how many.
    pub(crate) fn emptiest_first(&self) -> impl Iterator<Item = (u32, NodeId)> + '_ {
        (1..=self.largest()).rev().flat_map(move |free| self.with_free(free).map(move |node| (free, node)))
    }

    /// The node with the fewest free devices, but at least `need`.
    pub(crate) fn best_fit(&self, need: u32) -> Option<NodeId> {
        (need..=self.largest()).find_map(|free| self.with_free(free).next())
    }

    /// The first node in order with at least `need` devices free.
    pub(crate) fn first_fit(&self, need: u32) -> Option<NodeId> {
        (need..=self.largest()).filter_map(|free| self.with_free(free).next()).min()
    }

    /// The first `count` free devices of a node.
    pub(crate) fn slice(&self, node: NodeId, count: u32) -> Slice {
        Slice { node, mask: self.nodes.get(node).take(count) }
    }
}
