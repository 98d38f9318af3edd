//! Why a trace cannot run on a cluster.

use thiserror::Error;

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
    /// A job that asks for something of its hosts that nobody counts.
    #[error(
        "{source_name}, line {line}, field resources: job {job} asks for {name}, which no node of the cluster {cluster:?} counts"
    )]
    NoResource {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
        /// What it asks for.
        name: String,
        /// The cluster.
        cluster: String,
    },
    /// A job that asks more of its hosts than any has.
    #[error(
        "{source_name}, line {line}: job {job} asks for more {name} than a node of the cluster {cluster:?} has"
    )]
    NoHost {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
        /// What there is too little of.
        name: String,
        /// The cluster.
        cluster: String,
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
    /// A job that comes after one that is not there before it.
    #[error(
        "{source_name}, line {line}, field after: job {job} comes after {after}, which no job before it is called"
    )]
    NoPredecessor {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
        /// The one it comes after.
        after: String,
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
    /// A model of which is not known how it trains.
    #[error(
        "{source_name}, line {line}, field model: job {job} trains {model} to the end of its profile, and {what}; name Sia's folder of profiles with --throughputs"
    )]
    NoProfile {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The job.
        job: String,
        /// The model.
        model: String,
        /// What is missing.
        what: &'static str,
    },
    /// Something that does not go with what else the job says.
    #[error("{source_name}, line {line}, field {field}: job {job} {problem}; {remedy}")]
    Contradiction {
        /// The trace.
        source_name: String,
        /// The line.
        line: u64,
        /// The column.
        field: &'static str,
        /// The job.
        job: String,
        /// What is wrong.
        problem: String,
        /// What would work.
        remedy: String,
    },
}
