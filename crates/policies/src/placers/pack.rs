//! Best fit: a gang goes where it leaves the least behind, on the fewest nodes (consolidation, as in Gu
//! et al., "Tiresias", NSDI 2019, and most schedulers since; best fit after Johnson, MIT 1973).
//!
//! Objective: min number of nodes, then min free devices left on the last of them.
//! Reads free devices by node. Cost: O(nodes used + devices per node), whatever the size of the cluster;
//! a domain reads all nodes.
//! Not to be used where neighbours on a node disturb each other: see `spread`.

use yard_core::cluster::{Nodes, Placement};
use yard_core::ids::NodeId;
use yard_core::job::Shape;
use yard_core::policy::Placer;

use super::PlacerEntry;
use super::greedy::{self, Strategy};
use super::pool::{PlacerPool, Slices};

pub(crate) const ENTRY: PlacerEntry = PlacerEntry {
    name: "pack",
    about: "Fewest nodes, fullest node that still fits",
    make: || Box::new(Pack),
};

struct Pack;

impl Placer for Pack {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        greedy::place(self, nodes, shape)
    }
}

impl Strategy for Pack {
    fn node(&self, pool: &PlacerPool, need: u32) -> Option<NodeId> {
        pool.best_fit(need)
    }

    fn badness(&self, free: u32) -> u32 {
        free
    }

    fn fill(&self, pool: &PlacerPool, need: u32, out: &mut Slices) {
        let mut left = need;
        for (free, node) in pool.emptiest_first() {
            if free >= left {
                // Nodes with fewer free devices were not taken yet, so the best fit is not in use.
                let tighter = (left..free).find_map(|fewer| pool.with_free(fewer).next());
                out.push(pool.slice(tighter.unwrap_or(node), left));
                return;
            }
            out.push(pool.slice(node, free));
            left -= free;
        }
    }
}

#[cfg(test)]
mod tests {
    use yard_core::ids::KindId;

    use super::*;
    use crate::testing::{TestNode, nodes};

    fn placed(free: &[u64], devices: u32) -> Vec<(u32, u128)> {
        let node = |free: &u64| TestNode { kind: 0, devices: 4, rack: 0, up: true, free: *free };
        let nodes = nodes(&free.iter().map(node).collect::<Vec<_>>());
        let placement = Pack.place(&nodes, &Shape::of(KindId(0), devices)).unwrap();
        placement.0.iter().map(|slice| (slice.node.0, slice.mask)).collect()
    }

    #[test]
    fn the_tightest_node_is_taken() {
        assert_eq!(placed(&[0b1111, 0b0111, 0b0001], 2), [(1, 0b0011)]);
    }

    #[test]
    fn a_wide_gang_takes_the_emptiest_and_rounds_off_with_the_tightest() {
        assert_eq!(
            placed(&[0b0111, 0b1111, 0b1000, 0b1111, 0b1111], 9),
            [(1, 0b1111), (3, 0b1111), (2, 0b1000)]
        );
    }
}
