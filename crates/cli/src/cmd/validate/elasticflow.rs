//! ElasticFlow's simulator on its fig. 8a: 195 jobs with deadlines on sixteen nodes of four T4, slots of 60 s. Jobs that
//! were promised and done in time, against the jobs that it took on and finished in time by its own count, to the slot
//! (127 of them by the clock). Its EDF gives each job the largest size that is left, and charges nothing for the changes:
//! deadlines met, and the mean time that jobs took in its stored results. It decides at events no less than a slot apart and
//! we at beats, hence the 2 %; one job more is in time where we decide at each event, because it rounds ends up to seconds.

use std::path::Path;

use super::{Check, simulate_with};
use crate::results;

/// Ours of the same rule as its EDF.
const EDF: &str = "edf:size=largest";

pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let trace = data.join("traces/elasticflow/elasticVpollux_e.csv");
    let table = data.join("traces/elasticflow/throughputs_T4");
    let table = table.to_string_lossy();
    let promising = ["--throughputs", &table, "--promises"];
    let Some((plan, runs)) = simulate_with(&trace, "t4:16x4", "elasticflow", "elasticflow", &promising)?
    else {
        return Ok(None);
    };
    let kept = results::summary(&plan, &runs[0]).promises_kept as f64;
    let free = ["--throughputs", &table, "--overheads", "none"];
    let Some((plan, runs)) = simulate_with(&trace, "t4:16x4", EDF, "elasticflow", &free)? else {
        return Ok(None);
    };
    let ours = results::summary(&plan, &runs[0]);
    Ok(Some(vec![
        Check::new("elasticflow", "elasticflow", "promises kept", 142.0, kept, 0.0).or_higher(),
        Check::decimals("elasticflow", EDF, "deadlines met", 23.0, ours.deadline_met as f64),
        Check::new("elasticflow", EDF, "avg JCT s", 163_563.538, ours.avg_jct_s.unwrap_or(0.0), 0.02),
    ]))
}
