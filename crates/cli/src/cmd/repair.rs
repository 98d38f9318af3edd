//! `yard repair`: what the scheduler failed on and set aside when it started. It reads the data folder itself,
//! because the server it is about may not be running.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use yard_live::store::{AsideInput, Store, list_aside};

use crate::clock;
use crate::output::{self, OutputFormat};

/// How much of an input the table shows.
const SHOWN: usize = 120;

/// Which data folder, and what to do.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard repair --data /var/lib/yard\n  yard repair --data /var/lib/yard -o json > report.json   # for a bug report\n  yard repair --data /var/lib/yard --retry 10423           # after an upgrade, with the server stopped\n\nAn input on which the scheduler failed is set aside at the next start, so that the server comes up again. Its job\nis rejected, or its report is ignored; nothing else is affected."
)]
pub(crate) struct RepairArgs {
    /// The server's data folder
    #[arg(long, value_name = "DIR", default_value = ".yard")]
    data: PathBuf,
    /// Retry this input at the next start; the server must be stopped
    #[arg(long, value_name = "NUMBER", conflicts_with = "forget")]
    retry: Option<u64>,
    /// Delete everything that was set aside; inputs that are still in the journal are retried at the next start
    #[arg(long)]
    forget: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(crate) fn run(args: &RepairArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.data.join("yard.db").exists(),
        "{} holds no yard.db; give the server's data folder with --data",
        args.data.display()
    );
    match args.retry {
        None if !args.forget => list(args, out),
        seq => retry(args, seq, out),
    }
}

fn list(args: &RepairArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let inputs = list_aside(&args.data)?;
    if args.output == OutputFormat::Json {
        return output::json(&json!({ "set_aside": inputs }), out);
    }
    if inputs.is_empty() {
        return Ok(writeln!(out, "Nothing is set aside.")?);
    }
    for AsideInput { seq, time, set_aside_at, input, reason, in_journal } in &inputs {
        let again = if *in_journal { "" } else { " (no longer in the journal)" };
        let short: String = output::plain(input).chars().take(SHOWN).collect();
        writeln!(out, "input {seq} of {}{again}", clock::written(*time))?;
        writeln!(out, "  set aside {}: {}", clock::written(*set_aside_at), output::plain(reason))?;
        writeln!(out, "  {short}")?;
    }
    Ok(())
}

fn retry(args: &RepairArgs, seq: Option<u64>, out: &mut dyn Write) -> anyhow::Result<()> {
    let count = Store::open(&args.data)?.retry_aside(seq)?;
    if let (0, Some(seq)) = (count, seq) {
        anyhow::bail!("input {seq} is not set aside; yard repair lists those that are");
    }
    let many = if count == 1 { "input" } else { "inputs" };
    Ok(writeln!(out, "{count} {many} will be retried at the next start of the server.")?)
}
