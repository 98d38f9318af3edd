//! Nodes with several kinds and with hosts whose amounts are counted, and jobs that ask for those: in half of the scenarios
//! whose seeds were not tried before there were such.

use std::sync::Arc;

use yard_core::Time;
use yard_core::cluster::{Amounts, HostNeed, NodeSpec, ResourceId};
use yard_core::job::{JobSpec, Shape};

use crate::cluster::ClusterSpec;
use crate::random::Random;

/// Seeds below are known by what they once found, and stay as they were.
const FIRST_SEED: u64 = 500_000_000;

/// A stream of its own for a part of a scenario; none where it has no such machines.
fn random(seed: u64, part: u64) -> Option<Random> {
    let has = seed >= FIRST_SEED && Random::new(seed ^ 0x3ac1).chance(0.5);
    has.then(|| Random::new(seed ^ part))
}

/// Puts nodes of different kinds together, and gives hosts cores, memory and a third thing.
pub(super) fn make(seed: u64, cluster: &mut ClusterSpec) {
    let Some(mut random) = random(seed, 0x6057) else { return };
    let licence = cluster.resources.intern("licence").expect("there is room for a third");
    if random.chance(0.6) {
        cluster.nodes = together(std::mem::take(&mut cluster.nodes), &mut random);
    }
    for node in &mut cluster.nodes {
        // Some do not divide, and some hosts are counted by nobody.
        let each = 1 + random.below(5) as u32;
        let host = Amounts::NONE
            .with(ResourceId::CORES, node.devices() * each + random.below(3) as u32)
            .with(ResourceId::MEMORY, node.devices() * 8)
            .with(licence, random.below(4) as u32);
        if random.chance(0.9) {
            *node = node.clone().with_host(host);
        }
    }
}

/// The same devices on fewer nodes: those of later kinds beside those of the first.
fn together(nodes: Vec<NodeSpec>, random: &mut Random) -> Vec<NodeSpec> {
    let mut kept: Vec<NodeSpec> = Vec::new();
    for node in nodes {
        let kind = node.pools[0].kind;
        let open = kept.iter_mut().find(|other| other.pool(kind).is_none() && other.devices() < 64);
        match open.filter(|_| random.chance(0.5)) {
            Some(other) => other.pools.extend(node.pools),
            None => kept.push(node),
        }
    }
    kept
}

/// Lets some jobs ask for no more than some host has.
pub(super) fn ask(seed: u64, cluster: &ClusterSpec, jobs: &mut [(Time, JobSpec)]) {
    let Some(mut random) = random(seed, 0xa5c) else { return };
    for (_, spec) in jobs {
        if !random.chance(0.4) || spec.shapes.iter().any(|shape| shape.needs.len() > 1) {
            continue;
        }
        let host = random.pick(&cluster.nodes).host;
        let need = Arc::new(need(&host, cluster, &mut random));
        let asks = |shape: &Shape| Shape { host: Some(need.clone()), ..shape.clone() };
        spec.shapes = spec.shapes.iter().map(asks).collect();
    }
}

fn need(host: &Amounts, cluster: &ClusterSpec, random: &mut Random) -> HostNeed {
    let mut need = HostNeed::default();
    for (resource, _) in cluster.resources.iter() {
        if random.chance(0.5) {
            continue;
        }
        let most = u64::from(host.get(resource));
        need = match random.chance(0.3) {
            true => need.per_device(resource, random.below(most / 4 + 1) as u32),
            false => need.per_node(resource, random.below(most + 1) as u32),
        };
    }
    need
}
