//! ElasticFlow's traces: those of the artifact (github.com/pkusys/ElasticFlow: `submit_time`,
//! `iteration`, `ddl`) and of github.com/microsoft/elasticflow-traces (`submission_time`,
//! `num_iteration`, `deadline`).
//!
//! Seconds, deadlines on the clock of the submissions. The work is `duration`, which holds on
//! `num_gpu` devices; iterations are not read. A job with `best_effort` 1 has no deadline.

use yard_core::job::Late;

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, Row, SECONDS};
use super::super::{TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    let iterations = head.any(&["iteration", "num_iteration"]);
    iterations && head.any(&["ddl", "deadline"]) && head.has(&["job_id", "num_gpu", "duration"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let submit = table.either(["submit_time", "submission_time"])?;
    let deadline = table.either(["ddl", "deadline"])?;
    let [name, model, batch_size, gpus, duration] =
        ["job_id", "model_name", "batch_size", "num_gpu", "duration"].map(|name| table.column(name));
    let (name, model, batch_size, gpus, duration) = (name?, model?, batch_size?, gpus?, duration?);
    let best_effort = table.optional("best_effort");
    while let Some(row) = table.next_row()? {
        let model = jobs.word(row.text(&model)?);
        let work = Work::Seconds(row.duration(&duration, SECONDS)?);
        let at = row.time(&submit, SECONDS)?;
        let strict = !is_best_effort(&row, best_effort.as_ref())?;
        let deadline = strict.then(|| row.deadline(&deadline, at)).transpose()?;
        let job = jobs.add(row.name(&name)?, at, row.gpus(&gpus)?, work, row.line);
        (job.model, job.batch_size, job.deadline) = (model, Some(row.batch_size(&batch_size)?), deadline);
        // Its scheduler declines what it cannot have done in time.
        job.late = if job.deadline.is_some() { Late::Refuse } else { Late::Try };
    }
    Ok(())
}

fn is_best_effort(row: &Row<'_>, column: Option<&Column>) -> Result<bool, TraceError> {
    match row.filled(column)? {
        Some((column, _)) => Ok(row.count(column, 0, 1, "best_effort is")? == 1),
        None => Ok(false),
    }
}
