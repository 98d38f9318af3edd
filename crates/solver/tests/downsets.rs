//! Splits of operator graphs against all there are, on small graphs.

use proptest::prelude::*;
use yard_solver::downsets::{OperatorGraph, OperatorNode, SplitError, SplitLimits};

/// A graph of few nodes whose edges go forward; some nodes share a class, some run on one side only.
fn graph() -> impl Strategy<Value = OperatorGraph> {
    let node = (1u32..20, 1u32..40, 0u32..10, 0u32..10, 0u32..12);
    (prop::collection::vec(node, 1..7), any::<u32>()).prop_map(|(nodes, bits)| {
        let count = nodes.len();
        let operator =
            |(accelerator, processor, memory, transfer, class): (u32, u32, u32, u32, u32)| OperatorNode {
                accelerator: if accelerator == 19 { f64::INFINITY } else { f64::from(accelerator) },
                processor: if processor > 36 { f64::INFINITY } else { f64::from(processor) },
                memory: f64::from(memory),
                transfer: f64::from(transfer),
                backward: false,
                class: (class < 3).then(|| u64::from(class)),
            };
        let pairs = (0..count).flat_map(|to| (0..to).map(move |from| (from, to)));
        let edges = pairs.enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, edge)| edge).collect();
        OperatorGraph { nodes: nodes.into_iter().map(operator).collect(), edges }
    })
}

/// The load of the nodes of one device, from the definition.
fn load(graph: &OperatorGraph, on: &[usize], device: usize, is_accelerator: bool) -> f64 {
    let own = |node: usize| on[node] == device;
    let mut load = 0.0;
    for (at, node) in graph.nodes.iter().enumerate() {
        let crosses = graph.edges.iter().any(|(from, to)| *from == at && own(*from) != own(*to));
        load += match is_accelerator {
            true => {
                (if own(at) { node.accelerator } else { 0.0 }) + if crosses { node.transfer } else { 0.0 }
            }
            false if own(at) => node.processor,
            false => 0.0,
        };
    }
    load
}

/// Every order of devices, every assignment of nodes that no edge goes back in.
fn by_hand(graph: &OperatorGraph, limits: &SplitLimits) -> Option<f64> {
    let count = graph.nodes.len();
    let devices = limits.accelerators + limits.processors;
    let mut best: Option<f64> = None;
    for processor_at in 0..devices {
        for code in 0..devices.pow(count as u32) {
            let on: Vec<usize> = (0..count).map(|node| code / devices.pow(node as u32) % devices).collect();
            let forward = graph.edges.iter().all(|(from, to)| on[*from] <= on[*to]);
            let class = |node: usize| graph.nodes[node].class;
            let together = (0..count)
                .all(|a| (0..a).all(|b| class(a).is_none() || class(a) != class(b) || on[a] == on[b]));
            let memory = |device| -> f64 {
                (0..count).filter(|node| on[*node] == device).map(|node| graph.nodes[node].memory).sum()
            };
            let is_accelerator = |device: usize| limits.processors == 0 || device != processor_at;
            let fits = (0..devices).all(|device| !is_accelerator(device) || memory(device) <= limits.memory);
            if forward && together && fits {
                let loads = (0..devices).map(|device| load(graph, &on, device, is_accelerator(device)));
                let greatest = loads.fold(0.0, f64::max);
                best = Some(best.map_or(greatest, |best| best.min(greatest)));
            }
        }
    }
    best.filter(|best| best.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_split_is_the_best_of_all(
        graph in graph(), accelerators in 1usize..3, processors in 0usize..2, memory in 5u32..40,
    ) {
        let limits = SplitLimits { accelerators, processors, memory: f64::from(memory), sets: 20_000 };
        match (graph.split(&limits), by_hand(&graph, &limits)) {
            (Ok(split), Some(best)) => {
                prop_assert!((split.load - best).abs() < 1e-9, "{} for {best}", split.load);
                let mut nodes: Vec<usize> = split.parts.iter().flat_map(|part| part.nodes.clone()).collect();
                nodes.sort_unstable();
                prop_assert_eq!(nodes, (0..graph.nodes.len()).collect::<Vec<_>>());
                let greatest = split.parts.iter().map(|part| part.load).fold(0.0, f64::max);
                prop_assert!((greatest - split.load).abs() < 1e-9);
                prop_assert!(split.is_exact);
            }
            (Err(SplitError::NoFit), None) => {}
            (split, best) => prop_assert!(false, "{split:?} for {best:?}"),
        }
    }

    /// Merged chains are one of the splits: never better, and there where few sets are allowed.
    #[test]
    fn merging_chains_never_gains(graph in graph()) {
        let limits = SplitLimits { accelerators: 2, processors: 1, memory: 1e9, sets: 20_000 };
        let exact = graph.split(&limits);
        let sets = exact.as_ref().map_or(0, |split| split.sets);
        if let (Ok(exact), Ok(merged)) = (&exact, graph.split(&SplitLimits { sets: sets.saturating_sub(1), ..limits })) {
            prop_assert!(!merged.is_exact && merged.load >= exact.load - 1e-9 && merged.sets < sets);
        }
    }
}

fn chain(count: usize) -> OperatorGraph {
    let node = OperatorNode { accelerator: 1.0, processor: 10.0, ..OperatorNode::default() };
    OperatorGraph { nodes: vec![node; count], edges: (1..count).map(|to| (to - 1, to)).collect() }
}

#[test]
fn graphs_that_make_no_sense_are_refused() {
    let limits = SplitLimits { accelerators: 2, processors: 0, memory: 1.0, sets: 100 };
    let mut graph = chain(4);
    graph.edges.push((3, 1));
    assert!(matches!(graph.split(&limits), Err(SplitError::Cycle(1..=3))));
    graph.edges = vec![(0, 9)];
    assert_eq!(graph.split(&limits), Err(SplitError::UnknownNode(9)));
    graph.edges.clear();
    graph.nodes[2].backward = true;
    assert_eq!(graph.split(&limits), Err(SplitError::Alone(2)));
    graph.nodes = vec![OperatorNode::default(); 12];
    assert_eq!(graph.split(&limits), Err(SplitError::TooWide(100)), "4096 sets, and no chain to merge");
}

#[test]
fn backward_nodes_follow_their_class() {
    let mut graph = chain(4);
    for (at, node) in graph.nodes.iter_mut().enumerate() {
        node.class = Some(at as u64 % 2);
        node.backward = at > 1;
    }
    graph.edges = vec![(0, 1), (1, 3), (3, 2)];
    let limits = SplitLimits { accelerators: 2, processors: 0, memory: 9.0, sets: 100 };
    let split = graph.split(&limits).unwrap();
    assert_eq!(split.load, 2.0);
    let nodes: Vec<_> = split.parts.iter().map(|part| part.nodes.clone()).collect();
    assert_eq!(nodes, [[0, 2], [1, 3]]);
}

#[test]
fn long_chains_are_cut_evenly() {
    let limits = SplitLimits { accelerators: 4, processors: 1, memory: 9.0, sets: 20_000 };
    let split = chain(200).split(&limits).unwrap();
    assert_eq!((split.load, split.parts.len(), split.is_exact, split.sets), (49.0, 5, true, 201));
}
