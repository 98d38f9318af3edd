//! Alibaba's PAI trace of 2020 (alibaba/clusterdata, `cluster-trace-gpu-v2020`, NSDI 2022): `pai_task_table.csv`.
//!
//! The tasks of one `job_name` (servers, workers) are one job: submitted when the first of them is launched, since the
//! table does not say when it was asked for, and running until the last of them ends. `plan_gpu` is in hundredths of a
//! GPU for each of `inst_num` instances: instances that ask for a part are a device each, with the largest such part as the
//! job's `gpu_fraction`; those that ask for more have so many whole ones. `gpu_type` is what a task was given, not
//! what it asked for, and is not used. The published file has no header; the columns are then those of
//! `pai_task_table.header`. A column `user`, joined from the job table, is read where there is one.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::Time;
use yard_core::job::Sharing;

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, MAX_GPUS, Row, SECONDS};
use super::super::{TraceError, Work};
use super::Head;

const COLUMNS: [&str; 10] = [
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["job_name", "inst_num", "start_time", "end_time", "plan_gpu"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let headed = text.bytes.trim_ascii_start().starts_with(b"job_name");
    let mut table =
        if headed { ColumnTable::with_header(text)? } else { ColumnTable::without_header(text, &COLUMNS) };
    let columns = PaiColumns::of(&table)?;
    let mut gangs: BTreeMap<Arc<str>, PaiGang> = BTreeMap::new();
    let mut order = Vec::new();
    while let Some(row) = table.next_row()? {
        let name: Arc<str> = row.name(&columns.name)?.into();
        let gang = gangs.entry(name.clone()).or_insert_with(|| {
            order.push(name);
            PaiGang { line: row.line, ..PaiGang::default() }
        });
        gang.join(&row, &columns, jobs)?;
    }
    order.iter().for_each(|name| gangs[name].submit(name, jobs));
    Ok(())
}

struct PaiColumns {
    name: Column,
    instances: Column,
    start: Column,
    end: Column,
    gpu: Column,
    user: Option<Column>,
}

impl PaiColumns {
    fn of(table: &ColumnTable<'_>) -> Result<PaiColumns, TraceError> {
        Ok(PaiColumns {
            name: table.column("job_name")?,
            instances: table.column("inst_num")?,
            start: table.column("start_time")?,
            end: table.column("end_time")?,
            gpu: table.column("plan_gpu")?,
            user: table.optional("user"),
        })
    }
}

/// The tasks of one job so far.
#[derive(Default)]
struct PaiGang {
    line: u64,
    devices: u32,
    /// The largest part of a device that an instance asks for, in hundredths.
    part: f64,
    start: Option<Time>,
    end: Option<Time>,
    /// A task has no start or no end.
    open: bool,
    user: Option<Arc<str>>,
}

impl PaiGang {
    fn join(&mut self, row: &Row<'_>, columns: &PaiColumns, jobs: &mut TraceJobs) -> Result<(), TraceError> {
        let instances = match row.filled(Some(&columns.instances))? {
            Some((column, _)) => row.count(column, 0, MAX_GPUS, "instances are")?,
            None => 1,
        };
        let hundredths = match row.filled(Some(&columns.gpu))? {
            Some((column, _)) => {
                row.number(column, false, 1e6, || "plan_gpu is a number from 0 up".to_owned())?
            }
            None => 0.0,
        };
        if hundredths > 0.0 {
            self.part = self.part.max(hundredths.min(100.0));
            let devices = instances.saturating_mul((hundredths / 100.0).ceil() as u32);
            self.devices = self.devices.saturating_add(devices).min(MAX_GPUS);
        }
        self.last(row, columns)?;
        if let Some((_, user)) = row.filled(columns.user.as_ref())? {
            self.user = jobs.word(user);
        }
        Ok(())
    }

    /// Takes note of when a task began and ended.
    fn last(&mut self, row: &Row<'_>, columns: &PaiColumns) -> Result<(), TraceError> {
        let [start, end] = [&columns.start, &columns.end]
            .map(|column| row.filled(Some(column))?.map(|_| row.time(column, SECONDS)).transpose());
        let (start, end) = (start?, end?);
        self.open |= start.is_none() || end.is_none();
        self.start = [self.start, start].into_iter().flatten().min();
        self.end = self.end.max(end);
        Ok(())
    }

    fn submit(&self, name: &str, jobs: &mut TraceJobs) {
        let (Some(start), Some(end), false) = (self.start, self.end, self.open) else {
            return jobs.leave_out("a task has no start_time or no end_time");
        };
        if self.devices == 0 {
            return jobs.leave_out("it asks for no GPU");
        }
        if end <= start {
            return jobs.leave_out("it ends when it starts, or before");
        }
        let sharing = jobs.sharing(Sharing { request: self.part / 100.0, ..Sharing::PLAIN });
        let job = jobs.add(name, start, self.devices, Work::Seconds((end - start).secs()), self.line);
        (job.user, job.sharing) = (self.user.clone(), sharing);
    }
}
