//! Chronus' traces (github.com/S-Lab-System-Group/ChronusArtifact), derived from Philly: minutes.
//!
//! `expect_time_list` holds deadlines counted from the submission, `-` between those of a soft job, and
//! `expect_value_list` what each is worth; the first is the deadline. A job with `best_effort` 1 has
//! none. `user` is a virtual cluster, so it is both user and tenant.

use std::sync::Arc;

use yard_core::job::Reward;
use yard_core::{Span, Time};

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, MAX_SECONDS, MINUTES, Row};
use super::super::{TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_id", "num_gpu", "submit_time", "expect_time_list"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, user, gpus, submit, model, duration, expected, worths, best_effort] = [
        "job_id",
        "user",
        "num_gpu",
        "submit_time",
        "model_name",
        "duration",
        "expect_time_list",
        "expect_value_list",
        "best_effort",
    ]
    .map(|name| table.column(name));
    let (name, user, gpus, submit, model) = (name?, user?, gpus?, submit?, model?);
    let (duration, expected, worths, best_effort) = (duration?, expected?, worths?, best_effort?);
    while let Some(row) = table.next_row()? {
        let count = row.gpus_or_zero(&gpus)?;
        if count == 0 {
            jobs.leave_out("num_gpu is 0");
            continue;
        }
        let at = row.time(&submit, MINUTES)?;
        let (cluster, model) = (jobs.word(row.text(&user)?), jobs.word(row.text(&model)?));
        let work = Work::Seconds(row.duration(&duration, MINUTES)?);
        let rewards = rewards(&row, [&expected, &worths, &best_effort], at)?;
        let job = jobs.add(row.name(&name)?, at, count, work, row.line);
        (job.tenant, job.user, job.model) = (cluster.clone(), cluster, model);
        job.deadline = rewards.as_ref().and_then(|rewards| rewards.first()).map(|reward| reward.by);
        job.rewards = rewards;
    }
    Ok(())
}

/// What it is worth to be done by when; nothing for a job that runs as it comes.
fn rewards(
    row: &Row<'_>,
    [expected, worths, best_effort]: [&Column; 3],
    submit: Time,
) -> Result<Option<Arc<[Reward]>>, TraceError> {
    if row.count(best_effort, 0, 1, "best_effort is")? == 1 {
        return Ok(None);
    }
    let times = list(row, expected, MAX_SECONDS / 60.0, "deadlines are minutes above 0, with - between")?;
    let values = list(row, worths, f64::MAX, "worths are numbers above 0, with - between")?;
    if times.len() != values.len() {
        let problem = format!("has {} worths for {} deadlines", values.len(), times.len());
        return Err(row.bad(worths, row.text(worths)?, &problem, "each deadline has one"));
    }
    let at = |minutes: f64| submit + Span::from_secs(minutes * 60.0);
    let mut rewards: Vec<Reward> =
        times.into_iter().zip(values).map(|(minutes, worth)| Reward { by: at(minutes), worth }).collect();
    rewards.sort_by_key(|reward| reward.by);
    Ok(Some(rewards.into()))
}

fn list(row: &Row<'_>, column: &Column, max: f64, allowed: &str) -> Result<Vec<f64>, TraceError> {
    let text = row.text(column)?;
    let number = |part: &str| part.trim().parse().ok().filter(|n: &f64| *n > 0.0 && *n <= max);
    let numbers: Option<Vec<f64>> = text.split('-').map(number).collect();
    numbers.ok_or_else(|| row.bad(column, text, "is no list of them", allowed))
}
