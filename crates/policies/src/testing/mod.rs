//! What tests are written with: small clusters, jobs, and a world in which they live.

mod cases;
mod world;

use std::sync::Arc;

use yard_core::cluster::Nodes;
use yard_core::ids::KindId;
use yard_core::job::{JobSpec, Shape};
use yard_core::policy::Policy;

pub(crate) use cases::{cases, elastic, mixed, speeds_of, stored};
pub(crate) use world::World;

/// A node of a test cluster, with what is free of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestNode {
    pub(crate) kind: u16,
    pub(crate) devices: u32,
    pub(crate) rack: u32,
    pub(crate) up: bool,
    pub(crate) free: u64,
}

/// Nodes with devices in use. Written as data: only the engine may promise devices.
pub(crate) fn nodes(list: &[TestNode]) -> Nodes {
    nodes_of(list, None)
}

/// The same with so much memory on each device.
fn nodes_of(list: &[TestNode], memory_mib: Option<u32>) -> Nodes {
    let nodes: Vec<_> = list
        .iter()
        .map(|node| {
            serde_json::json!({
                "spec": {
                    "name": "n", "kind": node.kind, "devices": node.devices, "rack": node.rack,
                    "memory_mib": memory_mib,
                },
                "state": if node.up { "Up" } else { "Down" }, "free": node.free, "idle": node.free, "bad": 0,
            })
        })
        .collect();
    let kinds: Vec<_> =
        (0..=list.iter().map(|node| node.kind).max().unwrap_or(0)).map(|k| kind(list, k)).collect();
    serde_json::from_value(serde_json::json!({ "list": nodes, "kinds": kinds })).expect("the form of `Nodes`")
}

fn kind(list: &[TestNode], kind: u16) -> serde_json::Value {
    let all = || list.iter().enumerate().filter(move |(_, node)| node.kind == kind);
    let up = |free: u32| {
        let rows = all().filter(move |(_, node)| node.up && node.free.count_ones() == free);
        rows.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let largest = all().map(|(_, node)| node.devices).max().unwrap_or(0);
    serde_json::json!({
        "by_free": (0..=largest).map(up).collect::<Vec<_>>(),
        "up": all().filter(|(_, node)| node.up).map(|(_, node)| node.devices).sum::<u32>(),
        "free": all().filter(|(_, node)| node.up).map(|(_, node)| node.free.count_ones()).sum::<u32>(),
        "up": all().filter(|(_, node)| node.up).map(|(_, node)| node.devices).sum::<u32>(),
        "total": all().map(|(_, node)| node.devices).sum::<u32>(),
    })
}

/// A policy with some past services to learn from.
pub(crate) fn policy(spec: &str) -> Box<dyn Policy> {
    crate::make(spec, Arc::from([5.0, 10.0, 10.0, 40.0, 300.0])).expect("a policy").1
}

/// Runs all jobs to their end; when each ended, by number.
pub(crate) fn run(spec: &str, world: &mut World) -> Vec<f64> {
    let mut policy = policy(spec);
    world.run(&mut *policy);
    world.ends.values().copied().collect()
}

/// All orders of `0..n`.
pub(crate) fn permutations(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else { return vec![Vec::new()] };
    let insert = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    };
    permutations(last).into_iter().flat_map(insert).collect()
}

pub(crate) fn job(devices: u32, seconds: f64) -> JobSpec {
    JobSpec::new("job", [Shape::of(KindId(0), devices)], [1.0], seconds)
}
