//! What must hold of any model on any kind.

use proptest::prelude::*;
use yard_planner::search::SplitSearchLimits;
use yard_planner::{
    Accelerator, Attention, ParallelPlan, Recompute, Transformer, catalogue, evaluate, search,
};

fn model() -> impl Strategy<Value = Transformer> {
    let sizes = (1u32..=6, 1u32..=24, prop::sample::select(vec![1u32, 2, 4, 8, 16]), any::<bool>());
    (sizes, prop::sample::select(vec![512u32, 2048]), prop::sample::select(vec![8u32, 24, 64]), any::<bool>())
        .prop_map(|((width, layers, heads, gated), seq, batch, plain)| Transformer {
            gated,
            seq,
            attention: if plain { Attention::Plain } else { Attention::Flash },
            ..Transformer::gpt(width * heads * 64, layers, heads, batch)
        })
}

fn kind() -> impl Strategy<Value = Accelerator> {
    prop::sample::select(catalogue::names().collect::<Vec<_>>())
        .prop_map(|name| catalogue::known(name).expect("it is listed"))
}

fn devices() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1u32, 2, 4, 8, 16, 32])
}

fn step_s(model: &Transformer, kind: &Accelerator, devices: u32) -> f64 {
    search(model, kind, devices, &SplitSearchLimits::default()).best.map_or(f64::INFINITY, |best| best.step_s)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn parts_multiply_to_the_count_and_divide_the_model(model in model(), kind in kind(), devices in devices()) {
        if let Some(best) = search(&model, &kind, devices, &SplitSearchLimits::default()).best {
            let plan = best.plan;
            prop_assert_eq!(plan.devices(), devices);
            prop_assert_eq!(model.layers % (plan.pipeline * plan.interleave), 0);
            prop_assert_eq!(model.heads % plan.tensor, 0);
            prop_assert_eq!(model.batch % (plan.data * plan.micro_batch), 0);
            prop_assert!(plan.tensor <= kind.per_node);
            let again = evaluate(&model, &kind, &plan);
            prop_assert_eq!((again.step_s, again.memory()), (best.step_s, best.memory));
            prop_assert!(best.memory <= 0.94 * kind.memory && best.step_s > 0.0);
        }
    }

    #[test]
    fn more_memory_never_makes_the_best_slower(model in model(), kind in kind(), devices in devices()) {
        let larger = Accelerator { memory: kind.memory * 1.5, ..kind.clone() };
        prop_assert!(step_s(&model, &larger, devices) <= step_s(&model, &kind, devices));
    }

    #[test]
    fn faster_links_never_make_the_best_slower(model in model(), kind in kind(), devices in devices()) {
        let faster = Accelerator { link_in: kind.link_in * 2.0, link_out: kind.link_out * 2.0, ..kind.clone() };
        prop_assert!(step_s(&model, &faster, devices) <= step_s(&model, &kind, devices));
    }

    #[test]
    fn twice_the_devices_need_no_more_memory_each(model in model(), kind in kind(), devices in devices()) {
        let least = |devices| search(&model, &kind, devices, &SplitSearchLimits::default()).least;
        // Twice the replicas fit where the batch allows; the search then also has all other splits.
        if model.batch.is_multiple_of(2 * devices) {
            let (few, many) = (least(devices), least(2 * devices));
            prop_assert!(many.expect("it divides") <= few.expect("it divides"));
        }
    }

    #[test]
    fn memory_is_monotone_in_replicas_that_share_and_in_recomputing(model in model(), kind in kind()) {
        for recompute in [Recompute::Selective, Recompute::Full] {
            let plan = ParallelPlan { recompute, ..ParallelPlan::WHOLE };
            let (less, none) = (evaluate(&model, &kind, &plan), evaluate(&model, &kind, &ParallelPlan::WHOLE));
            // Recomputing a layer keeps that layer whole for the moment: one layer alone gains nothing.
            prop_assert!(model.layers == 1 || less.memory() <= none.memory());
            prop_assert!(less.step_s >= none.step_s);
        }
    }

    #[test]
    fn offloading_is_the_last_resort(model in model(), kind in kind(), devices in devices()) {
        let (without, with) = (SplitSearchLimits::default(), SplitSearchLimits { offload: true, ..SplitSearchLimits::default() });
        let (without, with) = (search(&model, &kind, devices, &without), search(&model, &kind, devices, &with));
        prop_assert!(without.best.is_none() || without == with);
    }
}

#[test]
fn one_device_talks_to_nobody() {
    let model = Transformer::gpt(2048, 24, 16, 64);
    let kind = catalogue::known("a100-80").expect("it is listed");
    let slow = Accelerator { link_in: 1.0, link_out: 1.0, ..kind.clone() };
    assert_eq!(
        search(&model, &kind, 1, &SplitSearchLimits::default()),
        search(&model, &slow, 1, &SplitSearchLimits::default())
    );
}

/// On links and memories that cost nothing, a pipeline of p stages in v parts and m micro-batches takes 1 + (p − 1)/(v m)
/// times as long as computing alone.
#[test]
fn the_bubble_is_as_known() {
    let free = Accelerator {
        hbm: 1e30,
        link_in: 1e30,
        link_out: 1e30,
        latency_in: 0.0,
        latency_out: 0.0,
        overhead_s: 0.0,
        ..catalogue::known("a100-80").expect("it is listed")
    };
    let step = |pipeline, interleave, micro_batches| {
        let model = Transformer { vocab: 1, ..Transformer::gpt(4096, 32, 32, micro_batches) };
        evaluate(&model, &free, &ParallelPlan { pipeline, interleave, ..ParallelPlan::WHOLE }).step_s
    };
    for (p, v, m) in [(2, 1, 2), (4, 1, 8), (4, 2, 8), (8, 4, 16), (16, 2, 64)] {
        let known = 1.0 + f64::from(p - 1) / f64::from(v * m);
        let ours = step(p, v, m) * f64::from(p) / step(1, 1, m);
        assert!((ours / known - 1.0).abs() < 1e-4, "p {p}, v {v}, m {m}: {ours} for {known}");
    }
}
