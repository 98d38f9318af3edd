//! What the API answers: one type for each thing that people look at. The keys are part of the contract.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::job::Claim;

use crate::entitlements::Entitlements;
use crate::request::JobRequest;
use crate::wire::SecretValue;

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

/// When a job will probably start and end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EstimateView {
    /// When it was foretold.
    pub made_at: f64,
    /// When it first gets devices; none where that cannot be said.
    pub start: Option<IntervalView>,
    /// When it is over; none where that cannot be said.
    pub end: Option<IntervalView>,
    /// Why there is no `start`.
    #[serde(default)]
    pub start_unknown: Option<UnknownView>,
    /// Why there is no `end`.
    #[serde(default)]
    pub end_unknown: Option<UnknownView>,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownView {
    /// No forecast reaches that far: it is weeks away, or never happens.
    Beyond,
    /// Forecasts differ too much: it depends on which jobs come, and how long others take.
    Scattered,
    /// Nobody said how long the job takes, and no job is over that would tell.
    Length,
}

impl UnknownView {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            UnknownView::Beyond => "not within weeks",
            UnknownView::Scattered => "not known: it depends on which jobs come and how long others take",
            UnknownView::Length => "length unknown",
        }
    }
}

impl EstimateView {
    /// Whether a newer one says something else to who reads it: by five seconds, or a fiftieth of what is left.
    pub(crate) fn moved(&self, newer: &EstimateView) -> bool {
        let apart = |was: f64, is: f64| (was - is).abs() > ((is - newer.made_at) / 50.0).max(5.0);
        let changed = |was: Option<IntervalView>, is: Option<IntervalView>| match (was, is) {
            (Some(was), Some(is)) => {
                let ends = was.high.zip(is.high).map(|(was, is)| apart(was, is));
                let ends = ends.unwrap_or(was.high.is_some() != is.high.is_some());
                apart(was.low, is.low) || apart(was.mid, is.mid) || ends
            }
            (was, is) => was.is_some() != is.is_some(),
        };
        let why = |one: &EstimateView| (one.start_unknown, one.end_unknown);
        changed(self.start, newer.start) || changed(self.end, newer.end) || why(self) != why(newer)
    }
}

/// An instant that is not known exactly: nine times in ten it is within. Where its limits are one, it is exact as far as
/// anything is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IntervalView {
    /// Hardly earlier.
    pub low: f64,
    /// As likely before as after.
    pub mid: f64,
    /// Hardly later; none where some forecasts went on without end.
    pub high: Option<f64>,
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

/// A node as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// `up, draining, unreachable` or `down`.
    pub state: String,
    /// Why it is in this state, where there is something to say.
    pub reason: Option<String>,
    /// Where ranks meet.
    pub address: String,
    /// Its devices.
    pub devices: Vec<DeviceView>,
    /// What there is of its host beside them, where that is counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceView>,
    /// Seconds since it was last heard of.
    pub heard_s: Option<f64>,
}

/// Something that is counted of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceView {
    /// Its name: `cores`, `memory` (in MiB), or what the agent calls it.
    pub name: String,
    /// How much there is.
    pub total: f64,
    /// How much of it is reserved for jobs.
    pub reserved: f64,
}

/// A device as people see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceView {
    /// Its kind.
    pub kind: String,
    /// Its number among those of its kind.
    pub index: u32,
    /// What it is.
    pub name: String,
    /// Its unique number.
    pub uuid: Option<String>,
    /// Its memory.
    pub memory_mib: Option<u64>,
    /// The jobs that hold it.
    pub jobs: Vec<u64>,
    /// Why it is out of service, where it is.
    pub problem: Option<String>,
    /// The part of the time in which it computed of late, from 0 to 1. This and what follows is not known of a device
    /// that is no card, or whose node cannot be reached.
    #[serde(default)]
    pub busy: Option<f64>,
    /// Memory in use.
    #[serde(default)]
    pub memory_used_mib: Option<u64>,
    /// Degrees Celsius.
    #[serde(default)]
    pub temperature_c: Option<u32>,
    /// Power drawn.
    #[serde(default)]
    pub power_w: Option<f64>,
    /// Why its clocks are held back, where they are.
    #[serde(default)]
    pub throttled: Option<String>,
    /// Memory errors that were corrected, and those that were not, since the driver was loaded.
    #[serde(default)]
    pub ecc: Option<(u64, u64)>,
    /// Whether it is split into instances (MIG), which are not offered.
    #[serde(default)]
    pub split: bool,
    /// How it is linked to other devices of its kind on this node, by their numbers: `nvlink`, `pcie`, `numa` or
    /// `system`.
    #[serde(default)]
    pub links: Vec<(u32, String)>,
    /// Those of its jobs that have not used it for a while.
    #[serde(default)]
    pub idle_jobs: Vec<u64>,
}

/// All nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<NodeView>,
}

/// The whole at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// The program's version.
    pub version: String,
    /// Who decides.
    pub policy: String,
    /// Seconds from one decision to the next.
    pub round_s: f64,
    /// Jobs that wait, by state.
    pub pending: u64,
    /// Jobs that hold devices.
    pub running: u64,
    /// Jobs that are over.
    pub ended: u64,
    /// Nodes that take jobs.
    pub nodes_up: u64,
    /// Devices on them.
    pub devices: u64,
    /// Devices that somebody holds.
    pub devices_held: u64,
    /// What devices cost in the allocation in force, by kind.
    pub prices: std::collections::BTreeMap<String, f64>,
    /// Rounds so far.
    pub rounds: u64,
    /// Plans so far.
    pub plans: u64,
    /// Inputs that made the scheduler fail and were set aside; `yard repair` shows them.
    #[serde(default)]
    pub set_aside: u64,
}

/// A page of events, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// The events.
    pub events: Vec<EventView>,
}

/// Who asks, as the server sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeView {
    /// Who the token speaks for.
    pub user: String,
    /// `read, submit` or `admin`.
    pub scope: String,
    /// What its jobs may ask for; none: there is no limit.
    #[serde(default)]
    pub limits: Option<Entitlements>,
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

/// What changed on the board, or all that is on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeView {
    /// Its number, for going on later.
    pub revision: u64,
    /// The server's clock: seconds since 1970, UTC.
    pub time: f64,
    /// Whether everything known before is to be forgotten: a look at everything begins. It may go on in further
    /// pieces, which are not whole; the last piece of a revision carries its number as the event's id.
    pub whole: bool,
    /// Jobs that changed, without what was submitted.
    pub jobs: Vec<JobView>,
    /// Nodes that changed.
    pub nodes: Vec<NodeView>,
    /// The whole at a glance.
    pub status: Option<StatusView>,
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

/// What would become of a job, or of all if a node went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfView {
    /// When it was asked.
    pub made_at: f64,
    /// The job as it was asked for, then other ways to ask for it; one row where it is about a node.
    pub rows: Vec<WhatIfRow>,
    /// Whether the work for one question did not suffice for all of it.
    pub cut: bool,
}

/// What would become of a job that is asked for in one way, or of all jobs if something happened to a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfRow {
    /// How it differs from what was asked for: `as asked`, `2 devices`, `on a100`, `no deadline`; or what happens:
    /// `n1 drained`, `n1 fails`.
    pub label: String,
    /// Whether it is the best way: in time, and done first.
    pub best: bool,
    /// Its first devices.
    pub gpus: Option<u32>,
    /// Their kind.
    pub kind: Option<String>,
    /// Where they are: `node[device,…]`.
    pub nodes: Vec<String>,
    /// When it starts if nobody else comes and jobs take as long as they say; none: not within weeks, or never.
    pub start: Option<f64>,
    /// When it ends then.
    pub end: Option<f64>,
    /// When it starts with those who may come, nine times in ten.
    pub start_interval: Option<IntervalView>,
    /// When it ends then.
    pub end_interval: Option<IntervalView>,
    /// Why there is no interval for the start.
    #[serde(default)]
    pub start_unknown: Option<UnknownView>,
    /// Why there is none for the end.
    #[serde(default)]
    pub end_unknown: Option<UnknownView>,
    /// Whether it keeps its deadline, where it has one.
    pub in_time: Option<bool>,
    /// Why it would be refused.
    pub refused: Option<String>,
    /// The earliest deadline that could be promised, where its own could not be.
    pub earliest: Option<f64>,
    /// Jobs that would end later because of it.
    pub delayed: usize,
    /// By how much, all together, without those that would not end.
    pub delayed_s: f64,
    /// Of these, jobs that would not end: nothing that is left could run them.
    pub stranded: usize,
    /// Jobs that would miss the deadline that they would keep otherwise.
    pub late: usize,
    /// Jobs that would be stopped for it, or more often, to go on elsewhere or later.
    pub stopped: usize,
    /// Which, those first that lose most; only those that who asks may see.
    pub delays: Vec<DelayView>,
    /// Whether there was not enough work left to know it all.
    pub cut: bool,
    /// Whether even its start is only about right, because too much happens before it.
    pub rough: bool,
    /// Whether its end is only about right, mostly to within a quarter of the time since its start.
    pub rough_end: bool,
    /// When it would start at the earliest, where it is not known when it would.
    #[serde(default)]
    pub not_before: Option<f64>,
    /// Whether it is a first answer: what the job would cost others is not in it.
    #[serde(default)]
    pub alone: bool,
}

/// What a job would cost another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DelayView {
    /// The other.
    pub job: u64,
    /// What people call it.
    pub name: String,
    /// How much later it would end; none: not at all.
    pub delay_s: Option<f64>,
    /// How many more times it would be stopped.
    pub stops: u32,
    /// Whether it would miss its deadline.
    pub late: bool,
}

/// An error, as the API says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    /// In a sentence, with the remedy.
    pub error: String,
    /// The field it is about, where it is about one.
    pub field: Option<String>,
}

/// A token as people see it; never the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// Its public number.
    pub id: String,
    /// Who it speaks for.
    pub user: String,
    /// `read, submit, admin` or `join`.
    pub scope: String,
    /// When it was made.
    pub created_at: f64,
    /// When it ends.
    pub expires_at: Option<f64>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// When it was last used.
    #[serde(default)]
    pub last_used_at: Option<f64>,
    /// What its user's jobs may ask for; none: there is no limit.
    #[serde(default)]
    pub limits: Option<Entitlements>,
    /// Of a join token: patterns of the names that machines may join under.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Of a join token: how many machines may still join with it; none: there is no limit.
    #[serde(default)]
    pub uses_left: Option<u64>,
}

/// Tokens, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenView>,
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditView {
    /// Its number: later ones are higher.
    pub id: i64,
    /// When: seconds since 1970, UTC.
    pub time: f64,
    /// Who.
    pub user: String,
    /// What: a few words.
    pub what: String,
    /// To what.
    pub target: String,
    /// What came of it.
    pub outcome: String,
}

/// What people did, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The entries.
    pub entries: Vec<AuditView>,
    /// Whether there are older ones, to be asked for with `before`.
    pub more: bool,
}

/// A new token: the only time its secret is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// What it is.
    #[serde(flatten)]
    pub token: TokenView,
    /// The secret.
    pub secret: String,
}

/// A secret as its owner sees it; never the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SecretView {
    /// Its name.
    pub name: String,
    /// How long the value is.
    pub bytes: u64,
    /// When it was set.
    pub set_at: f64,
}

/// One's own secrets, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    /// The secrets.
    pub secrets: Vec<SecretView>,
}

/// A secret's new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRequest {
    /// The value: 1 byte to 64 KiB of text.
    #[schema(value_type = String)]
    pub value: SecretValue,
}

/// A machine asks to become a node, or a node for a new certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The node's name.
    pub name: String,
    /// A join token; none where the connection shows the node's certificate.
    pub token: Option<String>,
    /// The certificate request, PEM.
    pub csr: String,
}

/// What makes a machine a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JoinReply {
    /// The node's certificate, PEM.
    pub certificate: String,
    /// The authority's certificate, PEM.
    pub ca: String,
}

/// What a new token should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Who it speaks for; the one who asks where nothing is said.
    #[serde(default)]
    pub user: Option<String>,
    /// `read, submit, admin` or `join`.
    pub scope: String,
    /// How many seconds it is good. Where nothing is said: for ever, or a day for a join token, 30 days if it names nodes.
    #[serde(default)]
    pub expires_s: Option<f64>,
    /// Teams that jobs may count for; the first is the default.
    #[serde(default)]
    pub teams: Option<Vec<String>>,
    /// The largest weight of a job; 1 where nothing is said.
    #[serde(default)]
    pub weight_max: Option<f64>,
    /// The largest priority of a job; 0 where nothing is said.
    #[serde(default)]
    pub priority_max: Option<i32>,
    /// The classes that jobs may have; `ordinary` and `opportunistic` where nothing is said.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    pub classes: Option<Vec<Claim>>,
    /// Of a join token: patterns of the names that machines may join under, with `*` and `?`. Where nothing is said it
    /// is for one machine of any name.
    #[serde(default)]
    pub nodes: Option<Vec<String>>,
    /// Of a join token: how many machines may join with it.
    #[serde(default)]
    pub uses: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_told_again_only_when_it_says_something_else() {
        let at = |mid: f64, high| Some(IntervalView { low: mid - 10.0, mid, high });
        let told =
            |end| EstimateView { made_at: 0.0, start: None, end, start_unknown: None, end_unknown: None };
        let first = told(at(1_000.0, Some(1_100.0)));
        assert!(!first.moved(&told(at(1_010.0, Some(1_110.0)))), "a hundredth of what is left is nothing");
        assert!(first.moved(&told(at(1_040.0, Some(1_140.0)))));
        assert!(first.moved(&told(at(1_000.0, None))) && first.moved(&told(None)));
        assert!(told(None).moved(&first) && !told(None).moved(&told(None)));
        let scattered = EstimateView { end_unknown: Some(UnknownView::Scattered), ..told(None) };
        assert!(told(None).moved(&scattered), "another reason is news");
        let soon = told(at(20.0, Some(25.0)));
        assert!(!soon.moved(&told(at(24.0, Some(29.0)))) && soon.moved(&told(at(26.0, Some(31.0)))));
    }
}
