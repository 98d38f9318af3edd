//! `yard plan`: ask a policy once, and show what it would give to whom, at which prices, how near the optimum.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, FromArgMatches};
use serde_json::{Value, json};
use yard_core::Time;
use yard_core::allocation::{Allocation, Certificate, Mode, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Shape;
use yard_core::view::View;

use super::sim::{Duration, SimArgs};
use crate::output::{self, OutputFormat};
use crate::runner::RunnerPlan;

/// Shares below this part of the time are permission to use what is left over, not part of the plan.
const NEGLIGIBLE: f64 = 1e-6;

/// Rows of the table that a screen can hold.
const ROWS_MAX: usize = 40;

const HELP: &str = "Examples:
  yard plan --trace day.csv --cluster v100:9x4,p100:9x4 --policy max-min --throughputs table.json
  yard plan --trace day.csv --cluster gpu:8x8 --policy srtf --at 6h -o json

Without --at, all jobs of the trace are present at once and none has run. With --at, the trace is simulated under
the same policy up to that time, and the plan is for the jobs present then. Shares are fractions of a job's time.
A kind of null (or `any`) means that the kind is chosen at placement. Shares of at most one millionth, which only
let a job use left-over devices, are not listed.";

/// What to plan.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct PlanArgs {
    /// Trace file; FILE.tar.gz#MEMBER selects one cluster of an archive
    #[arg(long, value_name = "FILE")]
    trace: String,
    /// Cluster: kind:NODESxGPUS[,…], kind:GPUS for one-GPU nodes, a TOML file, or a CSV file of nodes
    #[arg(long, value_name = "SPEC")]
    cluster: String,
    /// Policy; NAME:key=value sets parameters (see `yard policies --params`)
    #[arg(long, value_name = "NAME")]
    policy: String,
    /// Trace format; auto: detect from the header
    #[arg(long, default_value = "auto", value_name = "NAME")]
    format: String,
    /// Table of steps per second by kind, model and GPUs, as for `yard sim`
    #[arg(long, value_name = "FILE")]
    throughputs: Option<PathBuf>,
    /// Simulate up to this time of the trace, such as 21600, 6h or 2d [default: all jobs at once, none has run]
    #[arg(long, value_name = "TIME")]
    at: Option<Duration>,
    /// Round length up to --at, as for `yard sim`
    #[arg(long, value_name = "TIME")]
    round: Option<String>,
    /// Job priorities, as for `yard sim`: honour or ignore
    #[arg(long, default_value = "honour", value_name = "HOW")]
    priorities: String,
    /// Costs of starting, checkpointing and restoring up to --at, as for `yard sim`
    #[arg(long, value_name = "NAME|FILE")]
    overheads: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(crate) fn run(args: &PlanArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let plan = RunnerPlan::new(&args.as_sim()?)?;
    plan.notes.iter().for_each(|note| output::note(&format!("note: {note}")));
    let [choice] = &plan.choices[..] else {
        bail!("yard plan takes one policy; {:?} names {}", args.policy, plan.choices.len())
    };
    let view = plan.view(choice, args.at.map(|at| Time(at.0.0)))?;
    let (allocation, plan_s) = plan.ask(choice, &view)?;
    let answer = Answer { policy: &choice.name, rows: rows(&view, &allocation), view, allocation, plan_s };
    if !answer.unmet().is_empty() {
        output::note(&format!("warning: no plan can meet the deadline of {}", answer.unmet().join(", ")));
    }
    match args.output {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&answer.json())?)?,
        OutputFormat::Table => answer.table(out)?,
    }
    Ok(())
}

impl PlanArgs {
    /// The same inputs as a simulation's, so that they are read and checked in one place.
    fn as_sim(&self) -> anyhow::Result<SimArgs> {
        let text = |value: &Option<String>| value.as_ref().map(OsString::from);
        let options = [
            ("--trace", Some(OsString::from(&self.trace))),
            ("--cluster", Some(OsString::from(&self.cluster))),
            ("--policy", Some(OsString::from(&self.policy))),
            ("--format", Some(OsString::from(&self.format))),
            ("--throughputs", self.throughputs.as_ref().map(OsString::from)),
            ("--round", text(&self.round)),
            ("--priorities", Some(OsString::from(&self.priorities))),
            ("--overheads", text(&self.overheads)),
        ];
        let given = options.into_iter().filter_map(|(name, value)| {
            let mut option = OsString::from(name);
            option.push("=");
            option.push(value?);
            Some(option)
        });
        let command = SimArgs::augment_args(clap::Command::new("yard plan"));
        let line = std::iter::once(OsString::from("yard plan")).chain(given);
        let matches = command.try_get_matches_from(line).unwrap_or_else(|error| error.exit());
        Ok(SimArgs::from_arg_matches(&matches)?)
    }
}

/// One line of the plan.
#[derive(Debug, PartialEq)]
struct PlanRow {
    jobs: Vec<String>,
    kind: Option<String>,
    gpus: u32,
    fraction: f64,
}

/// The shares in the policy's order; where nobody is stopped, who runs comes first and runs on.
fn rows(view: &View, allocation: &Allocation) -> Vec<PlanRow> {
    let (Shares::All(shares) | Shares::Changed(shares)) = &allocation.shares;
    let mut shares: Vec<&Share> = shares.iter().filter(|share| share.fraction > NEGLIGIBLE).collect();
    if matches!(allocation.mode, Mode::Ordered { .. }) {
        let of = |share: &Share| share.jobs.iter().map(|job| view.spec(*job).priority).max();
        let class = |share: &Share| of(share).filter(|_| allocation.mode.has_classes()).map(Reverse);
        let key = |share: &Share| (class(share), share.rank.0, share.rank.1, view.run(share.jobs[0]).id);
        shares.sort_by(|a, b| key(a).partial_cmp(&key(b)).expect("ranks are numbers"));
    }
    let keeps = matches!(allocation.mode, Mode::Ordered { preempt: false, .. });
    let named: BTreeSet<JobIdx> = shares.iter().flat_map(|share| share.jobs.iter().copied()).collect();
    let running = view.active().filter(|job| keeps && view.is_running(*job) && !named.contains(job));
    let mut rows: Vec<PlanRow> = running.map(|job| held(view, job)).collect();
    rows.extend(shares.iter().map(|share| row(view, share)));
    rows
}

/// A job that keeps the devices it has.
fn held(view: &View, job: JobIdx) -> PlanRow {
    let shape = &view.spec(job).shapes[view.run(job).shape as usize];
    let (jobs, kind) = (vec![view.spec(job).name.to_string()], Some(kinds(view, shape)));
    PlanRow { jobs, kind, gpus: shape.devices(), fraction: 1.0 }
}

fn row(view: &View, share: &Share) -> PlanRow {
    let shapes = &view.spec(share.jobs[0]).shapes;
    let only = share.shape.or((shapes.len() == 1).then_some(0));
    PlanRow {
        jobs: share.jobs.iter().map(|job| view.spec(*job).name.to_string()).collect(),
        kind: only.map(|shape| kinds(view, &shapes[shape as usize])),
        gpus: shapes[only.unwrap_or(0) as usize].devices(),
        fraction: share.fraction,
    }
}

/// The kind of a shape; a gang that spans kinds names them all.
fn kinds(view: &View, shape: &Shape) -> String {
    shape.needs.iter().map(|need| view.kinds.name(need.kind)).collect::<Vec<_>>().join("+")
}

struct Answer<'a> {
    policy: &'a str,
    view: View,
    allocation: Allocation,
    rows: Vec<PlanRow>,
    plan_s: f64,
}

impl Answer<'_> {
    fn certificate(&self) -> Option<&Certificate> {
        self.allocation.certificate.as_deref()
    }

    fn unmet(&self) -> Vec<String> {
        let rows = self.certificate().map_or(&[][..], |proof| &proof.unmet);
        rows.iter().map(|job| self.view.spec(*job).name.to_string()).collect()
    }

    /// Price by name of the kind, where there are prices.
    fn prices(&self) -> Option<Vec<(&str, f64)>> {
        let prices = &self.certificate().filter(|proof| !proof.prices.is_empty())?.prices;
        Some(
            self.view
                .kinds
                .ids()
                .map(|kind| self.view.kinds.name(kind))
                .zip(prices.iter().copied())
                .collect(),
        )
    }

    fn json(&self) -> Value {
        let proof = self.certificate();
        let shares = self.rows.iter().map(
            |row| json!({"jobs": row.jobs, "kind": row.kind, "gpus": row.gpus, "fraction": row.fraction}),
        );
        let prices = self.prices().map(|prices| {
            Value::Object(prices.into_iter().map(|(kind, price)| (kind.to_owned(), json!(price))).collect())
        });
        json!({
            "policy": self.policy,
            "at_s": self.view.now.secs(),
            "jobs": self.view.active().count(),
            "objective": proof.map(|proof| proof.objective),
            "upper_bound": proof.map(|proof| proof.bound),
            "gap": proof.map(Certificate::gap),
            "prices": prices,
            "unmet": proof.map(|_| self.unmet()),
            "shares": shares.collect::<Vec<_>>(),
            "plan_s": self.plan_s,
        })
    }

    fn table(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut table = output::table(&["job", "kind", "gpus", "share"], 2);
        for row in self.rows.iter().take(ROWS_MAX) {
            let share = format!("{:.2}%", row.fraction * 100.0);
            let kind = row.kind.clone().unwrap_or_else(|| "any".into());
            table.add_row([row.jobs.join(" + "), kind, row.gpus.to_string(), share]);
        }
        writeln!(out, "{table}")?;
        if self.rows.len() > ROWS_MAX {
            writeln!(out, "… and {} more shares; -o json lists all", self.rows.len() - ROWS_MAX)?;
        }
        let jobs = self.view.active().count();
        writeln!(
            out,
            "\n{} for {jobs} jobs at {} s, planned in {:.3} ms",
            self.policy,
            self.view.now.secs(),
            self.plan_s * 1e3
        )?;
        if let Some(proof) = self.certificate() {
            let gap = proof.gap() * 100.0;
            writeln!(out, "objective {:.6}, bound {:.6}, gap {gap:.4}%", proof.objective, proof.bound)?;
        }
        for (kind, price) in self.prices().unwrap_or_default() {
            writeln!(out, "price of {kind}: {price:.6}")?;
        }
        Ok(())
    }
}
