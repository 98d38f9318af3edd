//! `yard explain`: why a job is not running, and what would let it start sooner.

use std::io::Write;

use yard_live::views::Explanation;

use crate::client::{Client, JobRef, ServerArgs};
use crate::output::{self, Format};

/// Jobs in front that are named.
const AHEAD_SHOWN: usize = 10;

/// Which job.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  yard explain last\n  yard explain 12 -o json | jq -r .reason")]
pub(crate) struct ExplainArgs {
    /// The job: its number, or last
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    let id = client.job_id(args.job)?;
    let told: Explanation = client.get(&format!("/v1/jobs/{id}/explain"), &[])?;
    match args.output {
        Format::Json => output::json(&told, out),
        Format::Table => print(&told, out),
    }
}

fn print(told: &Explanation, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "job {} is {} ({}): {}", told.job, told.state, told.reason, output::plain(&told.text))?;
    for (name, value) in &told.numbers {
        writeln!(out, "  {:20} {}", output::plain(name), number(*value))?;
    }
    if !told.prices.is_empty() {
        let prices: Vec<_> =
            told.prices.iter().map(|(kind, price)| format!("{kind} {}", number(*price))).collect();
        writeln!(out, "prices: {}", output::plain(&prices.join(", ")))?;
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

fn number(value: f64) -> String {
    if value == value.round() && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:.3}") }
}
