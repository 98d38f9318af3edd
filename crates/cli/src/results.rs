//! Finished runs as a table, as JSON to the contract, as rows of jobs, and as a report.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Map, Value, json};
use yard_core::job::JobState;
use yard_core::{Span, Time};
use yard_sim::lengths::ToldLengths;
use yard_sim::record::JobRecord;
use yard_sim::summary::{self, Summary};
use yard_sim::trace::TraceJob;

use crate::clock;
use crate::output::{self, human};
use crate::report::{self, ReportPage};
use crate::runner::{PolicyRun, RunnerPlan};

/// `{"runs": […]}`.
pub(crate) fn json(plan: &RunnerPlan, runs: &[PolicyRun], out: &mut dyn Write) -> anyhow::Result<()> {
    output::json(&to_json(plan, runs), out)
}

/// The same as a value.
pub(crate) fn to_json(plan: &RunnerPlan, runs: &[PolicyRun]) -> Value {
    let runs: Vec<_> = runs.iter().map(|run| Value::Object(fields(plan, run))).collect();
    json!({ "runs": runs })
}

/// The jobs that count, each with its deadline.
fn counted<'a>(
    plan: &'a RunnerPlan,
    run: &'a PolicyRun,
) -> impl Iterator<Item = (&'a JobRecord, Option<Time>)> + Clone {
    let (from, to) = plan.range.map_or((0, usize::MAX), |range| (range.from, range.to));
    let jobs = run.outcome.record.jobs.iter().zip(plan.trace.jobs.iter().map(|job| job.deadline));
    jobs.skip(from).take(to - from)
}

/// The figures of a run.
pub(crate) fn summary(plan: &RunnerPlan, run: &PolicyRun) -> Summary {
    Summary::new(counted(plan, run))
}

/// All that is told of a run.
pub(crate) fn fields(plan: &RunnerPlan, run: &PolicyRun) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("policy".into(), json!(run.policy));
    fields.insert("trace".into(), json!(plan.trace.source));
    fields.insert("format".into(), json!(plan.trace.format));
    fields.insert("cluster".into(), json!(plan.cluster.text));
    fields.insert("seed".into(), json!(plan.seed));
    fields.insert("round_s".into(), json!(run.round.secs()));
    fields.insert("strict_rounds".into(), json!(!run.fill));
    fields.insert("placer".into(), json!(run.placer));
    fields.insert("overheads".into(), json!(plan.overheads.name));
    fields.insert("belief".into(), json!(plan.belief()));
    fields.insert("belief_error".into(), json!(run.outcome.belief_error));
    if plan.lengths != ToldLengths::Known {
        fields.insert("lengths".into(), json!(plan.lengths.to_string()));
    }
    fields.insert("compat".into(), json!(plan.compat.map(|compat| compat.name)));
    fields.insert("priorities_ignored".into(), json!(plan.ignores_priorities));
    let Ok(Value::Object(figures)) = serde_json::to_value(summary(plan, run)) else {
        unreachable!("a summary is an object")
    };
    fields.extend(figures);
    let more = json!({
        "utilization": utilization(plan, run),
        "rounds": run.outcome.ledger.rounds,
        "plans": run.outcome.ledger.plans,
        "cost": cost(plan, run),
        "prices": prices(plan, run),
        "plan_gap_max": run.outcome.record.prices.gap_max,
        "asked_received_error": run.outcome.record.follow.error(),
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "plan_s": run.plan_s,
        "peak_rss_mib": clock::peak_rss_mib(),
        "events_sha256": run.outcome.events_sha256,
    });
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    fields
}

/// Device time held against device time there was, from the first submission to the last end.
fn utilization(plan: &RunnerPlan, run: &PolicyRun) -> Option<f64> {
    let span = (run.outcome.end - plan.start()).0 as f64 * plan.cluster.devices() as f64;
    (span > 0.0).then(|| run.outcome.record.used.iter().sum::<u128>() as f64 / span)
}

/// What the device-hours cost, where the cluster file names prices.
fn cost(plan: &RunnerPlan, run: &PolicyRun) -> Option<f64> {
    let prices = &plan.cluster.prices;
    let hours = run.outcome.record.used.iter().map(|used| *used as f64 / 3.6e9);
    (!prices.is_empty()).then(|| hours.zip(prices).map(|(hours, price)| hours * price).sum())
}

/// What a device of each kind cost on average, where the policy has prices.
fn prices(plan: &RunnerPlan, run: &PolicyRun) -> Option<Map<String, Value>> {
    let means = run.outcome.record.prices.means()?;
    let names = plan.cluster.kinds.ids().map(|kind| plan.cluster.kinds.name(kind).to_owned());
    Some(names.zip(means.into_iter().map(|mean| json!(mean))).collect())
}

/// A table for people.
pub(crate) fn table(plan: &RunnerPlan, runs: &[PolicyRun], out: &mut dyn Write) -> anyhow::Result<()> {
    let header = [
        "policy",
        "finished",
        "avg JCT",
        "p50",
        "p90",
        "p99",
        "makespan",
        "avg queue",
        "util",
        "preempt",
        "miss",
        "max ρ",
    ];
    let mut table = output::table(&header, 1);
    for run in runs {
        let figures = summary(plan, run);
        table.add_row([
            run.policy.clone(),
            format!("{}/{}", figures.finished, figures.jobs),
            human(figures.avg_jct_s),
            human(figures.p50_jct_s),
            human(figures.p90_jct_s),
            human(figures.p99_jct_s),
            human(figures.makespan_s),
            human(figures.avg_queue_s),
            utilization(plan, run).map_or("–".into(), |used| format!("{:.1}%", used * 100.0)),
            figures.preemptions.to_string(),
            figures.deadline_miss_ratio.map_or("–".into(), |ratio| format!("{:.1}%", ratio * 100.0)),
            figures.max_rho.map_or("–".into(), |rho| format!("{rho:.2}")),
        ]);
    }
    writeln!(out, "{table}")?;
    let (jobs, devices) = (plan.trace.jobs.len(), plan.cluster.devices());
    let wall: f64 = runs.iter().map(|run| run.wall_s).sum();
    let rate = (jobs * runs.len()) as f64 / wall.max(1e-9);
    writeln!(
        out,
        "{jobs} jobs of {} ({}) on {} ({devices} devices), overheads {}, seed {}; {rate:.0} jobs/s",
        plan.trace.source, plan.trace.format, plan.cluster.text, plan.overheads.name, plan.seed
    )?;
    refused(runs).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if plan.lengths != ToldLengths::Known {
        writeln!(out, "lengths {}", plan.lengths)?;
    }
    if plan.ignores_priorities {
        writeln!(out, "priorities ignored")?;
    }
    if plan.belief() != "oracle" {
        writeln!(out, "belief {}", belief(plan, runs))?;
    }
    Ok(())
}

/// How many jobs were never taken, and why, the commonest reasons first; policies that agree share a line.
fn refused(runs: &[PolicyRun]) -> Vec<String> {
    const REASONS: usize = 3;
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs.iter().filter(|run| !run.outcome.record.refused.is_empty()) {
        let mut reasons: Vec<_> = run.outcome.record.refused.iter().collect();
        reasons.sort_by_key(|(_, jobs)| std::cmp::Reverse(**jobs));
        let all: u64 = reasons.iter().map(|(_, jobs)| **jobs).sum();
        let shown: Vec<_> =
            reasons.iter().take(REASONS).map(|(why, jobs)| format!("{why} ({jobs})")).collect();
        let more = if reasons.len() > REASONS { "; and other reasons" } else { "" };
        let said = format!("{all} jobs were refused: {}{more}", shown.join("; "));
        match lines.iter_mut().find(|(known, _)| *known == said) {
            Some((_, policies)) => policies.push(&run.policy),
            None => lines.push((said, vec![&run.policy])),
        }
    }
    let everyone = lines.len() == 1 && lines[0].1.len() == runs.len();
    let named = |(said, policies): (String, Vec<&str>)| {
        if everyone { said } else { format!("{}: {said}", policies.join(", ")) }
    };
    lines.into_iter().map(named).collect()
}

/// The belief by name, and how far off it was.
fn belief(plan: &RunnerPlan, runs: &[PolicyRun]) -> String {
    let off = |run: &PolicyRun| {
        run.outcome.belief_error.map(|error| format!("{} {:.1} %", run.policy, error * 100.0))
    };
    match runs.iter().filter_map(off).collect::<Vec<_>>() {
        errors if errors.is_empty() => plan.belief().to_owned(),
        errors => {
            format!("{}; mean error of believed speeds at starts: {}", plan.belief(), errors.join(", "))
        }
    }
}

/// One row a job and policy.
pub(crate) fn per_job(plan: &RunnerPlan, runs: &[PolicyRun]) -> String {
    let mut text = String::from(
        "policy,job_id,submit_s,gpus,start_s,end_s,jct_s,queue_s,preemptions,migrations,rho,state,restarts,gpu_hours\n",
    );
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for run in runs {
        for (job, row) in plan.trace.jobs.iter().zip(&run.outcome.record.jobs) {
            let state = format!("{:?}", row.state).to_lowercase();
            let cells = [
                quoted(&run.policy),
                quoted(&job.name),
                row.submit.secs().to_string(),
                row.gpus.to_string(),
                number(row.first_start.map(Time::secs)),
                number(row.end.map(Time::secs)),
                number(summary::jct(row)),
                number(summary::wait(row)),
                row.preemptions.to_string(),
                row.migrations.to_string(),
                number(row.rho),
                state,
                row.starts.saturating_sub(1).to_string(),
                (Span(row.service).secs() / 3600.0).to_string(),
            ];
            let _ = writeln!(text, "{}", cells.join(","));
        }
    }
    text
}

/// One row an instant and policy.
pub(crate) fn series(plan: &RunnerPlan, runs: &[PolicyRun]) -> String {
    let mut text = String::from("policy,t_s,running_jobs,queued_jobs,used_gpus,queued_gpus,utilization\n");
    let devices = f64::from(plan.cluster.devices());
    for run in runs {
        for sample in &run.outcome.record.series {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                quoted(&run.policy),
                (sample.time - plan.start()).secs(),
                sample.running_jobs,
                sample.queued_jobs,
                sample.used_gpus,
                sample.queued_gpus,
                sample.used_gpus as f64 / devices
            );
        }
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The page to look at.
pub(crate) fn html(plan: &RunnerPlan, runs: &[PolicyRun]) -> String {
    let settings = [
        ("trace", format!("{} ({}), {} jobs", plan.trace.source, plan.trace.format, plan.trace.jobs.len())),
        ("cluster", format!("{} ({} devices)", plan.cluster.text, plan.cluster.devices())),
        ("overheads", plan.overheads.name.clone()),
        ("belief", belief(plan, runs)),
        ("lengths", plan.lengths.to_string()),
        ("compat", plan.compat.map_or("–", |compat| compat.name).into()),
        ("seed", plan.seed.to_string()),
        ("rounds", runs.iter().map(rounds).collect::<Vec<_>>().join(", ")),
        (
            "placer",
            runs.iter()
                .map(|run| run.placer.as_str())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join(", "),
        ),
    ];
    report::render(&ReportPage {
        title: format!("{} on {}", plan.trace.source, plan.cluster.text),
        command: command_line(),
        version: format!("yard {}", env!("CARGO_PKG_VERSION")),
        settings: settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        jobs: plan.trace.jobs.iter().map(|job| report_job(plan, job)).collect(),
        runs: runs.iter().map(|run| report_run(plan, run)).collect(),
    })
}

fn report_job(plan: &RunnerPlan, job: &TraceJob) -> report::ReportJob {
    report::ReportJob {
        name: job.name.to_string(),
        team: job.tenant.clone().or_else(|| job.user.clone()),
        submit_s: (job.submit - plan.start()).secs(),
        gpus: job.gpus,
    }
}

fn rounds(run: &PolicyRun) -> String {
    if run.round == Span::ZERO {
        format!("{} by event", run.policy)
    } else {
        format!("{} {}", run.policy, run.round)
    }
}

/// The command as it was given, quoted where a shell needs it.
pub(crate) fn command_line() -> String {
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    format!("yard {}", quoted_line(&args))
}

/// Arguments as one line for a shell.
pub(crate) fn quoted_line(args: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=#@%+".contains(c);
    let quote = |arg: &String| {
        if arg.chars().all(plain) { arg.clone() } else { format!("'{}'", arg.replace('\'', "'\\''")) }
    };
    args.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn report_run(plan: &RunnerPlan, run: &PolicyRun) -> report::ReportRun {
    let start = plan.start();
    let since = |time: Time| (time - start).secs();
    let record = &run.outcome.record;
    let jobs = plan.trace.jobs.iter().zip(&record.jobs).enumerate().filter_map(|(at, (job, row))| {
        Some(report::ReportRow {
            job: at as u32,
            gpus: row.gpus,
            wait_s: summary::wait(row)?,
            jct_s: summary::jct(row)?,
            preemptions: row.preemptions,
            gpu_h: (Span(row.service).secs() - row.shared) / 3600.0,
            rho: row.rho,
            met: job.deadline.map(|deadline| {
                row.state == JobState::Succeeded && row.end.is_some_and(|end| end <= deadline)
            }),
        })
    });
    let samples = record.series.iter().map(|sample| report::ReportSample {
        t: since(sample.time),
        queued_jobs: sample.queued_jobs,
        queued_gpus: sample.queued_gpus,
        running_jobs: sample.running_jobs,
        used_gpus: sample.used_gpus,
    });
    let bars = record.bars.iter().map(|bar| report::Bar {
        node: bar.node,
        first_device: bar.first,
        devices: bar.devices,
        job: bar.job.0 as u32,
        start_s: since(bar.start),
        end_s: since(bar.end),
        lane: bar.lane,
    });
    let nodes = plan.cluster.nodes.iter().map(|node| report::ReportNode {
        name: node.name.clone(),
        kind: plan.cluster.kinds_of(node),
        gpus: node.devices(),
    });
    let prices = record.prices.samples.kept().iter().map(|plan| report::ReportPlanSample {
        t: since(plan.time),
        prices: plan.prices.clone(),
        objective: plan.objective,
        gap: plan.gap,
    });
    let followed = record.follow.points.kept().iter().map(|point| (point.asked, point.received));
    report::ReportRun {
        policy: run.policy.clone(),
        summary: fields(plan, run),
        end_s: record.jobs.iter().filter_map(|job| job.end).map(since).fold(0.0, f64::max),
        jobs: jobs.collect(),
        series: samples.collect(),
        bars: bars.collect(),
        bars_cut: record.bars_cut,
        nodes: nodes.collect(),
        kinds: plan.cluster.kinds.ids().map(|kind| plan.cluster.kinds.name(kind).to_owned()).collect(),
        plans: prices.collect(),
        followed: followed.collect(),
    }
}
