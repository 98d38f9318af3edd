//! The consolidation rule called `yarn` in the artifact of Gu et al., "Tiresias" (NSDI 2019), which is
//! also what Muri's simulator uses: a gang that fits on a node gets one node; a larger one gets idle
//! nodes and one node for the rest, all in one rack; otherwise it waits.
//!
//! Objective: g ≤ G: the first node with g free; g > G: ⌊g/G⌋ idle nodes and one with g mod G free under
//! the lowest switch that has them. G is the largest node of the kind. The artifact also asks for six
//! CPUs and some memory per device; here a job asks for those itself.
//! Reads free devices by node, and racks. Cost: O(devices per node) on one node; larger gangs read all
//! nodes of the kind. Kinds of a mixed gang are placed one by one, in the same domain where the shape asks.
//! Not to be used where wide gangs must start soon: idle nodes are rare on a busy cluster.

use yard_core::cluster::{Level, Nodes, Placement};
use yard_core::job::{Need, Shape};
use yard_core::policy::Placer;

use super::PlacerEntry;
use super::evenly;
use super::greedy::{domains, merged, on_one_node};
use super::pool::{PlacerPool, Slices};

pub(crate) const ENTRY: PlacerEntry = PlacerEntry {
    name: "yarn",
    about: "One node if it fits on one, else idle nodes of one rack, else wait",
    make: || Box::new(Yarn),
};

struct Yarn;

impl Placer for Yarn {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let needs = merged(shape);
        if let (Some(_), [need]) = (shape.nodes, &needs[..]) {
            return evenly::place(nodes, shape, need, |pool, need| pool.first_fit(need), |_| 0);
        }
        let mut out = Slices::new();
        match shape.level() {
            Level::Node if needs.len() > 1 => {
                on_one_node(nodes, shape, &needs, |pool, need| pool.first_fit(need), &mut out)?;
            }
            Level::Node | Level::Any => {
                needs.iter().try_for_each(|need| place(nodes, shape, need, &mut out))?;
            }
            level => in_one(level, nodes, shape, &needs, &mut out)?,
        }
        Some(Placement(out))
    }
}

/// One kind's devices, wherever the rule finds them.
fn place(nodes: &Nodes, shape: &Shape, need: &Need, out: &mut Slices) -> Option<()> {
    let pool = PlacerPool::all(nodes, need.kind, shape);
    if need.devices <= pool.largest() {
        return within(&pool, need.devices, out);
    }
    // Counting idle nodes first spares most wide gangs the way through all racks.
    let (full, _) = split(&pool, need.devices)?;
    if shape.level() == Level::Node || pool.with_free(pool.largest()).take(full).count() < full {
        return None;
    }
    in_one(Level::Rack, nodes, shape, std::slice::from_ref(need), out)
}

/// All needs in the first domain of a level that has what the rule asks for.
fn in_one(level: Level, nodes: &Nodes, shape: &Shape, needs: &[Need], out: &mut Slices) -> Option<()> {
    if needs.is_empty() {
        return Some(());
    }
    let before = out.len();
    domains(nodes, shape, needs, level).into_values().find_map(|pools| {
        out.truncate(before);
        pools.iter().zip(needs).try_for_each(|(pool, need)| within(pool, need.devices, out))
    })
}

/// How many whole nodes, and how many devices beside them.
fn split(pool: &PlacerPool, devices: u32) -> Option<(usize, u32)> {
    let largest = pool.largest();
    Some((devices.checked_div(largest)? as usize, devices.checked_rem(largest)?))
}

/// The rule within one pool: whole nodes, and one node for what is left over.
fn within(pool: &PlacerPool, devices: u32, out: &mut Slices) -> Option<()> {
    let largest = pool.largest();
    if devices <= largest {
        out.push(pool.slice(pool.first_fit(devices)?, devices));
        return Some(());
    }
    let (full, rest) = split(pool, devices)?;
    let idle: Vec<_> = pool.with_free(largest).take(full).collect();
    if idle.len() < full {
        return None;
    }
    out.extend(idle.iter().map(|node| pool.slice(*node, largest)));
    if rest > 0 {
        let partly = (rest..largest).filter_map(|free| pool.with_free(free).next());
        let last = partly.chain(pool.with_free(largest).nth(full)).min()?;
        out.push(pool.slice(last, rest));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use yard_core::ids::KindId;

    use super::*;
    use crate::testing::{TestNode, nodes};

    /// Nodes of four devices as (rack, free).
    fn placed(cluster: &[(u32, u64)], devices: u32) -> Option<Vec<(u32, u128)>> {
        let node =
            |(rack, free): &(u32, u64)| TestNode { kind: 0, devices: 4, rack: *rack, up: true, free: *free };
        let nodes = nodes(&cluster.iter().map(node).collect::<Vec<_>>());
        let placement = Yarn.place(&nodes, &Shape::of(KindId(0), devices))?;
        Some(placement.0.iter().map(|slice| (slice.node.0, slice.mask)).collect())
    }

    #[test]
    fn a_small_gang_goes_to_the_first_node_that_holds_it() {
        assert_eq!(placed(&[(0, 0b0001), (0, 0b1111), (0, 0b0011)], 2), Some(vec![(1, 0b0011)]));
        assert_eq!(placed(&[(0, 0b0001), (0, 0b0001)], 2), None, "two nodes are not one");
    }

    #[test]
    fn a_wide_gang_wants_idle_nodes_of_one_rack() {
        let cluster = [(0, 0b1111), (1, 0b1111), (1, 0b0110), (1, 0b1111), (1, 0b1111)];
        assert_eq!(placed(&cluster, 8), Some(vec![(1, 0b1111), (3, 0b1111)]));
        assert_eq!(placed(&cluster, 10), Some(vec![(1, 0b1111), (3, 0b1111), (2, 0b0110)]));
        assert_eq!(placed(&cluster, 11), Some(vec![(1, 0b1111), (3, 0b1111), (4, 0b0111)]));
        assert_eq!(placed(&cluster, 16), None, "the fourth idle node is in another rack");
    }
}
