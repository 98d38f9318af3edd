//! `yard bench kind`: the efficiency constants of a kind, fitted to step times that were measured on one device.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::json;
use yard_planner::fit::{MeasuredStep, fit, fit_with_flash, mean_error};
use yard_planner::{Accelerator, ParallelPlan, Recompute, Transformer};

use crate::cmd::shapes::kinds::ShapeKinds;
use crate::cmd::validate::sheet::{Sheet, SheetRecord};
use crate::output::{self, OutputFormat};

/// What to fit.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench kind --steps measured.csv --kind h200 > my-h200.toml\n  yard shapes model.toml --kind-file my-h200.toml --kinds h200\n\nThe CSV has a row for each run on one device: hidden, layers, heads, seq, vocab, micro_batch, micro_batches,\nrecompute (none, selective or full), step_s. Three models of different size at three micro-batches each will do."
)]
pub(crate) struct KindArgs {
    /// Measured step times
    #[arg(long, value_name = "FILE.csv")]
    steps: PathBuf,
    /// The kind to start from, and whose peaks count
    #[arg(long, value_name = "KIND")]
    kind: String,
    /// Kinds of your own, as for yard shapes
    #[arg(long, value_name = "FILE")]
    kind_file: Option<PathBuf>,
    /// Also fit the speed of fused attention
    #[arg(long)]
    flash: bool,
    /// How to print; table: a kind in TOML, for --kind-file
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) fn run(args: &KindArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let before = ShapeKinds::read(args.kind_file.as_deref())?.find(&args.kind)?;
    let steps = read(&args.steps)?;
    let after = if args.flash { fit_with_flash(&before, &steps) } else { fit(&before, &steps) };
    let errors = [mean_error(&before, &steps), mean_error(&after, &steps)];
    match args.output {
        OutputFormat::Table => table(&after, steps.len(), errors, out),
        OutputFormat::Json => output::json(
            &json!({
                "kind": after.name,
                "steps": steps.len(),
                "efficiency": after.efficiency,
                "overhead_us": after.overhead_s * 1e6,
                "flash": after.flash,
                "mean_error_before": errors[0],
                "mean_error_after": errors[1],
            }),
            out,
        ),
    }
}

/// TOML, with the errors as comments.
fn table(kind: &Accelerator, steps: usize, errors: [f64; 2], out: &mut dyn Write) -> anyhow::Result<()> {
    let [before, after] = errors.map(|error| 100.0 * error);
    writeln!(out, "# Fitted to {steps} steps: mean error {before:.1} % before, {after:.1} % after.")?;
    writeln!(out, "[[kind]]\nname = {:?}", kind.name)?;
    writeln!(out, "efficiency = {:.4}\noverhead_us = {:.2}", kind.efficiency, kind.overhead_s * 1e6)?;
    writeln!(out, "flash = {:.4}", kind.flash)?;
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<MeasuredStep>> {
    let sheet = Sheet::read(path)?;
    let steps: Vec<MeasuredStep> = sheet.records().map(|row| step(&row)).collect::<anyhow::Result<_>>()?;
    match steps.len() {
        0..2 => bail!("{}: two constants need two steps or more", path.display()),
        _ => Ok(steps),
    }
}

fn step(row: &SheetRecord<'_>) -> anyhow::Result<MeasuredStep> {
    let micro_batch = row.count("micro_batch")?;
    let gpt = Transformer::gpt(row.count("hidden")?, row.count("layers")?, row.count("heads")?, 1);
    let model = Transformer {
        seq: row.count("seq")?,
        vocab: row.count("vocab")?,
        batch: micro_batch * row.count("micro_batches")?,
        ..gpt
    };
    let name = row.text("recompute")?;
    let recompute = Recompute::ALL.into_iter().find(|one| one.name() == name);
    let recompute =
        recompute.with_context(|| format!("recompute: {name:?} is none of none, selective, full"))?;
    let step_s = row.number("step_s")?;
    if step_s <= 0.0 {
        bail!("step_s: {step_s} is no time of a step; give seconds above 0");
    }
    Ok(MeasuredStep { model, plan: ParallelPlan { micro_batch, recompute, ..ParallelPlan::WHOLE }, step_s })
}
