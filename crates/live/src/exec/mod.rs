//! Who runs the jobs. The driver says what it wants in its own words ([`Directive`]) and hears what came of it
//! ([`Notice`]); how processes are started and by whom is a backend's own matter. A backend is a file or a folder here and
//! one line in [`BACKENDS`].
//!
//! What is absent: decisions about who runs where, the journal, people. What must survive a restart the driver keeps, and
//! hands back with [`Backend::restore`].

pub mod abilities;
pub mod agents;
pub mod directive;
pub mod host;
pub mod launch;
pub mod notice;
#[cfg(test)]
pub(crate) mod scripted;

use yard_core::units::Span;

pub use self::abilities::{BackendAbilities, DeviceChoice, HostAbilities, OnlyFor};
pub use self::agents::Terms;
pub use self::directive::{Directive, LOG_CREDIT, LOG_PIECE};
pub use self::host::{Audience, Device, GroupOnWire, HostId, HostOffer, HostReach};
pub use self::launch::{
    ChosenDevices, JobLaunch, LaunchDevices, LaunchPlace, Ranks, Survived, SurvivedHost, SurvivedJob,
};
pub use self::notice::{CardReport, JobNews, Notice, RunEnd, Trained};
use crate::driver::Config;
use crate::store::StoreError;

/// Who runs jobs. It lives on the driver's thread: no call may block, and none fails. What comes of a call is appended to
/// `out`, then or later. `now` is the time since the server started, which nobody can set.
pub trait Backend: Send {
    /// What it can do.
    fn abilities(&self) -> &BackendAbilities;

    /// What was when the server went down. Called once, before everything else.
    fn restore(&mut self, now: Span, survived: Survived);

    /// Does what the driver wants.
    fn execute(&mut self, now: Span, directive: Directive, out: &mut Vec<Notice>);

    /// Something came in for it from outside.
    fn hear(&mut self, now: Span, incoming: Incoming, out: &mut Vec<Notice>);

    /// Looks after what is due. Called every `BackendAbilities::look_every`, and never before everything that came in was heard.
    fn look(&mut self, now: Span, out: &mut Vec<Notice>);

    /// When a host was last heard of.
    fn heard(&self, host: HostId) -> Option<Span>;
}

/// What comes in from outside for a backend: only that backend looks into it.
#[derive(Debug)]
pub enum Incoming {
    /// For our agents.
    Agents(agents::AgentCall),
}

/// A backend that can be chosen.
#[derive(Debug)]
pub struct BackendEntry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Makes one.
    pub make: fn(&Config) -> Result<Box<dyn Backend>, StoreError>,
}

/// All of them.
pub const BACKENDS: &[BackendEntry] = &[
    agents::ENTRY,
    #[cfg(test)]
    scripted::ENTRY,
];

/// The backend of this name.
pub fn find(name: &str) -> Option<&'static BackendEntry> {
    BACKENDS.iter().find(|entry| entry.name == name)
}
