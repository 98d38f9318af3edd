//! The past as a page to look at: the report of `yard sim --html`, with the baseline and each alternative as its runs.

use std::sync::Arc;

use serde_json::Value;
use yard_live::replay::view::{Detail, ReplayRow, ReplayView};

use crate::output::human;
use crate::report::{self, ReportPage};
use crate::results;

pub(super) fn html(told: &ReplayView) -> String {
    let rows = || std::iter::once(&told.baseline).chain(&told.alternatives);
    report::render(&ReportPage {
        title: format!("What if, on {} jobs of the past", told.window.jobs),
        command: results::command_line(),
        version: format!("yard {}", env!("CARGO_PKG_VERSION")),
        settings: settings(told),
        jobs: told.baseline.detail.as_ref().map(jobs).unwrap_or_default(),
        runs: rows().filter_map(|row| Some(run(row, row.detail.as_ref()?))).collect(),
    })
}

fn settings(told: &ReplayView) -> Vec<(String, String)> {
    let recorded = &told.recorded.run.figures;
    let really = format!(
        "mean waiting {}, mean completion {}",
        human(recorded.avg_queue_s),
        human(recorded.avg_jct_s)
    );
    let clusters = std::iter::once(&told.baseline).chain(&told.alternatives);
    let clusters = clusters.map(|row| format!("{} {}", row.label, row.run.cluster)).collect::<Vec<_>>();
    let mut settings = vec![
        ("jobs".to_owned(), super::tables::window(&told.window)),
        ("recorded".to_owned(), really),
        ("clusters".to_owned(), clusters.join("; ")),
    ];
    settings.extend(told.notes.iter().map(|note| ("note".to_owned(), note.clone())));
    settings
}

fn jobs(detail: &Detail) -> Vec<report::ReportJob> {
    let job = |job: &yard_live::replay::view::DetailJob| report::ReportJob {
        name: format!("{} {}", job.id, job.name),
        team: Some(Arc::from(job.team.as_str())),
        submit_s: job.submit_s,
        gpus: job.gpus,
    };
    detail.jobs.iter().map(job).collect()
}

fn run(row: &ReplayRow, detail: &Detail) -> report::ReportRun {
    let Ok(Value::Object(mut summary)) = serde_json::to_value(&row.run) else {
        unreachable!("a run is an object")
    };
    summary.insert("policy".into(), row.label.clone().into());
    let jobs = detail.jobs.iter().zip(0..).filter_map(|(job, at)| {
        Some(report::ReportRow {
            job: at,
            gpus: job.gpus,
            wait_s: job.wait_s?,
            jct_s: job.jct_s?,
            preemptions: job.preemptions,
            gpu_h: job.gpu_hours,
            rho: job.rho,
            met: job.deadline_met,
        })
    });
    let series = detail.series.iter().map(|(t, queued_jobs, queued_gpus, running_jobs, used_gpus)| {
        let (queued_jobs, running_jobs) = (*queued_jobs, *running_jobs);
        report::ReportSample {
            t: *t,
            queued_jobs,
            queued_gpus: *queued_gpus,
            running_jobs,
            used_gpus: *used_gpus,
        }
    });
    let bars = detail.bars.iter().map(|bar| report::Bar {
        node: bar.node,
        first_device: bar.first,
        devices: bar.devices,
        job: bar.job,
        start_s: bar.start_s,
        end_s: bar.end_s,
        lane: bar.lane,
    });
    let nodes = detail.nodes.iter().map(|(name, kind, gpus)| report::ReportNode {
        name: name.clone(),
        kind: kind.clone(),
        gpus: *gpus,
    });
    let ends = detail.jobs.iter().filter_map(|job| Some(job.submit_s + job.jct_s?));
    report::ReportRun {
        policy: row.label.clone(),
        summary,
        end_s: ends.fold(0.0, f64::max),
        jobs: jobs.collect(),
        series: series.collect(),
        bars: bars.collect(),
        bars_cut: detail.bars_cut,
        nodes: nodes.collect(),
        ..report::ReportRun::default()
    }
}
