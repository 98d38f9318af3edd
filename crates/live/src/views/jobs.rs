//! Jobs as people see them, why they wait, and what happens to them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::EstimateView;
use crate::request::JobRequest;

/// A job as people see it. Times are seconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// The team it counts for.
    pub tenant: Option<String>,
    /// `pending, starting, running, suspending, suspended, succeeded, failed, cancelled` or `rejected`.
    pub state: String,
    /// Why it is in this state, where there is something to say.
    pub reason: Option<String>,
    /// Who holds it: it gets no devices until it is released.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_by: Option<String>,
    /// Devices it holds, or asked for.
    pub gpus: u32,
    /// The kind it holds.
    pub kind: Option<String>,
    /// Where it runs: `node[device,…]`, one for each node.
    pub nodes: Vec<String>,
    /// Where it lies frozen, likewise.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// Its priority.
    pub priority: i32,
    /// When it should be done.
    pub deadline: Option<f64>,
    /// When it will be done, as it was promised.
    #[serde(default)]
    pub promise: Option<f64>,
    /// Whether that may not be kept after all.
    #[serde(default)]
    pub at_risk: bool,
    /// The earliest deadline that could be promised, where its own could not be.
    #[serde(default)]
    pub earliest: Option<f64>,
    /// When it was submitted.
    pub submitted_at: f64,
    /// When it first got devices.
    pub started_at: Option<f64>,
    /// When it was over.
    pub ended_at: Option<f64>,
    /// Seconds it has held devices.
    pub executed_s: f64,
    /// Seconds for which it has used none of the devices it holds, once they are many.
    #[serde(default)]
    pub idle_s: Option<f64>,
    /// Steps done.
    pub step: Option<u64>,
    /// Steps to do in all.
    pub steps: Option<u64>,
    /// Steps that are safe in a checkpoint.
    pub checkpointed: Option<u64>,
    /// Steps per second of late.
    pub rate: Option<f64>,
    /// Starts so far.
    pub starts: u32,
    /// Times it was stopped for another job.
    pub preemptions: u32,
    /// Starts on other devices than the time before.
    pub migrations: u32,
    /// Failures so far.
    pub failures: u32,
    /// Its exit code, once it is over.
    pub exit_code: Option<i32>,
    /// How long it is, where nobody said; none: it was stated.
    #[serde(default)]
    pub length: Option<LengthView>,
    /// When it will probably start and end, once that was foretold.
    #[serde(default)]
    pub estimate: Option<EstimateView>,
    /// What was submitted; only where one job is asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<JobRequest>,
    /// The last lines that it wrote, output and errors; only where one job is asked for that failed, and its node can be
    /// asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_end: Option<String>,
    /// What its policy needs and it does not say; only in the answer to its submission.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

/// How long a job is of which nobody said so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LengthView {
    /// Seconds it takes in all, as likely more as less; none: that is unknown, because no job is over yet.
    pub seconds: Option<f64>,
    /// What the jobs have in common with it by which it is predicted: `name` (and user and size), `user` (and size),
    /// `size`, or nothing: `all`.
    pub alike: String,
    /// How many of them are over.
    pub jobs: u32,
}

/// A page of jobs, newest last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Whether there are further ones: older than the first, or after the last where `after` is given.
    #[serde(default)]
    pub more: bool,
    /// How many open jobs of other users this token may not see.
    #[serde(default)]
    pub hidden: u64,
}

/// Why jobs wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// How many wait.
    pub waiting: u64,
    /// The oldest of them, with why.
    pub jobs: Vec<QueuedView>,
    /// How many waiting jobs of other users this token may not see.
    #[serde(default)]
    pub hidden: u64,
}

/// Why a job waits, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueuedView {
    /// The job.
    pub job: u64,
    /// The dominant reason, as in an explanation.
    pub reason: String,
    /// The same as a sentence.
    pub text: String,
}

/// Why a job is not running, or why it runs where it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The job.
    pub job: u64,
    /// Its state.
    pub state: String,
    /// The dominant reason, one word of a closed list:
    /// `running, over, held, dependency, starting, stopping, capacity, gang, priority, share, price, deadline, nodes,
    /// frozen, policy`.
    pub reason: String,
    /// The same as a sentence with its numbers.
    pub text: String,
    /// The numbers.
    #[schema(value_type = Object)]
    pub numbers: std::collections::BTreeMap<String, f64>,
    /// Jobs in front of it, first ones first.
    pub ahead: Vec<u64>,
    /// What would let it start sooner.
    pub remedies: Vec<String>,
    /// What devices cost by kind, where the policy has prices.
    pub prices: std::collections::BTreeMap<String, f64>,
    /// The ways in which it may run, the fastest first.
    #[serde(default)]
    pub ways: Vec<WayView>,
    /// How long it is, where nobody said; none: it was stated.
    #[serde(default)]
    pub length: Option<LengthView>,
    /// When it will probably start and end, once that was foretold.
    #[serde(default)]
    pub estimate: Option<EstimateView>,
}

/// A way in which a job may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WayView {
    /// The kind; where it mixes kinds, the first.
    pub kind: String,
    /// Devices in all.
    pub gpus: u32,
    /// Steps per second, as far as is believed.
    pub rate: f64,
    /// What its devices cost, where the policy has prices.
    pub price: Option<f64>,
    /// Whether this is how it runs now.
    pub held: bool,
}

/// A fact, as the event stream and the history tell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// Its number: grows, with gaps.
    pub id: u64,
    /// When: seconds since 1970, UTC.
    pub time: f64,
    /// `submitted, rejected, orphaned, granted, started, stopping, stopped, ended, freed, node, planned, plan_failed, stale, told`.
    pub event: String,
    /// The job it is about.
    pub job: Option<u64>,
    /// The node it is about.
    pub node: Option<String>,
    /// The rest of it.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
    /// Whose job it is about; others do not see it.
    #[serde(skip)]
    pub user: Option<String>,
}

/// A page of events, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// The events.
    pub events: Vec<EventView>,
}
