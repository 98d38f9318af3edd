//! The agent: runs on a machine with devices, dials the server, and executes what `yard_core::holder` decides. Job
//! processes are the keeper's children, so an agent may die and come back without their notice; a server may be
//! away for as long as the node's lease lasts. One task owns everything here (`serve`); it waits for news from the
//! server, the keeper, jobs and the clock, takes all that is there at once, persists what was decided, and acts.

mod acts;
mod admit;
mod beats;
mod bpf;
mod bucket;
mod cards;
mod cgroup;
pub(crate) mod clock;
mod confinement;
mod device_files;
mod devices;
mod env;
mod freezer;
mod host;
mod inherited;
mod job_env;
mod keeper;
mod layout;
mod link;
mod logs;
mod looks;
mod moving;
mod mps;
mod nvml;
mod opendir;
mod pretend;
mod quarantine;
mod quiet;
mod reach;
mod reads;
mod resources;
mod seldom;
mod serve;
mod socket;
mod spawn;
mod state;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod theirs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use yard_core::cluster::DomainPath;

pub use self::admit::own_name;
pub use self::confinement::{Confinement, JobMemory};
pub use self::devices::{DeviceOffer, FakeDevices};
pub use self::freezer::freezer_main;
pub use self::job_env::JobVariable;
pub use self::keeper::{keeper_main, launch_main};
pub use self::link::{Dial, LinkServer};
pub use self::pretend::{Pretend, Seen};
pub use self::resources::resources;

/// What an agent is told at its start.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its own folder.
    pub data: PathBuf,
    /// The node's name.
    pub name: String,
    /// Where other nodes' ranks reach its ranks.
    pub address: String,
    /// What it offers.
    pub offer: DeviceOffer,
    /// Slots for jobs that need no card; as many as there are cores where there are no cards and nobody says.
    pub cpu_slots: Option<u32>,
    /// What there is of the host, as its hello says it.
    pub resources: BTreeMap<String, u32>,
    /// The domains it is in.
    pub domains: DomainPath,
    /// Where the server is.
    pub server: LinkServer,
    /// What it starts beside itself.
    pub commands: AgentCommands,
    /// Host memory that frozen jobs may hold, in MiB; half of what is free at the start where nothing is said.
    pub freeze_room_mib: Option<u64>,
    /// Where control groups (version 2) are, if they are to be used; `/sys/fs/cgroup` as a rule.
    pub cgroups: Option<PathBuf>,
    /// Whose jobs it runs, and with what.
    pub guests: AgentGuests,
    /// How jobs are held in.
    pub confinement: Confinement,
    /// Whether to wait, once told to stop, until the server has ordered all jobs to stop and they did. Otherwise the
    /// agent leaves at once and its jobs run on, for the next agent to find.
    pub take_jobs_along: bool,
    /// How often cards are looked at; `LOOK` as a rule.
    pub look: Duration,
}

/// Commands that start the processes beside an agent.
#[derive(Clone, Debug)]
pub struct AgentCommands {
    /// Runs `keeper_main`; `--dir DIR` is added to it.
    pub keeper: Vec<String>,
    /// Runs `launch_main`, which becomes a job.
    pub launcher: Vec<String>,
    /// Runs `freezer_main`; `--dir DIR` is added to it, and `--fake` for pretend devices.
    pub freezer: Vec<String>,
}

/// Whose jobs an agent runs, and what they find.
#[derive(Clone, Debug, Default)]
pub struct AgentGuests {
    /// The lowest number of a user whose jobs a root agent runs.
    pub min_uid: u32,
    /// Whether it runs jobs of its own user too, whatever their number.
    pub own_user_too: bool,
    /// What jobs find in their environment besides what a login gives.
    pub job_env: BTreeMap<String, String>,
}

/// The lowest number of a user whose jobs are run, where the operator says nothing: below it are the system's accounts.
pub const MIN_UID: u32 = 1000;

/// How often an agent looks at its cards.
pub const LOOK: Duration = Duration::from_secs(2);

/// Runs an agent until it is told to stop. It needs no more than one thread.
pub async fn run(config: AgentConfig, stop: CancellationToken) -> anyhow::Result<()> {
    inherited::keep_from_children();
    serve::Agent::start(config).await?.serve(stop).await
}
