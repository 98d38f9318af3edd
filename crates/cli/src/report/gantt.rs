//! Who held which devices when, as columns of small integers.
//!
//! Bars are the one part of the page that grows with the run, so they are joined where a job simply went
//! on, cut to a budget by time, and written as ticks with delta-coded starts.

use super::teams::Teams;
use super::{Bar, ReportNode, ReportRun};
use serde::Serialize;

/// Bars kept of one run.
const BARS_PER_RUN: usize = 60_000;
/// Bars kept of all runs together: about three megabytes.
const BARS_IN_ALL: usize = 150_000;
/// Rows of the chart; nobody scrolls further.
const NODES_MAX: usize = 20_000;
/// Ticks over the recorded time: finer than any screen, and seven digits at most.
const TICKS_MAX: f64 = 1e7;

/// The bars of one run, by column and ordered by start.
#[derive(Debug, Default, Serialize)]
pub(super) struct Gantt {
    /// Seconds per tick of `start` and `length`.
    pub(super) tick_s: f64,
    /// The first start, in seconds.
    pub(super) origin_s: f64,
    /// The time until which the picture is whole, when it is not whole to the end.
    pub(super) until_s: Option<f64>,
    pub(super) node: Vec<u32>,
    pub(super) first: Vec<u32>,
    pub(super) devices: Vec<u32>,
    pub(super) job: Vec<u32>,
    /// Ticks since the start of the bar before.
    pub(super) start: Vec<u64>,
    /// Ticks.
    pub(super) length: Vec<u64>,
    /// The place among the jobs on the same devices, and how many they were; empty where none are shared.
    pub(super) lane: Vec<u8>,
    pub(super) lanes: Vec<u8>,
    /// The team of each job; empty where there are not several.
    pub(super) team: Vec<usize>,
}

impl Gantt {
    /// The bars of `run` when the page has `n_runs` runs to share the budget.
    pub(super) fn new(run: &ReportRun, n_runs: usize, teams: &Teams<'_>) -> Self {
        let mut gantt = Self::within(run, BARS_PER_RUN.min(BARS_IN_ALL / n_runs.max(1)));
        gantt.team = gantt.job.iter().filter_map(|job| teams.of(*job)).collect();
        gantt
    }

    fn within(run: &ReportRun, bars_max: usize) -> Self {
        let mut bars = joined(shown(run));
        bars.sort_by(|a, b| a.start_s.total_cmp(&b.start_s).then(a.node.cmp(&b.node)));
        let until_s = whole_until(run, &bars, bars_max);
        bars.truncate(bars_max);
        Self::columns(&bars, until_s)
    }

    fn columns(bars: &[Bar], until_s: Option<f64>) -> Self {
        let Some(first) = bars.first() else { return Self::default() };
        let end = bars.iter().fold(first.end_s, |end, bar| end.max(bar.end_s));
        let tick_s = tick(end - first.start_s);
        let ticks = |t: f64| ((t - first.start_s) / tick_s).round() as u64;
        let mut gantt = Self { tick_s, origin_s: first.start_s, until_s, ..Self::default() };
        if bars.iter().any(|bar| bar.lane.1 > 1) {
            (gantt.lane, gantt.lanes) = bars.iter().map(|bar| bar.lane).unzip();
        }
        let mut before = 0;
        for bar in bars {
            let (start, end) = (ticks(bar.start_s), ticks(bar.end_s));
            gantt.node.push(bar.node);
            gantt.first.push(bar.first_device);
            gantt.devices.push(bar.devices);
            gantt.job.push(bar.job);
            gantt.start.push(start - before);
            gantt.length.push(end - start);
            before = start;
        }
        gantt
    }
}

/// The nodes of a cluster by column; a list of its own, because the runs usually share it.
#[derive(Debug, Serialize)]
pub(super) struct GanttCluster<'a> {
    pub(super) name: Vec<&'a str>,
    pub(super) kind: Vec<&'a str>,
    pub(super) gpus: Vec<u32>,
    /// Devices of all nodes, also of those that are not listed.
    pub(super) gpus_total: u64,
    pub(super) nodes_total: usize,
}

impl<'a> GanttCluster<'a> {
    pub(super) fn new(nodes: &'a [ReportNode]) -> Self {
        let listed = &nodes[..nodes.len().min(NODES_MAX)];
        Self {
            name: listed.iter().map(|node| node.name.as_str()).collect(),
            kind: listed.iter().map(|node| node.kind.as_str()).collect(),
            gpus: listed.iter().map(|node| node.gpus).collect(),
            gpus_total: nodes.iter().map(|node| u64::from(node.gpus)).sum(),
            nodes_total: nodes.len(),
        }
    }
}

/// The bars that have a length and a row.
fn shown(run: &ReportRun) -> Vec<Bar> {
    let rows = run.nodes.len().min(NODES_MAX);
    let visible = |bar: &&Bar| {
        let timed = bar.start_s.is_finite() && bar.end_s.is_finite() && bar.end_s > bar.start_s;
        timed && bar.devices > 0 && (bar.node as usize) < rows
    };
    run.bars.iter().filter(visible).copied().collect()
}

/// Joins bars where a job went on with the same devices: a round boundary is not an event.
fn joined(mut bars: Vec<Bar>) -> Vec<Bar> {
    let place = |bar: &Bar| (bar.node, bar.first_device, bar.devices, bar.job, bar.lane);
    bars.sort_by(|a, b| place(a).cmp(&place(b)).then(a.start_s.total_cmp(&b.start_s)));
    let mut joined: Vec<Bar> = Vec::with_capacity(bars.len());
    for bar in bars {
        match joined.last_mut() {
            Some(last) if place(last) == place(&bar) && bar.start_s <= last.end_s => {
                last.end_s = last.end_s.max(bar.end_s);
            }
            _ => joined.push(bar),
        }
    }
    joined
}

/// Where the picture stops being whole: at the first bar over the budget, or where the record ends.
fn whole_until(run: &ReportRun, ordered: &[Bar], bars_max: usize) -> Option<f64> {
    let recorded = ordered.iter().map(|bar| bar.end_s).max_by(f64::total_cmp);
    match ordered.get(bars_max) {
        Some(dropped) => Some(dropped.start_s),
        None if run.bars_cut => recorded,
        None => None,
    }
}

/// The finest power of ten, from a millisecond up, that spans `seconds` within the ticks allowed.
fn tick(seconds: f64) -> f64 {
    let mut tick_s = 0.001;
    while seconds / tick_s > TICKS_MAX {
        tick_s *= 10.0;
    }
    tick_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(node: u32, job: u32, start_s: f64, end_s: f64) -> Bar {
        Bar { node, first_device: 0, devices: 2, job, start_s, end_s, lane: (0, 1) }
    }

    fn run(bars: Vec<Bar>) -> ReportRun {
        let node = ReportNode { name: "n".into(), kind: "gpu".into(), gpus: 4 };
        ReportRun { bars, nodes: vec![node; 2], ..ReportRun::default() }
    }

    #[test]
    fn bars_survive_the_coding() {
        let run = run(vec![bar(1, 7, 100.5, 160.0), bar(0, 3, 40.25, 90.0), bar(0, 4, 95.0, 96.0)]);
        let gantt = Gantt::within(&run, 10);
        assert_eq!((gantt.origin_s, gantt.tick_s, gantt.until_s), (40.25, 0.001, None));
        assert_eq!(gantt.job, [3, 4, 7]);
        assert_eq!(gantt.start, [0, 54_750, 5_500]);
        assert_eq!(gantt.length, [49_750, 1_000, 59_500]);
    }

    #[test]
    fn rounds_of_one_job_join_and_odd_bars_go() {
        let rounds =
            [bar(0, 1, 0.0, 10.0), bar(0, 1, 10.0, 20.0), bar(0, 2, 20.0, 30.0), bar(0, 1, 30.0, 40.0)];
        let odd = [bar(0, 9, 5.0, 5.0), bar(9, 9, 0.0, 1.0), bar(0, 9, f64::NAN, 1.0)];
        let gantt = Gantt::within(&run([rounds.as_slice(), &odd].concat()), 10);
        assert_eq!(gantt.job, [1, 2, 1]);
        assert_eq!(gantt.length, [20_000, 10_000, 10_000]);
    }

    #[test]
    fn jobs_on_the_same_devices_lie_in_lanes() {
        let lane = |job, lane| Bar { lane: (lane, 2), ..bar(0, job, 0.0, 5.0) };
        let gantt = Gantt::within(&run(vec![lane(1, 0), lane(2, 1), bar(1, 3, 0.0, 5.0)]), 10);
        assert_eq!((gantt.job, gantt.lane, gantt.lanes), (vec![1, 2, 3], vec![0, 1, 0], vec![2, 2, 1]));
        assert!(Gantt::within(&run(vec![bar(1, 3, 0.0, 5.0)]), 10).lane.is_empty());
    }

    #[test]
    fn a_cut_says_until_when_the_picture_is_whole() {
        let mut run = run((0..10).map(|i| bar(0, i, f64::from(i), f64::from(i) + 0.5)).collect());
        assert_eq!(Gantt::within(&run, 10).until_s, None);
        let cut = Gantt::within(&run, 4);
        assert_eq!((cut.job.len(), cut.until_s), (4, Some(4.0)));
        run.bars_cut = true;
        assert_eq!(Gantt::within(&run, 10).until_s, Some(9.5));
    }

    #[test]
    fn ticks_stay_small() {
        assert_eq!(tick(0.0), 0.001);
        assert_eq!(tick(9_999.0), 0.001);
        assert!(3e8 / tick(3e8) <= TICKS_MAX);
    }
}
