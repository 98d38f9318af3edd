//! What became of each team's jobs, where the trace says whose they are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::number::Num;
use super::{ReportPage, ReportRow, ReportRun};

/// Teams shown; those with fewest jobs are one.
const TEAMS_MAX: usize = 40;
const OTHERS: &str = "others";
/// Jobs of which the trace does not say whose they are, where it does of others.
const NOBODY: &str = "–";

/// The teams, and which one each job is of.
pub(super) struct Teams<'a> {
    /// Those with most jobs first.
    pub(super) names: Vec<&'a str>,
    /// By job; empty where jobs are of no team or all of the same.
    of: Vec<usize>,
}

impl<'a> Teams<'a> {
    pub(super) fn new(report: &'a ReportPage) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for job in &report.jobs {
            *counts.entry(job.team.as_deref().unwrap_or(NOBODY)).or_default() += 1;
        }
        if counts.len() < 2 {
            return Self { names: Vec::new(), of: Vec::new() };
        }
        let mut names: Vec<&str> = counts.keys().copied().collect();
        names.sort_by_key(|name| std::cmp::Reverse(counts[name]));
        if names.len() > TEAMS_MAX {
            names.truncate(TEAMS_MAX - 1);
            names.push(OTHERS);
        }
        let at: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
        let place = |team: Option<&str>| at.get(team.unwrap_or(NOBODY)).copied().unwrap_or(names.len() - 1);
        let of = report.jobs.iter().map(|job| place(job.team.as_deref())).collect();
        Self { names, of }
    }

    /// The team of a job; none where there are not several.
    pub(super) fn of(&self, job: u32) -> Option<usize> {
        self.of.get(job as usize).copied()
    }
}

/// A team in one run: means over its jobs that are over.
#[derive(Debug, Serialize)]
pub(super) struct TeamRow {
    /// Its place among the teams.
    team: usize,
    jobs: usize,
    wait: Num,
    jct: Num,
    gpu_h: Num,
    rho: Option<Num>,
    /// Deadlines kept, and all.
    met: usize,
    due: usize,
}

impl TeamRow {
    /// None where no job of the team is over.
    fn new(team: usize, jobs: &[&ReportRow]) -> Option<Self> {
        let mean = |values: &[f64]| {
            (!values.is_empty()).then(|| Num(values.iter().sum::<f64>() / values.len() as f64))
        };
        let each = |value: fn(&ReportRow) -> f64| jobs.iter().map(|job| value(job)).collect::<Vec<_>>();
        let rhos: Vec<f64> = jobs.iter().filter_map(|job| job.rho).collect();
        Some(Self {
            team,
            jobs: jobs.len(),
            wait: mean(&each(|job| job.wait_s))?,
            jct: mean(&each(|job| job.jct_s))?,
            gpu_h: Num(each(|job| job.gpu_h).iter().sum()),
            rho: mean(&rhos),
            met: jobs.iter().filter(|job| job.met == Some(true)).count(),
            due: jobs.iter().filter(|job| job.met.is_some()).count(),
        })
    }
}

/// What became of each team's jobs, in the order of the teams.
pub(super) fn rows(run: &ReportRun, teams: &Teams<'_>) -> Vec<TeamRow> {
    let mut jobs: Vec<Vec<&ReportRow>> = vec![Vec::new(); teams.names.len()];
    for row in &run.jobs {
        if let Some(team) = teams.of(row.job) {
            jobs[team].push(row);
        }
    }
    jobs.iter().enumerate().filter_map(|(team, jobs)| TeamRow::new(team, jobs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportJob;

    fn report(teams: &[Option<&str>]) -> ReportPage {
        let job = |team: &Option<&str>| ReportJob { team: team.map(Into::into), ..ReportJob::default() };
        ReportPage { jobs: teams.iter().map(job).collect(), ..ReportPage::default() }
    }

    #[test]
    fn a_team_has_the_means_of_its_jobs() {
        let report = report(&[Some("vision"), Some("speech"), Some("vision"), None]);
        let teams = Teams::new(&report);
        assert_eq!(teams.names, ["vision", "speech", "–"]);
        let row = |job, wait_s, met| ReportRow { job, wait_s, met, gpu_h: 2.0, ..ReportRow::default() };
        let jobs = vec![row(0, 10.0, Some(true)), row(2, 20.0, Some(false)), row(3, 1.0, None)];
        let rows = rows(&ReportRun { jobs, ..ReportRun::default() }, &teams);
        let told: Vec<_> =
            rows.iter().map(|row| (row.team, row.jobs, row.wait.0, row.met, row.due)).collect();
        assert_eq!(told, [(0, 2, 15.0, 1, 2), (2, 1, 1.0, 0, 0)], "nobody of speech is done");
        assert_eq!((rows[0].gpu_h, rows[0].rho), (Num(4.0), None));
    }

    #[test]
    fn one_team_is_none_and_the_smallest_of_many_are_one() {
        assert_eq!(Teams::new(&report(&[Some("all"), Some("all")])).of(0), None);
        let names: Vec<String> = (0..60).map(|at| format!("t{at:02}")).collect();
        let all: Vec<Option<&str>> = names.iter().flat_map(|name| [Some(name.as_str()); 2]).collect();
        let report = report(&all[..119]);
        let teams = Teams::new(&report);
        assert_eq!((teams.names.len(), teams.names[TEAMS_MAX - 1]), (TEAMS_MAX, OTHERS));
        assert_eq!((teams.of(0), teams.of(118)), (Some(0), Some(TEAMS_MAX - 1)));
    }
}
