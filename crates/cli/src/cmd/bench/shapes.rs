//! `yard bench shapes`: how long the planner takes for the whole space, and for one split, beside reading the clock.

use std::hint::black_box;

use anyhow::Context;
use serde_json::json;
use yard_planner::search::{Layers, SplitSearchLimits};
use yard_planner::{Accelerator, ParallelPlan, Transformer, catalogue, evaluate};

use super::BenchFigures;
use crate::clock::CommandStopwatch;
use crate::output::OutputFormat;

/// Devices of a kind at most.
const DEVICES: u32 = 1024;

/// Seconds within which the whole space is wanted.
const WANTED_S: f64 = 0.1;

/// Kinds of the space.
const KINDS: [&str; 8] = ["v100-16", "v100-32", "a100-40", "a100-80", "h100", "h100-80", "h200", "h200-141"];

/// Times are the least of so many.
const RUNS: u32 = 5;

/// Splits of which one is timed.
const SPLITS: u32 = 100_000;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench shapes\n  yard bench shapes -o json\n\nThe space: GPT 6.7B and 175B, 8 kinds, every count of devices from 1 to 1024, all splits of each. Wanted: 0.1 s a model."
)]
pub(crate) struct ShapesBenchArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
}

pub(super) fn measure() -> anyhow::Result<BenchFigures> {
    let kinds: Option<Vec<Accelerator>> = KINDS.into_iter().map(catalogue::known).collect();
    let kinds = kinds.context("the kinds are known")?;
    let (small, large) = (Transformer::gpt(4096, 32, 32, 1024), Transformer::gpt(12_288, 96, 96, 1536));
    let mut figures = BenchFigures::default();
    figures.put("kinds", json!(KINDS.len()));
    figures.put("devices", json!(DEVICES));
    let split = split_s(&small, &kinds[0]);
    figures.put("split_us", json!(split * 1e6));
    let mut slowest = 0.0f64;
    for (name, ways, model) in
        [("gpt_6_7b_s", "gpt_6_7b_shapes", &small), ("gpt_175b_s", "gpt_175b_shapes", &large)]
    {
        let (seconds, found) = space(model, &kinds);
        figures.put(name, json!(seconds));
        figures.put(ways, json!(found));
        slowest = slowest.max(seconds);
    }
    figures.put("slowest_in_splits", json!(slowest / split));
    figures.put("wanted_s", json!(WANTED_S));
    figures.put("result", json!(if slowest <= WANTED_S { "met" } else { "MISSED" }));
    Ok(figures)
}

/// One evaluation, on average.
fn split_s(model: &Transformer, kind: &Accelerator) -> f64 {
    let watch = CommandStopwatch::start();
    for _ in 0..SPLITS {
        black_box(evaluate(black_box(model), kind, &ParallelPlan::WHOLE));
    }
    watch.seconds() / f64::from(SPLITS)
}

/// The whole space: seconds, and on how many counts it runs.
fn space(model: &Transformer, kinds: &[Accelerator]) -> (f64, usize) {
    let (mut best, mut found) = (f64::INFINITY, 0);
    for _ in 0..RUNS {
        let watch = CommandStopwatch::start();
        let on = |kind| {
            let layers = Layers::new(model, kind);
            (1..=DEVICES)
                .filter(|devices| layers.search(*devices, &SplitSearchLimits::default()).best.is_some())
                .count()
        };
        found = kinds.iter().map(on).sum();
        best = best.min(watch.seconds());
    }
    (best, found)
}
