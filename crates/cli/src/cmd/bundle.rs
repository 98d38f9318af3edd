//! `yard bundle`: runs what a bundle of `yard sim --bundle` was made from, and compares what happened.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::output;
use crate::study::{self, bundle};

const EXAMPLES: &str = "Examples:
  yard sim --trace day.csv --cluster gpu:8x8 --policy fifo,srtf --bundle result
  yard bundle result

Exits with 1 if any event of any run differs.";

/// Which bundle.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BundleArgs {
    /// Folder made by yard sim --bundle
    folder: PathBuf,
}

pub(crate) fn run(args: &BundleArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let (manifest, settings) = bundle::open(&args.folder)?;
    let ours = (env!("CARGO_PKG_VERSION"), bundle::commit());
    if (manifest.yard.as_str(), manifest.commit.as_str()) != ours {
        let (then, at) = (&manifest.yard, &manifest.commit);
        output::note(&format!(
            "note: the bundle was made by yard {then} ({at}); this is yard {} ({})",
            ours.0, ours.1
        ));
    }
    let now = study::digests(&settings)?;
    let same = |at: usize| matches!((now.get(at), manifest.runs.get(at)), (Some(now), Some(then)) if now.is_like(then));
    let runs = manifest.runs.len().max(now.len());
    let different: Vec<usize> = (0..runs).filter(|at| !same(*at)).collect();
    for at in &different {
        match manifest.runs.get(*at) {
            Some(run) => writeln!(out, "differs: {} at seed {}", run.policy, run.seed)?,
            None => writeln!(out, "differs: a run that the bundle does not have")?,
        }
    }
    if different.is_empty() {
        writeln!(out, "identical: {runs} runs, event by event")?;
    }
    Ok(if different.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
