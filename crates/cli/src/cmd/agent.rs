//! `yard agent`: runs jobs on this machine for a server, and the hidden `yard keeper`, which is their parent.

use std::path::PathBuf;

use yard_core::cluster::Level;
use yard_live::agent::{JobMemory, JobVariable, MIN_UID};
use yard_live::request::amounts::{memory, resource};
use yard_live::topology::domain;

const AGENT_EXAMPLES: &str = "Examples:
  yard agent --server https://head:7411 --join-token join-token
  yard agent --server https://head:7411            # once it has joined, its certificate is enough
  yard agent --server http://127.0.0.1:7411 --join-token .yard/join-token --name fake1 --fake v100:4";

/// An agent.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AGENT_EXAMPLES)]
pub(crate) struct AgentArgs {
    /// The server
    #[arg(long, value_name = "URL")]
    pub(crate) server: String,
    /// File with a join token, needed the first time
    #[arg(long, value_name = "FILE")]
    pub(crate) join_token: Option<PathBuf>,
    /// Folder for its certificate, its jobs and their logs
    #[arg(long, value_name = "DIR", default_value = ".yard/agent")]
    pub(crate) data: PathBuf,
    /// Name of this machine [default: its host name]
    #[arg(long, value_name = "NODE")]
    pub(crate) name: Option<String>,
    /// Address at which ranks on other nodes reach this machine [default: the one it uses to reach the server]
    #[arg(long, value_name = "HOST")]
    pub(crate) address: Option<String>,
    #[command(flatten)]
    pub(crate) devices: DeviceOptions,
    #[command(flatten)]
    pub(crate) jobs: JobOptions,
    /// Log level on stderr: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: String,
}

/// What a machine offers.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct DeviceOptions {
    /// Offer pretend devices instead of real ones, such as h100:8,a100:4
    #[arg(long, value_name = "KIND:N[,…]", value_delimiter = ',', help_heading = "Devices")]
    pub(crate) fake: Vec<FakeGroup>,
    /// Do not offer the GPUs of this machine
    #[arg(long, conflicts_with = "fake", help_heading = "Devices")]
    pub(crate) no_gpus: bool,
    /// Another resource of this machine that jobs can request, such as scratch_gb=900; cores=N and memory=SIZE replace
    /// what was detected (repeatable)
    #[arg(long, value_name = "NAME=N", value_parser = resource, help_heading = "Devices")]
    pub(crate) resource: Vec<(String, u32)>,
    /// Where this machine is, as rack=r1,block=b2: names for its clique (machines that NVLink connects), rack, block and
    /// zone. A topology file of the server comes first
    #[arg(long, value_name = "LEVEL=NAME[,…]", value_delimiter = ',', value_parser = domain, help_heading = "Devices")]
    pub(crate) domain: Vec<(Level, String)>,
    /// Slots for jobs that need no GPU [default: one per core on machines without GPUs, else none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024), help_heading = "Devices")]
    pub(crate) cpu_slots: Option<u32>,
    /// Host memory that frozen jobs may use, such as 64GiB [default: half of what is free at the start]
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "Devices")]
    pub(crate) freeze_room: Option<u64>,
    #[command(flatten)]
    pub(crate) confinement: ConfinementOptions,
}

/// How jobs are held in.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ConfinementOptions {
    /// Maximum number of processes and threads of a job on this node [default: 4096, plus 512 per device]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits of jobs")]
    pub(crate) pids_max: Option<u64>,
    /// Memory limit of a job that does not request memory, or none for no limit [default: its share of the node's
    /// memory, by devices]
    #[arg(long, value_name = "SIZE|none", value_parser = job_memory, help_heading = "Limits of jobs")]
    pub(crate) job_memory_default: Option<JobMemory>,
    /// required: do not start unless jobs can be kept from using each other's GPUs
    #[arg(
        long,
        value_name = "required|auto",
        value_enum,
        default_value = "auto",
        help_heading = "Limits of jobs"
    )]
    pub(crate) devices_enforced: Enforced,
}

/// What to do where devices cannot be enforced.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Enforced {
    /// Run jobs anyway, and say so in the log.
    #[default]
    Auto,
    /// Do not start the agent.
    Required,
}

fn job_memory(text: &str) -> Result<JobMemory, String> {
    if text == "none" { Ok(JobMemory::Unlimited) } else { memory(text).map(JobMemory::Mib) }
}

/// Whose jobs a machine runs, and what they find there.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct JobOptions {
    /// Lowest uid whose jobs may run here, if the agent runs as root
    #[arg(long, value_name = "UID", default_value_t = MIN_UID, help_heading = "Jobs")]
    pub(crate) min_uid: u32,
    /// Environment variable for all jobs; NAME alone passes on the agent's own value (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Jobs")]
    pub(crate) job_env: Vec<JobVariable>,
}

/// The parent of an agent's jobs, which outlives the agent. Agents start it; nobody else does.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct KeeperArgs {
    /// Its folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// What moves what jobs have on cards to memory and back. Agents start it; nobody else does.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FreezerArgs {
    /// Its folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only pretend, for pretend devices
    #[arg(long)]
    pub(crate) fake: bool,
}

/// Pretend devices of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FakeGroup {
    pub(crate) kind: String,
    pub(crate) count: u32,
}

impl std::str::FromStr for FakeGroup {
    type Err = String;

    fn from_str(text: &str) -> Result<FakeGroup, String> {
        /// As many as one node may have of a kind.
        const COUNT_MAX: u32 = yard_core::cluster::NODE_DEVICES_MAX;
        let (kind, count) = text.split_once(':').unwrap_or((text, "1"));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match count.parse() {
            Ok(count) if !kind.is_empty() && kind.chars().all(plain) && (1..=COUNT_MAX).contains(&count) => {
                Ok(FakeGroup { kind: kind.into(), count })
            }
            _ => Err(format!("{text:?} is not KIND:N with N from 1 to {COUNT_MAX}, such as h100:8")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_of_memory_is_a_size_or_none() {
        assert_eq!(job_memory("4GiB"), Ok(JobMemory::Mib(4096)));
        assert_eq!(job_memory("none"), Ok(JobMemory::Unlimited));
        assert!(job_memory("much").is_err());
    }

    #[test]
    fn fake_devices_have_a_kind_and_a_number() {
        let group = |text: &str| text.parse::<FakeGroup>();
        assert_eq!(group("h100:8"), Ok(FakeGroup { kind: "h100".into(), count: 8 }));
        assert_eq!(group("h100").map(|group| group.count), Ok(1));
        for wrong in ["", ":8", "h100:0", "h100:x", "h100:9999", "h 100:1", "a:1:2"] {
            assert!(group(wrong).is_err(), "{wrong}");
        }
    }
}
