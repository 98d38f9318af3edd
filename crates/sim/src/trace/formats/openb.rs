//! Alibaba's GPU trace of 2023 (alibaba/clusterdata, `cluster-trace-gpu-v2023`): pods and nodes.
//!
//! A pod's work is the time from `scheduled_time` (`creation_time` where it is empty) to
//! `deletion_time`. A pod that asks for part of a device (`gpu_milli` under 1000) counts as one
//! that asks for a whole device. `qos` is the tenant, `gpu_spec` the kinds it may run on.

use std::path::Path;

use yard_core::Time;

use super::super::bytes::{Text, load, unpack};
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, MAX_GPUS, Row, SECONDS};
use super::super::{TraceError, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["name", "cpu_milli", "num_gpu", "gpu_milli"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [name, gpus, spec, qos, created, deleted, scheduled] =
        ["name", "num_gpu", "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time"]
            .map(|name| table.column(name));
    let (name, gpus, spec, qos) = (name?, gpus?, spec?, qos?);
    let times = OpenbTimes { created: created?, deleted: deleted?, scheduled: scheduled? };
    while let Some(row) = table.next_row()? {
        match (row.gpus_or_zero(&gpus)?, times.of(&row)?) {
            (0, _) => jobs.leave_out("num_gpu is 0"),
            (_, None) => jobs.leave_out("it has no creation_time or no deletion_time"),
            (_, Some((_, 0.0))) => jobs.leave_out("it is deleted when it is scheduled, or before"),
            (gpus, Some((submit, seconds))) => {
                let (tenant, kinds) =
                    (jobs.word(row.text(&qos)?), jobs.kinds(&row.text(&spec)?.to_lowercase()));
                let job = jobs.add(row.name(&name)?, submit, gpus, Work::Seconds(seconds), row.line);
                (job.tenant, job.kinds) = (tenant, kinds);
            }
        }
    }
    Ok(())
}

struct OpenbTimes {
    created: Column,
    deleted: Column,
    scheduled: Column,
}

impl OpenbTimes {
    /// When it came and how long it ran, in seconds; none where a time is missing.
    fn of(&self, row: &Row<'_>) -> Result<Option<(Time, f64)>, TraceError> {
        let [created, deleted, scheduled] = [&self.created, &self.deleted, &self.scheduled]
            .map(|column| row.filled(Some(column))?.map(|_| row.time(column, SECONDS)).transpose());
        let scheduled = scheduled?;
        Ok(match (created?, deleted?) {
            (Some(created), Some(deleted)) => {
                Some((created, (deleted - scheduled.unwrap_or(created)).secs()))
            }
            _ => None,
        })
    }
}

/// The nodes of a node list (`sn,cpu_milli,memory_mib,gpu,model`): name, kind in lower case, and
/// devices. Nodes without devices are left out.
pub fn open_nodes(path: &Path) -> Result<Vec<(String, String, u32)>, TraceError> {
    let file = path.display().to_string();
    let (bytes, _) = load(path)?;
    let bytes = unpack(&file, &bytes)?;
    let mut table = ColumnTable::with_header(Text { file: &file, bytes: &bytes })?;
    let (name, gpus, model) = (table.column("sn")?, table.column("gpu")?, table.column("model")?);
    let mut nodes = Vec::new();
    while let Some(row) = table.next_row()? {
        let count = row.count(&gpus, 0, MAX_GPUS, "gpus of a node are")?;
        if count > 0 {
            nodes.push((row.name(&name)?.to_owned(), row.name(&model)?.to_lowercase(), count));
        }
    }
    Ok(nodes)
}
