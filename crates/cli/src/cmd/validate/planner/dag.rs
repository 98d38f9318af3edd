//! Operator graphs against the optima that Tarnawski et al.'s own solver gives (NeurIPS 2020).

use std::path::Path;

use anyhow::Context;

use super::super::Check;
use super::super::sheet::Sheet;
use super::at_most;
use crate::cmd::shapes::graph::NamedGraph;

const SUITE: &str = "dag";

/// Reads the graphs from the folder `dag` beside the file.
pub(in super::super) fn of(file: &Path) -> anyhow::Result<Vec<Check>> {
    let folder = file.parent().context("the file is in a folder")?.join("dag");
    let (sheet, mut checks) = (Sheet::read(file)?, Vec::new());
    for row in sheet.records() {
        let name = row.text("graph")?;
        let split = NamedGraph::read(&folder.join(format!("{name}.json")))?.split()?;
        let best = row.number("max_load_optimal_contiguous")?;
        // Operator graphs are contracted first: at most 1 % above; never below, but for the digits that are listed.
        let check = match name.starts_with("Layer") {
            true => Check::new(SUITE, name, "greatest load", best, split.load, 1e-4),
            false => Check::new(SUITE, name, "greatest load", best, split.load, 0.01),
        };
        let below = split.load < best * (1.0 - 1e-4);
        checks.push(Check { ok: check.ok && !below, ..check });
        let expert = row.maybe("max_load_expert")?;
        checks.extend(expert.map(|expert| at_most(SUITE, name, "expert's load", expert, split.load)));
    }
    Ok(checks)
}
