//! The formulas themselves: random plans whose step time and memory a second program computed.

use std::path::Path;

use yard_planner::{Attention, Sharding, Transformer, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{degrees, model, recompute, reference_kind};

const SUITE: &str = "planner-golden";

const TOLERANCE: f64 = 1e-4;

pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let sheet = Sheet::read(file)?;
    let mut checks = Vec::new();
    for row in sheet.records() {
        checks.extend(checks_of(&row)?);
    }
    let off = checks.iter().map(|check| super::error(check.ours, check.reference)).fold(0.0, f64::max);
    checks.push(super::at_most(SUITE, "all", "largest difference", TOLERANCE, off));
    Ok(checks)
}

fn checks_of(row: &SheetRecord<'_>) -> anyhow::Result<[Check; 3]> {
    let attention = if row.number("flash")? == 1.0 { Attention::Flash } else { Attention::Plain };
    let model = Transformer {
        attention,
        seq: row.count("seq")?,
        vocab: row.count("vocab")?,
        batch: row.count("batch")?,
        grad_bytes: row.number("grad_bytes")?,
        ..model(row)?
    };
    let stage = row.number("shard")? as u32;
    let plan = yard_planner::ParallelPlan {
        interleave: row.count("interleave")?,
        recompute: recompute(row.text("recompute")?)?,
        sequence_parallel: row.number("sequence_parallel")? == 1.0,
        sharding: Sharding::of_stage(stage)
            .ok_or_else(|| anyhow::anyhow!("shard: {stage} is none of 0, 1, 3"))?,
        ..degrees(row)?
    };
    let ours = evaluate(&model, &reference_kind(row.text("kind")?)?, &plan);
    let case = format!(
        "{} on {}: t{} p{} d{} b{} v{}",
        row.text("model")?,
        row.text("kind")?,
        plan.tensor,
        plan.pipeline,
        plan.data,
        plan.micro_batch,
        plan.interleave
    );
    let check = |figure, name, ours| {
        Ok::<_, anyhow::Error>(Check::new(SUITE, &case, figure, row.number(name)?, ours, TOLERANCE).detail())
    };
    Ok([
        check("step s", "step_s", ours.step_s)?,
        check("state bytes", "state_bytes", ours.state)?,
        check("activation bytes", "activation_bytes", ours.activations)?,
    ])
}
