//! The best split for each kind and count, and where there is none.

use std::path::Path;

use yard_planner::search::SplitSearchLimits;
use yard_planner::{Attention, Transformer, search};

use super::super::Check;
use super::super::sheet::{Sheet, SheetRecord};
use super::{model, reference_kind};

const SUITE: &str = "shapes";

pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let sheet = Sheet::read(file)?;
    let mut checks = Vec::new();
    for row in sheet.records() {
        checks.push(check(&row)?.detail());
    }
    let (all, equal) = (checks.len(), checks.iter().filter(|check| check.ok).count());
    checks.push(Check::decimals(SUITE, "all", "shapes that are equal", all as f64, equal as f64));
    Ok(checks)
}

/// No way counts as a step of 0 s.
fn check(row: &SheetRecord<'_>) -> anyhow::Result<Check> {
    let model = Transformer {
        attention: Attention::Flash,
        seq: row.count("seq")?,
        vocab: row.count("vocab")?,
        batch: row.count("batch")?,
        ..model(row)?
    };
    let devices = row.count("devices")?;
    let found = search(&model, &reference_kind(row.text("kind")?)?, devices, &SplitSearchLimits::default());
    let (expected, ours) = (row.maybe("step_s")?, found.best.map(|best| best.step_s));
    let case = format!("{} on {devices} {}", row.text("model")?, row.text("kind")?);
    let figure = if expected.is_some() { "step s" } else { "no way: step s" };
    Ok(Check::new(SUITE, &case, figure, expected.unwrap_or(0.0), ours.unwrap_or(0.0), 0.001))
}
