//! MPT models under FSDP on A100 and H100, as MosaicML measured them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use yard_planner::{Attention, ParallelPlan, Sharding, Transformer, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{at_most, error, mean, model, recompute, reference_kind};

const SUITE: &str = "mpt";

/// The file's kinds, their names here, and the mean error that is allowed.
const KINDS: [(&str, &str, f64); 3] =
    [("a100_80gb", "a100-80", 0.07), ("a100_40gb", "a100-40", 0.05), ("h100_80gb", "h100-80", 0.05)];

pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let (sheet, mut checks) = (Sheet::read(file)?, Vec::new());
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut unfit = 0;
    for row in sheet.records() {
        let name = row.text("kind")?;
        let (_, known, _) = KINDS
            .iter()
            .find(|(kind, ..)| *kind == name)
            .with_context(|| format!("kind {name} is unknown"))?;
        let kind = reference_kind(known)?;
        let (model, plan) = (trained(&row)?, plan(&row)?);
        let ours = evaluate(&model, &kind, &plan);
        let reference = row.number("step_s")?;
        unfit += u32::from(ours.memory() > kind.memory);
        errors.entry(name).or_default().push(error(ours.step_s, reference));
        let case = format!("{} on {} {name}, {} tokens", row.text("model")?, plan.data, model.seq);
        checks.push(Check::unjudged(SUITE, &case, "step s", reference, ours.step_s));
    }
    for (name, _, most) in KINDS {
        checks.extend(errors.get(name).map(|errors| mean(SUITE, name, "mean error", most, errors)));
    }
    checks.push(at_most(SUITE, "all", "rows that ran and are called unfit", 0.0, f64::from(unfit)));
    Ok(checks)
}

fn trained(row: &SheetRecord<'_>) -> anyhow::Result<Transformer> {
    let state_bytes = match row.text("precision_mode")? {
        "amp" => 16.0,
        "pure" => 8.0,
        other => bail!("precision_mode: {other:?} is none of amp, pure"),
    };
    Ok(Transformer {
        state_bytes,
        attention: Attention::Flash,
        grad_bytes: 2.0,
        seq: row.count("seq")?,
        vocab: row.count("vocab")?,
        batch: row.count("batch")?,
        ..model(row)?
    })
}

fn plan(row: &SheetRecord<'_>) -> anyhow::Result<ParallelPlan> {
    Ok(ParallelPlan {
        data: row.count("gpus")?,
        micro_batch: row.count("micro_batch")?,
        recompute: recompute(row.text("recompute")?)?,
        sharding: Sharding::Everything,
        ..ParallelPlan::WHOLE
    })
}
