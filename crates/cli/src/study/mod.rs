//! Many simulations for one statement: several seeds (`--seeds`), several settings (`--sweep`), and of each figure the
//! mean with its interval.

pub(crate) mod bundle;
pub(crate) mod interval;
pub(crate) mod source;
pub(crate) mod sweep;

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::bail;
use serde_json::{Map, Value, json};
use yard_sim::lengths::ToldLengths;

use self::bundle::BundleRan;
use self::interval::{CONFIDENCE, Mean};
use self::sweep::SweepPoint;
use crate::cmd::sim::SimArgs;
use crate::output::{self, OutputFormat, human};
use crate::results;
use crate::runner::{self, RunnerPlan};

/// Figures of which means are told.
const FIGURES: [&str; 16] = [
    "avg_jct_s",
    "p50_jct_s",
    "p90_jct_s",
    "p99_jct_s",
    "makespan_s",
    "avg_queue_s",
    "p90_queue_s",
    "utilization",
    "preemptions",
    "migrations",
    "deadline_miss_ratio",
    "avg_rho",
    "max_rho",
    "cost",
    "gpu_hours",
    "finished",
];

/// The figure of which policies are compared run by run.
const COMPARED: &str = "avg_jct_s";

/// All runs at one point: for each seed those of all policies, in order.
struct StudyPlace {
    point: SweepPoint,
    runs: Vec<Vec<Map<String, Value>>>,
}

/// Runs all of it and shows the means.
pub(crate) fn run(args: &SimArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    check(args)?;
    let places = simulate(args)?;
    if let Some(folder) = &args.bundle {
        bundle::write(folder, &to_json(args, &places), &[])?;
        output::note(&format!("bundle: {}", folder.display()));
    }
    match args.output {
        OutputFormat::Json => output::json(&to_json(args, &places), out),
        OutputFormat::Table => table(args, &places, out),
    }
}

/// What happened in each of the runs, in the order in which JSON has them.
pub(crate) fn digests(args: &SimArgs) -> anyhow::Result<Vec<BundleRan>> {
    let places = simulate(args)?;
    let of = |place: &StudyPlace| -> Vec<BundleRan> {
        let with = |run| BundleRan { sweep: place.settings(), ..BundleRan::of(run) };
        place.runs.iter().flatten().map(with).collect()
    };
    Ok(places.iter().flat_map(of).collect())
}

fn check(args: &SimArgs) -> anyhow::Result<()> {
    let one = [
        ("--html", &args.html),
        ("--events", &args.events),
        ("--per-job", &args.per_job),
        ("--series", &args.series),
    ];
    if let Some((name, _)) = one.iter().find(|(_, file)| file.is_some()) {
        bail!("{name} needs a single run per policy: leave out --seeds and --sweep, or use -o json");
    }
    let draws = source::is_generated(&args.trace)
        || args.node_mtbf.is_some()
        || args.slow_nodes > 0.0
        || matches!(args.lengths, ToldLengths::Noisy(_))
        || args.belief == "learned"
        || args.compat.is_some()
        || args.sweep.iter().any(|sweep| sweep.draws());
    if args.seeds > 1 && !draws {
        bail!(
            "--seeds {}: every run would be the same, since {} has the same jobs each time and nothing else is random; generate the jobs (--trace gen:philly:jobs=500:rate=60), or have nodes fail (--node-mtbf)",
            args.seeds,
            args.trace
        );
    }
    Ok(())
}

/// All simulations, as many at a time as there are cores.
fn simulate(args: &SimArgs) -> anyhow::Result<Vec<StudyPlace>> {
    let points = sweep::points(&args.sweep)?;
    let settings: Vec<SimArgs> = points.iter().map(|point| at(args, point)).collect::<anyhow::Result<_>>()?;
    let seeds = args.seeds as usize;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(settings) = settings.get(turn / seeds) else { return done };
            let seed = args.seed + (turn % seeds) as u64;
            done.push((turn, one(&SimArgs { seed, ..settings.clone() })));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(points.len() * seeds);
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    done.sort_by_key(|(turn, _)| *turn);
    let mut runs = done.into_iter().map(|(_, runs)| runs);
    let mut place =
        |point| Ok(StudyPlace { point, runs: runs.by_ref().take(seeds).collect::<anyhow::Result<_>>()? });
    points.into_iter().map(&mut place).collect()
}

fn at(args: &SimArgs, point: &SweepPoint) -> anyhow::Result<SimArgs> {
    let mut args = args.clone();
    point.iter().try_for_each(|(key, value)| sweep::set(&mut args, key, value))?;
    Ok(args)
}

/// The figures of all policies in one simulation.
fn one(args: &SimArgs) -> anyhow::Result<Vec<Map<String, Value>>> {
    let plan = RunnerPlan::new(args)?;
    let runs = runner::run_in_turn(&plan)?;
    Ok(runs.iter().map(|run| results::fields(&plan, run)).collect())
}

impl StudyPlace {
    /// A figure of one policy in each run that has it.
    fn values(&self, policy: usize, figure: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|runs| runs[policy][figure].as_f64()).collect()
    }

    fn mean(&self, policy: usize, figure: &str) -> Option<Mean> {
        Mean::of(&self.values(policy, figure))
    }

    /// How much more than the first policy it has, run by run: what the jobs of a seed have in common cancels out.
    fn more(&self, policy: usize) -> Option<Mean> {
        let difference = |runs: &Vec<Map<String, Value>>| {
            Some(runs[policy][COMPARED].as_f64()? - runs[0][COMPARED].as_f64()?)
        };
        Mean::of(&self.runs.iter().filter_map(difference).collect::<Vec<_>>())
    }

    fn settings(&self) -> Map<String, Value> {
        self.point.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
    }
}

fn to_json(args: &SimArgs, places: &[StudyPlace]) -> Value {
    let runs = places.iter().flat_map(|place| {
        let with = |run: &Map<String, Value>| {
            let mut run = run.clone();
            run.insert("sweep".into(), Value::Object(place.settings()));
            run
        };
        place.runs.iter().flatten().map(with)
    });
    let means = places.iter().flat_map(|place| (0..args.policy.len()).map(move |policy| (place, policy)));
    let mean = |(place, policy): (&StudyPlace, usize)| {
        let figures = FIGURES.iter().map(|figure| ((*figure).to_owned(), json!(place.mean(policy, figure))));
        json!({
            "policy": args.policy[policy],
            "sweep": place.settings(),
            "seeds": args.seeds,
            "first_seed": args.seed,
            "confidence": CONFIDENCE,
            "figures": figures.collect::<Map<_, _>>(),
            "avg_jct_s_minus_first": (policy > 0).then(|| place.more(policy)).flatten(),
        })
    };
    json!({ "runs": runs.collect::<Vec<_>>(), "means": means.map(mean).collect::<Vec<_>>() })
}

fn table(args: &SimArgs, places: &[StudyPlace], out: &mut dyn Write) -> anyhow::Result<()> {
    let keys: Vec<&str> = places[0].point.iter().map(|(key, _)| key.as_str()).collect();
    let figures = ["avg JCT", "p90", "p99", "makespan", "avg queue", "util"];
    let more = (args.policy.len() > 1).then(|| format!("JCT − {}", args.policy[0]));
    let header: Vec<&str> =
        keys.iter().copied().chain(["policy"]).chain(figures).chain(more.as_deref()).collect();
    let mut table = output::table(&header, keys.len() + 1);
    for (place, policy) in places.iter().flat_map(|place| (0..args.policy.len()).map(move |at| (place, at))) {
        let mut cells: Vec<String> = place.point.iter().map(|(_, value)| value.clone()).collect();
        cells.push(args.policy[policy].clone());
        let times = ["avg_jct_s", "p90_jct_s", "p99_jct_s", "makespan_s", "avg_queue_s"];
        cells.extend(times.iter().map(|figure| time(place.mean(policy, figure))));
        cells.push(part(place.mean(policy, "utilization")));
        if more.is_some() {
            cells.push(if policy == 0 { "–".into() } else { time(place.more(policy)) });
        }
        table.add_row(cells);
    }
    writeln!(out, "{table}")?;
    let last = args.seed + u64::from(args.seeds) - 1;
    if args.seeds > 1 {
        writeln!(
            out,
            "means over seeds {} to {last}; ± is the half-width of the 95 % confidence interval (Student's t)",
            args.seed
        )?;
    }
    Ok(())
}

/// A time with its interval, both in the unit that suits the mean.
fn time(mean: Option<Mean>) -> String {
    let Some(mean) = mean else { return "–".into() };
    let (unit, name, digits) = match mean.mean.abs() {
        s if s < 120.0 => (1.0, "s", 1),
        s if s < 7200.0 => (60.0, "min", 1),
        s if s < 172_800.0 => (3600.0, "h", 2),
        _ => (86_400.0, "d", 2),
    };
    match mean.half() {
        Some(half) => format!("{:.digits$} ± {:.digits$} {name}", mean.mean / unit, half / unit),
        None if mean.mean >= 0.0 => human(Some(mean.mean)),
        None => format!("{:.digits$} {name}", mean.mean / unit),
    }
}

fn part(mean: Option<Mean>) -> String {
    let Some(mean) = mean else { return "–".into() };
    let half = mean.half().map(|half| format!(" ± {:.1}", half * 100.0)).unwrap_or_default();
    format!("{:.1}{half} %", mean.mean * 100.0)
}
