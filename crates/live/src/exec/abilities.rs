//! What a backend can do, as data: jobs that ask for more are refused with the reason before they are taken in.

use yard_core::part::Pause;
use yard_core::units::Span;

/// What a backend can do.
#[derive(Clone, Debug)]
pub struct BackendAbilities {
    /// Its name, for people.
    pub name: &'static str,
    /// The ways in which it can have a job give its devices back.
    pub pauses: &'static [Pause],
    /// Whether it is told which devices a job has, or only how many.
    pub devices: DeviceChoice,
    /// Whether several jobs can be on one device.
    pub shares: bool,
    /// Whether it can show what a job writes.
    pub logs: bool,
    /// Whether a job can say by which signal it is told to stop.
    pub signals: bool,
    /// Whose jobs alone it runs, where it does not run everybody's.
    pub only: Option<OnlyFor>,
    /// How often it should be asked to look after what is due.
    pub look_every: Span,
    /// How much later than it should a stop may be heard of.
    pub margin: Span,
}

/// Who chooses the devices of a job within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The scheduler.
    Exact,
    /// The backend, which is told how many.
    Counts,
}

/// The one user whose jobs are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyFor {
    /// The user's name.
    pub user: String,
    /// Why nobody else's, and what to do about it.
    pub because: String,
}

/// What can be done on one host beyond starting and stopping jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAbilities {
    /// Why processes that use GPUs cannot be frozen there; none: they can.
    pub no_freeze: Option<String>,
    /// Why what a job takes of a GPU cannot be limited there; none: it can.
    pub no_limits: Option<String>,
}
