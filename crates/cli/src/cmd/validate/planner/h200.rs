//! GPT on one H200 in plain PyTorch: fp32 weights under bf16 autocast, fused AdamW, fused attention, no compiler.

use std::path::Path;

use anyhow::Context;
use yard_planner::{Attention, ParallelPlan, Transformer, catalogue, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{at_most, error, mean, model, recompute};

const SUITE: &str = "h200-gpt";

const GIB: f64 = (1u64 << 30) as f64;

pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let kind = catalogue::known("h200").context("h200 is known")?;
    let (sheet, mut checks) = (Sheet::read(file)?, Vec::new());
    let (mut times, mut memories, mut unfit) = (Vec::new(), Vec::new(), 0);
    for row in sheet.records() {
        let (model, plan) = (trained(&row)?, plan(&row)?);
        let ours = evaluate(&model, &kind, &plan);
        let (step_s, peak) = (row.number("step_s")?, row.number("peak_gib")?);
        let case = format!("{}, {} tokens, micro-batch {}", row.text("model")?, model.seq, plan.micro_batch);
        times.push(error(ours.step_s, step_s));
        memories.push(error(ours.memory() / GIB, peak));
        unfit += u32::from(ours.memory() > kind.memory);
        checks.push(Check::unjudged(SUITE, &case, "step s", step_s, ours.step_s));
        checks.push(Check::unjudged(SUITE, &case, "peak GiB", peak, ours.memory() / GIB));
    }
    checks.push(mean(SUITE, "all", "mean error of step time", 0.08, &times));
    checks.push(mean(SUITE, "all", "mean error of memory", 0.08, &memories));
    checks.push(at_most(SUITE, "all", "rows that ran and are called unfit", 0.0, f64::from(unfit)));
    Ok(checks)
}

/// Autocast computes the loss in fp32 and keeps 10 bytes a logit.
fn trained(row: &SheetRecord<'_>) -> anyhow::Result<Transformer> {
    Ok(Transformer {
        attention: Attention::Flash,
        state_bytes: 16.0,
        logit_bytes: 10.0,
        seq: row.count("seq")?,
        vocab: row.count("vocab")?,
        batch: row.count("micro_batch")? * row.count("micro_batches")?,
        ..model(row)?
    })
}

fn plan(row: &SheetRecord<'_>) -> anyhow::Result<ParallelPlan> {
    let recompute = recompute(row.text("recompute")?)?;
    Ok(ParallelPlan { micro_batch: row.count("micro_batch")?, recompute, ..ParallelPlan::WHOLE })
}
