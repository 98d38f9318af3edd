//! The jobs that the page lists: all of them where they are few, else those that waited longest and an even sample.

use serde::Serialize;

use super::number::Num;
use super::teams::Teams;
use super::{ReportJob, ReportPage, ReportRow, ReportRun};

/// Jobs listed; each costs about twenty bytes, and as many for each run.
const LISTED_MAX: usize = 20_000;
/// Of these, jobs that waited longest, of all runs together.
const LONGEST: usize = 2_000;
/// Characters kept of a job's name.
const NAME_MAX: usize = 80;

/// What is known of listed jobs whatever the policy, by column.
#[derive(Debug, Serialize)]
pub(super) struct ReportListed {
    /// How many jobs there are, listed or not.
    total: usize,
    id: Vec<u32>,
    name: Vec<String>,
    gpus: Vec<u32>,
    submit: Vec<Num>,
    /// Positions among the teams; empty where there are none.
    team: Vec<usize>,
}

impl ReportListed {
    pub(super) fn new(report: &ReportPage, teams: &Teams<'_>) -> Self {
        Self::within(report, teams, LISTED_MAX, LONGEST)
    }

    fn within(report: &ReportPage, teams: &Teams<'_>, listed_max: usize, longest: usize) -> Self {
        let id = chosen(report, listed_max, longest);
        let jobs: Vec<&ReportJob> = id.iter().map(|id| &report.jobs[*id as usize]).collect();
        Self {
            total: report.jobs.len(),
            name: jobs.iter().map(|job| job.name.chars().take(NAME_MAX).collect()).collect(),
            gpus: jobs.iter().map(|job| job.gpus).collect(),
            submit: jobs.iter().map(|job| Num(job.submit_s)).collect(),
            team: id.iter().filter_map(|id| teams.of(*id)).collect(),
            id,
        }
    }
}

/// Which jobs are listed, in order.
fn chosen(report: &ReportPage, listed_max: usize, longest: usize) -> Vec<u32> {
    let total = report.jobs.len();
    if total <= listed_max {
        return (0..total as u32).collect();
    }
    let each = longest / report.runs.len().max(1);
    let mut listed = vec![false; total];
    for run in &report.runs {
        longest_waits(&run.jobs, each).for_each(|job| listed[job as usize] = true);
    }
    let others: Vec<usize> = (0..total).filter(|at| !listed[*at]).collect();
    let step = others.len().div_ceil(listed_max - longest).max(1);
    others.iter().step_by(step).for_each(|at| listed[*at] = true);
    (0..total as u32).filter(|at| listed[*at as usize]).collect()
}

/// The jobs that waited longest; of equals the earlier.
fn longest_waits(jobs: &[ReportRow], count: usize) -> impl Iterator<Item = u32> {
    let mut rows: Vec<&ReportRow> = jobs.iter().filter(|job| job.wait_s > 0.0).collect();
    let worse = |a: &&ReportRow, b: &&ReportRow| b.wait_s.total_cmp(&a.wait_s).then(a.job.cmp(&b.job));
    if rows.len() > count {
        rows.select_nth_unstable_by(count, worse);
        rows.truncate(count);
    }
    rows.into_iter().map(|row| row.job)
}

/// What became of the listed jobs in one run, in their order; nothing where a job did not end.
#[derive(Debug, Serialize)]
pub(super) struct Ended {
    wait: Vec<Option<Num>>,
    jct: Vec<Option<Num>>,
    preemptions: Vec<Option<u32>>,
}

impl Ended {
    pub(super) fn new(run: &ReportRun, listed: &ReportListed) -> Self {
        let mut rows = run.jobs.iter().peekable();
        let found: Vec<Option<&ReportRow>> = (listed.id.iter())
            .map(|id| {
                while rows.next_if(|row| row.job < *id).is_some() {}
                rows.next_if(|row| row.job == *id)
            })
            .collect();
        Self {
            wait: found.iter().map(|row| row.map(|row| Num(row.wait_s))).collect(),
            jct: found.iter().map(|row| row.map(|row| Num(row.jct_s))).collect(),
            preemptions: found.iter().map(|row| row.map(|row| row.preemptions)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(job: u32, wait_s: f64) -> ReportRow {
        ReportRow { job, wait_s, jct_s: wait_s + 1.0, ..ReportRow::default() }
    }

    fn report(n: u32, runs: Vec<Vec<ReportRow>>) -> ReportPage {
        let jobs = (0..n).map(|at| ReportJob { name: format!("job-{at}"), ..ReportJob::default() }).collect();
        let runs = runs.into_iter().map(|jobs| ReportRun { jobs, ..ReportRun::default() }).collect();
        ReportPage { jobs, runs, ..ReportPage::default() }
    }

    #[test]
    fn few_jobs_are_all_listed_with_what_became_of_them() {
        let report = report(4, vec![vec![row(0, 5.0), row(3, 7.0)]]);
        let listed = ReportListed::new(&report, &Teams::new(&report));
        assert_eq!((listed.total, listed.id.as_slice()), (4, &[0, 1, 2, 3][..]));
        let ended = Ended::new(&report.runs[0], &listed);
        assert_eq!(ended.wait, [Some(Num(5.0)), None, None, Some(Num(7.0))]);
    }

    #[test]
    fn of_many_the_longest_waits_of_each_run_and_an_even_sample_are_listed() {
        let late = |job: u32| vec![(0..100).map(|at| row(at, if at == job { 9.0 } else { 1.0 })).collect()];
        let report = report(100, [late(33), late(77)].concat());
        let listed = ReportListed::within(&report, &Teams::new(&report), 22, 2);
        assert!(listed.id.contains(&33) && listed.id.contains(&77), "{:?}", listed.id);
        assert!(listed.id.len() <= 22 && listed.id.is_sorted());
        assert!(listed.id.windows(2).all(|pair| pair[1] - pair[0] <= 6), "it is even: {:?}", listed.id);
    }
}
