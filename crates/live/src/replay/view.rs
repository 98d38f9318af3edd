//! What a replay answers. Figures have the names that they have in `yard sim -o json`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ReplayChange;

/// Some days once more: as they were, as they are simulated, and as they would have been.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplayView {
    /// Which jobs it is about.
    pub window: WindowView,
    /// What really happened.
    pub recorded: ReplayRow,
    /// The same jobs simulated as things are now. What an alternative changes is its difference to this.
    pub baseline: ReplayRow,
    /// The same jobs simulated as was asked for, one for each change, in order.
    pub alternatives: Vec<ReplayRow>,
    /// What to keep in mind, a sentence each.
    pub notes: Vec<String>,
}

/// Which jobs a replay is about. Times are seconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WindowView {
    /// Jobs that were submitted from then on.
    pub from: f64,
    /// Jobs that were submitted before.
    pub to: f64,
    /// Jobs that count: they ran and are over, however they ended.
    pub jobs: usize,
    /// Jobs from before that still had devices or waited: they take part with what was left of them and do not count.
    pub carried: usize,
    /// Jobs that are not over yet: they take part with the length that is expected of them and do not count.
    pub open: usize,
    /// Jobs that take no part: they never ran, or nobody knows how long they take.
    pub left_out: usize,
}

/// One way in which it went, or would have gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplayRow {
    /// In a few words: `recorded`, `baseline`, `sia, with h100:2x8`.
    pub label: String,
    /// What is different from how things are.
    pub change: ReplayChange,
    /// The figures of all jobs.
    pub run: ReplayedRun,
    /// Minus those of the baseline.
    pub against_baseline: Option<Difference>,
    /// The figures by team; only one's own jobs, and everybody's for admins.
    pub teams: Vec<TeamView>,
    /// Each job and each device, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<Detail>,
}

/// A run, with the names of `yard sim -o json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplayedRun {
    /// Who decided.
    pub policy: String,
    /// Seconds from one decision to the next.
    pub round_s: f64,
    /// The cluster, as `kind:NODESxGPUS,…`.
    pub cluster: String,
    /// Its devices.
    pub devices: u32,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Figures of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TeamView {
    /// The tenant of its jobs, or the user where they have none.
    pub team: String,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Minus those of the baseline.
    pub against_baseline: Option<Difference>,
}

/// Figures of some jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figures {
    /// Jobs counted.
    pub jobs: usize,
    /// Of these, done.
    pub finished: usize,
    /// Mean time from submission to end, of finished jobs.
    pub avg_jct_s: Option<f64>,
    /// Its median.
    pub p50_jct_s: Option<f64>,
    /// Its 90th percentile.
    pub p90_jct_s: Option<f64>,
    /// Its 99th percentile.
    pub p99_jct_s: Option<f64>,
    /// From the first submission to the last end.
    pub makespan_s: Option<f64>,
    /// Mean time without devices, of finished jobs.
    pub avg_queue_s: Option<f64>,
    /// Its 90th percentile.
    pub p90_queue_s: Option<f64>,
    /// Stops for other jobs.
    pub preemptions: u64,
    /// Moves.
    pub migrations: u64,
    /// Starts after each job's first.
    pub restarts: u64,
    /// Jobs with a deadline.
    pub deadline_total: usize,
    /// Of these, done in time.
    pub deadline_met: usize,
    /// Fraction that was not; null without deadlines.
    pub deadline_miss_ratio: Option<f64>,
    /// Mean finish-time fairness.
    pub avg_rho: Option<f64>,
    /// Its worst.
    pub max_rho: Option<f64>,
    /// Device-hours held by these jobs.
    pub gpu_hours: f64,
    /// Device time held, by all jobs, against what there was from the first submission to the last end; null for teams.
    pub utilization: Option<f64>,
    /// What the device-hours cost, where prices are given.
    pub cost: Option<f64>,
}

/// Figures minus those of the baseline; null where one of the two is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// Jobs that are done.
    pub finished: i64,
    /// Mean waiting.
    pub avg_queue_s: Option<f64>,
    /// Its 90th percentile.
    pub p90_queue_s: Option<f64>,
    /// Mean time from submission to end.
    pub avg_jct_s: Option<f64>,
    /// Its 99th percentile.
    pub p99_jct_s: Option<f64>,
    /// From the first submission to the last end.
    pub makespan_s: Option<f64>,
    /// Deadlines kept.
    pub deadline_met: i64,
    /// Stops for other jobs.
    pub preemptions: i64,
    /// Mean finish-time fairness.
    pub avg_rho: Option<f64>,
    /// Its worst.
    pub max_rho: Option<f64>,
    /// Device-hours.
    pub gpu_hours: f64,
    /// Device time held against what there was.
    pub utilization: Option<f64>,
    /// Cost.
    pub cost: Option<f64>,
}

impl Figures {
    /// These minus others.
    pub(crate) fn minus(&self, other: &Figures) -> Difference {
        let less = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
        let fewer = |a: usize, b: usize| a as i64 - b as i64;
        Difference {
            finished: fewer(self.finished, other.finished),
            avg_queue_s: less(self.avg_queue_s, other.avg_queue_s),
            p90_queue_s: less(self.p90_queue_s, other.p90_queue_s),
            avg_jct_s: less(self.avg_jct_s, other.avg_jct_s),
            p99_jct_s: less(self.p99_jct_s, other.p99_jct_s),
            makespan_s: less(self.makespan_s, other.makespan_s),
            deadline_met: fewer(self.deadline_met, other.deadline_met),
            preemptions: self.preemptions as i64 - other.preemptions as i64,
            avg_rho: less(self.avg_rho, other.avg_rho),
            max_rho: less(self.max_rho, other.max_rho),
            gpu_hours: self.gpu_hours - other.gpu_hours,
            utilization: less(self.utilization, other.utilization),
            cost: less(self.cost, other.cost),
        }
    }
}

/// A run job by job and device by device. Times are seconds since the first submission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Detail {
    /// The jobs, in order of submission. Bars count in them.
    pub jobs: Vec<DetailJob>,
    /// Jobs that wait, devices they ask for, jobs that run and devices they hold, from a time until the next.
    pub series: Vec<(f64, u32, u64, u32, u64)>,
    /// Who held which devices when, as far as they were kept.
    pub bars: Vec<DetailBar>,
    /// Whether bars were left out.
    pub bars_cut: bool,
    /// The nodes: name, kind and devices. Bars count in them.
    pub nodes: Vec<(String, String, u32)>,
}

/// A job of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DetailJob {
    /// Its number in the history.
    pub id: u64,
    /// What people call it.
    pub name: String,
    /// Who it counts for.
    pub team: String,
    /// Devices it asked for.
    pub gpus: u32,
    /// When it came.
    pub submit_s: f64,
    /// Time without devices, once it is over.
    pub wait_s: Option<f64>,
    /// Time from submission to end, once it is over.
    pub jct_s: Option<f64>,
    /// Stops for other jobs.
    pub preemptions: u32,
    /// Device-hours it held.
    pub gpu_hours: f64,
    /// Its finish-time fairness.
    pub rho: Option<f64>,
    /// Whether it kept its deadline, where it had one.
    pub deadline_met: Option<bool>,
}

/// A job on adjacent devices of one node, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DetailBar {
    /// Which node.
    pub node: u32,
    /// The first device.
    pub first: u32,
    /// How many.
    pub devices: u32,
    /// Which job.
    pub job: u32,
    /// From.
    pub start_s: f64,
    /// Until.
    pub end_s: f64,
    /// Its place among the jobs on these devices, and how many they were.
    pub lane: (u8, u8),
}
