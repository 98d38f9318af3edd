//! Narayanan et al. (SC'21): their tables, and in `choices` their figures. 2021's Megatron kept all scores of attention,
//! recomputed whole layers, and had no sequence parallelism.

use std::path::Path;

use yard_planner::{ParallelPlan, Recompute, Sharding, Transformer, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{choices, degrees, error, mean, model, reference_kind};

const SUITE: &str = "ptdp";

/// A table of the paper, or its figures, by what the header has.
pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let sheet = Sheet::read(file)?;
    if sheet.has("figure") {
        return choices::of(&sheet);
    }
    if sheet.has("method") { second(&sheet) } else { first(&sheet) }
}

/// Table 1: step times from 1.7 billion parameters to a trillion.
fn first(sheet: &Sheet) -> anyhow::Result<Vec<Check>> {
    let (mut checks, mut errors) = (Vec::new(), Vec::new());
    for row in sheet.records() {
        let plan = ParallelPlan { interleave: row.count("interleave")?, ..trained(&row)? };
        let ours = evaluate(&weighed(&row)?, &reference_kind("a100-80")?, &plan).step_s;
        let (reference, case) =
            (row.number("step_s_derived")?, format!("table 1, {}B", row.text("params_billion")?));
        errors.push(error(ours, reference));
        checks.push(Check::new(SUITE, &case, "step s", reference, ours, 0.10).detail());
    }
    checks.push(mean(SUITE, "table 1", "mean error", 0.07, &errors));
    Ok(checks)
}

/// Table 2: operations a second. The rows of ZeRO-3 show how 2020's program scaled; nothing is demanded of them.
fn second(sheet: &Sheet) -> anyhow::Result<Vec<Check>> {
    let (mut checks, mut errors) = (Vec::new(), Vec::new());
    for row in sheet.records() {
        let sharded = row.text("method")? != "ptdp";
        let sharding = if sharded { Sharding::Everything } else { Sharding::Nothing };
        let (model, plan) = (weighed(&row)?, ParallelPlan { sharding, ..trained(&row)? });
        let step_s = evaluate(&model, &reference_kind("a100-80")?, &plan).step_s;
        let ours = model.step_flops() / f64::from(row.count("gpus")?) / step_s / 1e12;
        let reference = row.number("tflops_per_gpu")?;
        let case = format!("table 2, {} on {}", row.text("method")?, row.text("gpus")?);
        checks.push(match sharded {
            true => Check::unjudged(SUITE, &case, "TFLOP/s a GPU", reference, ours),
            false => Check::new(SUITE, &case, "TFLOP/s a GPU", reference, ours, 0.08).detail(),
        });
        errors.extend((!sharded).then(|| error(reference, ours)));
    }
    if !errors.is_empty() {
        checks.push(mean(SUITE, "table 2", "mean error", 0.06, &errors));
    }
    Ok(checks)
}

fn weighed(row: &SheetRecord<'_>) -> anyhow::Result<Transformer> {
    Ok(Transformer { batch: row.count("batch")?, ..model(row)? })
}

fn trained(row: &SheetRecord<'_>) -> anyhow::Result<ParallelPlan> {
    Ok(ParallelPlan { recompute: Recompute::Full, ..degrees(row)? })
}
