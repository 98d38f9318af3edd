//! Nodes in racks, blocks and cliques, and jobs that say how close together they run and on exactly how many nodes: in half of
//! the scenarios whose seeds were not tried before there were such. What is placed where it must not lie is asserted where it
//! is placed (`Placer::lay`).

use yard_core::cluster::{DomainPath, Level, Nodes};
use yard_core::ids::NodeId;
use yard_core::job::{Close, JobSpec, Shape};
use yard_core::message::{Input, NodeChange};
use yard_core::{Span, Time};

use crate::cluster::ClusterSpec;
use crate::random::Random;

/// Seeds below are known by what they once found, and stay as they were.
const FIRST_SEED: u64 = 600_000_000;

/// A stream of its own for a part of a scenario; none where it has no such places.
fn random(seed: u64, part: u64) -> Option<Random> {
    let has = seed >= FIRST_SEED && Random::new(seed ^ 0x7090).chance(0.5);
    has.then(|| Random::new(seed ^ part))
}

/// Puts nodes into domains, some of which nobody named.
pub(super) fn make(seed: u64, cluster: &mut ClusterSpec) {
    let Some(mut random) = random(seed, 0xd0_3a1) else { return };
    cluster.nodes.iter_mut().for_each(|node| node.domains = path(&mut random));
}

fn path(random: &mut Random) -> DomainPath {
    let mut path = DomainPath::default();
    for (level, many, often) in
        [(Level::Clique, 3, 0.5), (Level::Rack, 3, 0.9), (Level::Block, 2, 0.5), (Level::Zone, 2, 0.2)]
    {
        if random.chance(often) {
            path = path.with(level, random.below(many).to_string());
        }
    }
    path
}

/// Lets some jobs say how close they run, and on how many nodes; only what the cluster could hold.
pub(super) fn ask(seed: u64, cluster: &ClusterSpec, jobs: &mut [(Time, JobSpec)]) {
    let Some(mut random) = random(seed, 0xc105e) else { return };
    let mut nodes = Nodes::default();
    cluster.nodes.iter().for_each(|node| _ = nodes.add(node.clone()));
    for (_, spec) in jobs {
        if !random.chance(0.5) {
            continue;
        }
        let (mut shapes, mut speeds) = (spec.shapes.to_vec(), spec.speeds.to_vec());
        for shape in &mut shapes {
            let asked = closer(shape, &mut random);
            if nodes.could_hold(&asked) {
                *shape = asked;
            }
        }
        // A way of its own for those that lie close: they go at its speed wherever they happen to.
        let twin = shapes[0].clone().within(*random.pick(&[Level::Node, Level::Rack, Level::Block]));
        if random.chance(0.3) && spec.training.is_none() && nodes.could_hold(&twin) {
            speeds.push(speeds[0] * (1.0 + random.unit()));
            shapes.push(twin);
        }
        (spec.shapes, spec.speeds) = (shapes.into(), speeds.into());
    }
}

/// The same, closer together or on a number of nodes.
fn closer(shape: &Shape, random: &mut Random) -> Shape {
    let level = *random.pick(&[Level::Clique, Level::Rack, Level::Rack, Level::Block, Level::Zone]);
    let level = level.min(shape.level());
    let required = if random.chance(0.5) { level } else { shape.level() };
    let mut asked = Shape { close: Close { required, preferred: level.min(required) }, ..shape.clone() };
    let devices = shape.devices();
    let nodes = 1 + random.below(4) as u32;
    if shape.needs.len() == 1 && devices.is_multiple_of(nodes) && random.chance(0.5) {
        asked = asked.on_nodes(nodes);
        let segment = 1 + random.below(u64::from(nodes)) as u32;
        if nodes.is_multiple_of(segment) && random.chance(0.5) {
            asked = asked.in_segments(segment);
        }
    }
    asked
}

/// Nodes that are said to be elsewhere for a while, and always come back: no job is left without a place for good.
pub(super) fn moves(seed: u64, cluster: &ClusterSpec) -> Vec<(Time, Input)> {
    let Some(mut random) = random(seed, 0x30ae) else { return Vec::new() };
    let count = if random.chance(0.3) { 1 + random.below(4) } else { 0 };
    let mut moves = Vec::new();
    for _ in 0..count {
        let node = NodeId(random.below(cluster.nodes.len() as u64) as u32);
        let from = Time::ZERO + Span::from_secs((random.unit() * 4_000.0).floor());
        let until = from + Span::from_secs(random.unit() * 1_000.0);
        let moved = |domains| Input::Node(NodeChange::Moved { node, domains });
        moves.push((from, moved(path(&mut random))));
        moves.push((until, moved(cluster.nodes[node.index()].domains.clone())));
    }
    moves
}
