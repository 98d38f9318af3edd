//! Pure counting: any free devices, the lowest nodes first. What simulations assume that leave placement
//! aside (scheme `count` in the artifact of Gu et al., "Tiresias", NSDI 2019).
//!
//! Objective: none beyond Σ devices = need. Reads free devices by node.
//! Cost: O(nodes used × devices per node), whatever the size of the cluster; a domain reads all nodes.
//! Not to be used on real machines: gangs lie scattered.

use std::iter::Peekable;

use yard_core::cluster::{Nodes, Placement};
use yard_core::ids::NodeId;
use yard_core::job::Shape;
use yard_core::policy::Placer;

use super::PlacerEntry;
use super::greedy::{self, Strategy};
use super::pool::{PlacerPool, Slices};

pub(crate) const ENTRY: PlacerEntry =
    PlacerEntry { name: "count", about: "Any free devices, lowest nodes first", make: || Box::new(Count) };

struct Count;

impl Placer for Count {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        greedy::place(self, nodes, shape)
    }
}

impl Strategy for Count {
    fn node(&self, pool: &PlacerPool, need: u32) -> Option<NodeId> {
        pool.first_fit(need)
    }

    fn badness(&self, _: u32) -> u32 {
        0
    }

    fn fill(&self, pool: &PlacerPool, need: u32, out: &mut Slices) {
        // Most gangs are of one, and that one needs no list.
        if need == 1 {
            return out.extend(pool.first_fit(1).map(|node| pool.slice(node, 1)));
        }
        let mut left = need;
        for (free, node) in in_order(pool) {
            if left == 0 {
                return;
            }
            out.push(pool.slice(node, free.min(left)));
            left -= free.min(left);
        }
    }
}

/// Nodes with devices free in order of their numbers: the lists by free devices, merged.
fn in_order<'a>(pool: &'a PlacerPool) -> impl Iterator<Item = (u32, NodeId)> + 'a {
    let mut lists: Vec<(u32, Peekable<_>)> =
        (1..=pool.largest()).map(|free| (free, pool.with_free(free).peekable())).collect();
    std::iter::from_fn(move || {
        let heads =
            lists.iter_mut().filter_map(|(free, list)| list.peek().copied().map(|node| (node, *free, list)));
        let (_, free, list) = heads.min_by_key(|(node, ..)| *node)?;
        Some((free, list.next()?))
    })
}

#[cfg(test)]
mod tests {
    use yard_core::ids::KindId;

    use super::*;
    use crate::testing::{TestNode, nodes};

    #[test]
    fn the_lowest_nodes_come_first() {
        let node = |free| TestNode { kind: 0, devices: 4, rack: 0, up: true, free };
        let nodes = nodes(&[node(0b1000), node(0), node(0b1111), node(0b0011)]);
        let placement = Count.place(&nodes, &Shape::of(KindId(0), 4)).unwrap();
        let slices: Vec<_> = placement.0.iter().map(|slice| (slice.node.0, slice.mask)).collect();
        assert_eq!(slices, [(0, 0b1000), (2, 0b0111)]);
    }
}
