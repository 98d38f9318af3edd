//! `yard sim`: one trace, one cluster, one or several policies, side by side.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use yard_core::Span;
use yard_sim::faults::Faults;
use yard_sim::lengths::ToldLengths;

use crate::output::{self, OutputFormat};
use crate::results;
use crate::runner::{self, RunnerPlan};
use crate::study::sweep::Sweep;
use crate::study::{self, bundle};

const EXAMPLES: &str = "Examples:
  yard sim --trace day.csv --cluster gpu:8x8 --policy fifo,srtf,tiresias --html report.html
  yard sim --trace 60_job.csv --cluster gpu:2x4 --policy fjf,shortest,dlas-gpu --compat tiresias
  yard sim --trace raw-traces.tar.gz#cluster04 --cluster gpu:40x8 --policy tiresias --round 360s
  yard sim --trace gen:philly:jobs=500:rate=60 --cluster gpu:16x8 --policy fifo,srtf --seeds 10 --sweep load=0.5..1.1
  yard sim --trace day.csv --cluster gpu:8x8 --policy fifo,exec:./mine.py
  yard sim --trace day.csv --cluster v100:9x4,p100:9x4 --policy tiresias:thresholds=3600/36000:promote=8

Equal inputs and seeds give equal results: events_sha256 is the same on every machine.";

/// What to simulate.
#[derive(clap::Args, Clone)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimArgs {
    /// Trace file; FILE.tar.gz#MEMBER selects one cluster of an archive. Or gen:PRESET:jobs=N:rate=PER_HOUR, which draws jobs from the seed of the run (presets: see yard trace gen)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: String,
    /// Cluster: kind:NODESxGPUS[,…], kind:GPUS for one-GPU nodes, a TOML file, or a CSV file of nodes
    #[arg(long, value_name = "SPEC")]
    pub(crate) cluster: String,
    /// Policies, separated by commas; NAME:key=value sets parameters (see `yard policies --params`). exec:./mine.py runs a program of your own (docs/exec-policies.md)
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', required = true)]
    pub(crate) policy: Vec<String>,
    /// Trace format: yard, gavel, philly, itp, muri, tiresias, chronus, elasticflow, sia, shockwave, openb, helios or pai; auto: detect from the header
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub(crate) format: String,
    /// Table of steps per second by kind, model and GPUs: Gavel's JSON, ElasticFlow's folder, Sia's folder of profiles, or CSV or TOML with kind,model,batch_size,gpus,steps_per_s and optionally spread,beside_model,beside_batch_size
    #[arg(long, value_name = "FILE")]
    pub(crate) throughputs: Option<PathBuf>,
    /// What the scheduler may choose for all jobs: rigid: nothing; strong: the number of devices, at a fixed batch size;
    /// adaptive: both [default: as the trace says]
    #[arg(long, value_name = "HOW", value_parser = ["rigid", "strong", "adaptive"])]
    pub(crate) jobs_as: Option<String>,
    /// Round length, such as 360s, 6m or 1h; 0 decides at each event; auto: √(2·c·t) for restart costs c and
    /// durations t of the trace's jobs, from 30s to 30m [default: 360s, or 0 for policies that need no rounds]
    #[arg(long, value_name = "TIME|auto")]
    pub(crate) round: Option<RoundFlag>,
    /// Leave devices that become free within a round idle until the next, as the papers' simulators do
    #[arg(long)]
    pub(crate) strict_rounds: bool,
    /// Promise deadlines at submission and keep them ahead of the policy's order; a deadline that cannot be met is not promised
    #[arg(long)]
    pub(crate) promises: bool,
    /// Job priorities: honour: policies that cannot use them are refused; ignore: all jobs have priority 0
    #[arg(long, default_value = "honour", value_name = "HOW", value_parser = ["honour", "ignore"])]
    pub(crate) priorities: String,
    /// Placement of jobs on devices: count, pack, spread or yarn [default: pack]
    #[arg(long, value_name = "NAME")]
    pub(crate) placer: Option<String>,
    /// Whether the speed of a gang depends on its placement on one or several nodes, if the table has both: aware or ignored [default: aware]
    #[arg(long, value_name = "HOW", value_parser = ["aware", "ignored"])]
    pub(crate) placement: Option<String>,
    /// Costs of starting, checkpointing and restoring: h200, none, sia, elasticflow, chronus, muri, or a TOML file [default: h200; with Sia's profiles: sia]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) overheads: Option<String>,
    /// Speeds that the scheduler assumes; oracle: the true ones; learned: guesses from a few reference models (with Sia's profiles: from measurements on one device), corrected by what jobs report
    #[arg(long, default_value = "oracle", value_parser = ["oracle", "learned"])]
    pub(crate) belief: String,
    /// With --belief learned, the fraction of each model's pairs with reference models that is measured beforehand
    #[arg(long, value_name = "FRACTION", default_value_t = 0.3)]
    pub(crate) profiled: f64,
    /// Job lengths that the scheduler knows; known: the true ones; unknown: none, it learns from all jobs that ended;
    /// predicted: none, it learns from past jobs of the same user, name and size; noisy:F: wrong by a factor of up to F
    #[arg(long, value_name = "HOW", default_value = "known")]
    pub(crate) lengths: ToldLengths,
    /// Settings that reproduce a paper's simulator: tiresias, muri, blox, gavel, elasticflow or chronus
    #[arg(long, value_name = "NAME")]
    pub(crate) compat: Option<String>,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Run N seeds, starting with --seed, and show means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Studies")]
    pub(crate) seeds: u32,
    /// Run with each value of a setting: KEY=A,B,C, KEY=FROM..TO or KEY=FROM..TO:STEP. Keys: load, round, cluster, placer, overheads, lengths, profiled, node-mtbf, repair, slow-nodes, slow-factor, or POLICY:PARAMETER. Repeatable, for all combinations
    #[arg(long, value_name = "KEY=VALUES", help_heading = "Studies")]
    pub(crate) sweep: Vec<Sweep>,
    /// Scale the time between arrivals so that jobs request this fraction of the cluster's device time, such as 0.9
    #[arg(long, value_name = "FRACTION", help_heading = "Studies")]
    pub(crate) load: Option<f64>,
    /// Write running and waiting jobs, and devices used and requested, over time
    #[arg(long, value_name = "FILE.csv", help_heading = "Studies")]
    pub(crate) series: Option<PathBuf>,
    /// Make a folder that reproduces the result: inputs with hashes, command, build, results and figures. yard bundle DIR runs it again
    #[arg(long, value_name = "DIR", help_heading = "Studies")]
    pub(crate) bundle: Option<PathBuf>,
    /// Compute statistics only over jobs A..B by arrival, as papers do
    #[arg(long, value_name = "A..B")]
    pub(crate) jobs: Option<JobRange>,
    /// Mean time between failures of a node, such as 30d
    #[arg(long, value_name = "TIME", help_heading = "Faults")]
    pub(crate) node_mtbf: Option<Duration>,
    /// Time until a failed node is repaired
    #[arg(long, value_name = "TIME", default_value = "1h", help_heading = "Faults")]
    pub(crate) repair: Duration,
    /// Fraction of nodes that are slow
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0, help_heading = "Faults")]
    pub(crate) slow_nodes: f64,
    /// Speed of a slow node relative to a normal one
    #[arg(long, value_name = "FACTOR", default_value_t = 0.5, help_heading = "Faults")]
    pub(crate) slow_factor: f64,
    /// CSV with at_s,kind,nodes: how many nodes of a kind are available from a time on. Nodes whose jobs are cheapest to stop leave first
    #[arg(long, value_name = "FILE")]
    pub(crate) lend: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    /// Write an HTML report: one self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write all events as JSON lines (with several policies, one file each: FILE.POLICY)
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write one row per job
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) per_job: Option<PathBuf>,
}

pub(crate) fn run(args: &SimArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    args.bundle.as_deref().map_or(Ok(()), bundle::check_target)?;
    if args.seeds > 1 || !args.sweep.is_empty() {
        return study::run(args, out);
    }
    let plan = RunnerPlan::new(args)?;
    plan.notes.iter().for_each(|note| output::note(&format!("note: {note}")));
    let runs = runner::run_all(&plan, args)?;
    for run in &runs {
        let open = run.outcome.record.jobs.iter().filter(|job| job.end.is_none()).count();
        if open > 0 {
            output::note(&format!("warning: {}: {open} jobs did not finish", run.policy));
        }
        if let Some(reason) = &run.outcome.record.last_failure {
            let count = run.outcome.record.failed_plans;
            output::note(&format!("warning: {}: {count} plans failed; the last one: {reason}", run.policy));
        }
    }
    match args.output {
        OutputFormat::Json => results::json(&plan, &runs, out)?,
        OutputFormat::Table => results::table(&plan, &runs, out)?,
    }
    if let Some(path) = &args.per_job {
        output::write_whole(path, results::per_job(&plan, &runs).as_bytes())?;
    }
    if let Some(path) = &args.series {
        output::write_whole(path, results::series(&plan, &runs).as_bytes())?;
    }
    if let Some(folder) = &args.bundle {
        let files =
            [("jobs.csv", results::per_job(&plan, &runs)), ("series.csv", results::series(&plan, &runs))];
        bundle::write(folder, &results::to_json(&plan, &runs), &files)?;
        output::note(&format!("bundle: {}", folder.display()));
    }
    if let Some(path) = &args.html {
        output::write_whole(path, results::html(&plan, &runs).as_bytes())?;
        output::note(&format!("report: {}", path.display()));
    }
    Ok(())
}

impl SimArgs {
    pub(crate) fn faults(&self) -> anyhow::Result<Faults> {
        if !(0.0..=1.0).contains(&self.slow_nodes) {
            bail!("--slow-nodes {}: give a fraction from 0 to 1", self.slow_nodes);
        }
        if !(self.slow_factor > 0.0 && self.slow_factor <= 1.0) {
            bail!("--slow-factor {}: give a factor above 0 and at most 1", self.slow_factor);
        }
        Ok(Faults {
            node_mtbf: self.node_mtbf.map(|time| time.0).filter(|span| *span > Span::ZERO),
            repair: self.repair.0,
            slow_nodes: self.slow_nodes,
            slow_factor: self.slow_factor,
            job_mtbf: None,
            freezing: false,
        })
    }
}

/// A length of time as people write it: 360, 360s, 6m, 1.5h, 2d.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Duration(pub(crate) Span);

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Duration, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            other => return Err(format!("{other:?} is not a unit of time; use s, m, h or d")),
        };
        match digits.parse::<f64>() {
            Ok(number) if (0.0..=1e9).contains(&number) => Ok(Duration(Span::from_secs(number * unit))),
            _ => Err(format!("{text:?} is not a length of time such as 360s, 6m or 1h")),
        }
    }
}

/// Length of a round: given, or chosen to suit the jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RoundFlag {
    Auto,
    Of(Duration),
}

impl FromStr for RoundFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<RoundFlag, String> {
        if text == "auto" { Ok(RoundFlag::Auto) } else { text.parse().map(RoundFlag::Of) }
    }
}

/// Jobs A to B, B not included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JobRange {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl FromStr for JobRange {
    type Err = String;

    fn from_str(text: &str) -> Result<JobRange, String> {
        let parse = || -> anyhow::Result<JobRange> {
            let (from, to) = text.split_once("..").context("no ..")?;
            Ok(JobRange { from: from.parse()?, to: to.parse()? })
        };
        let range = parse().map_err(|_| format!("{text:?} is not a range such as 100..200"))?;
        if range.from >= range.to { Err(format!("{text:?} selects no jobs")) } else { Ok(range) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let seconds = |text: &str| text.parse::<Duration>().map(|duration| duration.0.secs());
        assert_eq!(seconds("360"), Ok(360.0));
        assert_eq!(seconds("1.5h"), Ok(5400.0));
        assert!(seconds("5x").unwrap_err().contains("not a unit"));
        assert!(seconds("-5s").is_err() && seconds("").is_err() && seconds("nan").is_err());
    }

    #[test]
    fn ranges_hold_jobs() {
        assert_eq!("100..200".parse(), Ok(JobRange { from: 100, to: 200 }));
        assert!("5..5".parse::<JobRange>().unwrap_err().contains("no job"));
        assert!("a..b".parse::<JobRange>().is_err());
    }
}
