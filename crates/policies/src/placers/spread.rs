//! Evenly over as many nodes as possible, the emptiest first (the LoadBalance end of the scale whose
//! other end is `pack`): for gangs that compete for a node's host memory, disks or network ports.
//!
//! Objective: max number of nodes, then min of the most devices on one node.
//! Reads free devices by node. Cost: O(devices needed) nodes are looked at; a domain reads all nodes.
//! Not to be used where devices of a gang talk much: every hop leaves the node.

use yard_core::cluster::{Nodes, Placement};
use yard_core::ids::NodeId;
use yard_core::job::Shape;
use yard_core::policy::Placer;

use super::PlacerEntry;
use super::greedy::{self, Strategy};
use super::pool::{PlacerPool, Slices};

pub(crate) const ENTRY: PlacerEntry = PlacerEntry {
    name: "spread",
    about: "As many nodes as possible, evenly, emptiest first",
    make: || Box::new(Evenly),
};

struct Evenly;

impl Placer for Evenly {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        greedy::place(self, nodes, shape)
    }
}

impl Strategy for Evenly {
    fn node(&self, pool: &PlacerPool, need: u32) -> Option<NodeId> {
        pool.emptiest_first().next().filter(|(free, _)| *free >= need).map(|(_, node)| node)
    }

    fn badness(&self, free: u32) -> u32 {
        u32::MAX - free
    }

    fn fill(&self, pool: &PlacerPool, need: u32, out: &mut Slices) {
        let chosen: Vec<(u32, NodeId)> = pool.emptiest_first().take(need as usize).collect();
        let frees: Vec<u32> = chosen.iter().map(|(free, _)| *free).collect();
        for (count, (_, node)) in even(&frees, need).into_iter().zip(chosen) {
            out.push(pool.slice(node, count));
        }
    }
}

/// Deals `need` out one by one to all that still have room.
fn even(room: &[u32], need: u32) -> Vec<u32> {
    let mut dealt = vec![0; room.len()];
    let mut left = need.min(room.iter().sum());
    while left > 0 {
        for (count, room) in dealt.iter_mut().zip(room) {
            if left > 0 && *count < *room {
                *count += 1;
                left -= 1;
            }
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dealing_is_even_where_there_is_room() {
        assert_eq!(even(&[4, 4, 1], 8), [4, 3, 1]);
        assert_eq!(even(&[4, 4, 4], 4), [2, 1, 1]);
        assert_eq!(even(&[1], 5), [1]);
    }
}
