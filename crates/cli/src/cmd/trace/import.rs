//! `yard trace import`: what a cluster recorded, as a trace. It asks no cluster itself: an administrator runs the export
//! and can look at what is handed on.

use std::io::{IsTerminal, Read, Write, stdin};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use yard_sim::trace::{Opened, open, read};

use super::write_native;

pub(super) const EXAMPLES: &str = "\
Nothing is asked of the cluster: export its history there, and import it anywhere.

Slurm, last month (--json works as well):
  sacct --allusers --allocations --duplicates --parsable2 \\
    --starttime 2026-10-01 --endtime 2026-11-01 \\
    --format=JobID,User,Account,State,Submit,Eligible,Elapsed,ReqTRES,AllocTRES > month.txt
  yard trace import slurm month.txt -o month.csv

Kubernetes: the pods that are still listed, or the audit log (level RequestResponse for pods).
For a Prometheus query see docs/from-kubernetes.md.
  kubectl get pods --all-namespaces -o json | yard trace import kubernetes -o pods.csv
  cat audit*.log | yard trace import kubernetes -o month.csv

Then, under any policy:
  yard trace show month.csv
  yard sim --trace month.csv --cluster a100:16x8 --policy fifo,market --html month.html";

/// Arguments of `yard trace import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Source system
    #[arg(value_name = "SYSTEM", value_parser = PossibleValuesParser::new(["slurm", "kubernetes"]))]
    system: String,
    /// Exported file, plain or gzipped [default: stdin]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &ImportArgs, out: &mut dyn Write) -> Result<()> {
    write_native(&export(args)?, args.output.as_deref(), out)
}

fn export(args: &ImportArgs) -> Result<Opened> {
    if let Some(file) = args.file.as_deref().filter(|file| file.as_os_str() != "-") {
        return Ok(open(file, Some(&args.system))?);
    }
    ensure!(
        !stdin().is_terminal(),
        "give the exported file, or pipe it in; yard trace import --help shows how to export it"
    );
    let mut bytes = Vec::new();
    stdin().lock().take(STDIN_BYTES_MAX).read_to_end(&mut bytes).context("cannot read stdin")?;
    ensure!((bytes.len() as u64) < STDIN_BYTES_MAX, "stdin is larger than 2 GiB: import it in parts");
    Ok(read("stdin", &bytes, Some(&args.system))?)
}

/// As much as a file may hold.
const STDIN_BYTES_MAX: u64 = 2 << 30;
