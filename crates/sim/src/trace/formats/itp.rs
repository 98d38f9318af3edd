//! Microsoft's ITP trace (2021, github.com/microsoft/elasticflow-traces): a tar of clusters, each
//! `job_id,submission_time,duration,num_gpu` in seconds. The cluster is the tenant.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{ColumnTable, SECONDS};
use super::super::{TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_id", "submission_time", "duration", "num_gpu"])
        && !head.any(&["num_iteration", "deadline", "ddl"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, submit, duration, gpus] =
        ["job_id", "submission_time", "duration", "num_gpu"].map(|name| table.column(name));
    let (name, submit, duration, gpus) = (name?, submit?, duration?, gpus?);
    while let Some(row) = table.next_row()? {
        let work = Work::Seconds(row.duration(&duration, SECONDS)?);
        jobs.add(row.name(&name)?, row.time(&submit, SECONDS)?, row.gpus(&gpus)?, work, row.line);
    }
    Ok(())
}
