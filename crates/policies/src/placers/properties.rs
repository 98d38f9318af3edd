//! What holds for every placer, on random small clusters, against brute force.

use proptest::prelude::*;
use yard_core::cluster::{Level, NodeState, Nodes, Placement, Slice};
use yard_core::ids::{KindId, NodeId};
use yard_core::job::{Need, Shape};

use super::{PLACERS, placer};
use crate::testing::{TestNode, nodes};

fn node() -> impl Strategy<Value = TestNode> {
    let sizes = prop_oneof![4 => Just(4u32), 1 => Just(2u32), 1 => Just(6u32)];
    (0u16..2, sizes, 0u32..3, prop::bool::weighted(0.9), any::<u64>(), any::<u64>()).prop_map(
        // Mostly free: two draws, either of which frees a device.
        |(kind, devices, rack, up, some, more)| {
            let free = (some | more) & ((1 << devices) - 1);
            TestNode { kind, devices, rack, up, free }
        },
    )
}

fn shape() -> impl Strategy<Value = Shape> {
    let need = |kind| (1u32..14).prop_map(move |devices| Need { kind: KindId(kind), devices });
    let needs = prop_oneof![
        3 => need(0).prop_map(|need| vec![need]),
        1 => (need(0), need(1)).prop_map(|(left, right)| vec![left, right]),
        1 => (need(1), need(1)).prop_map(|(left, right)| vec![left, right]),
    ];
    let level = prop_oneof![Just(Level::Any), Just(Level::Rack), Just(Level::Node)];
    (needs, level).prop_map(|(needs, level)| Shape::of_needs(needs, level))
}

fn asked(shape: &Shape, kind: KindId) -> u32 {
    shape.needs.iter().filter(|need| need.kind == kind).map(|need| need.devices).sum()
}

const KINDS: [KindId; 2] = [KindId(0), KindId(1)];

/// Exactly what was asked, on free devices of nodes that are up, and as close as asked.
fn valid(nodes: &Nodes, shape: &Shape, placement: &Placement) -> bool {
    let slices = &placement.0;
    let given = |kind| -> u32 {
        let mine = |slice: &Slice| (slice.mask & nodes.get(slice.node).of_kind(kind)).count_ones();
        slices.iter().map(mine).sum()
    };
    let up = |node: NodeId| nodes.get(node).state == NodeState::Up;
    let distinct = (1..slices.len()).all(|at| slices[..at].iter().all(|other| other.node != slices[at].node));
    let close = nodes.level_of(placement) <= shape.level();
    let whole = KINDS.iter().all(|kind| given(*kind) == asked(shape, *kind));
    let real = slices.iter().all(|slice| slice.mask != 0 && up(slice.node));
    let free = slices.iter().all(|slice| nodes.get(slice.node).free & slice.mask == slice.mask);
    free && distinct && close && whole && real
}

/// Whether a set of nodes has enough of every kind.
fn enough(nodes: &Nodes, shape: &Shape, within: impl Fn(NodeId) -> bool) -> bool {
    KINDS.iter().all(|kind| {
        let mine = nodes.iter().filter(|(id, _)| within(*id));
        mine.map(|(_, node)| node.free_count(*kind)).sum::<u32>() >= asked(shape, *kind)
    })
}

fn possible(nodes: &Nodes, shape: &Shape) -> bool {
    let level = shape.level();
    let beside = |one: NodeId, id: NodeId| nodes.domain(one, level) == nodes.domain(id, level);
    nodes.iter().any(|(one, _)| enough(nodes, shape, |id| beside(one, id)))
}

/// The fewest nodes that could hold a shape anywhere, trying all sets.
fn fewest(nodes: &Nodes, shape: &Shape) -> Option<u32> {
    let holds = |set: &u32| enough(nodes, shape, |id| set & (1 << id.0) != 0);
    (0..1u32 << nodes.len()).filter(holds).map(u32::count_ones).min()
}

/// The most nodes that could share a shape: each kind's nodes with something free, up to one device each.
fn most(nodes: &Nodes, shape: &Shape) -> u32 {
    let of = |kind| nodes.iter().filter(|(_, node)| node.free_count(kind) > 0).count() as u32;
    KINDS.iter().map(|kind| of(*kind).min(asked(shape, *kind))).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn placements_are_what_was_asked(cluster in prop::collection::vec(node(), 1..9), shape in shape()) {
        let nodes = nodes(&cluster);
        for entry in PLACERS {
            let placement = placer(entry.name).unwrap().place(&nodes, &shape);
            if let Some(placement) = &placement {
                prop_assert!(valid(&nodes, &shape, placement), "{}: {placement:?}", entry.name);
            }
            if entry.name != "yarn" {
                prop_assert_eq!(placement.is_some(), possible(&nodes, &shape), "{}", entry.name);
            }
        }
    }

    #[test]
    fn pack_takes_the_fewest_nodes_and_spread_the_most(
        cluster in prop::collection::vec(node(), 1..9),
        shape in shape().prop_map(|shape| shape.within(Level::Any)),
    ) {
        let nodes = nodes(&cluster);
        let place = |name: &str| placer(name).unwrap().place(&nodes, &shape);
        let taken = |name: &str| place(name).map(|placement| placement.0.len() as u32);
        prop_assert_eq!(taken("pack"), fewest(&nodes, &shape));
        prop_assert!(taken("spread").is_none_or(|count| count == most(&nodes, &shape)));
    }

    #[test]
    fn yarn_follows_its_rule(cluster in prop::collection::vec(node(), 1..9), devices in 1u32..20) {
        let nodes = nodes(&cluster);
        let shape = Shape::of(KindId(0), devices);
        let largest = nodes.largest(KindId(0));
        let placement = placer("yarn").unwrap().place(&nodes, &shape);
        if devices <= largest {
            let on_one = shape.within(Level::Node);
            prop_assert_eq!(placement.is_some(), possible(&nodes, &on_one));
        } else if let Some(placement) = placement {
            let whole = placement.0.iter().filter(|slice| slice.mask.count_ones() == largest).count() as u32;
            prop_assert_eq!(whole, devices / largest);
            prop_assert_eq!(placement.0.len() as u32, devices.div_ceil(largest));
        }
    }
}
