//! `yard plot`: a figure for a paper, as SVG or PDF, from what `yard sim` wrote.

mod axis;
mod data;
mod pdf;
mod scene;
mod svg;

use std::path::{Path, PathBuf};

use anyhow::bail;

use self::data::Chart;
use crate::output;

const EXAMPLES: &str = "Examples:
  yard sim --trace day.csv --cluster gpu:8x8 --policy fifo,srtf --per-job jobs.csv --series load.csv
  yard plot jobs.csv -o cdf.pdf                          # distribution of completion times
  yard plot load.csv --figure queued_gpus -o queue.svg   # over time
  yard sim --trace gen:philly:jobs=500:rate=60 --cluster gpu:16x8 --policy fifo,srtf --seeds 10 --sweep load=0.5..1.1 -o json > sweep.json
  yard plot sweep.json --figure p99_jct_s -o sweep.svg   # means with 95 % confidence intervals

What is drawn follows from the file. The curves differ in colour and in dashes, so they can be told apart in print.";

/// What to draw.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlotArgs {
    /// What yard sim wrote: --per-job FILE.csv, --series FILE.csv, or the JSON of --sweep or --seeds
    file: PathBuf,
    /// The figure to draw: a column of the file, or a figure of its means [default: jct_s, utilization or avg_jct_s]
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Where to write it; its ending says how: .svg or .pdf
    #[arg(short, long, value_name = "FILE.svg|FILE.pdf")]
    output: PathBuf,
    /// A title above it [default: none, as papers want it]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

pub(crate) fn run(args: &PlotArgs) -> anyhow::Result<()> {
    draw(&args.file, args.figure.as_deref(), args.title.clone(), &args.output)
}

/// Draws a figure of a file into another.
pub(crate) fn draw(
    file: &Path,
    figure: Option<&str>,
    title: Option<String>,
    to: &Path,
) -> anyhow::Result<()> {
    output::check_target(to)?;
    let write = match to.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => svg::write,
        Some("pdf") => pdf::write,
        _ => bail!("{}: a figure is written as .svg or .pdf", to.display()),
    };
    let chart = Chart { title, ..data::read(file, figure)? };
    output::write_whole(to, &write(&scene::draw(&chart)))
}
