//! A random cluster of nodes with four devices and the jobs on it, each with a throughput model and gradient noise, and
//! the paper's fitness of any allocation to them.

use std::sync::Arc;

use yard_core::cluster::{Kinds, Level, NodeSpec, Nodes};
use yard_core::goodput::{Limits, Model};
use yard_core::ids::{JobId, KindId, LeaseId};
use yard_core::job::{JobRun, JobSpec, Shape};
use yard_core::training::Noise;
use yard_core::units::{Span, Time};
use yard_core::view::{Changed, View};
use yard_sim::random::Random;

/// Devices of a node.
pub(super) const NODE: u32 = 4;

/// What a restart is taken to cost, as in the policy.
const RESTART_S: f64 = 30.0;

/// When the plan is made.
const NOW_S: f64 = 40_000.0;

/// How many devices a job has, and whether they lie on several nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Placed {
    pub(super) devices: u32,
    pub(super) across: bool,
}

/// A job.
pub(super) struct PolluxJob {
    /// Goodput by devices, on one node and across nodes.
    within: Vec<f64>,
    across: Vec<f64>,
    pub(super) held: Placed,
    age_s: f64,
    restarts: u32,
}

impl PolluxJob {
    fn goodput(&self, placed: Placed) -> f64 {
        let table = if placed.across { &self.across } else { &self.within };
        table.get(placed.devices as usize).copied().unwrap_or(0.0)
    }
}

/// A cluster with its jobs.
pub(super) struct PolluxInstance {
    pub(super) nodes: usize,
    pub(super) jobs: Vec<PolluxJob>,
}

impl PolluxInstance {
    pub(super) fn new(nodes: usize, jobs: usize, seed: u64) -> PolluxInstance {
        let (mut random, mut free) = (Random::new(seed), nodes as u32 * NODE);
        let jobs = (0..jobs).map(|_| job(nodes, &mut free, &mut random)).collect();
        PolluxInstance { nodes, jobs }
    }

    /// The power mean of speedups over a fair share, with p = −1 and the penalty for restarts.
    pub(super) fn fitness(&self, placed: &[Placed]) -> f64 {
        let fair = (self.nodes as u32 * NODE).div_ceil(self.jobs.len() as u32);
        let term = |(job, placed): (&PolluxJob, &Placed)| {
            let base = (1..=fair).map(|devices| job.goodput(lying(devices))).fold(0.0, f64::max);
            let moved = job.held.devices > 0 && job.held != *placed;
            let kept = (job.age_s - f64::from(job.restarts) * RESTART_S).max(0.0) / (job.age_s + RESTART_S);
            1.0 / (job.goodput(*placed) / base * if moved { kept } else { 1.0 } + 1e-3)
        };
        self.jobs.len() as f64 / self.jobs.iter().zip(placed).map(term).sum::<f64>()
    }

    /// The sizes of our shapes: halves of a node, a node, and whole nodes.
    fn sizes(&self) -> Vec<u32> {
        [1, 2].into_iter().chain((1..=self.nodes as u32).map(|nodes| nodes * NODE)).collect()
    }

    /// What a job has in one of its shapes.
    pub(super) fn placed(&self, shape: u16) -> Placed {
        lying(self.sizes()[shape as usize])
    }

    /// The same as a policy sees it.
    pub(super) fn view(&self) -> View {
        let (mut kinds, mut nodes) = (Kinds::default(), Nodes::default());
        let kind = kinds.intern("gpu");
        for _ in 0..self.nodes {
            nodes.add(NodeSpec::of("n", kind, NODE));
        }
        let shapes: Arc<[Shape]> = self.sizes().into_iter().map(|devices| shape(kind, devices)).collect();
        View {
            now: Time::from_secs(NOW_S),
            round: Span::from_secs(60.0),
            specs: Arc::new(self.jobs.iter().map(|job| Arc::new(self.spec(job, &shapes))).collect()),
            runs: Arc::new((0..).zip(&self.jobs).map(|(at, job)| self.run(at, job)).collect()),
            nodes: Arc::new(nodes),
            kinds: Arc::new(kinds),
            belief: Arc::default(),
            prices: Arc::default(),
            lengths: None,
            changed: Changed { all: true, ..Changed::default() },
        }
    }

    fn spec(&self, job: &PolluxJob, shapes: &Arc<[Shape]>) -> JobSpec {
        let speeds: Vec<f64> = self.sizes().into_iter().map(|devices| job.goodput(lying(devices))).collect();
        JobSpec::new("job", shapes.clone(), speeds, 1e9)
    }

    fn run(&self, at: u64, job: &PolluxJob) -> JobRun {
        let mut run = JobRun::new(JobId(at), Time::from_secs(NOW_S - job.age_s));
        run.starts = job.restarts + 1;
        if let Some(shape) = self.sizes().iter().position(|devices| *devices == job.held.devices) {
            (run.lease, run.shape, run.devices) = (Some(LeaseId(at + 1)), shape as u16, job.held.devices);
        }
        run
    }
}

/// So many devices on as few nodes as can be.
fn lying(devices: u32) -> Placed {
    Placed { devices, across: devices > NODE }
}

fn shape(kind: KindId, devices: u32) -> Shape {
    let level = if devices > NODE { Level::Any } else { Level::Node };
    Shape::of(kind, devices).within(level)
}

/// A number between these, the small ones more often.
fn between(low: f64, high: f64, random: &mut Random) -> f64 {
    let unit = random.unit();
    low + (high - low) * unit * unit
}

fn job(nodes: usize, free: &mut u32, random: &mut Random) -> PolluxJob {
    let sync = between(0.005, 0.1, random);
    let across = sync * between(1.1, 4.0, random);
    let model = Model::of([
        between(0.005, 0.1, random),
        between(3e-4, 5e-3, random),
        across,
        across * between(0.01, 0.1, random),
        sync,
        sync * between(0.01, 0.1, random),
        1.0 + 3.0 * random.unit(),
    ]);
    let noise = Noise { sqr: 1.0, var: between(0.3, 300.0, random) };
    let batch_max = 128 * (4 << random.below(6) as u32);
    let limits = Limits { batch: 128, batch_max, local: (16, 256), accumulates: false };
    let goodput = |many: u32, across: bool| {
        let spans = if across { many.div_ceil(NODE).max(2) } else { 1 };
        limits.best(&model, &noise, spans, many).map_or(0.0, |best| best.goodput)
    };
    let table = |across: bool| -> Vec<f64> {
        (0..=nodes as u32 * NODE).map(|many| if many == 0 { 0.0 } else { goodput(many, across) }).collect()
    };
    let wanted = [0, 0, 1, 2, 4][random.below(5) as usize];
    let held = if wanted <= *free { wanted } else { 0 };
    *free -= held;
    PolluxJob {
        within: table(false),
        across: table(true),
        held: lying(held),
        age_s: between(60.0, 36_000.0, random),
        restarts: random.below(6) as u32,
    }
}
