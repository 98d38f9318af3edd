//! `yard trace`: make traces, convert them to the native format, show what is in one, and export a live server's
//! history as one.

mod import;

use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::client::{Client, ServerArgs};
use crate::{clock, output};
use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use yard_sim::trace::{
    Arrivals, FORMATS, GenSpec, Named, Opened, PRESETS, Preset, Quantiles, Stats, generate, open, write,
};

/// Arguments of `yard trace`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  yard trace gen --jobs 500 --rate 60 > day.csv\n  yard trace show day.csv"
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Generate a trace from a seed, as native CSV on stdout
    #[command(after_help = GEN_EXAMPLES)]
    Gen(GenArgs),
    /// Convert a trace of any format to native CSV
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Import the job history of a Slurm or Kubernetes cluster as a trace
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArgs),
    /// Summarise a trace: sizes, durations, load, arrivals
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Export the job history of a live server as a trace
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
}

const GEN_EXAMPLES: &str = "\
Equal settings give equal bytes on every machine; the first line of the output,
a comment, repeats them.

Examples:
  yard trace gen --jobs 500 --rate 20 > trace.csv
  yard trace gen --jobs 120 --static --preset uniform --seed 7 > batch.csv
  yard trace gen --jobs 100000 --rate 400 --preset philly | gzip > big.csv.gz";

const CONVERT_EXAMPLES: &str = "\
Rows that are not jobs (no devices, no duration) are skipped and counted on stderr.

Examples:
  yard trace convert max_min_fairness.trace > gavel.csv
  yard trace convert --from itp raw-traces.tar.gz -o itp.csv
  yard trace convert 'raw-traces.tar.gz#cluster01' -o cluster01.csv";

const SHOW_EXAMPLES: &str = "\
\"gpus demanded\" is the average number of GPUs in use if every job started on
arrival; a cluster with fewer falls behind.

Examples:
  yard trace show trace.csv
  yard trace show philly.csv.gz -o json | jq .duration_s.p99
  yard trace gen --jobs 500 --rate 20 | yard trace show /dev/stdin";

const EXPORT_EXAMPLES: &str = "\
Examples:
  yard trace export > history.csv
  yard sim --trace history.csv --cluster h100:2x8 --policy max-min,fifo
  yard trace export --from 2026-11-01 --to 2026-11-08 -o week.csv";

/// Arguments of `yard trace gen`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("when").required(true)))]
struct GenArgs {
    /// Number of jobs
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=50_000_000))]
    jobs: usize,
    /// Average number of jobs per hour, at random times; the first arrives at 0
    #[arg(long, value_name = "PER_HOUR", group = "when", value_parser = parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// All jobs arrive at time 0
    #[arg(long = "static", group = "when")]
    at_once: bool,
    /// Distribution of sizes, durations and models
    #[arg(long, default_value = "gavel", value_parser = presets())]
    preset: String,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Arguments of `yard trace convert`.
#[derive(Debug, Args)]
struct ConvertArgs {
    /// Format of IN; auto: detect from the header
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = formats())]
    from: String,
    /// Trace file, plain or gzipped; ARCHIVE#MEMBER for one member of a tar
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Arguments of `yard trace show`.
#[derive(Debug, Args)]
struct ShowArgs {
    /// Trace file, plain or gzipped; ARCHIVE#MEMBER for one member of a tar
    file: PathBuf,
    /// Trace format; auto: detect from the header
    #[arg(long, default_value = "auto", value_parser = formats())]
    format: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = TraceOutput::Table)]
    output: TraceOutput,
}

/// Arguments of `yard trace export`.
#[derive(Debug, Args)]
struct ExportArgs {
    /// Only jobs submitted at or after this time, such as 2026-11-20 or 2026-11-20T18:00
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    from: Option<f64>,
    /// Only jobs submitted before this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    to: Option<f64>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TraceOutput {
    /// For people
    Table,
    /// For scripts
    Json,
}

/// Runs `yard trace`; results go to `out`, remarks to stderr.
pub(crate) fn run(args: TraceArgs, out: &mut dyn Write) -> Result<()> {
    match args.command {
        TraceCommand::Gen(args) => make(&args, out),
        TraceCommand::Convert(args) => convert(&args, out),
        TraceCommand::Import(args) => import::run(&args, out),
        TraceCommand::Show(args) => show(&args, out),
        TraceCommand::Export(args) => export(&args, out),
    }
}

fn export(args: &ExportArgs, out: &mut dyn Write) -> Result<()> {
    let bound = |name, at: Option<f64>| at.map(|at| (name, at.to_string()));
    let query: Vec<_> = [bound("from", args.from), bound("to", args.to)].into_iter().flatten().collect();
    let client = Client::new(&args.server)?;
    let mut trace = Vec::new();
    let read = client.stream("/v1/trace", &query, None)?.read_to_end(&mut trace);
    read.context("the connection was lost before the end of the trace; run the command again")?;
    match &args.output {
        Some(path) => output::write_whole(path, &trace),
        None => Ok(out.write_all(&trace)?),
    }
}

fn parse_moment(text: &str) -> Result<f64, String> {
    yard_live::request::times::moment(text, &clock::now())
}

fn make(args: &GenArgs, out: &mut dyn Write) -> Result<()> {
    let arrivals = args.rate.map_or(Arrivals::Static, Arrivals::Rate);
    let hours = args.rate.map_or(0.0, |rate| args.jobs as f64 / rate);
    ensure!(hours < 1e7, "{} jobs at that rate arrive over {hours:.0} hours; the maximum is 1e7", args.jobs);
    let preset = Preset::named(&args.preset).context("unknown preset")?;
    let trace = generate(&GenSpec { jobs: args.jobs, arrivals, preset, seed: args.seed });
    let when = args.rate.map_or("--static".to_owned(), |rate| format!("--rate {rate}"));
    let mut out = BufWriter::new(out);
    writeln!(
        out,
        "# yard trace gen --jobs {} {when} --preset {} --seed {}",
        args.jobs,
        preset.name(),
        args.seed
    )?;
    write(&trace, &mut out)?;
    Ok(out.flush()?)
}

fn convert(args: &ConvertArgs, out: &mut dyn Write) -> Result<()> {
    write_native(&open(&args.input, Some(&args.from))?, args.output.as_deref(), out)
}

/// Writes a trace in the native format to a file, or to `out`; what there is to say about its reading goes to stderr.
fn write_native(opened: &Opened, file: Option<&Path>, out: &mut dyn Write) -> Result<()> {
    for note in &opened.notes {
        writeln!(std::io::stderr(), "note: {note}")?;
    }
    let Some(path) = file else { return Ok(write(&opened.trace, &mut BufWriter::new(out))?) };
    let mut text = Vec::new();
    write(&opened.trace, &mut text)?;
    output::write_whole(path, &text)
}

fn show(args: &ShowArgs, out: &mut dyn Write) -> Result<()> {
    let opened = open(&args.file, Some(&args.format))?;
    let shown = TraceShown { stats: Stats::of(&opened.trace), notes: opened.notes };
    match args.output {
        TraceOutput::Table => write!(out, "{}", shown.table())?,
        TraceOutput::Json => writeln!(out, "{}", serde_json::to_string_pretty(&shown)?)?,
    }
    Ok(())
}

/// What `show` prints.
#[derive(Serialize)]
struct TraceShown {
    #[serde(flatten)]
    stats: Stats,
    notes: Vec<String>,
}

impl TraceShown {
    fn table(&self) -> String {
        let sections = [self.summary(), self.arrivals(), self.sizes()];
        sections.join("\n") + &self.notes.iter().map(|note| format!("\nnote: {note}\n")).collect::<String>()
    }

    fn summary(&self) -> String {
        let stats = &self.stats;
        let mut rows = vec![
            ("trace", stats.source.clone()),
            ("format", stats.format.to_owned()),
            ("jobs", stats.jobs.to_string()),
            ("submitted", format!("over {}, from {}", time(stats.span_s), time(stats.first_submit_s))),
            ("gpus a job", quantiles(&stats.gpus, number)),
        ];
        rows.extend(stats.duration_s.iter().map(|d| ("duration", quantiles(d, time))));
        rows.extend(stats.gpu_hours.iter().map(|&hours| ("gpu-hours", number(hours))));
        rows.extend(
            stats
                .mean_gpus_demanded
                .iter()
                .map(|&gpus| ("gpus demanded", format!("{} on average", number(gpus)))),
        );
        let some =
            |(what, count): (_, usize), text: &str| (count > 0).then(|| (what, format!("{count}{text}")));
        rows.extend(some(
            ("in steps", stats.jobs_in_steps),
            " jobs, or to the end of a profile: durations depend on a throughput table",
        ));
        rows.extend(some(("deadlines", stats.deadlines), " jobs"));
        rows.extend(some(("soft deadlines", stats.soft_deadlines), " of them"));
        rows.extend(names(&stats.modes).map(|modes| ("modes", modes)));
        rows.extend(some(("users", stats.users), ""));
        rows.extend(names(&stats.models).map(|models| ("models", models)));
        rows.extend(names(&stats.tenants).map(|tenants| ("tenants", tenants)));
        let mut table = plain_table();
        table.add_rows(rows.into_iter().map(|(what, value)| [what.to_owned(), value]));
        table.trim_fmt() + "\n"
    }

    /// A bar a part of the span; a blank where nothing came.
    fn arrivals(&self) -> String {
        let most = self.stats.arrivals.iter().copied().max().unwrap_or_default();
        if self.stats.span_s == 0.0 {
            return "arrivals: all at once\n".to_owned();
        }
        let bars: String = self.stats.arrivals.iter().map(|&count| bar(count, most)).collect();
        let each = time(self.stats.span_s / self.stats.arrivals.len() as f64);
        format!("arrivals (a bar is {each}, the highest {most} jobs)\n{bars}\n")
    }

    fn sizes(&self) -> String {
        let (sizes, jobs) = (&self.stats.sizes, self.stats.jobs as f64);
        let mut table = plain_table();
        table.set_header(["gpus", "jobs", "share", ""]);
        for size in sizes.iter().take(SIZES_SHOWN) {
            let share = size.jobs as f64 / jobs;
            let bar = "█".repeat((share * 40.0).ceil() as usize);
            let cells = [size.gpus.to_string(), size.jobs.to_string(), format!("{:.1}%", share * 100.0)];
            let right = cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right));
            table.add_row(right.into_iter().chain([Cell::new(bar)]));
        }
        let more = sizes.len().saturating_sub(SIZES_SHOWN);
        let rest = if more > 0 { format!("… and {more} more sizes\n") } else { String::new() };
        format!("{}\n{rest}", table.trim_fmt())
    }
}

const SIZES_SHOWN: usize = 20;
const NAMES_SHOWN: usize = 5;

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

fn bar(count: usize, most: usize) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    match count {
        0 => ' ',
        _ => BARS[(count * BARS.len()).div_ceil(most.max(1)).clamp(1, BARS.len()) - 1],
    }
}

fn quantiles(q: &Quantiles, show: impl Fn(f64) -> String) -> String {
    let [mean, p50, p90, p99, max] = [q.mean, q.p50, q.p90, q.p99, q.max].map(show);
    format!("mean {mean}, p50 {p50}, p90 {p90}, p99 {p99}, max {max}")
}

/// The most frequent names with their jobs, and how many there are.
fn names(tally: &[Named]) -> Option<String> {
    let first: Vec<_> =
        tally.iter().take(NAMES_SHOWN).map(|named| format!("{} {}", named.name, named.jobs)).collect();
    let rest = if tally.len() > NAMES_SHOWN { ", …" } else { "" };
    (!tally.is_empty()).then(|| format!("{}: {}{rest}", tally.len(), first.join(", ")))
}

/// Whole where it is whole or large, else with two decimals.
fn number(x: f64) -> String {
    if x == x.round() || x >= 1000.0 { format!("{x:.0}") } else { format!("{x:.2}") }
}

/// Seconds in the unit that people would use.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{}s", number(s)),
        s if s < 7200.0 => format!("{:.1}min", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.1}h", s / 3600.0),
        s => format!("{:.1}d", s / 86_400.0),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        _ => Err("the rate must be a number of jobs per hour, above 0 and at most 1e9".to_owned()),
    }
}

fn presets() -> PossibleValuesParser {
    PossibleValuesParser::new(PRESETS.iter().map(|info| PossibleValue::new(info.name).help(info.about)))
}

fn formats() -> PossibleValuesParser {
    let auto = PossibleValue::new("auto").help("the one that the header shows");
    let named = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(std::iter::once(auto).chain(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_unit_people_use() {
        assert_eq!(
            [0.0, 90.5, 600.0, 9000.0, 864_000.0].map(time),
            ["0s", "90.50s", "10.0min", "2.5h", "10.0d"]
        );
    }

    #[test]
    fn bars_reach_from_one_eighth_to_full() {
        assert_eq!([0, 1, 50, 100].map(|count| bar(count, 100)), [' ', '▁', '▄', '█']);
    }

    #[test]
    fn rates_are_above_zero() {
        assert!(parse_rate("0.5").is_ok());
        assert!(["0", "-1", "nan", "inf", "x"].iter().all(|rate| parse_rate(rate).is_err()));
    }
}
