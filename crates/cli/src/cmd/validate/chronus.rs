//! Chronus' simulator (with CBC in place of Gurobi) on the first 300 jobs of two of its traces, sixteen nodes of eight
//! GPUs, leases of twenty minutes: the part of the worth of deadlines that was missed, and how long jobs without a
//! deadline took. Which of several equal solutions a solver finds is chance: its figures are a mark to reach.

use std::path::Path;

use super::{Check, simulate};
use crate::results;
use crate::runner::{PolicyRun, RunnerPlan};

/// By packing, and by the integer program.
const POLICIES: [&str; 2] = ["chronus", "chronus:exact=true"];

pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    // The trace, the worth that may be missed, and minutes of jobs without a deadline.
    const REFERENCE: [(&str, f64, Option<f64>); 2] = [("SLO", 0.0833, None), ("MIX1", 0.0508, Some(245.5))];
    let mut checks = Vec::new();
    for (name, missed, minutes) in REFERENCE {
        let trace = data.join(format!("traces/chronus/sub_{name}.csv"));
        let Some((plan, runs)) = simulate(&trace, "gpu:16x8", &POLICIES.join(","), "chronus")? else {
            return Ok(None);
        };
        for (policy, run) in POLICIES.iter().zip(&runs) {
            let ours = results::summary(&plan, run).worth_missed_ratio.unwrap_or(1.0);
            let policy = format!("{policy} on sub_{name}");
            checks.push(Check::new("chronus", &policy, "worth missed", missed, ours, 0.0).or_lower());
            let effort = |minutes| {
                let ours = best_effort(&plan, run) / 60.0;
                Check::new("chronus", &policy, "best-effort JCT min", minutes, ours, 0.0).or_lower()
            };
            checks.extend(minutes.map(effort));
        }
    }
    Ok(Some(checks))
}

/// Mean seconds from submission to end of jobs without a deadline.
fn best_effort(plan: &RunnerPlan, run: &PolicyRun) -> f64 {
    let jobs = plan.trace.jobs.iter().zip(&run.outcome.record.jobs);
    let free = jobs.filter(|(job, _)| job.deadline.is_none());
    let times: Vec<f64> = free.filter_map(|(_, job)| Some((job.end? - job.submit).secs())).collect();
    times.iter().sum::<f64>() / times.len().max(1) as f64
}
