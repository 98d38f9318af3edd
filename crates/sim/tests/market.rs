//! What a run keeps of a policy with prices, and of what it asked for: against figures made by hand.

use yard_core::allocation::{Allocation, Certificate, Share};
use yard_core::cluster::{Nodes, Placement, Slice};
use yard_core::ids::JobIdx;
use yard_core::job::{JobSpec, Shape};
use yard_core::policy::{Placer, Policy, PolicyError};
use yard_core::view::View;
use yard_core::{Settings, Span, Time};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::overheads::Overheads;
use yard_sim::record::Keep;
use yard_sim::workload::{Options, Workload};
use yard_sim::{Quirks, RunOutcome, Simulation, Speeds};

/// Half of the time on the first kind, a quarter on the second; devices cost as much as there are jobs.
struct Fixed;

impl Policy for Fixed {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let share = |job: JobIdx, shape, part| Share { shape: Some(shape), ..Share::part(job, part) };
        let shares = view.active().flat_map(|job| [share(job, 0, 0.5), share(job, 1, 0.25)]);
        let price = view.active().count() as f64;
        let proof =
            Certificate { objective: 2.0, bound: 2.5, prices: vec![price, 1.0], ..Certificate::default() };
        Ok(Allocation { certificate: Some(Box::new(proof)), ..Allocation::fractions(shares.collect()) })
    }
}

/// The first free devices of one node.
struct First;

impl Placer for First {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let need = shape.needs[0];
        let fits = |node: &yard_core::cluster::Node| node.free_count(need.kind) >= need.devices;
        let (id, node) = nodes.iter().find(|(_, node)| fits(node))?;
        Some(Placement([Slice::of(id, node.take(need.kind, need.devices))].into_iter().collect()))
    }
}

fn simulate(trace: &str) -> RunOutcome {
    let trace = yard_sim::trace::read("t.csv", trace.as_bytes(), None).expect("the trace is sound").trace;
    let cluster = ClusterSpec::parse("a:1,b:1").expect("the cluster is sound");
    let options = Options {
        table: None,
        overheads: &Overheads::none(),
        placement_aware: true,
        scaling: None,
        profiled: true,
    };
    let workload = Workload::new(&trace, &cluster, options).expect("the jobs fit");
    let jobs: Vec<(Time, &JobSpec)> = trace.jobs.iter().map(|job| job.submit).zip(&workload.specs).collect();
    let settings = Settings { round: Span::from_whole_secs(10), ..Settings::default() };
    yard_sim::run(Simulation {
        jobs: &jobs,
        speeds: Speeds::default(),
        cluster: &cluster,
        settings,
        policy: &mut Fixed,
        placer: Box::new(First),
        checkpoint_every: Span::ZERO,
        quirks: Quirks::default(),
        faults: Faults::default(),
        script: Vec::new(),
        seed: 0,
        keep: Keep { series: true, bars_max: 0 },
        events: None,
        progress: None,
        steps_max: 100_000,
        stop: None,
        probe: None,
    })
    .expect("nothing is written")
}

#[test]
fn prices_and_gaps_are_kept() {
    let outcome = simulate("job_id,submit_s,gpus,duration_s\nx,0,1,100\ny,50,1,100\n");
    let prices = &outcome.record.prices;
    assert_eq!(prices.gap_max, Some(0.25));
    let seen: Vec<_> = prices.samples.kept().iter().map(|plan| (plan.time.secs(), plan.prices[0])).collect();
    assert_eq!(seen[..2], [(0.0, 1.0), (50.0, 2.0)]);
    let until = seen.iter().skip(1).map(|sample| sample.0).chain([outcome.end.secs()]);
    let area: f64 = seen.iter().zip(until).map(|((from, price), until)| price * (until - from)).sum();
    let mean = prices.means().expect("there were prices");
    assert!((mean[0] - area / outcome.end.secs()).abs() < 1e-9 && mean[1] == 1.0, "{mean:?}");
}

#[test]
fn asked_and_received_are_kept_by_kind() {
    let outcome = simulate("job_id,submit_s,gpus,duration_s\nx,0,1,100\n");
    let follow = &outcome.record.follow;
    let points: Vec<_> = follow.points.kept().iter().map(|point| (point.asked, point.received)).collect();
    // Alone, it has all of the time, on the two kinds about as it was asked for: two to one, in rounds of 10 s.
    assert_eq!(points, [(0.5, 0.7), (0.25, 0.3)]);
    assert!(follow.error().is_some_and(|error| (error - 0.25).abs() < 1e-9), "{:?}", follow.error());
}
