//! Numbers about a trace: what it asks for, when, and how much.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{Scaling, Trace, TraceJob, Work};

/// Bins of [`Stats::arrivals`].
const BINS: usize = 60;

/// What is in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Where it came from.
    pub source: String,
    /// Its format's name.
    pub format: &'static str,
    /// Jobs.
    pub jobs: usize,
    /// Of these, jobs whose work is in steps, so that their duration depends on a throughput table.
    pub jobs_in_steps: usize,
    /// When the first is submitted, in seconds.
    pub first_submit_s: f64,
    /// From the first submission to the last, in seconds.
    pub span_s: f64,
    /// Devices asked for by all jobs together.
    pub gpus_total: u64,
    /// Devices a job asks for.
    pub gpus: Quantiles,
    /// How long jobs run, in seconds; none where all work is in steps.
    pub duration_s: Option<Quantiles>,
    /// Device-hours of the jobs whose durations are known; none where there are none.
    pub gpu_hours: Option<f64>,
    /// The devices in use if every job ran at once when it came: device-seconds over the span. A
    /// cluster with fewer cannot keep up. None where all jobs come at one instant.
    pub mean_gpus_demanded: Option<f64>,
    /// How many jobs ask for so many devices.
    pub sizes: Vec<SizeStats>,
    /// Submissions in each of 60 equal parts of the span.
    pub arrivals: Vec<usize>,
    /// Jobs with a deadline.
    pub deadlines: usize,
    /// Jobs whose deadline is soft.
    pub soft_deadlines: usize,
    /// What is the scheduler's choice, most jobs first; jobs that do not say are not counted.
    pub modes: Vec<Named>,
    /// Models, most jobs first.
    pub models: Vec<Named>,
    /// Tenants, most jobs first.
    pub tenants: Vec<Named>,
    /// How many different users.
    pub users: usize,
}

/// A distribution in a few numbers; a quantile q of n values is the ⌈q·n⌉-th smallest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90 % are not above it.
    pub p90: f64,
    /// 99 % are not above it.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// How many jobs have a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeStats {
    /// Devices.
    pub gpus: u32,
    /// Jobs that ask for so many.
    pub jobs: usize,
}

/// How many jobs have a name in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Jobs with it.
    pub jobs: usize,
}

impl Stats {
    /// The numbers about `trace`.
    pub fn of(trace: &Trace) -> Stats {
        let jobs = &trace.jobs;
        let durations: Vec<(f64, u32)> = jobs.iter().filter_map(duration).collect();
        let gpu_seconds: f64 = durations.iter().map(|&(seconds, gpus)| seconds * f64::from(gpus)).sum();
        let first = jobs.first().map_or(0.0, |job| job.submit.secs());
        let span_s = jobs.last().map_or(0.0, |job| job.submit.secs()) - first;
        let known = !durations.is_empty();
        Stats {
            source: trace.source.clone(),
            format: trace.format,
            jobs: jobs.len(),
            jobs_in_steps: jobs.len() - durations.len(),
            first_submit_s: first,
            span_s,
            gpus_total: jobs.iter().map(|job| u64::from(job.gpus)).sum(),
            gpus: Quantiles::of(jobs.iter().map(|job| f64::from(job.gpus)).collect()).unwrap_or_default(),
            duration_s: Quantiles::of(durations.iter().map(|&(seconds, _)| seconds).collect()),
            gpu_hours: known.then_some(gpu_seconds / 3600.0),
            mean_gpus_demanded: (known && span_s > 0.0).then(|| gpu_seconds / span_s),
            sizes: sizes(jobs),
            arrivals: arrivals(jobs, first, span_s),
            deadlines: jobs.iter().filter(|job| job.deadline.is_some()).count(),
            soft_deadlines: jobs.iter().filter(|job| soft(job)).count(),
            modes: tally(jobs.iter().filter_map(|job| job.mode.map(Scaling::name))),
            models: tally(jobs.iter().filter_map(|job| job.model.as_deref())),
            tenants: tally(jobs.iter().filter_map(|job| job.tenant.as_deref())),
            users: tally(jobs.iter().filter_map(|job| job.user.as_deref())).len(),
        }
    }
}

/// Whether it is worth something to be done after the deadline too.
fn soft(job: &TraceJob) -> bool {
    job.rewards.as_ref().is_some_and(|rewards| rewards.len() > 1)
}

impl Quantiles {
    /// Of these values; none where there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Quantiles> {
        values.sort_unstable_by(f64::total_cmp);
        let (n, max) = (values.len(), *values.last()?);
        let at = |q: f64| values[((q * n as f64).ceil() as usize).clamp(1, n) - 1];
        let mean = values.iter().sum::<f64>() / n as f64;
        Some(Quantiles { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), max })
    }
}

impl Default for Quantiles {
    fn default() -> Quantiles {
        Quantiles { mean: 0.0, p50: 0.0, p90: 0.0, p99: 0.0, max: 0.0 }
    }
}

fn duration(job: &TraceJob) -> Option<(f64, u32)> {
    match job.work {
        Work::Seconds(seconds) => Some((seconds, job.gpus)),
        Work::Steps(_) | Work::Profile => None,
    }
}

fn sizes(jobs: &[TraceJob]) -> Vec<SizeStats> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.gpus).or_default() += 1;
    }
    counts.into_iter().map(|(gpus, jobs)| SizeStats { gpus, jobs }).collect()
}

fn arrivals(jobs: &[TraceJob], first: f64, span: f64) -> Vec<usize> {
    let mut bins = vec![0; BINS];
    for job in jobs {
        let part = if span > 0.0 { (job.submit.secs() - first) / span } else { 0.0 };
        bins[((part * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    bins
}

fn tally<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Named> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut tally: Vec<_> =
        counts.into_iter().map(|(name, jobs)| Named { name: name.to_owned(), jobs }).collect();
    tally.sort_by_key(|named| Reverse(named.jobs));
    tally
}
