//! SenseTime's Helios traces (github.com/S-Lab-System-Group/HeliosData, SC 2021): `cluster_log.csv` of one cluster.
//!
//! The work of a job is the time from its start to its end, however it ended: it held its devices so long. `vc` is a
//! virtual cluster, the tenant here. Jobs without GPUs are left out.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{ColumnTable, SECONDS};
use super::super::{TraceError, Work};
use super::Head;
use super::civil::{count_from_first, instant};

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_id", "vc", "gpu_num", "submit_time", "duration"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, user, vc, gpus, submit, duration] =
        ["job_id", "user", "vc", "gpu_num", "submit_time", "duration"].map(|name| table.column(name));
    let (name, user, vc, gpus, submit, duration) = (name?, user?, vc?, gpus?, submit?, duration?);
    let before = jobs.list.len();
    while let Some(row) = table.next_row()? {
        let at = instant(&row, &submit)?;
        match (row.gpus_or_zero(&gpus)?, row.duration_or_zero(&duration, SECONDS)?) {
            (0, _) => jobs.leave_out("gpu_num is 0"),
            (_, 0.0) => jobs.leave_out("duration is 0"),
            (gpus, seconds) => {
                let (tenant, user) = (jobs.word(row.text(&vc)?), jobs.word(row.text(&user)?));
                let job = jobs.add(row.name(&name)?, at, gpus, Work::Seconds(seconds), row.line);
                (job.tenant, job.user) = (tenant, user);
            }
        }
    }
    count_from_first(jobs, before);
    Ok(())
}
