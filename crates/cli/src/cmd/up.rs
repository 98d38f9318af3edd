//! `yard up`: server, agent and API in one process.

use super::agent::{DeviceOptions, JobOptions};
use super::server::ServerOptions;

const UP_EXAMPLES: &str = "Examples:
  yard up                                  # this machine's devices, data under ./.yard
  yard up --fake h100:8,a100:8 --round 10s # pretend devices, to try things out
  yard up --policy tiresias --listen 0.0.0.0:7411

Ctrl-C stops it tidily; running it again finds everything as it was.";

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
    /// Start no agent on this machine
    #[arg(long)]
    pub(crate) no_agent: bool,
    /// What this machine is called [default: its host name]
    #[arg(long, value_name = "NODE")]
    pub(crate) name: Option<String>,
}
