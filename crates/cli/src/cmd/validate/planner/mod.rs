//! The planner's predictions against published and measured steps, memory and choices.

mod choices;
mod dag;
mod dapple;
mod golden;
mod h200;
mod korthikanti;
mod mpt;
mod ptdp;
mod shapes;
mod vtrain;

use std::path::Path;

use anyhow::{Context, bail};
use yard_planner::{Accelerator, Attention, ParallelPlan, Recompute, Transformer, catalogue};

use super::Check;
use super::filed::of_data;
use super::sheet::SheetRecord;

pub(super) use dag::of as dag_of;
pub(super) use dapple::of as dapple_of;
pub(super) use golden::of as golden_of;
pub(super) use h200::of as h200_gpt_of;
pub(super) use korthikanti::{memory_of as korthikanti_memory_of, of as korthikanti_of};
pub(super) use mpt::of as mpt_of;
pub(super) use ptdp::of as ptdp_of;
pub(super) use shapes::of as shapes_of;
pub(super) use vtrain::of as vtrain_of;

/// What a suite on its own data gives.
type Checks = anyhow::Result<Option<Vec<Check>>>;

pub(super) fn golden(data: &Path) -> Checks {
    of_data(data, &["planner/golden.csv"], golden_of)
}

pub(super) fn ptdp(data: &Path) -> Checks {
    let files = ["planner/ptdp_table1.csv", "planner/ptdp_table2.csv", "planner/ptdp_figures.csv"];
    of_data(data, &files, ptdp_of)
}

pub(super) fn korthikanti(data: &Path) -> Checks {
    of_data(data, &["planner/korthikanti_step.csv"], korthikanti_of)
}

pub(super) fn korthikanti_memory(data: &Path) -> Checks {
    of_data(data, &["planner/korthikanti_memory.csv"], korthikanti_memory_of)
}

pub(super) fn vtrain(data: &Path) -> Checks {
    of_data(data, &["planner/vtrain_multi_a100.csv"], vtrain_of)
}

pub(super) fn mpt(data: &Path) -> Checks {
    of_data(data, &["planner/mpt_fsdp.csv"], mpt_of)
}

pub(super) fn h200_gpt(data: &Path) -> Checks {
    of_data(data, &["planner/h200_gpt.csv"], h200_gpt_of)
}

pub(super) fn shapes(data: &Path) -> Checks {
    of_data(data, &["planner/shapes_expected.csv"], shapes_of)
}

pub(super) fn dag(data: &Path) -> Checks {
    of_data(data, &["planner/dag_optimum.csv"], dag_of)
}

pub(super) fn dapple(data: &Path) -> Checks {
    of_data(data, &["planner/dapple_plans.csv"], dapple_of)
}

/// The kinds that the reference figures were computed with: of an h200, the efficiencies of the h100.
fn reference_kind(name: &str) -> anyhow::Result<Accelerator> {
    let kind = catalogue::known(name).with_context(|| format!("the kind {name} is not known"))?;
    if !name.starts_with("h200") {
        return Ok(kind);
    }
    let older = catalogue::known("h100").context("h100 is known")?;
    Ok(Accelerator { memory: kind.memory, hbm: kind.hbm, name: kind.name, ..older })
}

/// Sizes of a transformer, as all these files name them: plain attention, 18 bytes a parameter.
fn model(row: &SheetRecord<'_>) -> anyhow::Result<Transformer> {
    let gpt = Transformer::gpt(row.count("hidden")?, row.count("layers")?, row.count("heads")?, 1);
    Ok(Transformer { attention: Attention::Plain, ..gpt })
}

/// The degrees of a split, as all these files name them, with nothing recomputed.
fn degrees(row: &SheetRecord<'_>) -> anyhow::Result<ParallelPlan> {
    Ok(ParallelPlan {
        tensor: row.count("tensor")?,
        pipeline: row.count("pipeline")?,
        data: row.count("data")?,
        micro_batch: row.count("micro_batch")?,
        ..ParallelPlan::WHOLE
    })
}

fn recompute(name: &str) -> anyhow::Result<Recompute> {
    Ok(match name {
        "none" => Recompute::None,
        "sel" | "selective" => Recompute::Selective,
        "full" => Recompute::Full,
        _ => bail!("recompute: {name:?} is none of none, selective, full"),
    })
}

/// How far off a prediction is.
fn error(ours: f64, reference: f64) -> f64 {
    (ours / reference - 1.0).abs()
}

/// The mean of errors against the most that is allowed.
fn mean(suite: &'static str, case: &str, figure: &'static str, most: f64, errors: &[f64]) -> Check {
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    at_most(suite, case, figure, most, mean)
}

/// The median of errors against the most that is allowed.
fn median(suite: &'static str, case: &str, figure: &'static str, most: f64, errors: &[f64]) -> Check {
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    };
    at_most(suite, case, figure, most, median)
}

/// A figure that may not be larger.
fn at_most(suite: &'static str, case: &str, figure: &'static str, most: f64, ours: f64) -> Check {
    Check::new(suite, case, figure, most, ours, 0.0).or_lower()
}

/// A figure that may not be smaller.
fn at_least(suite: &'static str, case: &str, figure: &'static str, least: f64, ours: f64) -> Check {
    Check::new(suite, case, figure, least, ours, 0.0).or_higher()
}
