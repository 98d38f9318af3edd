//! `yard what-if`: what would become of a job if it were submitted now, and of the others because of it, beside other
//! ways to ask for it. Nothing is submitted.

use std::io::Write;
use std::path::PathBuf;

use yard_live::api::WhatIf;
use yard_live::request::JobRequest;
use yard_live::views::{DelayView, IntervalView, WhatIfRow, WhatIfView};

use super::submit::SubmitArgs;
use crate::client::{Answer, Client};
use crate::clock;
use crate::output::{self, Format};

const EXAMPLES: &str = "Examples:
  yard what-if job.yaml
  yard what-if --gpus 4 --kind h100 --time 2h
  yard what-if --gpus 8 --time 6h --deadline 18:00 --only
  yard what-if -f job.yaml -o json | jq '.rows[] | select(.best)'

Times are exact if nobody else comes and all jobs take as long as they say; what is in parentheses holds nine times in
ten with jobs like those of the past coming.";

/// A job, as for yard submit; the command may be left out.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhatIfArgs {
    /// A job file in YAML, or a script with #SBATCH lines
    #[arg(value_name = "JOBFILE")]
    job_file: Option<PathBuf>,
    /// Only the job as it is, no other ways to ask for it
    #[arg(long)]
    only: bool,
    #[command(flatten)]
    job: SubmitArgs,
}

pub(crate) fn run(args: WhatIfArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (format, server) = args.job.asked_of();
    let client = Client::new(server)?;
    for request in args.job.only_asked(args.job_file)? {
        let told = ask(&client, &request, !args.only)?;
        match format {
            Format::Json => output::json(&told, out)?,
            Format::Table => {
                let lines = lines(&told, clock::seconds_now());
                lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
    }
    Ok(())
}

/// Asks the server.
pub(super) fn ask(client: &Client, job: &JobRequest, alternatives: bool) -> Answer<WhatIfView> {
    client.post("/v1/what-if", &WhatIf { job: job.clone(), alternatives })
}

/// The answer for people.
pub(super) fn lines(told: &WhatIfView, now: f64) -> Vec<String> {
    let mut table = output::table(&["", "way", "where", "starts in", "ends in", "others"], 6);
    for row in &told.rows {
        let mark = if row.best { "best" } else { "" };
        let (starts, ends) = when(row, now);
        let place = output::plain(&place(row));
        table.add_row([mark, &output::plain(&row.label), &place, &starts, &ends, &others(row)]);
    }
    let mut lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    lines.extend(told.rows.iter().filter_map(refused));
    lines.extend(told.rows.first().into_iter().flat_map(|row| &row.delays).map(delay));
    if told.cut {
        lines.push("some of it is not known: one question may not take more work".to_owned());
    }
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
    (within(row.start, row.start_interval, now), within(row.end, row.end_interval, now) + late)
}

fn within(quiet: Option<f64>, interval: Option<IntervalView>, now: f64) -> String {
    let left = |time: f64| output::brief((time - now).max(0.0));
    let middle = quiet.map_or_else(|| "not within weeks".into(), left);
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
    let delayed = (row.delayed > 0)
        .then(|| format!("{} later by {} in all", jobs(row.delayed), output::brief(row.delayed_s)));
    let stopped = (row.stopped > 0).then(|| format!("{} stopped", jobs(row.stopped)));
    let both: Vec<String> = delayed.into_iter().chain(stopped).collect();
    if both.is_empty() { "none".into() } else { both.join(", ") }
}

fn refused(row: &WhatIfRow) -> Option<String> {
    let why = output::plain(row.refused.as_deref()?);
    let earliest =
        row.earliest.map(|at| format!("; the earliest that can be kept is {}", clock::written(at)));
    Some(format!("{}: refused: {why}{}", row.label, earliest.unwrap_or_default()))
}

fn delay(delay: &DelayView) -> String {
    let DelayView { job, name, delay_s, stops } = delay;
    let stops = if *stops > 0 { format!(", stopped {stops} more times") } else { String::new() };
    format!("job {job} ({}) ends {} later{stops}", output::plain(name), output::brief(*delay_s))
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
            delays: vec![DelayView { job: 7, name: "bert".into(), delay_s: 3_600.0, stops: 2 }],
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
        expect![""].assert_eq(&lines(&told, 100.0).join("\n"));
    }
}
