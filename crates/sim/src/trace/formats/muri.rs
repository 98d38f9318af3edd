//! Muri's traces (github.com/Rivendile/Muri), times in milliseconds.
//!
//! The artifact's simulator runs a job for `iterations × iteration_time`, lengthened by 1.5 %; the
//! `duration` column is what Philly recorded, and is not used there nor here. Stage times and the
//! `priority` column, a flag of the artifact's own, are not read.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, MAX_SECONDS, MILLIS, Row};
use super::super::{TraceError, Work};
use super::Head;

/// What the artifact adds to a job that runs alone.
const STRETCH: f64 = 1.015;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_id", "num_gpu", "submit_time", "iterations", "iteration_time"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, gpus, submit, iterations, model, batch_size, iteration_time] =
        ["job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "iteration_time"]
            .map(|name| table.column(name));
    let (name, gpus, submit, model, batch_size) = (name?, gpus?, submit?, model?, batch_size?);
    let (iterations, iteration_time) = (iterations?, iteration_time?);
    while let Some(row) = table.next_row()? {
        let model = jobs.word(row.text(&model)?);
        let work = Work::Seconds(seconds(&row, &iterations, &iteration_time)?);
        let job = jobs.add(row.name(&name)?, row.time(&submit, MILLIS)?, row.gpus(&gpus)?, work, row.line);
        (job.model, job.batch_size) = (model, Some(row.batch_size(&batch_size)?));
    }
    Ok(())
}

fn seconds(row: &Row<'_>, iterations: &Column, iteration_time: &Column) -> Result<f64, TraceError> {
    let allowed = || "an iteration takes a number of milliseconds above 0".to_owned();
    let millis = row.number(iteration_time, true, MAX_SECONDS, allowed)?;
    let seconds = row.steps(iterations)? * millis * STRETCH / 1000.0;
    if seconds > MAX_SECONDS {
        let problem = format!("makes {seconds} s of work");
        return Err(row.bad(iterations, row.text(iterations)?, &problem, "a job has at most 1e12 s of work"));
    }
    Ok(seconds)
}
