//! ElasticFlow's simulator on its fig. 8a: 195 jobs with deadlines on sixteen nodes of four T4, slots of 60 s. Jobs that
//! were promised and done in time, against the jobs that it took on and finished in time by its own count, to the slot
//! (127 of them by the clock).

use std::path::Path;

use super::{Check, simulate_with};
use crate::results;

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
    Ok(Some(vec![Check::new("elasticflow", "elasticflow", "promises kept", 142.0, kept, 0.0).or_higher()]))
}
