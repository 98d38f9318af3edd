//! What would become of a job, or of all jobs if something happened to a node.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IntervalView, UnknownView};

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
