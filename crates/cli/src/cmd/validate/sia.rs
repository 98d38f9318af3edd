//! Sia's simulator (SOSP 2023 artifact) under its own policy and Pollux', on 64 GPUs of three kinds, rounds of 60 s:
//! what is believed begins with one device of each kind.

use std::path::Path;

use super::{Check, simulate_with};
use crate::results;

/// Trace, policy, mean and 99th percentile of completion times and makespan in hours, device-hours: one run each.
const REFERENCE: [(&str, &str, [f64; 4]); 3] = [
    ("burst20", "sia", [0.362, 0.694, 0.709, 28.5]),
    ("burst20", "pollux", [0.393, 0.908, 0.985, 36.8]),
    ("short40", "sia", [0.434, 3.251, 4.313, 110.6]),
];

/// Few jobs, one run of each: one restart more or less of a long job is worth several percent.
const TOLERANCE: f64 = 0.05;

const CLUSTER: &str = "t4:6x4,rtx:3x8,a100:2x8";

pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = Vec::new();
    for (trace, policy, reference) in REFERENCE {
        let Some(ours) = figures(data, trace, policy)? else { return Ok(None) };
        let suite = if trace == "burst20" { "sia burst20" } else { "sia short40" };
        let names = ["avg JCT h", "p99 JCT h", "makespan h", "GPU-h"];
        checks.extend(
            (0..names.len()).map(|at| {
                Check::new(suite, policy, names[at], reference[at], ours[at], TOLERANCE).or_lower()
            }),
        );
    }
    Ok(Some(checks))
}

fn figures(data: &Path, trace: &str, policy: &str) -> anyhow::Result<Option<[f64; 4]>> {
    let profiles = data.join("sia/profiles");
    let workload = data.join(format!("sia/workloads/{trace}/workload-1.csv"));
    if !profiles.is_dir() {
        return Ok(None);
    }
    let profiles = profiles.to_string_lossy();
    let more = ["--throughputs", &*profiles, "--round", "60s", "--belief", "learned"];
    let Some((plan, runs)) = simulate_with(&workload, CLUSTER, policy, "", &more)? else { return Ok(None) };
    let ours = results::summary(&plan, &runs[0]);
    let hours = |seconds: Option<f64>| seconds.map_or(f64::INFINITY, |seconds| seconds / 3600.0);
    Ok(Some([hours(ours.avg_jct_s), hours(ours.p99_jct_s), hours(ours.makespan_s), ours.gpu_hours]))
}
