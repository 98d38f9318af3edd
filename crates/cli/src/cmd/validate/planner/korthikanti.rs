//! Korthikanti et al. (2022): steps with full and selective recomputation, and memory, which their formulas give exactly.

use std::path::Path;

use anyhow::Context;
use yard_planner::memory::{layer_activations, layers_alive};
use yard_planner::{Attention, ParallelPlan, Recompute, Transformer, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{at_least, at_most, degrees, error, mean, model, recompute, reference_kind};

const GIB: f64 = (1u64 << 30) as f64;

/// What the paper's devices hold, in GB.
const CAPACITY_GB: f64 = 80.0;

/// Table 5.
pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    const SUITE: &str = "korthikanti";
    let (sheet, mut checks, mut errors) = (Sheet::read(file)?, Vec::new(), Vec::new());
    for row in sheet.records() {
        let model = Transformer {
            seq: row.count("seq")?,
            vocab: row.count("vocab")?,
            batch: row.count("batch")?,
            ..model(&row)?
        };
        let plan = ParallelPlan {
            interleave: row.count("interleave")?,
            recompute: recompute(row.text("recompute")?)?,
            sequence_parallel: row.number("sequence_parallel")? == 1.0,
            ..degrees(&row)?
        };
        let ours = evaluate(&model, &reference_kind("a100-80")?, &plan).step_s;
        let reference = row.number("step_s")?;
        let case = format!("{}, {}", row.text("model")?, row.text("recompute")?);
        errors.push(error(ours, reference));
        checks.push(Check::new(SUITE, &case, "step s", reference, ours, 0.06));
    }
    checks.push(mean(SUITE, "all", "mean error", 0.04, &errors));
    Ok(checks)
}

/// The models of figures 1 and 7: hidden, layers, heads, tensor, pipeline, micro-batch, batch, interleave.
const MODELS: [(&str, [u32; 8]); 4] = [
    ("22B", [6144, 48, 64, 8, 1, 4, 4, 1]),
    ("175B", [12_288, 96, 96, 8, 8, 1, 64, 3]),
    ("530B", [20_480, 105, 128, 8, 35, 1, 280, 3]),
    ("1T", [25_600, 128, 160, 8, 64, 1, 512, 1]),
];

/// Figures 1 and 7.
pub(in super::super) fn memory_of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let sheet = Sheet::read(file)?;
    let mut checks = Vec::new();
    for row in sheet.records() {
        checks.extend(memory_checks(&row)?);
    }
    Ok(checks)
}

fn memory_checks(row: &SheetRecord<'_>) -> anyhow::Result<Vec<Check>> {
    const SUITE: &str = "korthikanti-memory";
    let name = row.text("model")?;
    let sizes = MODELS.iter().find(|(known, _)| *known == name);
    let (_, sizes) = sizes.with_context(|| format!("the model {name} is none of 22B, 175B, 530B, 1T"))?;
    let [hidden, layers, heads, tensor, pipeline, micro_batch, batch, interleave] = *sizes;
    let model = Transformer { attention: Attention::Plain, ..Transformer::gpt(hidden, layers, heads, batch) };
    let plan = ParallelPlan { tensor, pipeline, micro_batch, interleave, ..ParallelPlan::WHOLE };
    let layer = |recompute, sequence_parallel| {
        layer_activations(&model, &ParallelPlan { sequence_parallel, ..plan }, recompute)
    };
    let (none, lean) = (layer(Recompute::None, false), layer(Recompute::Selective, true));
    let alive = layers_alive(&model, &plan);
    let h = f64::from(hidden);
    let state = model.state_bytes * 12.0 * f64::from(layers) * h * h / f64::from(tensor * pipeline);
    let exact = |figure, column, ours: f64| {
        Ok::<_, anyhow::Error>(Check::new(SUITE, name, figure, row.number(column)?, ours / GIB, 0.001))
    };
    // Of the layer's activations without any measure, to 0.2 points.
    let percent = |figure, column, bytes: f64| {
        let (reference, ours) = (row.number(column)?, 100.0 * bytes / none);
        Ok::<_, anyhow::Error>(Check::new(SUITE, name, figure, reference, ours, 0.2 / reference))
    };
    let sum_gb = |layer: f64| (state + layer * alive) / 1e9;
    Ok(vec![
        exact("state GiB", "state_gib", state)?,
        exact("activations GiB, all kept", "activations_none_gib", none * alive)?,
        exact("activations GiB, sequence parallel, selective", "activations_sp_selective_gib", lean * alive)?,
        percent("% with sequence parallel", "percent_sp", layer(Recompute::None, true))?,
        percent("% with selective", "percent_selective", layer(Recompute::Selective, false))?,
        percent("% with both", "percent_sp_selective", lean)?,
        percent("% with full", "percent_full", layer(Recompute::Full, false))?,
        at_least(SUITE, name, "GB in all, all kept: too much", CAPACITY_GB, sum_gb(none)),
        at_most(SUITE, name, "GB in all, with both: fits", CAPACITY_GB, sum_gb(lean)),
    ])
}
