//! `yard bench sia`: how fast Sia's assignment is solved, round after round, and how near the optimum. The jobs are
//! those of the artifact's scaling runs in kind: five applications with their ways to scale, on a cluster that is a
//! multiple of its 64 devices, in 29 configurations at most.

use anyhow::bail;
use serde_json::json;
use yard_sim::random::Random;
use yard_solver::choice::{BuyerChoice, ChoiceWork, Selection};
use yard_solver::lp::{Lp, LpGoal, Sense};
use yard_solver::milp;

use super::{BenchFigures, timed};
use crate::clock;
use crate::output::OutputFormat;

/// Devices of each kind in the artifact's cluster of 64, and how many a node has.
const KINDS: [(u32, u32); 3] = [(24, 4), (24, 8), (16, 8)];

/// The most nodes of each kind that the artifact's profiles know.
const NODES_MAX: [u32; 3] = [16, 3, 2];

/// How fast each kind is against the first, and where each application's scaling ends: speed is
/// d / (1 + d/end)^0.9 on d devices.
const APPLICATIONS: [([f64; 3], f64, f64); 5] = [
    ([1.0, 1.45, 1.73], 12.0, 25.0),
    ([1.0, 2.2, 3.1], 9.0, 30.0),
    ([1.0, 1.9, 4.2], 30.0, 120.0),
    ([1.0, 1.6, 2.6], 24.0, 45.0),
    ([1.0, 1.8, 3.5], 60.0, 250.0),
];

/// One job in so many is done in each round, and another comes.
const CHANGE_ONE_IN: u64 = 40;

const ROUND_S: f64 = 60.0;
const POWER: f64 = -0.5;
const LAMBDA: f64 = 1.1;
const COST_MAX: f64 = 3000.0;

/// The rounds to solve.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench sia --jobs 1024 --gpus 2048 --rounds 200 -o json\n  yard bench sia --jobs 32 --gpus 64 --rounds 5 --against milp"
)]
pub(crate) struct SiaArgs {
    /// Number of jobs
    #[arg(long, default_value_t = 1024)]
    jobs: usize,
    /// Number of devices, of three kinds
    #[arg(long, default_value_t = 2048)]
    gpus: u32,
    /// Number of rounds, each with different jobs
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Relative distance from the bound at which to stop
    #[arg(long, value_name = "PART", default_value_t = 0.001)]
    gap: f64,
    /// Also solve each round with a general solver: milp
    #[arg(long, value_name = "SOLVER", value_parser = ["milp"])]
    against: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
}

/// A configuration: kind and devices.
type SiaBench = (u16, u32);

/// The values of a job's configurations.
type SiaRow = Vec<(f64, SiaBench)>;

struct SiaJob {
    application: usize,
    age: f64,
    restarts: f64,
    /// What it has.
    now: Option<SiaBench>,
    /// The most devices it ever had.
    most: u32,
}

struct Rounds {
    capacity: Vec<u32>,
    configs: Vec<SiaBench>,
    jobs: Vec<SiaJob>,
    random: Random,
}

impl Rounds {
    fn new(args: &SiaArgs) -> Rounds {
        let part = |(devices, node): (u32, u32)| {
            (u64::from(args.gpus) * u64::from(devices) / 64) as u32 / node * node
        };
        let capacity: Vec<u32> = KINDS.iter().map(|kind| part(*kind).max(kind.1)).collect();
        let mut random = Random::new(args.seed);
        let jobs = (0..args.jobs).map(|_| job(&mut random, true)).collect();
        Rounds { configs: configs(&capacity), capacity, jobs, random }
    }

    /// What each configuration is worth to each job: λ less its cost.
    fn rows(&self) -> Vec<SiaRow> {
        let row = |job: &SiaJob| {
            let fits = self.configs.iter().filter(|(_, devices)| *devices <= (2 * job.most).max(1));
            fits.map(|config| {
                (LAMBDA - libm::pow(job.kept(*config) * job.goodput(*config), POWER).min(COST_MAX), *config)
            })
            .collect()
        };
        self.jobs.iter().map(row).collect()
    }

    /// A round goes by: jobs have what they were given, some end, and others come.
    fn pass(&mut self, rows: &[SiaRow], chosen: &[Option<u32>]) {
        for ((job, row), option) in self.jobs.iter_mut().zip(rows).zip(chosen) {
            let next = option.map(|option| row[option as usize].1);
            job.restarts += f64::from(u8::from(next.is_some() && job.now.is_some() && next != job.now));
            job.most = job.most.max(next.map_or(0, |config| config.1));
            (job.now, job.age) = (next, job.age + ROUND_S);
            if self.random.below(CHANGE_ONE_IN) == 0 {
                *job = self::job(&mut self.random, false);
            }
        }
    }
}

/// A job of some application; one of the first is somewhere in its life.
fn job(random: &mut Random, begun: bool) -> SiaJob {
    // Most jobs are small, as in the artifact's traces.
    let application = *random.pick(&[0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    let most = if begun { 1 << random.below(7) } else { 0 };
    let age = if begun { random.exponential(3600.0) } else { 0.0 };
    SiaJob { application, age, restarts: if begun { random.below(4) as f64 } else { 0.0 }, now: None, most }
}

impl SiaJob {
    fn goodput(&self, (kind, devices): SiaBench) -> f64 {
        let (kinds, end, _) = APPLICATIONS[self.application];
        let devices = f64::from(devices);
        // Two jobs of one application are in different epochs, and their gradients differ.
        let end = end * (0.5 + (self.age / 7200.0).min(2.0));
        let alone = libm::pow(1.0 + 1.0 / end, -0.9);
        kinds[kind as usize] * devices * libm::pow(1.0 + devices / end, -0.9) / alone
    }

    fn kept(&self, config: SiaBench) -> f64 {
        let (_, _, cost) = APPLICATIONS[self.application];
        match self.now {
            Some(now) if now != config && self.age >= cost => {
                (self.age - self.restarts * cost).max(0.0) / (self.age + cost)
            }
            _ => 1.0,
        }
    }
}

/// Powers of two on one node, and whole nodes.
fn configs(capacity: &[u32]) -> Vec<SiaBench> {
    let mut all = Vec::new();
    for (at, (_, node)) in KINDS.iter().enumerate() {
        let on_one = (0..).map(|power| 1u32 << power).take_while(|devices| devices <= node);
        let nodes = (2..=NODES_MAX[at].min(capacity[at] / node)).map(|nodes| nodes * node);
        all.extend(on_one.chain(nodes).map(|devices| (at as u16, devices)));
    }
    all
}

fn solve(capacity: &[u32], rows: &[SiaRow], limits: &ChoiceWork) -> anyhow::Result<Selection> {
    let mut choice = BuyerChoice::new(capacity.to_vec());
    for row in rows {
        choice.row();
        for (value, config) in row {
            choice.option(*value, &[*config])?;
        }
    }
    Ok(choice.solve(limits))
}

/// The optimum by a general solver.
fn by_milp(capacity: &[u32], rows: &[SiaRow]) -> anyhow::Result<f64> {
    let mut lp = Lp::new(LpGoal::Maximise);
    let mut used: Vec<Vec<(usize, f64)>> = vec![Vec::new(); capacity.len()];
    let mut whole = Vec::new();
    for row in rows {
        let first = whole.len();
        for (value, (kind, devices)) in row {
            let way = lp.bounded(*value, 0.0, 1.0);
            used[*kind as usize].push((way, f64::from(*devices)));
            whole.push(way);
        }
        lp.row(whole[first..].iter().map(|way| (*way, 1.0)).collect::<Vec<_>>(), Sense::Le, 1.0);
    }
    for (used, there) in used.into_iter().zip(capacity) {
        lp.row(used, Sense::Le, f64::from(*there));
    }
    Ok(milp::solve(&lp, &whole, &milp::BranchSearch::default())?.objective)
}

pub(super) fn measure(args: &SiaArgs) -> anyhow::Result<BenchFigures> {
    if args.jobs == 0 || args.gpus < 64 || args.rounds == 0 {
        bail!("--jobs and --rounds must be above 0, --gpus at least 64");
    }
    if !(args.gap > 0.0 && args.gap < 1.0) {
        bail!("--gap {}: must be between 0 and 1", args.gap);
    }
    let limits = ChoiceWork { gap: args.gap, ..ChoiceWork::default() };
    let mut rounds = Rounds::new(args);
    let (mut seconds, mut gap, mut ran) = (Vec::new(), 0.0, 0);
    let (mut behind, mut theirs) = (0.0_f64, 0.0);
    for _ in 0..args.rounds {
        let rows = rounds.rows();
        let (took, solved) = timed(|| solve(&rounds.capacity, &rows, &limits))?;
        seconds.push(took.cpu_s.unwrap_or(took.wall_s));
        gap = solved.gap().max(gap);
        ran += solved.chosen.iter().flatten().count();
        if args.against.is_some() {
            let (took, best) = timed(|| by_milp(&rounds.capacity, &rows))?;
            theirs += took.cpu_s.unwrap_or(took.wall_s);
            behind = behind.max((best - solved.objective) / best);
        }
        rounds.pass(&rows, &solved.chosen);
    }
    seconds.sort_by(f64::total_cmp);
    let at = |part: f64| seconds[((seconds.len() - 1) as f64 * part).round() as usize];
    let mut figures = BenchFigures::default();
    figures.put("jobs", json!(args.jobs));
    figures.put("gpus", json!(rounds.capacity.iter().sum::<u32>()));
    figures.put("configurations", json!(rounds.configs.len()));
    figures.put("rounds", json!(args.rounds));
    figures.put("running_mean", json!(ran as f64 / args.rounds as f64));
    figures.put("gap_max", json!(gap));
    figures.put("cpu_s_mean", json!(seconds.iter().sum::<f64>() / seconds.len() as f64));
    figures.put("cpu_s_p50", json!(at(0.5)));
    figures.put("cpu_s_p99", json!(at(0.99)));
    figures.put("cpu_s_max", json!(at(1.0)));
    figures.put("peak_rss_mib", json!(clock::peak_rss_mib()));
    if args.against.is_some() {
        figures.put("milp_cpu_s_mean", json!(theirs / args.rounds as f64));
        figures.put("milp_ahead_max", json!(behind));
    }
    Ok(figures)
}
