//! How fast jobs really are on shared devices, and gangs by where they lie.

use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::belief::Belief;
use yard_core::cluster::{Level, Nodes, Placement, Slice};
use yard_core::ids::{KindId, ProfileId};
use yard_core::job::{Claim, Costs, JobSpec, Rank, Shape, Sharing, Usage};
use yard_core::policy::{Placer, Policy, PolicyError};
use yard_core::view::View;
use yard_core::{Settings, Span, Time};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::record::Keep;
use yard_sim::{Quirks, RunOutcome, Simulation, Speeds};

/// All jobs on the same devices, in shape 0 of the first.
struct Together;

impl Policy for Together {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let jobs: SmallVec<[_; 1]> = view.active().collect();
        let share = Share { jobs, shape: Some(0), fraction: 1.0, rank: Rank::default() };
        let shares = if share.jobs.is_empty() { Vec::new() } else { vec![share] };
        let mode = Mode::Ordered { preempt: false, skip: true, classes: true };
        Ok(Allocation { mode, shares: Shares::All(shares), replan_at: None, certificate: None })
    }
}

/// The first free devices.
struct First;

impl Placer for First {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let need = shape.needs[0];
        let able = |(_, node): &(_, &yard_core::cluster::Node)| node.free_count(need.kind) >= need.devices;
        if let Some((id, node)) = nodes.iter().find(able) {
            return Some(Placement(SmallVec::from_iter([Slice::of(id, node.take(need.kind, need.devices))])));
        }
        let one = nodes.iter().filter(|(_, node)| node.free_count(need.kind) > 0);
        let slices: SmallVec<[Slice; 1]> = one
            .map(|(id, node)| Slice::of(id, node.take(need.kind, 1)))
            .take(need.devices as usize)
            .collect();
        (slices.len() == need.devices as usize).then_some(Placement(slices))
    }
}

fn job(steps: f64, profile: u32, ways: &[(Level, f64)], devices: u32, start: f64) -> JobSpec {
    let shape = |level| Shape::of(KindId(0), devices).within(level);
    let (shapes, speeds): (Vec<_>, Vec<_>) =
        ways.iter().map(|(level, speed)| (shape(*level), *speed)).unzip();
    JobSpec {
        profile: ProfileId(profile),
        costs: Costs { start: Span::from_secs(start), ..Costs::default() },
        ..JobSpec::new("j", shapes, speeds, steps)
    }
}

fn run(cluster: &str, jobs: &[JobSpec], pairs: Belief) -> RunOutcome {
    let jobs: Vec<_> = jobs.iter().map(|job| (Time::ZERO, job)).collect();
    run_as_they_come(cluster, &jobs, pairs)
}

fn run_as_they_come(cluster: &str, jobs: &[(Time, &JobSpec)], pairs: Belief) -> RunOutcome {
    yard_sim::run(Simulation {
        jobs,
        speeds: Speeds { pairs, ..Speeds::default() },
        cluster: &ClusterSpec::parse(cluster).expect("a cluster"),
        settings: Settings::default(),
        policy: &mut Together,
        placer: Box::new(First),
        checkpoint_every: Span::ZERO,
        quirks: Quirks::default(),
        faults: Faults::default(),
        script: Vec::new(),
        seed: 0,
        keep: Keep { series: true, bars_max: 100 },
        events: None,
        progress: None,
        steps_max: 1_000,
        stop: None,
        probe: None,
    })
    .expect("nothing is written that could fail")
}

fn ends(outcome: &RunOutcome) -> Vec<f64> {
    outcome.record.jobs.iter().map(|job| job.end.expect("it ended").secs()).collect()
}

#[test]
fn packed_jobs_go_at_their_pair_speeds_until_one_ends() {
    let mut pairs = Belief::default();
    pairs.set_beside(ProfileId(1), ProfileId(2), KindId(0), 0.5);
    pairs.set_beside(ProfileId(2), ProfileId(1), KindId(0), 0.8);
    let any = [(Level::Any, 2.0)];
    // The second comes up at 10 s: the first has 20 of its 60 steps by then and goes on with 1 a second. The
    // second makes 1.6 a second, is done with 32 steps at 30 s, and the first makes its last 20 steps at 2 a second.
    let outcome = run("gpu:1", &[job(60.0, 1, &any, 1, 0.0), job(32.0, 2, &any, 1, 10.0)], pairs);
    assert_eq!(ends(&outcome), [40.0, 30.0]);
    // The one device was in use once: 30 s by both, 10 s by one.
    assert_eq!(outcome.record.used, [40_000_000]);
    assert_eq!(outcome.record.jobs.iter().map(|job| job.shared).collect::<Vec<_>>(), [15.0, 15.0]);
    let lanes: Vec<_> = outcome.record.bars.iter().map(|bar| (bar.job.0, bar.end.secs(), bar.lane)).collect();
    assert_eq!(lanes, [(1, 30.0, (1, 2)), (0, 40.0, (0, 2))]);
}

#[test]
fn of_a_pair_that_nobody_knows_each_goes_at_half_speed() {
    let any = [(Level::Any, 1.0)];
    let outcome = run("gpu:1", &[job(10.0, 1, &any, 1, 0.0), job(30.0, 2, &any, 1, 0.0)], Belief::default());
    assert_eq!(ends(&outcome), [20.0, 40.0]);
}

#[test]
fn a_job_that_joins_another_counts_from_then_on() {
    let any = [(Level::Any, 1.0)];
    let (first, second) = (job(30.0, 1, &any, 1, 0.0), job(10.0, 2, &any, 1, 0.0));
    let jobs = [(Time::ZERO, &first), (Time::from_secs(10.0), &second)];
    let outcome = run_as_they_come("gpu:1", &jobs, Belief::default());
    // Both at half speed from 10 s on: the second is done at 30 s, when the first has 20 of its 30 steps.
    assert_eq!(ends(&outcome), [40.0, 30.0]);
    assert_eq!(outcome.record.used, [40_000_000]);
    assert_eq!(outcome.record.jobs.iter().map(|job| job.shared).collect::<Vec<_>>(), [10.0, 10.0]);
    let bars = outcome.record.bars.iter();
    let bars: Vec<_> = bars.map(|bar| (bar.job.0, bar.start.secs(), bar.end.secs(), bar.lane)).collect();
    assert_eq!(bars, [(1, 10.0, 30.0, (1, 2)), (0, 0.0, 40.0, (0, 2))]);
}

#[test]
fn where_no_pair_was_measured_speeds_follow_from_what_jobs_ask_for() {
    let busy = |busy, claim| {
        let usage = Some(Usage { busy, memory_mib: 0 });
        let sharing = Some(Arc::new(Sharing { claim, usage, ..Sharing::PLAIN }));
        JobSpec { sharing, ..job(30.0, 1, &[(Level::Any, 1.0)], 1, 0.0) }
    };
    let ends = |jobs: &[JobSpec]| ends(&run("gpu:1", jobs, Belief::default()));
    use Claim::{Guaranteed, Opportunistic, Ordinary};
    assert_eq!(ends(&[busy(0.5, Ordinary), busy(0.5, Ordinary)]), [30.0, 30.0]);
    assert_eq!(ends(&[busy(1.0, Ordinary), busy(0.5, Ordinary)]), [45.0, 45.0]);
    // The guaranteed one loses a twentieth and ends first; the other has half of what it asks for until then.
    let found = ends(&[busy(0.75, Guaranteed), busy(0.5, Opportunistic)]);
    assert!(
        (found[0] - 30.0 / 0.95).abs() < 1e-3 && (found[1] - (30.0 + found[0] / 2.0)).abs() < 1e-3,
        "{found:?}"
    );
}

#[test]
fn a_job_that_its_neighbour_leaves_nothing_goes_on_when_that_ends() {
    let mut pairs = Belief::default();
    pairs.set_beside(ProfileId(1), ProfileId(2), KindId(0), 0.0);
    pairs.set_beside(ProfileId(2), ProfileId(1), KindId(0), 1.0);
    let any = [(Level::Any, 1.0)];
    let outcome = run("gpu:1", &[job(10.0, 1, &any, 1, 0.0), job(30.0, 2, &any, 1, 0.0)], pairs);
    assert_eq!(ends(&outcome), [40.0, 30.0]);
}

#[test]
fn a_gang_goes_at_the_speed_of_where_it_lies() {
    let ways = [(Level::Any, 1.0), (Level::Node, 3.0)];
    let gang = job(30.0, 1, &ways, 2, 0.0);
    let end = |cluster| ends(&run(cluster, std::slice::from_ref(&gang), Belief::default()))[0];
    // It may lie anywhere; on one node it is as fast as if it had to.
    assert_eq!((end("gpu:1x2"), end("gpu:2x1")), (10.0, 30.0));
}
