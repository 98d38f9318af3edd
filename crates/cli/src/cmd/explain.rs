//! `yard explain`: why a job is not running, and what would let it start sooner.

use std::io::Write;

use yard_live::views::{Explanation, WayView};

use super::jobs::{self, within};
use crate::client::{Client, JobRef, ServerArgs};
use crate::clock;
use crate::output::{self, OutputFormat};

/// Jobs in front that are named.
const AHEAD_SHOWN: usize = 10;

/// Ways to run that are listed.
const WAYS_SHOWN: usize = 8;

/// Which job.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  yard explain last\n  yard explain 12 -o json | jq -r .reason")]
pub(crate) struct ExplainArgs {
    /// Job number, or last
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let id = client.job_id(args.job)?;
    let told: Explanation = client.get(&format!("/v1/jobs/{id}/explain"), &[])?;
    match args.output {
        OutputFormat::Json => output::json(&told, out),
        OutputFormat::Table => print(&told, clock::seconds_now(), out),
    }
}

fn print(told: &Explanation, now: f64, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "job {} is {} ({}): {}", told.job, told.state, told.reason, output::plain(&told.text))?;
    if let Some(estimate) = &told.estimate {
        if told.state == "pending" {
            let why = jobs::start_unknown(estimate.start_unknown);
            writeln!(out, "starts {}", within(estimate.start, why, now))?;
        }
        writeln!(out, "ends {}", within(estimate.end, jobs::unknown(estimate.end_unknown), now))?;
    }
    if told.estimate.is_none() && told.state == "pending" && told.reason != "held" {
        writeln!(out, "starts: no estimate yet")?;
    }
    if let Some(length) = &told.length {
        writeln!(out, "length: {}", jobs::length(length))?;
    }
    counts(told).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if !told.prices.is_empty() {
        let prices: Vec<_> =
            told.prices.iter().map(|(kind, price)| format!("{kind} {}", number(*price))).collect();
        writeln!(out, "price of one device full time: {}", output::plain(&prices.join(", ")))?;
    }
    if told.ways.len() > 1 {
        writeln!(out, "ways to run, fastest first:")?;
        told.ways.iter().take(WAYS_SHOWN).try_for_each(|way| writeln!(out, "  {}", line(way)))?;
    }
    if !told.ahead.is_empty() {
        let first: Vec<_> = told.ahead.iter().take(AHEAD_SHOWN).map(u64::to_string).collect();
        let rest = if told.ahead.len() > AHEAD_SHOWN { ", …" } else { "" };
        writeln!(out, "{} ahead of it: {}{rest}", told.ahead.len(), first.join(", "))?;
    }
    if !told.remedies.is_empty() {
        writeln!(out, "what would help:")?;
        told.remedies.iter().try_for_each(|remedy| writeln!(out, "  - {}", output::plain(remedy)))?;
    }
    Ok(())
}

/// The numbers, with what they count. Those that the sentence or the lists below have are not said twice.
fn counts(told: &Explanation) -> Vec<String> {
    let count = |name: &str| told.numbers.get(name).copied();
    let devices = (|| {
        let (needed, free) = (count("needed")?, count("free")?);
        let (up, total) = (count("up")?, count("total")?);
        let out = if up < total { format!(", {} out of service", number(total - up)) } else { String::new() };
        Some(format!(
            "devices it can use: {} of {} are free{out}; it needs at least {}",
            number(free),
            number(up),
            number(needed)
        ))
    })();
    let part = count("share").filter(|part| *part > 0.0 && *part < 1.0);
    let part = part.map(|part| {
        format!("share of time that the policy gives it: {}", format_args!("{:.0} %", part * 100.0))
    });
    let urgent = count("urgent").filter(|jobs| *jobs > 0.0);
    let urgent = urgent.map(|jobs| format!("jobs ahead of it with a higher priority: {}", number(jobs)));
    let waits = matches!(told.state.as_str(), "pending" | "suspended");
    devices.filter(|_| waits).into_iter().chain(part).chain(urgent).collect()
}

fn line(way: &WayView) -> String {
    let price = way.price.map_or_else(String::new, |price| format!("  price {}", number(price)));
    let now = if way.held { "  <- now" } else { "" };
    let size = format!("{} × {}", way.gpus, output::plain(&way.kind));
    format!("{size:14} {} steps/s{price}{now}", number(way.rate))
}

fn number(value: f64) -> String {
    if value == value.round() && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_live::views::{EstimateView, IntervalView, UnknownView};

    #[test]
    fn estimates_are_printed_from_now_on() {
        let times = |low, mid, high| Some(IntervalView { low, mid, high });
        let (start, end) = (times(340.0, 820.0, Some(2_500.0)), times(1_000.0, 4_000.0, None));
        let told = Explanation {
            job: 7,
            state: "pending".into(),
            reason: "capacity".into(),
            text: "Not enough devices are free.".into(),
            numbers: Default::default(),
            ahead: Vec::new(),
            remedies: Vec::new(),
            prices: Default::default(),
            ways: Vec::new(),
            length: None,
            estimate: Some(EstimateView {
                made_at: 90.0,
                start,
                end,
                start_unknown: None,
                end_unknown: None,
            }),
        };
        let mut text = Vec::new();
        print(&told, 100.0, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (brief, rest) = (output::brief, "(15min to unknown, 90 %)");
        let wanted = format!(
            "job 7 is pending (capacity): Not enough devices are free.\nstarts in about {} ({} to {}, 90 %)\nends in about {} {}\n",
            brief(720.0),
            brief(240.0),
            brief(2_400.0),
            brief(3_900.0),
            rest.replace("15min", &brief(900.0))
        );
        assert_eq!(text, wanted);
        let scattered =
            EstimateView { end: None, end_unknown: Some(UnknownView::Scattered), ..told.estimate.unwrap() };
        let mut text = Vec::new();
        print(&Explanation { estimate: Some(scattered), ..told }, 100.0, &mut text).unwrap();
        let wanted = "ends no estimate: it depends on which jobs arrive and how long others take\n";
        assert!(String::from_utf8(text).unwrap().ends_with(wanted));
    }
}
