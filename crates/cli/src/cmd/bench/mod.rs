//! `yard bench market`: how fast a market of any size is solved, and how near the optimum.

mod instance;

use std::io::Write;

use anyhow::bail;
use serde_json::{Map, Value, json};

pub(crate) use self::instance::Instance;
use crate::clock::{self, Stopwatch};
use crate::output::{self, Format};

/// What to measure.
#[derive(clap::Args)]
#[command(subcommand_required = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(clap::Subcommand)]
enum Bench {
    /// Solve one random market: max-min shares of a capacity-bound cluster
    Market(MarketArgs),
}

/// The market to solve.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench market --jobs 1000000 --kinds 8 --warm -o json\n  yard bench market --jobs 10000 --kinds 4 --against lp\n\nSpeeds are uniform in [0.1, 1], a job's weight is its mean speed, gangs of 1, 2, 4 and 8 are 70, 10, 15 and 5 %\nof the jobs, and they ask for three times the capacity, which is uneven by up to a factor of three."
)]
pub(crate) struct MarketArgs {
    /// How many jobs
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// How many kinds of devices
    #[arg(long, default_value_t = 4)]
    kinds: usize,
    /// The seed of the market
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Also solve it with a general solver: lp
    #[arg(long, value_name = "SOLVER", value_parser = ["lp"])]
    against: Option<String>,
    /// Also solve it again from the last prices, after one job in a hundred changed
    #[arg(long)]
    warm: bool,
    /// How to print the figures
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What a solver of markets gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solved {
    /// The smallest speed over weight.
    pub(crate) objective: f64,
    /// What nobody can beat.
    pub(crate) upper_bound: f64,
    /// Passes over the jobs.
    pub(crate) rounds: u64,
    /// What devices cost, to start the next solve from.
    pub(crate) prices: Vec<f64>,
}

/// The solvers that are measured.
pub(crate) struct Solvers {
    /// Solves a market, from these prices if there are any.
    pub(crate) market: fn(&Instance, Option<&[f64]>) -> anyhow::Result<Solved>,
    /// The objective by a general solver of linear programs.
    pub(crate) lp: fn(&Instance) -> anyhow::Result<f64>,
}

pub(crate) fn run(args: &BenchArgs, solvers: &Solvers, out: &mut dyn Write) -> anyhow::Result<()> {
    let Bench::Market(args) = &args.bench;
    let figures = market(args, solvers)?;
    match args.output {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&Value::Object(figures))?)?,
        Format::Table => table(&figures, out)?,
    }
    Ok(())
}

fn market(args: &MarketArgs, solvers: &Solvers) -> anyhow::Result<Map<String, Value>> {
    if args.jobs == 0 || args.kinds == 0 {
        bail!("a market has at least one job and one kind");
    }
    let instance = Instance::new(args.jobs, args.kinds, args.seed);
    let (cold, solved) = timed(|| (solvers.market)(&instance, None))?;
    // Before anything else takes memory: the general solver needs more.
    let peak_rss_mib = clock::peak_rss_mib();
    let lp = args.against.is_some().then(|| timed(|| (solvers.lp)(&instance))).transpose()?;
    let warm = if args.warm { Some(warm(instance, args.seed, &solved, solvers)?) } else { None };
    let gap = (solved.upper_bound - solved.objective).abs() / solved.objective.abs().max(f64::MIN_POSITIVE);
    let mut figures = Map::new();
    let mut put = |key: &str, value: Value| figures.insert(key.to_owned(), value);
    put("jobs", json!(args.jobs));
    put("kinds", json!(args.kinds));
    put("seed", json!(args.seed));
    put("objective", json!(solved.objective));
    put("upper_bound", json!(solved.upper_bound));
    put("gap", json!(gap));
    put("rounds", json!(solved.rounds));
    put("wall_s", json!(cold.wall_s));
    put("cpu_s", json!(cold.cpu_s));
    put("peak_rss_mib", json!(peak_rss_mib));
    put("warm_wall_s", json!(warm.as_ref().map(|(time, _)| time.wall_s)));
    put("warm_rounds", json!(warm.as_ref().map(|(_, solved)| solved.rounds)));
    put("lp_objective", json!(lp.as_ref().map(|(_, objective)| objective)));
    put("lp_wall_s", json!(lp.as_ref().map(|(time, _)| time.wall_s)));
    put("lp_cpu_s", json!(lp.as_ref().and_then(|(time, _)| time.cpu_s)));
    Ok(figures)
}

/// The market after a change, from the last prices; drawing it is not part of the time.
fn warm(instance: Instance, seed: u64, last: &Solved, solvers: &Solvers) -> anyhow::Result<(Took, Solved)> {
    let changed = instance.changed(seed);
    timed(|| (solvers.market)(&changed, Some(&last.prices)))
}

/// How long something took.
struct Took {
    wall_s: f64,
    cpu_s: Option<f64>,
}

fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(Took, T)> {
    let (watch, before) = (Stopwatch::start(), clock::cpu_seconds());
    let done = work()?;
    let cpu_s = before.and_then(|before| Some(clock::cpu_seconds()? - before));
    Ok((Took { wall_s: watch.seconds(), cpu_s }, done))
}

fn table(figures: &Map<String, Value>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut table = output::table(&["figure", "value"], 1);
    for (key, value) in figures.iter().filter(|(_, value)| !value.is_null()) {
        table.add_row([key.clone(), value.to_string()]);
    }
    Ok(writeln!(out, "{table}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everybody gets the same part of each kind: feasible, and bounded by all devices at top speed.
    const EQUAL: Solvers = Solvers {
        market: |market, prices| {
            let part = market.capacity.iter().sum::<f64>() / market.sizes.iter().sum::<f64>();
            let (rounds, prices) = (if prices.is_some() { 1 } else { 2 }, vec![0.0; market.kinds()]);
            Ok(Solved { objective: part, upper_bound: part * 10.0, rounds, prices })
        },
        lp: |market| Ok(market.jobs() as f64),
    };

    fn figures(against: Option<&str>, warm: bool) -> Map<String, Value> {
        let against = against.map(str::to_owned);
        let args = MarketArgs { jobs: 50, kinds: 2, seed: 3, against, warm, output: Format::Json };
        market(&args, &EQUAL).unwrap()
    }

    #[test]
    fn figures_have_the_keys_of_the_contract() {
        let plain = figures(None, false);
        for key in ["jobs", "kinds", "objective", "upper_bound", "gap", "rounds", "wall_s", "peak_rss_mib"] {
            assert!(plain[key].is_number(), "{key}: {plain:?}");
        }
        assert!((plain["gap"].as_f64().unwrap() - 9.0).abs() < 1e-9);
        assert!(plain["lp_objective"].is_null() && plain["warm_wall_s"].is_null());
        let all = figures(Some("lp"), true);
        assert_eq!((&all["lp_objective"], &all["warm_rounds"]), (&json!(50.0), &json!(1)));
        assert!(all["lp_wall_s"].is_number() && all["warm_wall_s"].is_number());
    }

    #[test]
    fn an_empty_market_is_refused() {
        let args =
            MarketArgs { jobs: 0, kinds: 2, seed: 0, against: None, warm: false, output: Format::Table };
        assert!(market(&args, &EQUAL).unwrap_err().to_string().contains("at least one job"));
    }
}
