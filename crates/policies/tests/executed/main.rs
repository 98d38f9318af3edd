//! What plans become: jobs run through the engine for hours, and the time for which each held devices is compared with
//! what its policy meant it to have. A plan that rounds and leftovers undo would pass every test of plans.

mod nash;
mod pollux;
mod themis;
mod tiresias;

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::allocation::Shares;
use yard_core::ids::{JobId, KindId};
use yard_core::job::{JobSpec, Shape};
use yard_core::policy::Policy;
use yard_core::{Settings, Span, Time};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::record::{Keep, RecordBar};
use yard_sim::{Quirks, RunOutcome, Simulation, Speeds};

const HOUR: f64 = 3600.0;

/// Seconds of a round.
const ROUND: f64 = 60.0;

/// Seconds by job and kind.
type Times = BTreeMap<(JobId, u16), f64>;

/// A job with these shapes and steps per second.
fn job(shapes: Vec<Shape>, speeds: &[f64], steps: f64) -> JobSpec {
    JobSpec::new("job", shapes, speeds, steps)
}

/// So many devices of the first kind for so many seconds.
fn rigid(devices: u32, seconds: f64) -> JobSpec {
    job(vec![Shape::of(KindId(0), devices)], &[1.0], seconds)
}

/// One device of any kind, at these speeds, for longer than anybody looks.
fn on_kinds(speeds: &[f64]) -> JobSpec {
    let shapes = (0..speeds.len()).map(|kind| Shape::of(KindId(kind as u16), 1)).collect();
    job(shapes, speeds, 1e6)
}

/// Jobs that are all there from the start, and a cluster for them.
struct Scene<'a> {
    cluster: ClusterSpec,
    jobs: Vec<(Time, &'a JobSpec)>,
}

impl<'a> Scene<'a> {
    fn new(cluster: &str, jobs: &'a [JobSpec]) -> Scene<'a> {
        let cluster = ClusterSpec::parse(cluster).expect("the cluster is sound");
        Scene { cluster, jobs: jobs.iter().map(|job| (Time::ZERO, job)).collect() }
    }

    fn simulation<'s>(&'s self, policy: &'s mut dyn Policy) -> Simulation<'s> {
        Simulation {
            jobs: &self.jobs,
            speeds: Speeds::default(),
            cluster: &self.cluster,
            settings: settings(policy),
            policy,
            placer: yard_policies::placer("pack").expect("there is one"),
            checkpoint_every: Span::ZERO,
            quirks: Quirks::default(),
            faults: Faults::default(),
            script: Vec::new(),
            seed: 0,
            keep: Keep { series: false, bars_max: 1_000_000 },
            events: None,
            progress: None,
            steps_max: 20_000,
            stop: None,
            probe: None,
        }
    }

    fn run(&self, policy: &str) -> RunOutcome {
        let mut policy = made(policy);
        let outcome = yard_sim::run(self.simulation(&mut *policy)).expect("nothing is written");
        assert!(!outcome.record.bars_cut, "every span is on record");
        outcome
    }

    /// The part of the time that the first plan means each job to have on each kind.
    fn meant(&self, policy: &str) -> Times {
        let mut policy = made(policy);
        let view = yard_sim::view_at(self.simulation(&mut *policy), Time::ZERO);
        let allocation = policy.allocate(&view).expect("a plan");
        let Shares::All(shares) = allocation.shares else { panic!("a first plan names all") };
        let mut meant = Times::new();
        for share in shares {
            let shape = &view.spec(share.jobs[0]).shapes[share.shape.unwrap_or(0) as usize];
            let key = (view.run(share.jobs[0]).id, shape.needs[0].kind.0);
            *meant.entry(key).or_default() += share.fraction;
        }
        meant
    }
}

/// Devices that fall free within a round are given out at once, as by default in `yard`.
fn settings(policy: &dyn Policy) -> Settings {
    let mut settings = Settings { round: Span::from_secs(ROUND), fill: true, ..Settings::default() };
    settings.follow(policy);
    settings
}

fn made(policy: &str) -> Box<dyn Policy> {
    yard_policies::make(policy, Arc::from([])).expect("a policy").1
}

/// Device-seconds that each job held up to a time, by node: a kind has one node in these scenes.
fn held(outcome: &RunOutcome, until: f64) -> Times {
    let mut held = Times::new();
    for bar in &outcome.record.bars {
        let seconds = (bar.end.secs().min(until) - bar.start.secs()).max(0.0);
        *held.entry((bar.job, bar.node as u16)).or_default() += seconds * f64::from(bar.devices);
    }
    held
}

/// The spans in which a job held devices, in order; where one begins as another ends they are one.
fn spans(outcome: &RunOutcome, job: u64) -> Vec<(f64, f64)> {
    let own = |bar: &&RecordBar| bar.job == JobId(job);
    let bars = outcome.record.bars.iter().filter(own);
    let mut spans: Vec<(f64, f64)> = bars.map(|bar| (bar.start.secs(), bar.end.secs())).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    spans.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        last.1 = if joins { last.1.max(next.1) } else { last.1 };
        joins
    });
    spans
}
