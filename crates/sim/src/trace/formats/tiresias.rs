//! Tiresias' traces (github.com/SymbioticLab/Tiresias): seconds; durations hold on the gang asked for.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{ColumnTable, SECONDS};
use super::super::{TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"])
        && !head.any(&["iteration_time", "expect_time_list", "ddl"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, gpus, submit, model, duration] =
        ["job_id", "num_gpu", "submit_time", "model_name", "duration"].map(|name| table.column(name));
    let (name, gpus, submit, model, duration) = (name?, gpus?, submit?, model?, duration?);
    while let Some(row) = table.next_row()? {
        let model = jobs.word(row.text(&model)?);
        let work = Work::Seconds(row.duration(&duration, SECONDS)?);
        jobs.add(row.name(&name)?, row.time(&submit, SECONDS)?, row.gpus(&gpus)?, work, row.line).model =
            model;
    }
    Ok(())
}
