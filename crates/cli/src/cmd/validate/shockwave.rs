//! Shockwave's artifact on its 120 jobs, 32 GPUs, rounds of 120 s, at its own bound on unfairness, which is our default.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::{Check, simulate_with};
use crate::results;

/// Makespan, mean completion time and worst finish-time fairness in the artifact's stored results.
const REFERENCE: [(&str, f64); 3] = [("makespan s", 24_197.0), ("avg JCT s", 9_958.0), ("worst FTF", 1.78)];

/// Devices of the cluster.
const DEVICES: f64 = 32.0;

#[derive(Deserialize)]
struct ShockwaveJob {
    regimes: Vec<ShockwaveRegime>,
}

#[derive(Deserialize)]
struct ShockwaveRegime {
    epochs: f64,
    epoch_s: f64,
}

pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let trace = data.join("shockwave/120_jobs_dynamic.json");
    let more = ["--round", "120s"];
    let Some((plan, runs)) = simulate_with(&trace, "v100:32", "shockwave", "", &more)? else {
        return Ok(None);
    };
    let text = std::fs::read(&trace).with_context(|| format!("cannot read {}", trace.display()))?;
    let jobs: Vec<ShockwaveJob> =
        serde_json::from_slice(&text).with_context(|| format!("{} is not as expected", trace.display()))?;
    // As its results are made: n is all jobs of the trace, however many there are at a time, and gangs count as one.
    let contention = (jobs.len() as f64 / DEVICES).max(1.0);
    let alone =
        |job: &ShockwaveJob| job.regimes.iter().map(|regime| regime.epochs * regime.epoch_s).sum::<f64>();
    let unfair = jobs.iter().zip(&runs[0].outcome.record.jobs).map(|(job, record)| {
        let shared = record.end.map_or(f64::INFINITY, |end| (end - record.submit).secs());
        shared / (alone(job) * contention)
    });
    let worst = unfair.fold(0.0, f64::max);
    let ours = results::summary(&plan, &runs[0]);
    let ours = [ours.makespan_s.unwrap_or(f64::INFINITY), ours.avg_jct_s.unwrap_or(f64::INFINITY), worst];
    let check = |((figure, reference), ours): (&(&'static str, f64), f64)| {
        Check::new("shockwave", "shockwave", figure, *reference, ours, 0.05).or_lower()
    };
    Ok(Some(REFERENCE.iter().zip(ours).map(check).collect()))
}
