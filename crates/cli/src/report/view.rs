//! What the page's script receives: each run reduced to what its charts draw.

use super::gantt::{Gantt, GanttCluster};
use super::jobs::{Ended, ReportListed};
use super::market::{self, ReportMarket};
use super::number::Num;
use super::series::ReportSeries;
use super::stats::{self, Cdf, SizeBox};
use super::teams::{self, TeamRow, Teams};
use super::{ReportNode, ReportPage, ReportRun};
use serde::Serialize;
use serde_json::{Map, Value};

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
    clusters: Vec<GanttCluster<'a>>,
    jobs: ReportListed,
    /// Names of the teams, where there are several.
    teams: Vec<&'a str>,
    runs: Vec<RunView<'a>>,
}

impl<'a> Page<'a> {
    pub(super) fn new(report: &'a ReportPage) -> Self {
        let mut clusters: Vec<&[ReportNode]> = Vec::new();
        let teams = Teams::new(report);
        let jobs = ReportListed::new(report, &teams);
        let runs = report.runs.iter().map(|run| {
            let cluster = position_or_push(&mut clusters, &run.nodes);
            let gantt = Gantt::new(run, report.runs.len(), &teams);
            RunView::new(run, cluster, gantt, Ended::new(run, &jobs), teams::rows(run, &teams))
        });
        let runs = runs.collect();
        Self {
            title: &report.title,
            command: &report.command,
            version: &report.version,
            settings: &report.settings,
            classes: stats::class_labels(report.runs.iter().flat_map(|run| &run.jobs)),
            clusters: clusters.into_iter().map(GanttCluster::new).collect(),
            jobs,
            teams: teams.names,
            runs,
        }
    }
}

/// The index of `nodes` in `clusters`, added when it is new.
fn position_or_push<'a>(clusters: &mut Vec<&'a [ReportNode]>, nodes: &'a [ReportNode]) -> usize {
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
    series: Option<ReportSeries>,
    gantt: Gantt,
    ended: Ended,
    teams: Vec<TeamRow>,
    market: Option<ReportMarket<'a>>,
    followed: Vec<[Num; 2]>,
}

impl<'a> RunView<'a> {
    fn new(run: &'a ReportRun, cluster: usize, gantt: Gantt, ended: Ended, teams: Vec<TeamRow>) -> Self {
        Self {
            policy: &run.policy,
            summary: &run.summary,
            cluster,
            jobs: run.jobs.len(),
            jct: Cdf::new(run.jobs.iter().map(|job| job.jct_s)),
            wait: Cdf::new(run.jobs.iter().map(|job| job.wait_s)),
            boxes: stats::wait_boxes(&run.jobs),
            series: ReportSeries::new(&run.series, run.end_s),
            gantt,
            ended,
            teams,
            market: ReportMarket::new(run, run.end_s),
            followed: market::points(&run.followed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_clusters_are_written_once() {
        let nodes = |gpus| vec![ReportNode { name: "a".into(), kind: "v100".into(), gpus }];
        let run = |gpus| ReportRun { nodes: nodes(gpus), ..ReportRun::default() };
        let report = ReportPage { runs: vec![run(4), run(8), run(4)], ..ReportPage::default() };
        let page = Page::new(&report);
        let clusters: Vec<usize> = page.runs.iter().map(|run| run.cluster).collect();
        assert_eq!((page.clusters.len(), clusters), (2, vec![0, 1, 0]));
    }
}
