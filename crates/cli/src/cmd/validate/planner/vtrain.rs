//! vTrain's measurements (MICRO'24) of many splits of four models on 64 to 512 A100, whole layers recomputed.

use std::collections::BTreeMap;
use std::path::Path;

use yard_planner::{Accelerator, ParallelPlan, Recompute, Transformer, evaluate};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{at_least, at_most, degrees, error, mean, median, model, reference_kind};

const SUITE: &str = "vtrain";

/// From so many rows on, a file has nearly all that were measured, and more is demanded of the choice.
const NEARLY_ALL: usize = 100;

/// Predicted and measured seconds of a split.
type Pair = (f64, f64);

pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let kind = Accelerator { link_out: 12.5e9, ..reference_kind("a100-80")? };
    let (sheet, mut checks, mut errors) = (Sheet::read(file)?, Vec::new(), Vec::new());
    let mut models: BTreeMap<String, Vec<Pair>> = BTreeMap::new();
    for row in sheet.records() {
        let (ours, reference) = (predicted(&row, &kind)?, row.number("step_s")?);
        let name = format!("{}B on {}", row.text("params_billion")?, row.text("gpus")?);
        checks.push(Check::unjudged(SUITE, &case(&name, &row)?, "step s", reference, ours));
        models.entry(name).or_default().push((ours, reference));
        errors.push(error(ours, reference));
    }
    checks.push(mean(SUITE, "all", "mean error", 0.08, &errors));
    checks.push(median(SUITE, "all", "median error", 0.05, &errors));
    let lag = if errors.len() > NEARLY_ALL { 0.06 } else { 0.12 };
    for (name, pairs) in &models {
        checks.push(at_most(SUITE, name, "choice: measured time over best, less 1", lag, behind(pairs)));
        checks.push(at_least(SUITE, name, "pairs in the right order", 0.70, ordered(pairs)));
    }
    Ok(checks)
}

fn case(name: &str, row: &SheetRecord<'_>) -> anyhow::Result<String> {
    let [t, p, d, b] = ["tensor", "pipeline", "data", "micro_batch"].map(|name| row.text(name));
    Ok(format!("{name}: t{} p{} d{} b{}", t?, p?, d?, b?))
}

fn predicted(row: &SheetRecord<'_>, kind: &Accelerator) -> anyhow::Result<f64> {
    let model = Transformer {
        vocab: 50_304,
        grad_bytes: 2.0,
        seq: row.count("seq")?,
        batch: row.count("batch")?,
        ..model(row)?
    };
    let plan = ParallelPlan { recompute: Recompute::Full, ..degrees(row)? };
    Ok(evaluate(&model, kind, &plan).step_s)
}

/// How much longer the split that is predicted fastest was measured to take than the fastest.
fn behind(pairs: &[Pair]) -> f64 {
    let chosen = pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(f64::NAN, |pair| pair.1);
    let best = pairs.iter().map(|pair| pair.1).fold(f64::INFINITY, f64::min);
    chosen / best - 1.0
}

/// The part of pairs of splits that are predicted in the order in which they were measured.
fn ordered(pairs: &[Pair]) -> f64 {
    let (mut right, mut all) = (0usize, 0usize);
    for (at, one) in pairs.iter().enumerate() {
        for other in &pairs[..at] {
            if one.1 != other.1 {
                all += 1;
                right += usize::from((one.0 < other.0) == (one.1 < other.1));
            }
        }
    }
    if all == 0 { 1.0 } else { right as f64 / all as f64 }
}
