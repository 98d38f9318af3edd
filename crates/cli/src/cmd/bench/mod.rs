//! `yard bench`: how fast a market of any size is solved, and how near the optimum; likewise fits of speed models,
//! Sia's and Pollux's assignments, deadlines that are promised, and a live server with many agents or many questions.

mod abuse;
mod fit;
mod instance;
mod kind;
mod live;
mod pollux;
mod promises;
mod shapes;
mod sia;

use std::io::Write;

use anyhow::bail;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use yard_solver::conic::Accuracy;
use yard_solver::market::{MarketWork, Standing};

use self::instance::BenchInstance;
use crate::clock::{self, CommandStopwatch};
use crate::output::{self, OutputFormat};

/// Passes over all jobs at most.
const PASSES: u32 = 400;

/// What to measure.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    after_help = "Examples:\n  yard bench market --jobs 100000 --kinds 4 --against lp\n  yard bench fit\n  yard bench live --agents 100 --jobs 1000"
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(clap::Subcommand)]
enum Bench {
    /// Solve one random market: max-min shares of a capacity-bound cluster
    Market(MarketArgs),
    /// Fit a throughput model to a job's measurements, and choose its batch size
    Fit(fit::FitArgs),
    /// Solve Sia's assignment for many rounds: one configuration for each job
    Sia(sia::SiaArgs),
    /// Compare sizes of elastic jobs with Pollux' genetic algorithm
    Pollux(pollux::PolluxArgs),
    /// Time submissions and rounds with many promised deadlines
    Promises(promises::PromisesArgs),
    /// Find the best splits of large models on 8 kinds and 1 to 1024 devices
    Shapes(shapes::ShapesBenchArgs),
    /// Fit the efficiency constants of a kind to measured step times
    Kind(kind::KindArgs),
    /// Time what-if questions while many jobs wait and run
    WhatIf(live::what_if::BenchWhatIfArgs),
    /// Run a server with many agents: time submissions, rounds and trivial jobs, and measure memory
    Live(live::LiveArgs),
    /// Flood a server and an agent as a malicious user could; watch their memory and other users' submissions
    Abuse(abuse::AbuseArgs),
}

/// The market to solve.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench market --jobs 1000000 --kinds 8 --warm -o json\n  yard bench market --jobs 10000 --kinds 4 --against lp\n\nSpeeds are uniform in [0.1, 1], a job's weight is its mean speed, gangs of 1, 2, 4 and 8 are 70, 10, 15 and 5 %\nof the jobs, and they ask for three times the capacity, which is uneven by up to a factor of three."
)]
pub(crate) struct MarketArgs {
    /// Number of jobs
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// Number of kinds of devices
    #[arg(long, default_value_t = 4)]
    kinds: usize,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Also solve it with a general solver: lp
    #[arg(long, value_name = "SOLVER", value_parser = ["lp"])]
    against: Option<String>,
    /// Also solve it again after one job in a hundred was replaced
    #[arg(long)]
    warm: bool,
    /// Relative distance from the bound at which to stop
    #[arg(long, value_name = "PART", default_value_t = 0.001)]
    gap: f64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Names and values, in the order in which they are shown.
#[derive(Default)]
struct BenchFigures(Vec<(&'static str, Value)>);

impl Serialize for BenchFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl BenchFigures {
    fn put(&mut self, key: &'static str, value: Value) {
        self.0.push((key, value));
    }
}

pub(crate) fn run(args: &BenchArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (figures, output) = match &args.bench {
        Bench::Market(args) => (market(args)?, args.output),
        Bench::Fit(args) => (fit::measure(args)?, args.output()),
        Bench::Sia(args) => (sia::measure(args)?, args.output),
        Bench::Pollux(args) => (pollux::measure(args)?, args.output),
        Bench::Promises(args) => (promises::measure(args)?, args.output),
        Bench::Shapes(args) => (shapes::measure()?, args.output),
        Bench::Kind(args) => return kind::run(args, out),
        Bench::WhatIf(args) => return live::what_if::run(args, out),
        Bench::Abuse(args) => return abuse::run(args, out),
        Bench::Live(args) => (live::measure(args)?, args.output),
    };
    match output {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&figures)?)?,
        OutputFormat::Table => table(&figures, out)?,
    }
    Ok(())
}

fn market(args: &MarketArgs) -> anyhow::Result<BenchFigures> {
    if args.jobs == 0 || args.kinds == 0 {
        bail!("--jobs and --kinds must be above 0");
    }
    if !(args.gap > 0.0 && args.gap < 1.0) {
        bail!("--gap {}: must be between 0 and 1", args.gap);
    }
    let (made, instance) = timed(|| Ok(BenchInstance::new(args.jobs, args.kinds, args.seed)?))?;
    let limits = MarketWork { passes: PASSES, gap: args.gap };
    let mut figures = BenchFigures::default();
    figures.put("jobs", json!(args.jobs));
    figures.put("kinds", json!(args.kinds));
    figures.put("seed", json!(args.seed));
    figures.put("generate_cpu_s", json!(made.cpu_s));
    cold(&instance, &limits, &mut figures)?;
    if args.against.is_some() {
        lp(&instance, &mut figures)?;
    }
    if args.warm {
        warm(instance, args.seed, limits, &mut figures)?;
    }
    Ok(figures)
}

/// Solves the market knowing nothing. Its memory is read here, because the rest takes more.
fn cold(instance: &BenchInstance, limits: &MarketWork, figures: &mut BenchFigures) -> anyhow::Result<()> {
    let (took, solved) = timed(|| Ok(instance.market.max_min(&instance.weights, None, limits)?))?;
    figures.put("objective", json!(solved.objective));
    figures.put("upper_bound", json!(solved.bound));
    figures.put("gap", json!(solved.gap()));
    figures.put("rounds", json!(solved.passes));
    figures.put("wall_s", json!(took.wall_s));
    figures.put("cpu_s", json!(took.cpu_s));
    figures.put("peak_rss_mib", json!(clock::peak_rss_mib()));
    Ok(())
}

/// Solves the market by a general solver, as closely as that can; writing the program down is not part of the
/// time, making its matrices is.
fn lp(instance: &BenchInstance, figures: &mut BenchFigures) -> anyhow::Result<()> {
    let program = instance.program();
    let (took, best) = timed(|| Ok(program.max_min(&instance.weights, &Accuracy::default())?))?;
    figures.put("lp_objective", json!(best.objective));
    figures.put("lp_wall_s", json!(took.wall_s));
    figures.put("lp_cpu_s", json!(took.cpu_s));
    Ok(())
}

/// Keeps the market solved through a change; drawing the newcomers is not part of the time.
fn warm(
    instance: BenchInstance,
    seed: u64,
    limits: MarketWork,
    figures: &mut BenchFigures,
) -> anyhow::Result<()> {
    let newcomers = instance.newcomers(seed);
    let (first, mut standing) = timed(|| Ok(Standing::new(instance.market, instance.weights, limits)?))?;
    let (took, again) = timed(|| {
        for one in &newcomers {
            standing.replace(one.row, one.weight, &one.options)?;
        }
        Ok(standing.settle())
    })?;
    let solved = standing.solution();
    figures.put("standing_wall_s", json!(first.wall_s));
    figures.put("warm_wall_s", json!(took.wall_s));
    figures.put("warm_cpu_s", json!(took.cpu_s));
    figures.put("warm_objective", json!(solved.objective));
    figures.put("warm_upper_bound", json!(solved.bound));
    figures.put("warm_gap", json!(solved.gap()));
    figures.put("warm_rounds", json!(solved.passes));
    figures.put("warm_solved", json!(again));
    Ok(())
}

/// How long something took.
struct Took {
    wall_s: f64,
    cpu_s: Option<f64>,
}

fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(Took, T)> {
    let (watch, before) = (CommandStopwatch::start(), clock::cpu_seconds());
    let done = work()?;
    let cpu_s = before.and_then(|before| Some(clock::cpu_seconds()? - before));
    Ok((Took { wall_s: watch.seconds(), cpu_s }, done))
}

fn table(figures: &BenchFigures, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut table = output::table(&["figure", "value"], 1);
    for (key, value) in &figures.0 {
        table.add_row([(*key).to_owned(), value.to_string()]);
    }
    Ok(writeln!(out, "{table}")?)
}
