//! What the page's script receives: each run reduced to what its charts draw.

use super::gantt::{Cluster, Gantt};
use super::market::{self, Market};
use super::number::Num;
use super::series::Series;
use super::stats::{self, Cdf, SizeBox};
use super::{JobRow, Node, Report, Run};
use serde::Serialize;
use serde_json::{Map, Value};

/// Rows in the list of the longest waits.
const LONGEST: usize = 10;
/// Characters kept of a job's name.
const NAME_MAX: usize = 80;

/// The data of the page.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    title: &'a str,
    command: &'a str,
    version: &'a str,
    settings: &'a [(String, String)],
    /// Names of the size classes.
    classes: Vec<String>,
    /// The different clusters; runs point into them.
    clusters: Vec<Cluster<'a>>,
    runs: Vec<RunView<'a>>,
}

impl<'a> Page<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        let mut clusters: Vec<&[Node]> = Vec::new();
        let runs = report.runs.iter().map(|run| {
            let cluster = position_or_push(&mut clusters, &run.nodes);
            RunView::new(run, cluster, report.runs.len())
        });
        Self {
            title: &report.title,
            command: &report.command,
            version: &report.version,
            settings: &report.settings,
            classes: stats::class_labels(report.runs.iter().flat_map(|run| &run.jobs)),
            runs: runs.collect(),
            clusters: clusters.into_iter().map(Cluster::new).collect(),
        }
    }
}

/// The index of `nodes` in `clusters`, added when it is new.
fn position_or_push<'a>(clusters: &mut Vec<&'a [Node]>, nodes: &'a [Node]) -> usize {
    clusters.iter().position(|known| *known == nodes).unwrap_or_else(|| {
        clusters.push(nodes);
        clusters.len() - 1
    })
}

/// One run as the charts draw it.
#[derive(Serialize)]
struct RunView<'a> {
    policy: &'a str,
    summary: &'a Map<String, Value>,
    cluster: usize,
    jobs: usize,
    jct: Cdf,
    wait: Cdf,
    boxes: Vec<Option<SizeBox>>,
    series: Option<Series>,
    gantt: Gantt,
    longest: Vec<LongWait>,
    market: Option<Market<'a>>,
    followed: Vec<[Num; 2]>,
}

impl<'a> RunView<'a> {
    fn new(run: &'a Run, cluster: usize, n_runs: usize) -> Self {
        let end = run.jobs.iter().map(|job| job.submit_s + job.jct_s).fold(0.0, f64::max);
        Self {
            policy: &run.policy,
            summary: &run.summary,
            cluster,
            jobs: run.jobs.len(),
            jct: Cdf::new(run.jobs.iter().map(|job| job.jct_s)),
            wait: Cdf::new(run.jobs.iter().map(|job| job.wait_s)),
            boxes: stats::wait_boxes(&run.jobs),
            series: Series::new(&run.series, end),
            gantt: Gantt::new(run, n_runs),
            longest: longest_waits(&run.jobs),
            market: Market::new(run, end),
            followed: market::points(&run.followed),
        }
    }
}

/// A job that waited longer than most.
#[derive(Serialize)]
struct LongWait {
    name: String,
    gpus: u32,
    submit: Num,
    wait: Num,
    jct: Num,
    preemptions: u32,
}

impl LongWait {
    fn new(job: &JobRow) -> Self {
        Self {
            name: job.name.chars().take(NAME_MAX).collect(),
            gpus: job.gpus,
            submit: Num(job.submit_s),
            wait: Num(job.wait_s),
            jct: Num(job.jct_s),
            preemptions: job.preemptions,
        }
    }
}

/// The jobs that waited longest, worst first; of equals the earlier row.
fn longest_waits(jobs: &[JobRow]) -> Vec<LongWait> {
    let mut order: Vec<usize> = (0..jobs.len()).filter(|&i| jobs[i].wait_s > 0.0).collect();
    let worse = |&a: &usize, &b: &usize| jobs[b].wait_s.total_cmp(&jobs[a].wait_s).then(a.cmp(&b));
    if order.len() > LONGEST {
        order.select_nth_unstable_by(LONGEST, worse);
        order.truncate(LONGEST);
    }
    order.sort_by(worse);
    order.into_iter().map(|i| LongWait::new(&jobs[i])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waits_come_worst_first() {
        let job =
            |i: u32| JobRow { name: i.to_string(), wait_s: f64::from(i * 37 % 100), ..JobRow::default() };
        let jobs: Vec<JobRow> = (0..100).map(job).collect();
        let waits: Vec<f64> = longest_waits(&jobs).iter().map(|row| row.wait.0).collect();
        assert_eq!(waits, [99., 98., 97., 96., 95., 94., 93., 92., 91., 90.]);
        assert!(longest_waits(&[JobRow::default()]).is_empty());
    }

    #[test]
    fn equal_clusters_are_written_once() {
        let nodes = |gpus| vec![Node { name: "a".into(), kind: "v100".into(), gpus }];
        let run = |gpus| Run { nodes: nodes(gpus), ..Run::default() };
        let report = Report { runs: vec![run(4), run(8), run(4)], ..Report::default() };
        let page = Page::new(&report);
        let clusters: Vec<usize> = page.runs.iter().map(|run| run.cluster).collect();
        assert_eq!((page.clusters.len(), clusters), (2, vec![0, 1, 0]));
    }
}
