//! Chronus' traces (github.com/S-Lab-System-Group/ChronusArtifact), derived from Philly: minutes.
//!
//! `expect_time_list` holds deadlines counted from the submission, `-` between those of a soft job
//! whose reward falls with each; the first is the deadline here. A job with `best_effort` 1 has
//! none. `user` is a virtual cluster, so it is both user and tenant.

use yard_core::{Span, Time};

use super::super::bytes::Text;
use super::super::jobs::Jobs;
use super::super::table::{Column, MAX_SECONDS, MINUTES, Row, Table};
use super::super::{TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_id", "num_gpu", "submit_time", "expect_time_list"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut Jobs) -> Result<(), TraceError> {
    let mut table = Table::with_header(text)?;
    let [name, user, gpus, submit, model, duration, expected, best_effort] = [
        "job_id",
        "user",
        "num_gpu",
        "submit_time",
        "model_name",
        "duration",
        "expect_time_list",
        "best_effort",
    ]
    .map(|name| table.column(name));
    let (name, user, gpus, submit, model) = (name?, user?, gpus?, submit?, model?);
    let (duration, expected, best_effort) = (duration?, expected?, best_effort?);
    while let Some(row) = table.next_row()? {
        let count = row.gpus_or_zero(&gpus)?;
        if count == 0 {
            jobs.leave_out("num_gpu is 0");
            continue;
        }
        let at = row.time(&submit, MINUTES)?;
        let (cluster, model) = (jobs.word(row.text(&user)?), jobs.word(row.text(&model)?));
        let work = Work::Seconds(row.duration(&duration, MINUTES)?);
        let deadline = deadline(&row, &expected, &best_effort, at)?;
        let job = jobs.add(row.name(&name)?, at, count, work, row.line);
        (job.tenant, job.user, job.model, job.deadline) = (cluster.clone(), cluster, model, deadline);
    }
    Ok(())
}

fn deadline(
    row: &Row<'_>,
    expected: &Column,
    best_effort: &Column,
    submit: Time,
) -> Result<Option<Time>, TraceError> {
    if row.count(best_effort, 0, 1, "best_effort is")? == 1 {
        return Ok(None);
    }
    let text = row.text(expected)?;
    let first = text.split('-').next().unwrap_or_default().trim().parse::<f64>();
    match first {
        Ok(minutes) if minutes > 0.0 && minutes <= MAX_SECONDS / 60.0 => {
            Ok(Some(submit + Span::from_secs(minutes * 60.0)))
        }
        _ => Err(row.bad(
            expected,
            text,
            "does not begin with one",
            "deadlines are minutes above 0, with - between",
        )),
    }
}
