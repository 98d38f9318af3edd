//! Traces: jobs as somebody recorded or imagined them, in one form whatever file they came from.

mod after;
mod bytes;
mod close;
mod error;
mod formats;
mod generate;
mod host;
mod jobs;
mod read;
mod scaling;
mod sharing;
mod stats;
mod table;
mod write;

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{Late, Reward, Sharing};

pub use close::CloseAsk;
pub use error::{BadField, TraceError};
pub use formats::{FORMATS, Format, open_nodes};
pub use generate::{Arrivals, GenSpec, PRESETS, Preset, PresetInfo, generate};
pub use host::HostAsk;
pub use read::{Opened, open, read};
pub use stats::{Named, Quantiles, SizeStats, Stats};
pub use write::write;

pub(crate) use bytes::{Text, load, unpack};
pub(crate) use formats::split_model;
pub(crate) use table::{Column, ColumnTable, MAX_GPUS, Row};

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
    /// What of it is the scheduler's choice; none: as the run says.
    pub mode: Option<Scaling>,
    /// The most examples in one step that still train well.
    pub batch_max: Option<u32>,
    /// How its batch size changes as it trains, where it does so by itself.
    pub regimes: Option<Arc<[TracePhase]>>,
    /// The kinds it may run on; empty: any.
    pub kinds: Arc<[Arc<str>]>,
    /// What it says of sharing its devices; none: nothing. Shared between like jobs.
    pub sharing: Option<Arc<Sharing>>,
    /// What it asks of its hosts; none: nothing.
    pub host: Option<Arc<HostAsk>>,
    /// On how many nodes it runs, and how close together; none: as it comes.
    pub close: Option<CloseAsk>,
    /// What it is worth to be done by later and later times, where the deadline is soft.
    pub rewards: Option<Arc<[Reward]>>,
    /// What becomes of it if its deadline cannot be promised.
    pub late: Late,
    /// Names of the jobs that must be done before it.
    pub after: Box<[Box<str>]>,
    /// The line of the file it came from, for messages.
    pub line: u64,
}

/// What of a job is the scheduler's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scaling {
    /// Nothing: it runs on the devices it asks for, with its batch size.
    Rigid,
    /// How many devices, with its batch size in all.
    Strong,
    /// How many devices, and the batch size.
    Adaptive,
}

impl Scaling {
    /// All, by name.
    pub const ALL: [(&str, Scaling); 3] =
        [("rigid", Scaling::Rigid), ("strong", Scaling::Strong), ("adaptive", Scaling::Adaptive)];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Scaling> {
        Scaling::ALL.iter().find(|(known, _)| *known == name).map(|(_, scaling)| *scaling)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Scaling::ALL.iter().find(|(_, scaling)| *scaling == self).map_or("", |(name, _)| name)
    }
}

/// Some epochs with one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePhase {
    /// Examples in one step.
    pub batch_size: u32,
    /// How many epochs.
    pub epochs: f64,
    /// Seconds of each, on the devices that the job asks for.
    pub epoch_s: f64,
}

/// What a job has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Seconds of running, on any kind.
    Seconds(f64),
    /// Steps, at the speed that a throughput table gives.
    Steps(f64),
    /// All epochs that the profile of its model has.
    Profile,
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
