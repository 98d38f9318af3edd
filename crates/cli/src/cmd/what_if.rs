//! `yard what-if`: what would become of a job if it were submitted now, and of the others because of it, beside other
//! ways to ask for it; or who would be hit if a node were drained or failed; or how the past would have gone. Nothing
//! happens.

mod history;

use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;
use yard_live::request::{JobRequest, times};
use yard_live::views::{DelayView, IntervalView, UnknownView, WhatIfRow, WhatIfView};
use yard_live::what_if::WhatIf;

use super::submit::SubmitArgs;
use crate::client::{Answer, Client};
use crate::clock;
use crate::output::{self, OutputFormat};

const EXAMPLES: &str = "Examples:
  yard what-if job.yaml
  yard what-if --gpus 4 --kind h100 --time 2h
  yard what-if --gpus 8 --time 6h --deadline 18:00 --only
  yard what-if -f job.yaml -o json | jq '.rows[] | select(.best)'
  yard what-if --drain node-3 --at 18:00      # which jobs it would affect
  yard what-if --fail node-3
  yard what-if --history 7d --policy sia,srtf     # the last week under other policies
  yard what-if --history 7d --add h100:2x8 --price h100=2.5 --html week.html
  yard what-if --history 24h --remove node-3 --round 120s -o json

Times assume that no other jobs are submitted and that all jobs take as long as they state; those with a ~ are
usually right to within 25 %. The ranges in parentheses hold 9 times in 10 if jobs keep arriving as in the past.";

const CUT: &str = "incomplete: the limit of work for one question was reached";

/// A job, as for yard submit; the command may be left out.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhatIfArgs {
    /// A job file in YAML, or a script with #SBATCH lines
    #[arg(value_name = "JOBFILE")]
    job_file: Option<PathBuf>,
    /// Only this job, without alternative ways to request it
    #[arg(long)]
    only: bool,
    /// Instead of a job: drain this node
    #[arg(long, value_name = "NODE", conflicts_with_all = ["job_file", "only"], help_heading = "A node")]
    drain: Option<String>,
    /// With --drain: also move its jobs to other nodes
    #[arg(long, requires = "drain", help_heading = "A node")]
    evict: bool,
    /// Instead of a job: this node fails
    #[arg(long, value_name = "NODE", conflicts_with_all = ["job_file", "only", "drain"], help_heading = "A node")]
    fail: Option<String>,
    /// When it drains or fails, written like a deadline [default: now]
    #[arg(long, value_name = "TIME", help_heading = "A node")]
    at: Option<String>,
    #[command(flatten)]
    history: history::HistoryArgs,
    #[command(flatten)]
    job: SubmitArgs,
}

/// Said below a table in which a time has no interval.
const OR_LATER: &str =
    "or later: this depends on which jobs arrive and how long others take, too uncertain for a range";

pub(crate) fn run(args: WhatIfArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (format, server) = args.job.asked_of();
    let client = Client::new(server)?;
    if let Some(asked) = args.history.question()? {
        return history::run(&args.history, asked, &client, format, out);
    }
    for asked in questions(args)? {
        let told: WhatIfView = client.post("/v1/what-if", &asked)?;
        match format {
            OutputFormat::Json => output::json(&told, out)?,
            OutputFormat::Table => {
                let job = asked.job.is_some();
                let lines = if job { lines(&told, clock::seconds_now()) } else { hits(&told) };
                lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
    }
    Ok(())
}

/// One about a node, or one for each job.
fn questions(args: WhatIfArgs) -> anyhow::Result<Vec<WhatIf>> {
    let WhatIfArgs { drain, evict, fail, at, .. } = &args;
    if drain.is_some() || fail.is_some() {
        let moment = |at: &str| times::moment(at, &clock::now()).map_err(|why| anyhow!("--at: {why}"));
        let at = at.as_deref().map(moment).transpose()?;
        let (drain, fail) = (drain.clone(), fail.clone());
        return Ok(vec![WhatIf { drain, evict: *evict, fail, at, ..WhatIf::default() }]);
    }
    anyhow::ensure!(at.is_none(), "--at is for --drain and --fail; for a job there is --begin");
    let jobs = args.job.only_asked(args.job_file)?;
    Ok(jobs.into_iter().map(|job| about(job, !args.only)).collect())
}

fn about(job: JobRequest, alternatives: bool) -> WhatIf {
    WhatIf { job: Some(job), alternatives: Some(alternatives), ..WhatIf::default() }
}

/// Asks the server about a job, and about other ways to ask for it.
pub(super) fn ask(client: &Client, job: &JobRequest) -> Answer<WhatIfView> {
    client.post("/v1/what-if", &about(job.clone(), true))
}

/// The answer for people.
pub(super) fn lines(told: &WhatIfView, now: f64) -> Vec<String> {
    let mut table = output::table(&["", "request", "where", "starts in", "ends in", "other jobs"], 6);
    for row in &told.rows {
        let mark = if row.best { "best" } else { "" };
        let (starts, ends) = when(row, now);
        let place = output::plain(&place(row));
        table.add_row([mark, &output::plain(&row.label), &place, &starts, &ends, &others(row)]);
    }
    let mut lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    lines.extend(told.rows.iter().filter_map(refused));
    lines.extend(told.rows.first().into_iter().flat_map(|row| &row.delays).map(delay));
    let open = told
        .rows
        .iter()
        .any(|row| row.refused.is_none() && (row.start_unknown.or(row.end_unknown)).is_some());
    lines.extend(open.then(|| OR_LATER.to_owned()));
    lines.extend(told.cut.then(|| CUT.to_owned()));
    lines
}

/// Who is hit by what happens to a node.
fn hits(told: &WhatIfView) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &told.rows {
        lines.push(format!("{}: {}", output::plain(&row.label), others(row)));
        lines.extend(row.delays.iter().map(delay));
    }
    lines.extend(told.cut.then(|| CUT.to_owned()));
    lines
}

fn place(row: &WhatIfRow) -> String {
    match &row.kind {
        Some(kind) => format!("{} {kind}", row.nodes.join(" ")),
        None => String::new(),
    }
}

/// When it starts and when it ends.
fn when(row: &WhatIfRow, now: f64) -> (String, String) {
    if row.refused.is_some() {
        return ("refused".into(), String::new());
    }
    let late = if row.in_time == Some(false) { ", too late" } else { "" };
    let none = if row.cut { "not computed" } else { "not within weeks" };
    let told = |quiet: Option<f64>, interval, why: Option<UnknownView>, rough: bool| {
        let about = if rough && quiet.is_some() { "~" } else { "" };
        let open = why.filter(|_| quiet.is_some()).map_or("", |_| " or later");
        format!("{about}{}{open}", within(quiet, interval, now, none))
    };
    let start = told(row.start, row.start_interval, row.start_unknown, row.rough);
    (start, told(row.end, row.end_interval, row.end_unknown, row.rough_end) + late)
}

fn within(quiet: Option<f64>, interval: Option<IntervalView>, now: f64, none: &str) -> String {
    // What has come by now has no span before it.
    let left = |time: f64| if time - now < 1.0 { "now".into() } else { output::brief(time - now) };
    let middle = quiet.map_or_else(|| none.into(), left);
    let Some(IntervalView { low, high, .. }) = interval else { return middle };
    // What is exact lies within.
    let low = quiet.map_or(low, |quiet| quiet.min(low));
    let high = high.map(|high| quiet.map_or(high, |quiet| quiet.max(high)));
    if high.is_some_and(|high| high - low < 1.0) {
        return middle;
    }
    format!("{middle} ({} to {})", left(low), high.map_or_else(|| "…".into(), left))
}

fn others(row: &WhatIfRow) -> String {
    let jobs = |n: usize| if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") };
    let later = row.delayed - row.stranded.min(row.delayed);
    let delayed =
        (later > 0).then(|| format!("{} delayed by {} in total", jobs(later), output::brief(row.delayed_s)));
    let stopped = (row.stopped > 0).then(|| format!("{} stopped", jobs(row.stopped)));
    let stranded = (row.stranded > 0).then(|| format!("{} would not finish", jobs(row.stranded)));
    let late = (row.late > 0).then(|| format!("{} would miss their deadline", jobs(row.late)));
    let all: Vec<String> = [delayed, stopped, stranded, late].into_iter().flatten().collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

fn refused(row: &WhatIfRow) -> Option<String> {
    let why = output::plain(row.refused.as_deref()?);
    let earliest = row
        .earliest
        .map(|at| format!("; the earliest deadline that can be promised is {}", clock::written(at)));
    Some(format!("{}: refused: {why}{}", row.label, earliest.unwrap_or_default()))
}

fn delay(delay: &DelayView) -> String {
    let DelayView { job, name, delay_s, stops, late } = delay;
    let ends =
        delay_s.map_or_else(|| "would not finish".into(), |by| format!("ends {} later", output::brief(by)));
    let stops = match stops {
        0 => String::new(),
        1 => ", stopped once more".into(),
        n => format!(", stopped {n} more times"),
    };
    let late = if *late { ", after its deadline" } else { "" };
    format!("job {job} ({}) {ends}{stops}{late}", output::plain(name))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_best_way_is_marked_and_losses_are_named() {
        let interval = |low, mid, high| Some(IntervalView { low, mid, high });
        let asked = WhatIfRow {
            label: "as asked".into(),
            kind: Some("h100".into()),
            nodes: vec!["n1[0,1]".into()],
            start: Some(820.0),
            end: Some(8_000.0),
            start_interval: interval(340.0, 900.0, Some(2_500.0)),
            end_interval: interval(7_000.0, 9_000.0, None),
            in_time: Some(false),
            delayed: 3,
            delayed_s: 5_000.0,
            stopped: 1,
            delays: vec![DelayView {
                job: 7,
                name: "bert".into(),
                delay_s: Some(3_600.0),
                stops: 2,
                late: true,
            }],
            ..WhatIfRow::default()
        };
        let half = WhatIfRow {
            label: "1 device".into(),
            best: true,
            start: Some(100.0),
            end: Some(700.0),
            in_time: Some(true),
            ..WhatIfRow::default()
        };
        let no = WhatIfRow { label: "on v100".into(), refused: Some("no".into()), ..WhatIfRow::default() };
        let told = WhatIfView { made_at: 0.0, rows: vec![asked, half, no], cut: true };
        expect![[r#"
                   request   where         starts in        ends in                       other jobs
                   as asked  n1[0,1] h100  12m (4m to 40m)  2h11m (1h55m to …), too late  3 jobs delayed by 1h23m in total, 1 job stopped
             best  1 device                now              10m                           none
                   on v100                 refused                                        none
            on v100: refused: no
            job 7 (bert) ends 1h00m later, stopped 2 more times, after its deadline
            incomplete: the limit of work for one question was reached"#]]
        .assert_eq(&lines(&told, 100.0).join("\n"));
        let row = WhatIfRow {
            label: "n1 fails".into(),
            delayed: 2,
            stranded: 1,
            stopped: 2,
            ..WhatIfRow::default()
        };
        let told = WhatIfView { made_at: 0.0, rows: vec![row], cut: false };
        assert_eq!(
            hits(&told),
            ["n1 fails: 1 job delayed by 0s in total, 2 jobs stopped, 1 job would not finish"]
        );
    }
}
