//! What really became of jobs, as rows like those of a simulated run, so that both are counted alike.

use yard_core::job::JobState;
use yard_core::{Span, Time};

use crate::fairness::Fairness;
use crate::record::JobRecord;

/// What really became of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Happened {
    /// When it was submitted.
    pub submit: Time,
    /// Devices it had, or asked for.
    pub gpus: u32,
    /// When it first got devices.
    pub first_start: Option<Time>,
    /// When it was over; none while it is not.
    pub end: Option<Time>,
    /// Time it held devices.
    pub held: Span,
    /// Times it was given devices.
    pub starts: u32,
    /// Times it was stopped for another job.
    pub preemptions: u32,
    /// Times it was moved.
    pub migrations: u32,
    /// Seconds it would have needed alone, in its fastest shape.
    pub ideal_s: f64,
    /// What one of its devices costs an hour; 0 where nobody says.
    pub hourly: f64,
}

/// A row for each job, on a cluster of so many devices. A job that is over counts as done, however it ended.
pub fn rows(devices: u32, jobs: &[Happened]) -> Vec<JobRecord> {
    let mut rows: Vec<JobRecord> = jobs.iter().map(row).collect();
    for (at, rho) in fairness(devices, jobs) {
        rows[at].rho = rho;
    }
    rows
}

fn row(job: &Happened) -> JobRecord {
    let mut row = JobRecord::new(job.submit, job.gpus);
    (row.first_start, row.end, row.held) = (job.first_start, job.end, job.held);
    row.state = if job.end.is_some() { JobState::Succeeded } else { JobState::Pending };
    (row.starts, row.preemptions, row.migrations) = (job.starts, job.preemptions, job.migrations);
    row.service = job.held.0.saturating_mul(u64::from(job.gpus));
    row.cost = job.held.secs() / 3600.0 * f64::from(job.gpus) * job.hourly;
    row
}

/// The finish-time fairness of each job that is over.
fn fairness(devices: u32, jobs: &[Happened]) -> Vec<(usize, Option<f64>)> {
    let comes = jobs.iter().enumerate().map(|(at, job)| (job.submit, true, at));
    let goes = jobs.iter().enumerate().filter_map(|(at, job)| Some((job.end?.max(job.submit), false, at)));
    let mut turns: Vec<_> = comes.chain(goes).collect();
    // At equal times who is over goes first, unless it came at that very time.
    turns.sort_by_key(|(time, comes, at)| (*time, *comes && jobs[*at].end != Some(*time), *at, !*comes));
    let (mut fairness, mut before) = (Fairness::new(devices), vec![0.0; jobs.len()]);
    let mut rhos = Vec::with_capacity(jobs.len());
    for (time, comes, at) in turns {
        let gpus = jobs[at].gpus.max(1);
        if comes {
            before[at] = fairness.arrive(time, gpus);
        } else {
            let received = fairness.leave(time, gpus) - before[at];
            rhos.push((at, (jobs[at].ideal_s > 0.0).then(|| received / jobs[at].ideal_s)));
        }
    }
    rhos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;

    fn job(submit: f64, start: f64, end: Option<f64>) -> Happened {
        Happened {
            submit: Time::from_secs(submit),
            gpus: 2,
            first_start: Some(Time::from_secs(start)),
            end: end.map(Time::from_secs),
            held: Span::from_secs(end.unwrap_or(start) - start),
            starts: 1,
            preemptions: 0,
            migrations: 0,
            ideal_s: end.unwrap_or(start) - start,
            hourly: 3.0,
        }
    }

    #[test]
    fn what_happened_is_counted_like_a_run() {
        let jobs = [job(0.0, 0.0, Some(100.0)), job(0.0, 100.0, Some(200.0)), job(150.0, 200.0, None)];
        let rows = rows(2, &jobs);
        let all = Summary::new(rows.iter().map(|row| (row, Some(Time::from_secs(150.0)))));
        assert_eq!((all.jobs, all.finished, all.deadline_met), (3, 2, 1));
        assert_eq!((all.avg_queue_s, all.avg_jct_s, all.makespan_s), (Some(50.0), Some(150.0), Some(200.0)));
        // Half of the cluster for as long as both are there; then all of it, and half again beside the third.
        let rhos: Vec<_> = rows.iter().map(|row| row.rho).collect();
        assert_eq!(rhos, [Some(0.5), Some(0.5 + 0.5 + 0.25), None]);
        assert!((all.gpu_hours - 400.0 / 3600.0).abs() < 1e-9);
        assert!((rows[0].cost - 200.0 / 3600.0 * 3.0).abs() < 1e-9);
    }
}
