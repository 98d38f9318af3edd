//! The bound against the simulation, and plans against all there are, on small chains.

use proptest::prelude::*;
use yard_planner::chain::rhythm::{Rhythm, RhythmBeats};
use yard_planner::chain::{Chain, ChainLayer, ChainMachine, ChainNode, plan};

fn rhythm() -> impl Strategy<Value = Rhythm> {
    let stage = (0.1f64..2.0, 0.1f64..4.0, 0.0f64..3.0);
    (prop::collection::vec(stage, 1..7), 1u32..24, 1u32..30).prop_map(|(stages, micro_batches, fit)| {
        let count = stages.len() as u32;
        let beats = |(at, (forward, backward, reduce)): (usize, (f64, f64, f64))| RhythmBeats {
            forward,
            backward,
            reduce,
            ahead: fit.min(count - at as u32),
        };
        Rhythm::new(stages.into_iter().enumerate().map(beats).collect(), micro_batches)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_bound_is_never_above_the_simulation(rhythm in rhythm()) {
        let (bound, simulated) = (rhythm.bound(), rhythm.simulate());
        prop_assert!(bound <= simulated * (1.0 + 1e-12), "{bound} above {simulated}");
    }
}

/// Stages that differ by 10 % each: where the closed form of the paper is up to 40 % too short, the bound is near.
#[test]
fn the_bound_is_near_where_stages_differ_little() {
    let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
    let mut seed = 1u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.9 + 0.2 * ((seed >> 40) as f64 / (1u64 << 24) as f64)
    };
    for stages in 2..=8u32 {
        for micro_batches in [4, 8, 16, 32] {
            for _ in 0..20 {
                let beats = (0..stages).map(|at| RhythmBeats {
                    forward: draw(),
                    backward: 2.0 * draw(),
                    reduce: 0.0,
                    ahead: stages - at,
                });
                let rhythm = Rhythm::new(beats.collect(), micro_batches);
                let below = 1.0 - rhythm.bound() / rhythm.simulate();
                (worst, sum, count) = (worst.max(below), sum + below, count + 1.0);
            }
        }
    }
    assert!(worst <= 0.062 && sum / count <= 0.012, "worst {worst}, mean {}", sum / count);
}

/// Layers with times, on one kind or on two of which the second is half as fast.
fn chain() -> impl Strategy<Value = Chain> {
    let layer = (0.1f64..1.0, 0.1f64..2.0, 0.0f64..1e9, 0.0f64..1e8);
    prop::collection::vec(layer, 2..6).prop_map(|layers| {
        let layer = |(forward, backward, bytes, cut): (f64, f64, f64, f64)| ChainLayer {
            seconds: vec![(forward, backward), (2.0 * forward, 2.0 * backward)],
            parameter_bytes: bytes,
            state_bytes: 4.0 * bytes,
            kept_bytes: cut,
            cut_bytes: cut,
        };
        Chain { layers: layers.into_iter().map(layer).collect(), profiled: 1, batch: 16 }
    })
}

fn machine(second: usize, memory: f64) -> ChainMachine {
    let nodes = vec![ChainNode { kind: 0, devices: 1 }, ChainNode { kind: second, devices: 1 }];
    ChainMachine { nodes, link: 1e11, nic: 1e9, memory: vec![memory, memory] }
}

/// The best of a chain on two devices, one in each node, written down once more: one stage on both, or every cut in two
/// with either device first.
fn by_hand(chain: &Chain, machine: &ChainMachine) -> Option<f64> {
    let kinds = [machine.nodes[0].kind, machine.nodes[1].kind];
    let sum = |layers: &[ChainLayer], kind: usize| {
        layers.iter().fold((0.0, 0.0), |(f, b), layer| (f + layer.seconds[kind].0, b + layer.seconds[kind].1))
    };
    let depth = |layers: &[ChainLayer]| {
        let state: f64 = layers.iter().map(|layer| layer.state_bytes).sum();
        let kept: f64 = layers.iter().map(|layer| layer.kept_bytes).sum();
        if machine.memory[0] < state { 0.0 } else { ((machine.memory[0] - state) / kept).floor() }
    };
    let mut all = Vec::new();
    let slow = kinds[0].max(kinds[1]);
    if depth(&chain.layers) >= 1.0 {
        let (forward, backward) = sum(&chain.layers, slow);
        let bytes: f64 = chain.layers.iter().map(|layer| layer.parameter_bytes).sum();
        all.push(8.0 * (forward + backward) + bytes / machine.nic);
    }
    for cut in 1..chain.layers.len() {
        let (left, right) = chain.layers.split_at(cut);
        if depth(left) < 1.0 || depth(right) < 1.0 {
            continue;
        }
        for [first, second] in [kinds, [kinds[1], kinds[0]]] {
            let ((f1, b1), (f2, b2)) = (sum(left, first), sum(right, second));
            let over = left[cut - 1].cut_bytes / machine.nic;
            let beats = |forward, backward, ahead: f64| RhythmBeats {
                forward,
                backward,
                reduce: 0.0,
                ahead: ahead as u32,
            };
            let stages =
                vec![beats(f1, b1, depth(left).min(3.0)), beats(over, over, 2.0), beats(f2, b2, 1.0)];
            all.push(Rhythm::new(stages, 16).simulate());
        }
    }
    all.into_iter().reduce(f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_plan_is_the_best_of_all_on_two_devices(chain in chain(), second in 0usize..2, memory in 1e9f64..2e10) {
        let machine = machine(second, memory);
        let (planned, best) = (plan(&chain, &machine).map(|plan| plan.step_s), by_hand(&chain, &machine));
        match (planned, best) {
            (Some(planned), Some(best)) => prop_assert!((planned / best - 1.0).abs() < 1e-9, "{planned} for {best}"),
            (planned, best) => prop_assert_eq!(planned, best),
        }
    }

    /// One device computes all, for Duan and Wu's phone and cloud: a slow link moves the cut, never above either end.
    #[test]
    fn a_faster_link_never_hurts(chain in chain(), second in 0usize..2) {
        let slow = machine(second, 1e12);
        let fast = ChainMachine { nic: slow.nic * 10.0, ..slow.clone() };
        let step = |machine| plan(&chain, machine).expect("memory is ample").step_s;
        prop_assert!(step(&fast) <= step(&slow) * (1.0 + 1e-9));
    }

    #[test]
    fn layers_and_devices_are_used_once(chain in chain(), devices in 1u32..9) {
        let nodes = vec![ChainNode { kind: 0, devices }, ChainNode { kind: 1, devices: 2 }];
        let machine = ChainMachine { nodes, link: 1e11, nic: 1e9, memory: vec![1e12, 1e12] };
        let plan = plan(&chain, &machine).expect("memory is ample");
        prop_assert_eq!(plan.layers.iter().sum::<usize>(), chain.layers.len());
        prop_assert_eq!(plan.replicas.iter().sum::<u32>(), devices + 2);
        prop_assert!(plan.layers.iter().all(|layers| *layers > 0));
    }
}
