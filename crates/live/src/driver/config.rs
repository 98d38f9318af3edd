//! What the driver is run with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use yard_core::Settings;
use yard_core::policy::{Knowledge, Priorities};
use yard_core::units::Span;

use crate::exec;
use crate::forecaster::Estimating;
use crate::topology::Topology;
use crate::translate::{Blank, Catalog};

/// What the driver is run with.
#[derive(Clone)]
pub struct Config {
    /// The folder that holds everything it must not forget.
    pub data: PathBuf,
    /// How the engine is run. Its leases do not lapse: how long a host may go unheard is the backend's matter.
    pub settings: Settings,
    /// The policy's name, for people.
    pub policy: String,
    /// What the policy makes of priorities.
    pub priorities: Priorities,
    /// What the policy must be told of jobs to do what it says.
    pub needs: &'static [Knowledge],
    /// Who runs the jobs.
    pub backend: &'static exec::BackendEntry,
    /// How it is dealt with.
    pub terms: exec::Terms,
    /// The most time that a job has to save and stop, whatever it asks for or says of its checkpoints.
    pub grace_max: Span,
    /// Where nodes are, whatever they say themselves.
    pub topology: Topology,
    /// What is known of speeds beforehand.
    pub catalog: Arc<dyn Catalog>,
    /// Whether what jobs report changes what is believed of their speeds, alone and beside others.
    pub learn: bool,
    /// How much is accepted.
    pub limits: DriverLimits,
    /// How long a plan may take.
    pub plan_cap: Span,
    /// How long after a policy broke down a new one is tried.
    pub plan_rest: Span,
    /// How often at most a job's progress is journaled.
    pub progress: Span,
    /// How long after a failed commit the next one is tried, at first; then twice as long each time.
    pub retry: Span,
    /// Who holds devices and uses none of them for so long is shown as idle.
    pub idle: Span,
    /// Inputs from one snapshot to the next.
    pub snapshot_every: u64,
    /// How jobs are foretold; none: they are not.
    pub estimates: Option<Estimating>,
    /// Who counts what the driver does.
    pub meter: Arc<dyn Meter>,
}

/// Counts what the driver does. Must not wait for anything.
pub trait Meter: Send + Sync {
    /// Jobs were accepted.
    fn submitted(&self, _jobs: u64) {}
    /// Jobs were stopped for others.
    fn preempted(&self, _jobs: u64) {}
    /// A job is over, in this state.
    fn ended(&self, _state: &str) {}
    /// A round was decided, or devices were given out.
    fn round(&self, _took: Duration) {}
    /// The policy answered.
    fn plan(&self, _took: Duration) {}
    /// For so long no device has been held though a job that could run waits.
    fn wasted(&self, _time: Duration) {}
    /// Inputs became durable.
    fn commit(&self, _took: Duration) {}
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {}

/// How much is accepted.
#[derive(Clone, Debug)]
pub struct DriverLimits {
    /// Jobs that are not over.
    pub jobs: usize,
    /// The same for one user.
    pub jobs_per_user: usize,
    /// Bytes of what was submitted of jobs that are not over, about.
    pub bytes: usize,
    /// The same for one user.
    pub bytes_per_user: usize,
    /// Device-hours that one user's jobs may have been promised at once; beyond that a deadline is only aimed at.
    pub promised_hours_per_user: f64,
    /// Ended jobs that are kept at hand; older ones are in the history only.
    pub ended: usize,
    /// Events that are kept.
    pub events: u64,
}

impl Default for DriverLimits {
    fn default() -> DriverLimits {
        DriverLimits {
            jobs: 200_000,
            jobs_per_user: 10_000,
            bytes: 1 << 30,
            bytes_per_user: 24 << 20,
            promised_hours_per_user: 100.0,
            ended: 1_000,
            events: 1_000_000,
        }
    }
}

impl Config {
    /// The usual, with the given folder.
    pub fn new(data: impl Into<PathBuf>) -> Config {
        let seconds = Span::from_whole_secs;
        let settings = Settings {
            round: seconds(60),
            fill: true,
            backoff: seconds(10),
            lease: Span(u64::MAX),
            learns_lengths: true,
            ..Settings::default()
        };
        Config {
            data: data.into(),
            settings,
            policy: String::new(),
            priorities: Priorities::Classes,
            needs: &[],
            backend: &exec::BACKENDS[0],
            terms: exec::Terms::default(),
            grace_max: seconds(600),
            topology: Topology::default(),
            catalog: Arc::new(Blank),
            learn: false,
            limits: DriverLimits::default(),
            plan_cap: seconds(10),
            plan_rest: seconds(10),
            progress: seconds(10),
            retry: Span(500_000),
            idle: seconds(300),
            snapshot_every: 20_000,
            estimates: None,
            meter: Arc::new(NoMeter),
        }
    }
}
