//! The figures of a run, as the contract names them.

use serde::Serialize;
use yard_core::job::JobState;
use yard_core::{Span, Time};

use crate::record::JobRecord;

/// Statistics over the jobs of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Jobs counted.
    pub jobs: usize,
    /// Of these, done.
    pub finished: usize,
    /// Mean time from submission to end, of finished jobs.
    pub avg_jct_s: Option<f64>,
    /// Its median.
    pub p50_jct_s: Option<f64>,
    /// Its 90th percentile.
    pub p90_jct_s: Option<f64>,
    /// Its 99th percentile.
    pub p99_jct_s: Option<f64>,
    /// From the first submission to the last end.
    pub makespan_s: Option<f64>,
    /// Mean time without devices, of finished jobs.
    pub avg_queue_s: Option<f64>,
    /// Its 90th percentile.
    pub p90_queue_s: Option<f64>,
    /// Stops for other jobs.
    pub preemptions: u64,
    /// Moves.
    pub migrations: u64,
    /// Starts after each job's first.
    pub restarts: u64,
    /// Jobs with a deadline.
    pub deadline_total: usize,
    /// Of these, done in time.
    pub deadline_met: usize,
    /// Fraction that was not; null without deadlines.
    pub deadline_miss_ratio: Option<f64>,
    /// The same with soft deadlines: the part of the worth that was not earned.
    pub worth_missed_ratio: Option<f64>,
    /// Jobs that were promised to be done by a time.
    pub promised: usize,
    /// Of these, done by then.
    pub promises_kept: usize,
    /// Mean finish-time fairness.
    pub avg_rho: Option<f64>,
    /// Its worst.
    pub max_rho: Option<f64>,
    /// Device-hours held by these jobs, each its part where they are shared.
    pub gpu_hours: f64,
}

impl Summary {
    /// Counts these jobs, each with its deadline.
    pub fn new<'a>(jobs: impl Iterator<Item = (&'a JobRecord, Option<Time>)> + Clone) -> Summary {
        let done = jobs.clone().filter(|(job, _)| job.state == JobState::Succeeded);
        let mut jcts: Vec<f64> = done.clone().filter_map(|(job, _)| jct(job)).collect();
        jcts.sort_unstable_by(f64::total_cmp);
        let mut waits: Vec<f64> = done.clone().filter_map(|(job, _)| wait(job)).collect();
        // The mean is of the waits as they come: sums of floats differ by their order.
        let avg_queue_s = mean(&waits);
        waits.sort_unstable_by(f64::total_cmp);
        let rhos: Vec<f64> = done.clone().filter_map(|(job, _)| job.rho).collect();
        let total = jobs.clone().filter(|(_, deadline)| deadline.is_some()).count();
        let met =
            done.clone().filter(|(job, deadline)| deadline.is_some_and(|time| job.end <= Some(time))).count();
        let promised = jobs.clone().filter(|(job, _)| job.promise.is_some());
        let kept = promised.clone().filter(|(job, _)| done_by(job, job.promise)).count();
        let earned: f64 = jobs.clone().filter_map(|(job, deadline)| Some(earned(job, deadline?))).sum();
        Summary {
            jobs: jobs.clone().count(),
            finished: jcts.len(),
            avg_jct_s: mean(&jcts),
            p50_jct_s: quantile(&jcts, 0.5),
            p90_jct_s: quantile(&jcts, 0.9),
            p99_jct_s: quantile(&jcts, 0.99),
            makespan_s: makespan(jobs.clone().map(|(job, _)| job)),
            avg_queue_s,
            p90_queue_s: quantile(&waits, 0.9),
            preemptions: jobs.clone().map(|(job, _)| job.preemptions as u64).sum(),
            migrations: jobs.clone().map(|(job, _)| job.migrations as u64).sum(),
            restarts: jobs.clone().map(|(job, _)| u64::from(job.starts.saturating_sub(1))).sum(),
            deadline_total: total,
            deadline_met: met,
            deadline_miss_ratio: (total > 0).then(|| 1.0 - met as f64 / total as f64),
            worth_missed_ratio: (total > 0).then(|| 1.0 - earned / total as f64),
            promised: promised.count(),
            promises_kept: kept,
            avg_rho: mean(&rhos),
            max_rho: rhos.iter().copied().reduce(f64::max),
            gpu_hours: jobs.map(|(job, _)| Span(job.service).secs() - job.shared).sum::<f64>() / 3600.0,
        }
    }
}

fn done_by(job: &JobRecord, time: Option<Time>) -> bool {
    job.state == JobState::Succeeded && job.end.is_some_and(|end| time.is_some_and(|time| end <= time))
}

/// The part of the most it could be worth that a job with a deadline earned.
fn earned(job: &JobRecord, deadline: Time) -> f64 {
    match job.rewards.as_deref() {
        Some(rewards @ [first, ..]) => {
            let met = rewards.iter().find(|reward| done_by(job, Some(reward.by)));
            met.map_or(0.0, |reward| reward.worth / first.worth)
        }
        _ => f64::from(u8::from(done_by(job, Some(deadline)))),
    }
}

fn makespan<'a>(jobs: impl Iterator<Item = &'a JobRecord> + Clone) -> Option<f64> {
    let first = jobs.clone().map(|job| job.submit).min()?;
    let done = jobs.filter(|job| job.state == JobState::Succeeded);
    done.filter_map(|job| job.end).max().map(|last| (last - first).secs())
}

/// Seconds from submission to end.
pub fn jct(job: &JobRecord) -> Option<f64> {
    job.end.map(|end| (end - job.submit).secs())
}

/// Seconds between submission and end in which it held no devices.
pub fn wait(job: &JobRecord) -> Option<f64> {
    jct(job).map(|jct| (jct - job.held.secs()).max(0.0))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Linear between the two nearest of the sorted values.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let at = q * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.9), Some(1.9));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
