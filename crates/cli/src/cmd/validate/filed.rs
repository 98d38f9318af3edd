//! Suites that read one file each, and so also another of the same format.

use std::path::Path;

use anyhow::{Context, bail};

use super::{Check, planner};

/// Compares what a file says.
pub(super) type FileSuite = fn(&Path) -> anyhow::Result<Vec<Check>>;

/// The suites that read any file of their format.
const FILED: [(&str, FileSuite); 10] = [
    ("planner-golden", planner::golden_of),
    ("ptdp", planner::ptdp_of),
    ("korthikanti", planner::korthikanti_of),
    ("korthikanti-memory", planner::korthikanti_memory_of),
    ("vtrain", planner::vtrain_of),
    ("mpt", planner::mpt_of),
    ("h200-gpt", planner::h200_gpt_of),
    ("shapes", planner::shapes_of),
    ("dag", planner::dag_of),
    ("dapple", planner::dapple_of),
];

/// One suite on another file.
pub(super) fn of_file(only: &[String], file: &Path) -> anyhow::Result<Vec<Check>> {
    let [name] = only else { bail!("--file: name the one suite that reads it with --only") };
    let Some((_, suite)) = FILED.iter().find(|(known, _)| known == name) else {
        let known = FILED.map(|(name, _)| name).join(", ");
        bail!("--only {name}: the suite reads no file of its own; those that do are: {known}");
    };
    suite(file)
}

/// A suite on its own files under the reference data; none where one of them is absent.
pub(super) fn of_data(data: &Path, files: &[&str], suite: FileSuite) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = Vec::new();
    for file in files {
        let path = data.join(file);
        if !path.is_file() {
            return Ok(None);
        }
        checks.extend(suite(&path).with_context(|| format!("{file} is not as expected"))?);
    }
    Ok(Some(checks))
}
