//! ElasticFlow's simulator on its fig. 8a: 195 jobs with deadlines on sixteen nodes of four T4, slots of 60 s. Jobs that
//! were promised and done in time, against the jobs that it took on and finished in time; and its EDF, which runs each job
//! on as many devices as it can use.

use std::path::Path;

use super::{Check, simulate_with};
use crate::results;

pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let trace = data.join("traces/elasticflow/elasticVpollux_e.csv");
    let table = data.join("traces/elasticflow/throughputs_T4");
    let table = table.to_string_lossy();
    let plain = ["--throughputs", &table, "--round", "60s", "--overheads", "none"];
    let promising = [&plain[..], &["--promises"]].concat();
    let Some((plan, runs)) = simulate_with(&trace, "t4:16x4", "elasticflow", "", &promising)? else {
        return Ok(None);
    };
    let kept = results::summary(&plan, &runs[0]).promises_kept as f64;
    let Some((plan, runs)) = simulate_with(&trace, "t4:16x4", "edf:size=largest", "", &plain)? else {
        return Ok(None);
    };
    let met = results::summary(&plan, &runs[0]).deadline_met as f64;
    Ok(Some(vec![
        Check::new("elasticflow", "elasticflow", "promises kept", 142.0, kept, 0.0).or_higher(),
        Check::new("elasticflow", "edf:size=largest", "deadlines met", 23.0, met, 0.15),
    ]))
}
