//! Gangs that name their number of nodes: as many devices on each, and those of a segment in one domain.
//!
//! A node does if it has devices for its part, so what fits is a matter of counting nodes, domain by domain. Segments go
//! where all that are left fit, else where most of them do; within a domain nodes are the strategy's choice.
//! Cost: O(nodes of the kind).

use std::cmp::Reverse;

use yard_core::cluster::{Nodes, Placement};
use yard_core::ids::NodeId;
use yard_core::job::{Need, Shape};

use super::pool::{PlacerPool, Slices};

/// Devices on exactly so many nodes: `choose` picks the next of a pool, `badness` says how bad a domain with so many free
/// devices is.
pub(super) fn place(
    nodes: &Nodes,
    shape: &Shape,
    need: &Need,
    choose: impl Fn(&PlacerPool, u32) -> Option<NodeId>,
    badness: impl Fn(u32) -> u32,
) -> Option<Placement> {
    let (each, segment) = (shape.each_node()?, shape.segment_nodes()?);
    let mut left = shape.nodes?.checked_div(segment)?;
    let domains = PlacerPool::by_domain(nodes, need.kind, shape, shape.level()).into_values();
    let mut domains: Vec<PlacerPool> = domains.map(|pool| pool.of_at_least(each)).collect();
    let mut out = Slices::new();
    while left > 0 {
        let fit = |pool: &PlacerPool| (pool.len() / segment).min(left);
        let best = domains.iter_mut().min_by_key(|pool| (Reverse(fit(pool)), badness(pool.free())))?;
        let fit = Some(fit(best)).filter(|fit| *fit > 0)?;
        for _ in 0..fit * segment {
            let node = choose(best, each)?;
            out.push(best.slice(node, each));
            best.remove(node);
        }
        left -= fit;
    }
    Some(Placement(out))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::cluster::{Level, NodeSpec};
    use yard_core::ids::KindId;

    use crate::placers::{PLACERS, placer};

    use super::*;

    /// A node: devices, rack, block.
    fn node() -> impl Strategy<Value = (u32, u32, u32)> {
        (1u32..5, 0u32..3, 0u32..2)
    }

    fn cluster(list: &[(u32, u32, u32)]) -> Nodes {
        let mut nodes = Nodes::default();
        for (devices, rack, block) in list {
            let spec = NodeSpec::of("n", KindId(0), *devices).within(Level::Block, &block.to_string());
            nodes.add(if *rack == 0 { spec } else { spec.within(Level::Rack, &rack.to_string()) });
        }
        nodes
    }

    fn shape() -> impl Strategy<Value = Shape> {
        let levels = prop_oneof![Just(Level::Node), Just(Level::Rack), Just(Level::Block), Just(Level::Any)];
        (1u32..4, 1u32..3, prop::option::of(1u32..3), levels).prop_map(|(each, parts, segment, level)| {
            let nodes = parts * segment.unwrap_or(1);
            let shape = Shape::of(KindId(0), each * nodes).within(level).on_nodes(nodes);
            Shape { segment, ..shape }
        })
    }

    /// Tries all ways to choose nodes one after the other: whoever is not the first of its segment lies beside the first.
    fn possible(nodes: &Nodes, shape: &Shape, chosen: &mut Vec<NodeId>) -> bool {
        let (count, segment) = (shape.nodes.unwrap() as usize, shape.segment_nodes().unwrap() as usize);
        if chosen.len() == count {
            return true;
        }
        let first = chosen.get(chosen.len() / segment * segment).copied();
        let path = |id: NodeId| nodes.get(id).spec.domains.clone();
        let beside = |id: NodeId, other: NodeId| match shape.level() {
            Level::Node => id == other,
            Level::Any => true,
            level => Level::DOMAINS
                .iter()
                .filter(|l| **l >= level)
                .all(|l| path(id).get(*l) == path(other).get(*l)),
        };
        let will_do: Vec<NodeId> = nodes
            .iter()
            .filter(|(_, node)| node.free_count(KindId(0)) >= shape.devices() / count as u32)
            .map(|(id, _)| id)
            .filter(|id| !chosen.contains(id) && first.is_none_or(|first| beside(*id, first)))
            .collect();
        will_do.into_iter().any(|id| {
            chosen.push(id);
            let found = possible(nodes, shape, chosen);
            chosen.pop();
            found
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Every placer finds a place exactly where there is one, as it must be.
        #[test]
        fn what_can_be_placed_is(list in prop::collection::vec(node(), 1..7), shape in shape()) {
            let nodes = cluster(&list);
            let could = possible(&nodes, &shape, &mut Vec::new());
            prop_assert_eq!(nodes.could_hold(&shape), could);
            for entry in PLACERS {
                let placement = placer(entry.name).unwrap().place(&nodes, &shape);
                prop_assert_eq!(placement.is_some(), could, "{}", entry.name);
                if let Some(placement) = placement {
                    prop_assert!(nodes.lies(&placement, &shape), "{}: {placement:?}", entry.name);
                    prop_assert_eq!(placement.devices(), shape.devices());
                }
            }
        }
    }

    #[test]
    fn segments_stay_in_as_few_domains_as_hold_them() {
        let nodes = cluster(&[(4, 1, 0), (4, 1, 0), (4, 1, 0), (4, 2, 0), (4, 2, 0), (4, 2, 0), (4, 2, 0)]);
        let placed = |shape: Shape| -> Option<Vec<u32>> {
            let placement = placer("pack").unwrap().place(&nodes, &shape)?;
            Some(placement.0.iter().map(|slice| slice.node.0).collect())
        };
        let gang = |nodes| Shape::of(KindId(0), nodes * 4).within(Level::Rack).on_nodes(nodes);
        assert_eq!(placed(gang(3)), Some(vec![0, 1, 2]), "the rack that is just large enough");
        assert_eq!(placed(gang(5)), None);
        assert_eq!(placed(gang(4).in_segments(2)), Some(vec![3, 4, 5, 6]), "one rack holds both");
        assert_eq!(placed(gang(6).in_segments(2)), Some(vec![3, 4, 5, 6, 0, 1]));
        assert_eq!(placed(gang(6).in_segments(3)), Some(vec![0, 1, 2, 3, 4, 5]));
    }
}
