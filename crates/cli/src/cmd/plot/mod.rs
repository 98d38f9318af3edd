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

The kind of figure follows from the file. Curves differ in colour and in dashes, so they stay distinct in print.";

/// What to draw.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlotArgs {
    /// Output of yard sim: --per-job FILE.csv, --series FILE.csv, or the JSON of --sweep or --seeds
    file: PathBuf,
    /// What to plot: a column of the file, or a figure of its means [default: jct_s, utilization or avg_jct_s]
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// Output file, .svg or .pdf
    #[arg(short, long, value_name = "FILE.svg|FILE.pdf")]
    output: PathBuf,
    /// Title above the plot [default: none]
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
        _ => bail!("{}: the output file must end in .svg or .pdf", to.display()),
    };
    let chart = Chart { title, ..data::read(file, figure)? };
    output::write_whole(to, &write(&scene::draw(&chart)))
}
