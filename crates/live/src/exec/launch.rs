//! What a backend needs to know of a job to run it, and of all jobs after a restart.

use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::cluster::Mask;
use yard_core::ids::{JobId, LeaseId};
use yard_core::job::Claim;
use yard_core::message::Why;
pub use yard_core::part::Ranks;
use yard_core::training::Batch;
use yard_core::units::Span;

use super::host::{Audience, GroupOnWire, HostId};
use crate::request::JobRequest;

/// A job that is to run on devices.
#[derive(Clone, Debug)]
pub struct JobLaunch {
    /// The job.
    pub job: JobId,
    /// Which start of the job it is.
    pub instance: u32,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// What they asked for: what to run, how it pauses, its secrets, files and limits.
    pub request: Arc<JobRequest>,
    /// How long it may take to save and stop.
    pub grace: Span,
    /// How long it may still run, over all its starts.
    pub limit: Option<Span>,
    /// How firm its claim on the devices is.
    pub claim: Claim,
    /// The part of its speed alone that it may lose to others, where it is guaranteed.
    pub loss_max: f64,
    /// The batch size on these devices, where the job or its shape names one.
    pub batch_size: Option<u32>,
    /// What its steps are made of, where that is the scheduler's choice.
    pub batch: Option<Batch>,
    /// Where it runs: each host once, in the order of its ranks.
    pub places: Vec<LaunchPlace>,
}

/// What a job has of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchPlace {
    /// The host.
    pub host: HostId,
    /// The devices.
    pub devices: SmallVec<[LaunchDevices; 1]>,
    /// The ranks that run there.
    pub ranks: Ranks,
    /// Memory that is reserved for it there, in MiB; 0: none is counted.
    pub memory_mib: u32,
}

/// Devices of one of a host's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchDevices {
    /// Which of the groups that the host offered.
    pub group: u32,
    /// Which of its devices.
    pub chosen: ChosenDevices,
}

/// Devices of a group. `BackendAbilities::devices` says which of the two a backend is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenDevices {
    /// These.
    Exactly(Mask),
    /// As many, whichever the backend takes.
    Count(u32),
}

/// What was when the server went down.
#[derive(Clone, Debug, Default)]
pub struct Survived {
    /// The hosts on record.
    pub hosts: Vec<SurvivedHost>,
    /// The jobs that held devices.
    pub jobs: Vec<SurvivedJob>,
}

/// A host on record.
#[derive(Clone, Debug)]
pub struct SurvivedHost {
    /// Its number.
    pub host: HostId,
    /// Its name.
    pub name: String,
    /// Where its ranks are reached.
    pub address: String,
    /// Its devices.
    pub groups: Vec<GroupOnWire>,
    /// Whose jobs it runs, where that is on record.
    pub audience: Option<Audience>,
    /// Whether it had been given up or had left.
    pub lost: bool,
}

/// A job that held devices.
#[derive(Clone, Debug)]
pub struct SurvivedJob {
    /// Under which lease.
    pub lease: LeaseId,
    /// As it was launched.
    pub launch: JobLaunch,
    /// What it had been told to stop for.
    pub stopping: Option<Why>,
}
