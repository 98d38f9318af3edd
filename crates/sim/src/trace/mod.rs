//! Traces: jobs as somebody recorded or imagined them, in one form whatever file they came from.

mod after;
mod bytes;
mod error;
mod formats;
mod generate;
mod jobs;
mod read;
mod sharing;
mod stats;
mod table;
mod write;

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{Late, Reward, Sharing};

pub use error::{BadField, TraceError};
pub use formats::{FORMATS, Format, open_nodes};
pub use generate::{Arrivals, GenSpec, PRESETS, Preset, PresetInfo, generate};
pub use read::{Opened, open, read};
pub use stats::{Named, Quantiles, Size, Stats};
pub use write::write;

pub(crate) use bytes::{Text, load, unpack};
pub(crate) use formats::split_model;
pub(crate) use table::{Column, MAX_GPUS, Row, Table};

/// One job of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceJob {
    /// The job's name in its file.
    pub name: Box<str>,
    /// When it is submitted.
    pub submit: Time,
    /// Devices it asks for, at once and whole.
    pub gpus: u32,
    /// How much there is to do.
    pub work: Work,
    /// The model it trains, as the throughput tables spell it.
    pub model: Option<Arc<str>>,
    /// Its batch size.
    pub batch_size: Option<u32>,
    /// Who submitted it.
    pub user: Option<Arc<str>>,
    /// The team or virtual cluster it counts for.
    pub tenant: Option<Arc<str>>,
    /// Its weight in fair shares.
    pub weight: f64,
    /// Its priority; larger is more urgent.
    pub priority: i32,
    /// When it should be done.
    pub deadline: Option<Time>,
    /// Fewest devices it can run on, where it may shrink.
    pub min_gpus: Option<u32>,
    /// Most devices it can use, where it may grow.
    pub max_gpus: Option<u32>,
    /// The kinds it may run on; empty: any.
    pub kinds: Arc<[Arc<str>]>,
    /// What it says of sharing its devices; none: nothing. Shared between like jobs.
    pub sharing: Option<Arc<Sharing>>,
    /// What it is worth to be done by later and later times, where the deadline is soft.
    pub rewards: Option<Arc<[Reward]>>,
    /// What becomes of it if its deadline cannot be promised.
    pub late: Late,
    /// Names of the jobs that must be done before it.
    pub after: Box<[Box<str>]>,
    /// The line of the file it came from, for messages.
    pub line: u64,
}

/// What a job has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Seconds of running, on any kind.
    Seconds(f64),
    /// Steps, at the speed that a throughput table gives.
    Steps(f64),
}

/// A whole trace, jobs in order of submission (ties in the order of the file).
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it came from, for messages and results.
    pub source: String,
    /// Its format's name.
    pub format: &'static str,
    /// The jobs.
    pub jobs: Vec<TraceJob>,
}

#[cfg(test)]
mod tests;
