//! The nodes of one kind among which devices are chosen, by how many a job can have on each: all of them, read
//! from the cluster's own index, or those of one domain. Where a job asks for amounts of its hosts, or hosts are short of them,
//! a node counts for as many devices as it has amounts for; the index knows devices only, so each node is then looked at.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use yard_core::cluster::{Level, Nodes, Slice};
use yard_core::ids::{DomainId, KindId, NodeId};
use yard_core::job::Shape;

/// Slices as a placement collects them.
pub(crate) type Slices = SmallVec<[Slice; 1]>;

/// Nodes of one kind.
pub(crate) struct PlacerPool<'a> {
    nodes: &'a Nodes,
    kind: KindId,
    /// Nodes by the devices that can be had there, where that is not the cluster's own index.
    listed: Option<Vec<Vec<NodeId>>>,
}

impl<'a> PlacerPool<'a> {
    /// All nodes of a kind, for a shape.
    pub(crate) fn all(nodes: &'a Nodes, kind: KindId, shape: &Shape) -> PlacerPool<'a> {
        let indexed = PlacerPool { nodes, kind, listed: None };
        if !nodes.asks_hosts(shape) {
            return indexed;
        }
        let mut listed = vec![Vec::new(); indexed.largest() as usize + 1];
        indexed.rooms(shape).for_each(|(room, node)| listed[room as usize].push(node));
        listed.iter_mut().for_each(|nodes| nodes.sort_unstable());
        PlacerPool { listed: Some(listed), ..indexed }
    }

    /// The nodes of a kind that have devices for a shape, domain by domain of a level. Reads each of them once.
    pub(crate) fn by_domain(
        nodes: &'a Nodes,
        kind: KindId,
        shape: &Shape,
        level: Level,
    ) -> BTreeMap<DomainId, PlacerPool<'a>> {
        let largest = nodes.largest(kind) as usize;
        let mut domains = BTreeMap::new();
        for (room, node) in PlacerPool::all(nodes, kind, shape).emptiest_first() {
            let empty = || PlacerPool { nodes, kind, listed: Some(vec![Vec::new(); largest + 1]) };
            let pool: &mut PlacerPool = domains.entry(nodes.domain(node, level)).or_insert_with(empty);
            pool.listed.iter_mut().for_each(|listed| listed[room as usize].push(node));
        }
        domains
    }

    /// Nodes with devices free, each with how many of them a shape can have.
    fn rooms(&self, shape: &Shape) -> impl Iterator<Item = (u32, NodeId)> + '_ {
        let host = shape.host.clone();
        let room = move |node| (self.nodes.room(node, self.kind, host.as_deref()), node);
        self.emptiest_first().map(move |(_, node)| room(node)).filter(|(room, _)| *room > 0)
    }

    /// Most devices that any node of this kind has, in this pool or not.
    pub(crate) fn largest(&self) -> u32 {
        self.nodes.largest(self.kind)
    }

    /// Devices that can be had in all.
    pub(crate) fn free(&self) -> u32 {
        let here = |listed: &Vec<Vec<NodeId>>| {
            listed.iter().enumerate().map(|(free, nodes)| (free * nodes.len()) as u32).sum()
        };
        self.listed.as_ref().map_or_else(|| self.nodes.free(self.kind), here)
    }

    /// Nodes with exactly `free` devices to be had, in order.
    pub(crate) fn with_free(&self, free: u32) -> impl Iterator<Item = NodeId> + '_ {
        let here = self.listed.iter().flat_map(move |listed| listed.get(free as usize)).flatten().copied();
        let anywhere = self.listed.is_none().then(|| self.nodes.with_free(self.kind, free));
        here.chain(anywhere.into_iter().flatten())
    }

    /// The first of them; asked for each share that is placed, so without a walk through the lists.
    fn first_with_free(&self, free: u32) -> Option<NodeId> {
        match &self.listed {
            Some(listed) => listed.get(free as usize)?.first().copied(),
            None => self.nodes.with_free(self.kind, free).next(),
        }
    }

    /// Nodes with devices free, those with most first, each with how many.
    pub(crate) fn emptiest_first(&self) -> impl Iterator<Item = (u32, NodeId)> + '_ {
        (1..=self.largest()).rev().flat_map(move |free| self.with_free(free).map(move |node| (free, node)))
    }

    /// The node with the fewest free devices, but at least `need`.
    pub(crate) fn best_fit(&self, need: u32) -> Option<NodeId> {
        (need..=self.largest()).find_map(|free| self.first_with_free(free))
    }

    /// The first node in order with at least `need` devices free.
    pub(crate) fn first_fit(&self, need: u32) -> Option<NodeId> {
        (need..=self.largest()).filter_map(|free| self.first_with_free(free)).min()
    }

    /// The same pool, with those nodes only for which this is true.
    pub(crate) fn only(&self, holds: impl Fn(NodeId) -> bool) -> PlacerPool<'a> {
        let mut listed = vec![Vec::new(); self.largest() as usize + 1];
        let chosen = self.emptiest_first().filter(|(_, node)| holds(*node));
        chosen.for_each(|(free, node)| listed[free as usize].push(node));
        PlacerPool { nodes: self.nodes, kind: self.kind, listed: Some(listed) }
    }

    /// The same pool, with those nodes only where so many devices can be had.
    pub(crate) fn of_at_least(mut self, devices: u32) -> PlacerPool<'a> {
        self.listed.iter_mut().flatten().take(devices as usize).for_each(Vec::clear);
        self
    }

    /// How many nodes there are with devices to be had, of a pool that is listed.
    pub(crate) fn len(&self) -> u32 {
        self.listed.iter().flatten().map(|nodes| nodes.len() as u32).sum()
    }

    /// Takes a node out of a pool that is listed.
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.listed.iter_mut().flatten().for_each(|nodes| nodes.retain(|other| *other != node));
    }

    /// The first `count` free devices of a node.
    pub(crate) fn slice(&self, node: NodeId, count: u32) -> Slice {
        Slice::of(node, self.nodes.get(node).take(self.kind, count))
    }
}
