//! `yard server`: the scheduler and its API, for agents on other machines.

use std::net::SocketAddr;
use std::path::PathBuf;

use yard_live::request::amounts;

use super::sim::Duration;

const SERVER_EXAMPLES: &str = "Examples:
  yard server --data /var/lib/yard --listen 0.0.0.0:7411
  yard token create --scope join > join-token    # then, on each machine:
  yard agent --server https://head:7411 --join-token join-token";

/// A server that waits for agents.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = SERVER_EXAMPLES)]
pub(crate) struct ServerCommandArgs {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

/// How a server decides, and where it lives.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ServerOptions {
    /// Data folder
    #[arg(long, value_name = "DIR", default_value = ".yard")]
    pub(crate) data: PathBuf,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7411")]
    pub(crate) listen: SocketAddr,
    /// Another name of this machine for its certificate (repeatable)
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Scheduling policy; NAME:key=value sets parameters (see yard policies --params); exec:FILE runs a program of your own (docs/exec-policies.md)
    #[arg(long, value_name = "NAME[:k=v]", default_value = "market")]
    pub(crate) policy: String,
    /// Length of a scheduling round
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) round: Duration,
    /// Placement of jobs on devices (see yard policies)
    #[arg(long, value_name = "NAME", default_value = "pack")]
    pub(crate) placer: String,
    /// Which nodes are in which rack, block and zone; comes before what agents say (docs/live.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Table of steps per second by kind, model and GPUs, as for yard sim
    #[arg(long, value_name = "FILE")]
    pub(crate) throughputs: Option<PathBuf>,
    /// Source of job speeds: learned (from what jobs report, starting with the table) or table
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) belief: Believed,
    /// Time without contact after which an agent stops its jobs and they restart elsewhere
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) lease: Duration,
    /// Delay before a failed job is retried; doubles with each failure
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) backoff: Duration,
    /// Longest grace time to save and stop (checkpoint.grace_s); jobs that ask for more are refused
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) grace_max: Duration,
    /// How jobs share a GPU: plain (in turns) or mps (at the same time, on nodes with NVIDIA's MPS tools; such jobs
    /// cannot be frozen)
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub(crate) sharing: SharingFlag,
    /// Promise deadlines at submission and keep them ahead of the policy's order: on or off
    #[arg(long, value_name = "ON|OFF", value_enum, default_value_t)]
    pub(crate) promises: PromisesFlag,
    /// Waiting and running jobs per user
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Limits")]
    pub(crate) user_jobs_max: usize,
    /// Server memory for the waiting and running jobs of one user, such as 24MiB
    #[arg(long, value_name = "SIZE", default_value = "24MiB", value_parser = amounts::memory, help_heading = "Limits")]
    pub(crate) user_bytes_max: u64,
    /// Device-hours of promised deadlines per user; beyond that, deadlines are best effort
    #[arg(long, value_name = "HOURS", default_value_t = 100.0, help_heading = "Limits")]
    pub(crate) user_promised_max: f64,
    /// Open streams (watch, events, logs) per user
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Limits")]
    pub(crate) user_streams_max: usize,
    /// Requests per second for each token that is not an admin's; bursts may be five times as large
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = rate, help_heading = "Limits")]
    pub(crate) token_requests: f64,
    /// Log level on stderr: error, warn, info, debug or trace; also by module, such as info,yard_live=debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: String,
}

/// Where speeds come from.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Believed {
    /// From what jobs report, beginning with the table
    #[default]
    Learned,
    /// From the table alone
    Table,
}

/// Whether deadlines are promised.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PromisesFlag {
    /// They are, and kept
    #[default]
    On,
    /// They are best effort
    Off,
}

/// How jobs on one card share it.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SharingFlag {
    /// They take turns
    #[default]
    Plain,
    /// Side by side, through MPS
    Mps,
}

/// A number of requests a second.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if rate > 0.0 && rate <= 1e6 { Ok(rate) } else { Err("give a number above 0 and at most 1000000".into()) }
}
