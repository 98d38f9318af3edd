//! The HTML report of `yard sim --html FILE`: one self-contained page that compares runs.
//!
//! This side reduces each run to what a chart can show (a CDF is at most 300 points, a series at most
//! 1200 buckets, a list at most 20 000 jobs), so a million jobs still make a file one can mail. What draws
//! is the dashboard's: its parts, built for this page (`web/src/report`) and put into the file with the
//! data. It does not know the simulator: the caller hands over plain rows.

mod gantt;
mod jobs;
mod market;
mod number;
mod page;
mod series;
mod stats;
mod teams;
mod view;

use std::sync::Arc;

use serde_json::{Map, Value};

/// Everything the page shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportPage {
    /// The heading and the title of the browser tab.
    pub title: String,
    /// The command line that reproduces the runs.
    pub command: String,
    /// The generator's version, for the footer.
    pub version: String,
    /// Name and value of each setting worth reading, in order (trace, cluster, seed, …).
    pub settings: Vec<(String, String)>,
    /// The jobs of the trace; `JobRow::job` and `Bar::job` count in them.
    pub jobs: Vec<ReportJob>,
    /// The runs to compare, one per policy.
    pub runs: Vec<ReportRun>,
}

/// A job as the trace has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportJob {
    /// Its name in the trace.
    pub name: String,
    /// Who it counts for, where the trace says so.
    pub team: Option<Arc<str>>,
    /// When it arrived.
    pub submit_s: f64,
    /// Devices it asked for.
    pub gpus: u32,
}

/// One policy's run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportRun {
    /// The policy's name.
    pub policy: String,
    /// The object of this run in `yard sim -o json`.
    pub summary: Map<String, Value>,
    /// When the last job was over.
    pub end_s: f64,
    /// One row for each job that is over, in the order of the trace.
    pub jobs: Vec<ReportRow>,
    /// Queue and use over time, ordered by time.
    pub series: Vec<ReportSample>,
    /// Who held which devices when; may be empty or cut.
    pub bars: Vec<Bar>,
    /// True when only the first part of the run was recorded in `bars`.
    pub bars_cut: bool,
    /// The cluster; `Bar::node` counts in it.
    pub nodes: Vec<ReportNode>,
    /// Names of the kinds; `PlanSample::prices` counts in them.
    pub kinds: Vec<String>,
    /// Plans with prices, ordered by time.
    pub plans: Vec<ReportPlanSample>,
    /// For a job on a kind: the part of its life that plans asked for, and the part it received.
    pub followed: Vec<(f64, f64)>,
}

/// A plan: it holds from `t` until the next one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportPlanSample {
    /// When it came into force.
    pub t: f64,
    /// The price of each kind.
    pub prices: Vec<f64>,
    /// What it reached, in the policy's measure.
    pub objective: f64,
    /// Its proven distance from the optimum.
    pub gap: f64,
}

/// What became of a job that is over.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportRow {
    /// Position in `Report::jobs`.
    pub job: u32,
    /// Devices it asked for.
    pub gpus: u32,
    /// Time spent holding nothing.
    pub wait_s: f64,
    /// Time from arrival to completion.
    pub jct_s: f64,
    /// Times it lost its devices before it was done.
    pub preemptions: u32,
    /// Device-hours it held.
    pub gpu_h: f64,
    /// Its finish-time fairness.
    pub rho: Option<f64>,
    /// Whether it kept its deadline, where it had one.
    pub met: Option<bool>,
}

/// A step of the cluster's state: it holds from `t` until the next sample.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReportSample {
    /// Start of the step in seconds.
    pub t: f64,
    /// Jobs waiting.
    pub queued_jobs: u32,
    /// Devices the waiting jobs ask for.
    pub queued_gpus: u64,
    /// Jobs running.
    pub running_jobs: u32,
    /// Devices in use.
    pub used_gpus: u64,
}

/// A node of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReportNode {
    /// The node's name.
    pub name: String,
    /// The kind of its devices.
    pub kind: String,
    /// How many devices it has.
    pub gpus: u32,
}

/// A job on adjacent devices of one node, for a while.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bar {
    /// Position in `Run::nodes`.
    pub node: u32,
    /// The first device held.
    pub first_device: u32,
    /// How many devices are held, from the first on.
    pub devices: u32,
    /// Position in `Report::jobs`.
    pub job: u32,
    /// When it took them.
    pub start_s: f64,
    /// When it let go.
    pub end_s: f64,
    /// Its place among the jobs on the same devices, and how many they were.
    pub lane: (u8, u8),
}

/// The whole page as one HTML document that needs nothing else.
pub(crate) fn render(report: &ReportPage) -> String {
    page::document(&report.title, &view::Page::new(report))
}

#[cfg(test)]
mod tests;
