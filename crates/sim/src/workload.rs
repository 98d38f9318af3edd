//! From a trace to jobs that the engine can take: shapes for the kinds of the cluster, speeds from a
//! throughput table (or one second of work a second), costs from the overhead profile.

use std::sync::Arc;

use thiserror::Error;
use yard_core::job::{JobSpec, Shape};

use crate::cluster::ClusterSpec;
use crate::overheads::Overheads;
use crate::throughput::Throughputs;
use crate::trace::{Trace, TraceJob, Work};

/// Failures after which a simulated job is given up.
const FAILURES_MAX: u32 = 1_000;

/// A trace made ready for a cluster.
#[derive(Clone, Debug)]
pub struct Workload {
    /// One for each job of the trace, in order.
    pub specs: Vec<JobSpec>,
}

/// Why a trace cannot run on a cluster.
#[derive(Debug, Error, PartialEq)]
pub enum WorkloadError {
    /// A gang that the cluster could not hold if it were empty.
    #[error(
        "{source_name}, line {line}, field gpus: job {job} asks for {gpus}, and the cluster {cluster:?} has {have} on the kinds it may use ({kinds})"
    )]
    TooLarge {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
        /// What it asks for.
        gpus: u32,
        /// The cluster.
        cluster: String,
        /// The most it could have.
        have: u32,
        /// The kinds it may use.
        kinds: String,
    },
    /// Kinds that the cluster does not have.
    #[error(
        "{source_name}, line {line}, field kinds: job {job} may run on {wanted}, and the cluster has {kinds}"
    )]
    NoKind {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
        /// What it may run on.
        wanted: String,
        /// The kinds of the cluster.
        kinds: String,
    },
    /// A job given in steps, and no table to say how fast they go.
    #[error(
        "{source_name}, line {line}, field steps: job {job} gives steps and no duration; name a throughput table with --throughputs"
    )]
    NoTable {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
    },
    /// A model that the table does not know for any kind of this cluster.
    #[error(
        "{source_name}, line {line}, field model: the throughput table has no speed for {model} on {gpus} GPUs of any kind of the cluster ({kinds})"
    )]
    NoSpeed {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The model with its batch size.
        model: String,
        /// The GPUs.
        gpus: u32,
        /// The kinds of the cluster.
        kinds: String,
    },
}

/// Shapes, and a speed for each.
type Ways = (Arc<[Shape]>, Arc<[f64]>);

/// Like jobs share their shapes and speeds: a million jobs need a few dozen lists.
struct Lists {
    known: Vec<Ways>,
}

impl Lists {
    fn share(&mut self, shapes: Vec<Shape>, speeds: Vec<f64>) -> Ways {
        let same = |list: &&Ways| *list.0 == *shapes && *list.1 == *speeds;
        if let Some(list) = self.known.iter().find(same) {
            return list.clone();
        }
        // Equal shapes stay one list even where speeds differ: the engine groups jobs by it.
        let like = self.known.iter().find(|list| *list.0 == *shapes).map(|list| list.0.clone());
        self.known.push((like.unwrap_or_else(|| shapes.into()), speeds.into()));
        self.known.last().expect("just pushed").clone()
    }
}

impl Workload {
    /// Makes a trace ready, or says which line cannot run and why.
    pub fn new(
        trace: &Trace,
        cluster: &ClusterSpec,
        table: Option<&Throughputs>,
        overheads: &Overheads,
    ) -> Result<Workload, WorkloadError> {
        let mut lists = Lists { known: Vec::new() };
        let totals = cluster.totals();
        let specs = trace.jobs.iter().map(|job| {
            let (shapes, speeds) = shapes_of(job, trace, cluster, &totals, table)?;
            let (shapes, speeds) = lists.share(shapes, speeds);
            Ok(spec(job, shapes, speeds, overheads))
        });
        Ok(Workload { specs: specs.collect::<Result<_, WorkloadError>>()? })
    }
}

fn spec(job: &TraceJob, shapes: Arc<[Shape]>, speeds: Arc<[f64]>, overheads: &Overheads) -> JobSpec {
    let (Work::Seconds(steps) | Work::Steps(steps)) = job.work;
    JobSpec {
        name: job.name.clone(),
        user: job.user.clone(),
        tenant: job.tenant.clone(),
        weight: job.weight,
        priority: job.priority,
        deadline: job.deadline,
        steps,
        shapes,
        speeds,
        costs: overheads.of(job.model.as_deref(), job.gpus),
        profile: Default::default(),
        failures_max: FAILURES_MAX,
    }
}

/// One shape for each kind the job may use, fastest first.
fn shapes_of(
    job: &TraceJob,
    trace: &Trace,
    cluster: &ClusterSpec,
    totals: &[u32],
    table: Option<&Throughputs>,
) -> Result<(Vec<Shape>, Vec<f64>), WorkloadError> {
    let named = || (trace.source.clone(), job.line);
    if matches!(job.work, Work::Steps(_)) && table.is_none() {
        let (source_name, line) = named();
        return Err(WorkloadError::NoTable { source_name, line, job: job.name.to_string() });
    }
    let allowed = |name: &str| job.kinds.is_empty() || job.kinds.iter().any(|kind| **kind == *name);
    let mut ways: Vec<(Shape, f64)> = Vec::new();
    let (mut have, mut slow) = (0, false);
    for kind in cluster.kinds.ids().filter(|kind| allowed(cluster.kinds.name(*kind))) {
        let total = totals[kind.index()];
        have = have.max(total);
        match speed(job, cluster.kinds.name(kind), table) {
            Some(speed) if total >= job.gpus => ways.push((Shape::of(kind, job.gpus), speed)),
            Some(_) => {}
            None => slow = true,
        }
    }
    if ways.is_empty() {
        let (source_name, line) = named();
        let kinds = cluster.kinds.ids().map(|kind| cluster.kinds.name(kind)).collect::<Vec<_>>().join(", ");
        if slow && have >= job.gpus {
            let batch = job.batch_size.map(|size| format!(" (batch size {size})")).unwrap_or_default();
            let model = format!("{}{batch}", job.model.as_deref().unwrap_or("a job without a model"));
            return Err(WorkloadError::NoSpeed { source_name, line, model, gpus: job.gpus, kinds });
        }
        if have == 0 {
            let (job, wanted) = (job.name.to_string(), job.kinds.join(", "));
            return Err(WorkloadError::NoKind { source_name, line, job, wanted, kinds });
        }
        let kinds = if job.kinds.is_empty() { "any".to_owned() } else { job.kinds.join(", ") };
        let (name, cluster) = (job.name.to_string(), cluster.text.clone());
        return Err(WorkloadError::TooLarge {
            source_name,
            line,
            job: name,
            gpus: job.gpus,
            cluster,
            have,
            kinds,
        });
    }
    ways.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(ways.into_iter().unzip())
}

/// Steps a second on a kind; seconds of work pass at one a second everywhere.
fn speed(job: &TraceJob, kind: &str, table: Option<&Throughputs>) -> Option<f64> {
    match (job.work, table) {
        (Work::Seconds(_), _) => Some(1.0),
        (Work::Steps(_), Some(table)) => table.speed(kind, job.model.as_deref()?, job.batch_size, job.gpus),
        (Work::Steps(_), None) => None,
    }
}
