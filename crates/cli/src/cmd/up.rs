//! `yard up`: server, agent and API in one process.

use super::agent::{DeviceOptions, JobOptions};
use super::server::ServerOptions;

const UP_EXAMPLES: &str = "Examples:
  yard up                                  # devices of this machine, data in ./.yard
  yard up --fake h100:8,a100:8 --round 10s # pretend devices, to try things out
  yard up --policy tiresias --listen 0.0.0.0:7411

Ctrl-C stops it cleanly; the next start continues where it left off.";

/// Server and agent in one process.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = UP_EXAMPLES)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    #[command(flatten)]
    pub(crate) devices: DeviceOptions,
    #[command(flatten)]
    pub(crate) jobs: JobOptions,
    /// Do not start an agent on this machine
    #[arg(long)]
    pub(crate) no_agent: bool,
    /// Name of this machine [default: its host name]
    #[arg(long, value_name = "NODE")]
    pub(crate) name: Option<String>,
}
