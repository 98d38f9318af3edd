//! Microsoft's Philly trace (2017) as `timestamp,duration,num_gpus,gpu_time,cluster`.
//!
//! Timestamps are wall-clock times without a zone and are taken as they stand; submissions count
//! from the first. Jobs have no names there, so a job is called by its row's number, from 0. The
//! `cluster` is a virtual cluster, the tenant here.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{ColumnTable, SECONDS};
use super::super::{TraceError, Work};
use super::Head;
use super::civil::{count_from_first, instant};

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["timestamp", "duration", "num_gpus"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [timestamp, duration, gpus, cluster] =
        ["timestamp", "duration", "num_gpus", "cluster"].map(|name| table.column(name));
    let (timestamp, duration, gpus, cluster) = (timestamp?, duration?, gpus?, cluster?);
    let before = jobs.list.len();
    while let Some(row) = table.next_row()? {
        let submit = instant(&row, &timestamp)?;
        match (row.gpus_or_zero(&gpus)?, row.duration_or_zero(&duration, SECONDS)?) {
            (0, _) => jobs.leave_out("num_gpus is 0"),
            (_, 0.0) => jobs.leave_out("duration is 0"),
            (gpus, seconds) => {
                let tenant = jobs.word(row.text(&cluster)?);
                let name = row.index.to_string();
                jobs.add(&name, submit, gpus, Work::Seconds(seconds), row.line).tenant = tenant;
            }
        }
    }
    count_from_first(jobs, before);
    Ok(())
}
