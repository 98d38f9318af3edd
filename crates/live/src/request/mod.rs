//! What a user asks for: the body of `POST /v1/jobs`. Unknown fields are refused. Beside it, the ways people write
//! it down: a job file in YAML, a script with `#SBATCH` lines.

pub mod amounts;
pub mod check;
pub(crate) mod closeness;
pub mod edit;
pub(crate) mod regimes;
pub mod rewards;
pub mod sbatch;
pub mod secrets;
mod sharing;
mod size;
pub mod times;
mod training;
pub mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;
use yard_core::cluster::Level;
use yard_core::job::{Claim, Late};
use yard_core::part::Pause;

pub use self::regimes::RegimeRequest;
pub use self::rewards::RewardRequest;
pub use self::training::TrainingRequest;
use crate::wire::Handed;

/// A job to be run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobRequest {
    /// What people call it; the command's name where it is not given.
    pub name: Option<String>,
    /// The program and its arguments. No shell is involved.
    pub command: Vec<String>,
    /// What is added to its environment. Whoever may see the job sees it too: use `secrets` for passwords and keys.
    pub env: BTreeMap<String, String>,
    /// Secrets it is given, by name: `env` as a variable of that name, `file` as a file of that name in the folder
    /// that `YARD_SECRETS_DIR` names. `yard secret set` keeps their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Handed>,
    /// Where it runs: an absolute path on the nodes.
    #[schema(value_type = Option<String>)]
    pub workdir: Option<PathBuf>,
    /// Devices it needs, all at once; 1 where nothing is said. 0: it runs on a processor slot.
    pub gpus: Option<u32>,
    /// The least it can run with, if it can grow and shrink.
    pub min_gpus: Option<u32>,
    /// The most it can use, if it can grow and shrink.
    pub max_gpus: Option<u32>,
    /// The kinds it may run on, best liked first; empty: any.
    pub kinds: Vec<String>,
    /// On exactly so many nodes, with as many devices on each; on as few as there can be where nothing is said.
    pub nodes: Option<u32>,
    /// So many of its nodes at a time are a segment: each segment lies in one domain of the level that `close` or `prefer`
    /// names, and not all of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
    /// How close together it must lie: `node`, `clique`, `rack`, `block`, `zone` or `any`.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<Level>,
    /// How close together it should lie. It does not wait for that.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer: Option<Level>,
    /// Processes on each node, in place of `ranks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_per_node: Option<u32>,
    /// One process on each node, or one for each device.
    pub ranks: Ranks,
    /// The team it counts for.
    pub tenant: Option<String>,
    /// Its weight in fair shares.
    pub weight: Option<f64>,
    /// Larger is more urgent.
    pub priority: i32,
    /// When it should be done: seconds since 1970, UTC.
    pub deadline: Option<f64>,
    /// What becomes of it if its deadline cannot be promised: `try` (it runs as well as it can) or `refuse`; `try`
    /// where nothing is said.
    #[schema(value_type = Option<String>)]
    pub late: Option<Late>,
    /// What it is worth to be done by the deadline and by later and later times, where the deadline is soft. Only how
    /// they compare with each other counts: the first counts as much as the job's weight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewards: Vec<RewardRequest>,
    /// When it may start at the earliest: seconds since 1970, UTC.
    pub begin: Option<f64>,
    /// Numbers of jobs that must have succeeded before it starts. If one of them fails, it is cancelled.
    pub after: Vec<u64>,
    /// How long it may run, in seconds, over all its starts.
    pub time_limit_s: Option<f64>,
    /// How long it should take, in seconds; for policies that go by it.
    pub duration_s: Option<f64>,
    /// What it trains, for the scheduler's belief about its speed.
    pub model: Option<String>,
    /// The batch size it trains with.
    pub batch_size: Option<u32>,
    /// How it trains, where the scheduler works out its speed from its reports and may choose its batch size.
    pub training: Option<TrainingRequest>,
    /// The ways in which it makes its steps as it goes along, where its batch size changes by itself; it reports which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regimes: Vec<RegimeRequest>,
    /// Failures after which it is given up.
    pub max_restarts: Option<u32>,
    /// How it gives its devices back while it is not done.
    #[schema(value_type = String)]
    pub pause: Pause,
    /// How it saves its progress.
    pub checkpoint: Checkpoint,
    /// Where output goes: `%j` job, `%x` name, `%t` rank, `%n` node rank.
    pub output: Option<String>,
    /// The same for standard error.
    pub error: Option<String>,
    /// Memory it may use on each node, in MiB.
    pub memory_mib: Option<u64>,
    /// Processor cores it may use on each node.
    pub cpus: Option<f64>,
    /// What else it needs on each node, by the names that nodes count it by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u32>,
    /// It shares its devices with no other job, even where the policy packs jobs.
    pub exclusive: bool,
    /// The part of one card's processors it asks for and may use, from 0.01 to 1; where the policy packs jobs, others
    /// have the rest.
    pub gpu_fraction: Option<f64>,
    /// The most of it that it may use; `gpu_fraction` where nothing is said.
    pub gpu_limit: Option<f64>,
    /// Memory on each card that it asks for and may use, in MiB.
    pub gpu_memory_mib: Option<u64>,
    /// `ordinary`, `guaranteed` (loses at most `max_slowdown` to others on its cards) or `opportunistic` (has what
    /// others leave).
    #[schema(value_type = String)]
    pub class: Claim,
    /// The part of its speed alone that a guaranteed job may lose, from 0 to 1; 0.05 where nothing is said.
    pub max_slowdown: Option<f64>,
    /// Jobs of the same word share a card.
    pub affinity: Option<String>,
    /// Jobs of the same word share no card.
    pub anti_affinity: Option<String>,
    /// A card has jobs of one such word only, and none without.
    pub exclusion: Option<String>,
}

/// A job file that cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Mistake {
    /// The line, counted from 1, where it is about one.
    pub line: Option<u64>,
    /// In a sentence.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => write!(f, "{}", self.message),
        }
    }
}

/// How a job saves its progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checkpoint {
    /// Where it keeps checkpoints: a folder that all nodes see, if the job is to move.
    #[schema(value_type = Option<String>)]
    pub dir: Option<PathBuf>,
    /// The signal that asks it to save and exit; `TERM` where nothing is said.
    pub signal: Option<String>,
    /// How many seconds it has for that before it is killed; 30 where nothing is said.
    pub grace_s: Option<f64>,
}

/// Processes of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ranks {
    /// One on each node; it sees all the devices there.
    #[default]
    Node,
    /// One for each device.
    Device,
}
