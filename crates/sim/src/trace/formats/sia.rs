//! Workloads of Sia's simulator (github.com/siasosp23/artifacts), which are those of Pollux' (github.com/petuum/adaptdl)
//! and others like them: `name,time,application,num_replicas,batch_size`, seconds.
//!
//! A job trains its application to the end of its profile. `num_replicas` and `batch_size` are what a user would have
//! asked for: they hold for a rigid job, the batch size for one that scales strongly, and neither for an adaptive one.
//! `category` says which it is (`rigid`, `scale-gpus`, `adaptive`), where it is there.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, Row, SECONDS};
use super::super::{Scaling, TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["name", "time", "application", "num_replicas"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, time, application, replicas, batch_size] =
        ["name", "time", "application", "num_replicas", "batch_size"].map(|name| table.column(name));
    let (name, time, application) = (name?, time?, application?);
    let (replicas, batch_size) = (replicas?, batch_size?);
    let category = table.optional("category");
    while let Some(row) = table.next_row()? {
        let (at, gpus) = (row.time(&time, SECONDS)?, row.gpus(&replicas)?);
        let model = jobs.word(row.text(&application)?);
        let job = jobs.add(row.name(&name)?, at, gpus, Work::Profile, row.line);
        (job.model, job.batch_size) = (model, Some(row.batch_size(&batch_size)?));
        job.mode = scaling(&row, category.as_ref())?.or(Some(Scaling::Adaptive));
    }
    Ok(())
}

fn scaling(row: &Row<'_>, column: Option<&Column>) -> Result<Option<Scaling>, TraceError> {
    let Some((column, text)) = row.filled(column)? else { return Ok(None) };
    match text {
        "rigid" => Ok(Some(Scaling::Rigid)),
        "scale-gpus" => Ok(Some(Scaling::Strong)),
        "adaptive" => Ok(Some(Scaling::Adaptive)),
        _ => Err(row.bad(column, text, "is not one", "a category is rigid, scale-gpus or adaptive")),
    }
}
