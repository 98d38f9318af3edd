//! `yard bench promises`: what a submission and a round cost where many jobs were promised their deadlines, beside the same
//! where none was.

use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::json;
use yard_core::cluster::{Kinds, Level, NodeSpec};
use yard_core::ids::KindId;
use yard_core::job::{Costs, JobSpec, Shape};
use yard_core::message::{Effect, Event, Input, NodeChange};
use yard_core::policy::Policy;
use yard_core::{Engine, Settings, Span, Time};
use yard_sim::random::Random;

use super::BenchFigures;
use crate::clock;
use crate::output::OutputFormat;

/// Devices of a node.
const NODE_DEVICES: u32 = 8;

/// Submissions and rounds that are measured, and refusals, which cost more.
const MEASURED: u32 = 100;
const REFUSED: u32 = 5;

const ROUND: Span = Span::from_whole_secs(60);

/// Deadlines in multiples of what a job takes: one that can be promised, and one that nobody can keep.
const LOOSE: (f64, f64) = (1.5, 10.0);
const TIGHT: (f64, f64) = (0.4, 0.5);

/// The cluster and its jobs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench promises\n  yard bench promises --jobs 100 --nodes 1000 -o json"
)]
pub(crate) struct PromisesArgs {
    /// Number of jobs with promised deadlines
    #[arg(long, default_value_t = 1000)]
    jobs: usize,
    /// Number of nodes with eight devices each
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
}

pub(super) fn measure(args: &PromisesArgs) -> anyhow::Result<BenchFigures> {
    if args.nodes == 0 {
        bail!("--nodes must be above 0");
    }
    let (with, without) = (PromiseBench::run(args, true)?, PromiseBench::run(args, false)?);
    let mut figures = BenchFigures::default();
    figures.put("jobs", json!(args.jobs));
    figures.put("nodes", json!(args.nodes));
    figures.put("promised", json!(with.promised));
    figures.put("submission_ms", json!(with.submission_ms));
    figures.put("refusal_ms", json!(with.refusal_ms));
    figures.put("round_ms", json!(with.round_ms));
    figures.put("submission_without_ms", json!(without.submission_ms));
    figures.put("round_without_ms", json!(without.round_ms));
    Ok(figures)
}

/// What was measured, in milliseconds of CPU.
struct PromiseBench {
    promised: usize,
    submission_ms: f64,
    refusal_ms: f64,
    round_ms: f64,
}

impl PromiseBench {
    fn run(args: &PromisesArgs, promises: bool) -> anyhow::Result<PromiseBench> {
        let mut cluster = BenchCluster::new(args, promises)?;
        for _ in 0..args.jobs {
            cluster.submit(Some(LOOSE))?;
        }
        cluster.round()?;
        let submission_ms = cpu_ms(MEASURED, || cluster.submit(Some(LOOSE)))?;
        let round_ms = cpu_ms(MEASURED, || {
            // Somebody comes, so that there is something to decide.
            cluster.submit(None)?;
            cluster.round()
        })?;
        let refusal_ms = cpu_ms(REFUSED, || cluster.submit(Some(TIGHT)))?;
        Ok(PromiseBench { promised: cluster.promised, submission_ms, refusal_ms, round_ms })
    }
}

/// CPU time of this thread, for one of so many; the system tells it in steps of milliseconds.
fn cpu_ms(times: u32, mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let now = || clock::thread_cpu_seconds().context("this system does not report CPU times");
    let before = now()?;
    for _ in 0..times {
        work()?;
    }
    Ok((now()? - before) * 1e3 / f64::from(times))
}

struct BenchCluster {
    engine: Engine,
    policy: Box<dyn Policy>,
    random: Random,
    now: Time,
    promised: usize,
}

impl BenchCluster {
    fn new(args: &PromisesArgs, promises: bool) -> anyhow::Result<BenchCluster> {
        let mut kinds = Kinds::default();
        kinds.intern("gpu");
        let settings = Settings { round: ROUND, fill: true, promises, ..Settings::default() };
        let placer = yard_policies::placer("pack").context("there is such a placer")?;
        let (_, policy) = yard_policies::make("fifo", Arc::from([]))?;
        let engine = Engine::new(settings, kinds, placer);
        let mut cluster =
            BenchCluster { engine, policy, random: Random::new(args.seed), now: Time::ZERO, promised: 0 };
        for at in 0..args.nodes {
            let name = format!("node{at}");
            let spec = NodeSpec::of(name, KindId(0), NODE_DEVICES);
            cluster.step(Input::Node(NodeChange::Join(spec)))?;
        }
        Ok(cluster)
    }

    /// A job of one to eight devices that takes an hour or more, with a deadline between these multiples of that.
    fn submit(&mut self, deadline: Option<(f64, f64)>) -> anyhow::Result<()> {
        let devices = *self.random.pick(&[1, 1, 1, 2, 4, 8]);
        let shape = |devices| Shape::of(KindId(0), devices).within(Level::Node);
        let seconds = 3_600.0 * (1.0 + self.random.unit() * 10.0);
        let factor = |(low, high): (f64, f64), random: &mut Random| low + random.unit() * (high - low);
        let by = deadline.map(|range| self.now + Span::from_secs(seconds * factor(range, &mut self.random)));
        let cost = Span::from_whole_secs(10);
        let spec = JobSpec {
            deadline: by,
            costs: Costs { save: cost, load: cost, start: cost },
            ..JobSpec::new("bench", [shape(devices), shape(NODE_DEVICES)], [1.0, 1.5], seconds)
        };
        self.step(Input::Submit(Box::new(spec)))
    }

    /// The next beat.
    fn round(&mut self) -> anyhow::Result<()> {
        self.now = (self.now + Span(1)).round_up(ROUND);
        self.step(Input::Tick)
    }

    /// One input, and the policy's answer where it is asked. Nobody reports anything.
    fn step(&mut self, input: Input) -> anyhow::Result<()> {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            self.engine.step(self.now, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Plan { plan, view } => {
                        let answer = self.policy.allocate(&view).map_err(|error| error.to_string());
                        inputs.push(Input::Planned { plan, answer });
                    }
                    Effect::Publish(Event::Promised { .. }) => self.promised += 1,
                    Effect::Publish(_) | Effect::Execute(_) => {}
                }
            }
        }
        Ok(())
    }
}
