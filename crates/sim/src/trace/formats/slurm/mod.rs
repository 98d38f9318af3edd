//! What Slurm's accounting knows of past jobs: `sacct --parsable2` with a header, or `sacct --json`.
//!
//! A job's submission is the time at which it was eligible: before, it waited for other jobs or for a time that its
//! user chose. Its work is the time for which it had its nodes, however it ended; runs of one job (`--duplicates`) are
//! added up. The kind is that of the request: what a job was given where it asked for any GPU, it did not ask for. The
//! account is the tenant. Jobs without GPUs, steps of jobs, and jobs that never ran or still run are left out.

mod elapsed;
mod json;
mod table;
mod tres;

use std::collections::BTreeMap;

use yard_core::Time;

use self::tres::GpuRequest;
use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::{TraceError, Work};
use super::Head;
use super::civil::count_from_first;

pub(super) fn detect(head: &Head<'_>) -> bool {
    let columns: Vec<_> = head.line.split('|').collect();
    let json =
        head.line.trim_start().starts_with('{') && head.line.to_ascii_lowercase().contains("\"slurm\"");
    json || (columns.contains(&"JobID") && columns.contains(&"Submit"))
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let before = jobs.list.len();
    let mut runs = SlurmRuns::default();
    match text.bytes.trim_ascii_start().first() {
        Some(b'{') => json::read(text, &mut runs, jobs)?,
        _ => table::read(text, &mut runs, jobs)?,
    }
    runs.submit(jobs);
    count_from_first(jobs, before);
    Ok(())
}

/// One run of a job: a row of the accounting.
struct SlurmRun {
    name: String,
    user: String,
    account: String,
    state: String,
    eligible: Option<Time>,
    elapsed_s: f64,
    gpus: GpuRequest,
    line: u64,
}

impl SlurmRun {
    /// Why it is no job of the trace, if it is none.
    fn left_out(&self) -> Option<&'static str> {
        let state = self.state.split(' ').next().unwrap_or_default();
        if self.gpus.count == 0 {
            return Some("the job has no GPU");
        }
        if self.eligible.is_none() {
            return Some("the job was never eligible");
        }
        match state {
            "RUNNING" | "SUSPENDED" | "COMPLETING" => Some("the job still runs, so its length is not known"),
            _ if self.elapsed_s == 0.0 => Some("the job never ran"),
            _ => None,
        }
    }

    /// Adds another run of the same job.
    fn join(&mut self, other: SlurmRun) {
        self.eligible = self.eligible.min(other.eligible);
        self.elapsed_s += other.elapsed_s;
        self.gpus.count = self.gpus.count.max(other.gpus.count);
    }
}

/// The runs read so far, by job, in the order in which jobs first appear.
#[derive(Default)]
struct SlurmRuns {
    by_job: BTreeMap<String, usize>,
    list: Vec<SlurmRun>,
}

impl SlurmRuns {
    fn add(&mut self, run: SlurmRun, jobs: &mut TraceJobs) {
        if let Some(why) = run.left_out() {
            return jobs.leave_out(why);
        }
        match self.by_job.get(&run.name) {
            Some(known) => {
                jobs.remark("a job ran again: its runs are added up");
                self.list[*known].join(run);
            }
            None => {
                self.by_job.insert(run.name.clone(), self.list.len());
                self.list.push(run);
            }
        }
    }

    fn submit(self, jobs: &mut TraceJobs) {
        for run in self.list {
            let (user, tenant) = (jobs.word(&run.user), jobs.word(&run.account));
            let kinds = jobs.kinds(&run.gpus.kind);
            let at = run.eligible.unwrap_or_default();
            let job = jobs.add(&run.name, at, run.gpus.count, Work::Seconds(run.elapsed_s), run.line);
            (job.user, job.tenant, job.kinds) = (user, tenant, kinds);
        }
    }
}
