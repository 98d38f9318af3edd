//! How many devices can be counted on, though placements are not planned. Gangs that must lie on one node take a power
//! of two, as Chronus rounds them; such gangs find their places, the largest first, whenever for each power s all
//! gangs of at least s take no more than there is in whole blocks of s:
//!
//!   Σ_{j: size_j ≥ s} size_j ≤ Σ_nodes s·⌊devices/s⌋.
//!
//! Each kind therefore has one column for each power of two up to its largest node, and a gang takes from all columns up
//! to its own. One that may lie anywhere takes from the first only: there is always room for it in what is left.

use smallvec::SmallVec;

use super::{Way, spot_of};
use crate::cluster::{Level, NodeState, Nodes, Placement};
use crate::ids::{KindId, NodeId};
use crate::job::{JobSpec, Shape};

/// Blocks up to 2⁷ = 128: the most devices of a node.
const TIERS: usize = 8;

/// What a cluster has, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    free: Vec<u32>,
    /// The closest level of which one domain has all of it.
    all_within: Level,
}

fn column(kind: KindId, tier: usize) -> usize {
    kind.index() * TIERS + tier
}

/// Devices of a node in whole blocks.
fn in_blocks(devices: u32, tier: usize) -> u32 {
    devices >> tier << tier
}

impl Room {
    /// Of all nodes that take jobs.
    pub fn of(nodes: &Nodes, n_kinds: usize) -> Room {
        let kinds = n_kinds.max(nodes.kinds().count());
        let mut free = vec![0; kinds * TIERS];
        for (_, node) in nodes.iter().filter(|(_, node)| node.state == NodeState::Up) {
            for kind in node.spec.pools.iter().map(|pool| pool.kind) {
                let up = node.up_count(kind);
                (0..TIERS).for_each(|tier| free[column(kind, tier)] += in_blocks(up, tier));
            }
        }
        Room { free, all_within: all_within(nodes) }
    }

    /// All of it, for a timeline.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// What a node lacks, column by column, while so many of its devices are in hands that keep them.
    pub fn lost(
        &self,
        nodes: &Nodes,
        (node, kind): (NodeId, KindId),
        kept: u32,
    ) -> SmallVec<[(u16, u32); 4]> {
        let up = nodes.get(node).up_count(kind);
        let lost = |tier: usize| in_blocks(up, tier) - in_blocks(up.saturating_sub(kept), tier);
        let columns = (0..TIERS).map(|tier| (column(kind, tier) as u16, lost(tier)));
        columns.filter(|(_, lost)| *lost > 0).collect()
    }

    /// What a placement takes while it cannot be moved.
    pub fn kept(&self, nodes: &Nodes, placement: &Placement) -> SmallVec<[(u16, u32); 4]> {
        let spot = spot_of(nodes, placement);
        spot.into_iter().flat_map(|piece| self.lost(nodes, (piece.node, piece.kind), piece.count)).collect()
    }

    /// The ways in which a job makes progress and can be counted on to find a place.
    pub fn ways(&self, spec: &JobSpec) -> Vec<Way> {
        spec.usable().filter_map(|shape| self.way(spec, shape)).collect()
    }

    /// What one of a job's shapes takes; none where it cannot be counted on.
    pub fn way(&self, spec: &JobSpec, shape: u16) -> Option<Way> {
        let own = &spec.shapes[shape as usize];
        // One that may lie anywhere may come to lie on one node, and goes at the speed known for that.
        let closer = |other: &Shape| other.level() < own.level() && other.needs == own.needs;
        let twins = spec.shapes.iter().zip(&*spec.speeds).filter(|(other, _)| closer(other));
        let speed = twins.fold(spec.speeds[shape as usize], |speed, (_, twin)| speed.min(*twin));
        let takes = self.takes(own)?;
        let family = own.needs.iter().fold(0, |sum, need| sum * 64 + need.kind.index() as u64 + 1);
        let fits = takes.iter().all(|(column, count)| self.free[*column as usize] >= *count);
        (fits && speed > 0.0).then(|| Way { shape, speed, devices: own.devices(), takes, family })
    }

    fn takes(&self, shape: &Shape) -> Option<SmallVec<[(u16, u32); 4]>> {
        let mut takes = SmallVec::new();
        // Blocks may lie side by side on a node: they say nothing of how many nodes there are.
        if shape.nodes.is_some() {
            return None;
        }
        for need in &shape.needs {
            // Of devices one by one, whatever is left will do.
            let anywhere = match shape.level() {
                Level::Node => need.devices == 1 && shape.needs.len() == 1,
                level => level >= self.all_within,
            };
            let block = if anywhere { 1 } else { need.devices.next_power_of_two() };
            let tiers = block.trailing_zeros() as usize;
            let known = column(need.kind, TIERS) <= self.free.len();
            if !known || tiers >= TIERS || (!anywhere && shape.level() != Level::Node) {
                return None;
            }
            let count = if anywhere { need.devices } else { block };
            takes.extend((0..=tiers).map(|tier| (column(need.kind, tier) as u16, count)));
        }
        Some(takes)
    }

    /// What a gang takes that lies nobody knows where and stays there: each of its devices may spoil a block.
    pub fn worst(&self, shape: &Shape) -> SmallVec<[(u16, u32); 4]> {
        let spoiled = |devices: u32, tier: usize| match shape.level() {
            Level::Node => devices.next_power_of_two().div_ceil(1 << tier) << tier,
            _ => devices.saturating_mul(1 << tier),
        };
        let tiers = |kind: KindId, devices: u32| {
            (0..TIERS).map(move |tier| (column(kind, tier) as u16, spoiled(devices, tier)))
        };
        let all = shape.needs.iter().flat_map(|need| tiers(need.kind, need.devices));
        let there = |(column, count): &(u16, u32)| (*column, (*count).min(self.free[*column as usize]));
        let known = all.filter(|(column, _)| (*column as usize) < self.free.len());
        known.map(|take| there(&take)).filter(|(_, count)| *count > 0).collect()
    }
}

/// The closest level of which one domain has all nodes that take jobs.
fn all_within(nodes: &Nodes) -> Level {
    let up = || nodes.iter().filter(|(_, node)| node.state == NodeState::Up).map(|(id, _)| id);
    let one = |level: &Level| {
        let mut domains = up().map(|id| nodes.domain(id, *level));
        let first = domains.next();
        domains.all(|domain| Some(domain) == first)
    };
    Level::DOMAINS.into_iter().find(one).unwrap_or_default()
}
