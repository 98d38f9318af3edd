//! Jobs that train as Sia's profiles say, run whole; times that were computed from the files by other means.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::PathBuf;

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::cluster::{Level, Nodes, Placement, Slice};
use yard_core::ids::JobId;
use yard_core::job::{JobSpec, Rank, Shape};
use yard_core::message::{Input, News, Report};
use yard_core::policy::{Placer, Policy, PolicyError};
use yard_core::training::{Noise, Timing};
use yard_core::view::View;
use yard_core::{Settings, Span, Time};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::overheads::Overheads;
use yard_sim::record::Keep;
use yard_sim::throughput::Throughputs;
use yard_sim::trace::Scaling;
use yard_sim::workload::{Options, Workload};
use yard_sim::{Quirks, RunOutcome, Simulation, Speeds};

fn profiles() -> Option<PathBuf> {
    yard_needs::shared("sia/profiles")
}

/// First in, first out, each in the first shape in which it makes progress.
struct Fifo;

impl Policy for Fifo {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let share = |job| {
            let shape = view.spec(job).usable().next();
            Share { shape, ..Share::whole(job, Rank(view.run(job).submitted.secs(), 0.0)) }
        };
        Ok(Allocation::queue(Shares::All(view.active().map(share).collect()), true))
    }
}

/// The emptiest node, or as many as it takes.
struct Emptiest;

impl Placer for Emptiest {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let [need] = shape.needs[..] else { return None };
        let mut of_kind: Vec<_> =
            nodes.iter().filter(|(_, node)| node.spec.pool(need.kind).is_some()).collect();
        of_kind.sort_by_key(|(id, node)| (std::cmp::Reverse(node.free_count(need.kind)), *id));
        let mut placement = Placement::default();
        for (node, state) in of_kind {
            let take = (need.devices - placement.devices()).min(state.free_count(need.kind));
            if take > 0 {
                placement.0.push(Slice::of(node, state.take(need.kind, take)));
            }
        }
        let fits = placement.devices() == need.devices;
        (fits && (shape.level() == Level::Any || placement.0.len() == 1)).then_some(placement)
    }
}

struct Setup {
    table: Throughputs,
    cluster: &'static str,
    scaling: Option<Scaling>,
    profiled: bool,
}

impl Setup {
    fn new(cluster: &'static str, scaling: Option<Scaling>) -> Option<Setup> {
        let table = Throughputs::open(&profiles()?).unwrap();
        Some(Setup { table, cluster, scaling, profiled: true })
    }

    fn workload(&self, trace: &str) -> Result<(Vec<Time>, Workload), String> {
        let trace = yard_sim::trace::read("t.csv", trace.as_bytes(), None).unwrap().trace;
        let (scaling, profiled) = (self.scaling, self.profiled);
        let overheads = Overheads::sia();
        let table = Some(&self.table);
        let options = Options { table, overheads: &overheads, placement_aware: true, scaling, profiled };
        let workload = Workload::new(&trace, &ClusterSpec::parse(self.cluster).unwrap(), options);
        let workload = workload.map_err(|error| error.to_string())?;
        Ok((trace.jobs.iter().map(|job| job.submit).collect(), workload))
    }

    /// Runs a trace to its end; returns what became of it, and every report of how a job trains.
    fn run(&self, trace: &str) -> (RunOutcome, Vec<(Time, News)>) {
        let (submits, workload) = self.workload(trace).unwrap();
        let jobs: Vec<(Time, &JobSpec)> = submits.into_iter().zip(&workload.specs).collect();
        let mut said = Vec::new();
        let mut probe = |_: &yard_core::Engine, now: Time, input: &Input| {
            if let Input::Report(Report { news, job: JobId(0), .. }) = input {
                said.push((now, news.clone()));
            }
        };
        let outcome = yard_sim::run(Simulation {
            jobs: &jobs,
            speeds: Speeds { courses: workload.courses.clone(), ..Speeds::default() },
            cluster: &ClusterSpec::parse(self.cluster).unwrap(),
            settings: Settings { round: Span::from_whole_secs(60), ..Settings::default() },
            policy: &mut Fifo,
            placer: Box::new(Emptiest),
            checkpoint_every: Span::ZERO,
            quirks: Quirks::default(),
            faults: Faults::default(),
            script: Vec::new(),
            seed: 0,
            keep: Keep::default(),
            events: None,
            progress: None,
            steps_max: 1_000_000,
            stop: None,
            probe: Some(&mut probe),
        });
        (outcome.unwrap(), said)
    }
}

/// Seconds from the submission to the end.
fn jct(outcome: &RunOutcome, job: usize) -> f64 {
    yard_sim::summary::jct(&outcome.record.jobs[job]).unwrap()
}

const HEADER: &str = "name,time,application,num_replicas,batch_size\n";

#[test]
fn a_rigid_job_takes_its_iterations() {
    let Some(setup) = Setup::new("t4:2x4", Some(Scaling::Rigid)) else { return };
    let (outcome, _) = setup.run(&format!("{HEADER}a,0,cifar10,4,2048\n"));
    // 3343.1466 steps of 2048 examples, 0.3944566 s each, 1.8 times that in truth, and 50 s to start.
    assert!((jct(&outcome, 0) - 2423.7074).abs() < 0.01, "{}", jct(&outcome, 0));
    assert!((outcome.record.jobs[0].service as f64 / 1e6 - 4.0 * jct(&outcome, 0)).abs() < 1e-3);
}

#[test]
fn an_adaptive_job_goes_from_epoch_to_epoch() {
    let Some(mut setup) = Setup::new("t4:1x4", None) else { return };
    setup.profiled = false;
    let (outcome, said) = setup.run(&format!("{HEADER}a,0,cifar10,4,2048\n"));
    let trained: Vec<(f64, Timing, Noise)> = said
        .iter()
        .filter_map(|(_, news)| match news {
            News::Trained { steps, timing, noise } => Some((*steps, (*timing)?, (*noise)?)),
            _ => None,
        })
        .collect();
    // Of what it says nothing is a guess: what it was measured to be is what it says.
    let (steps, timing, noise) = trained[0];
    // It was measured on one device, so it is given two at most.
    assert!(steps > 0.0 && timing.devices <= 2 && timing.nodes == 1, "{timing:?}");
    assert!(timing.step_s > timing.grad_s && noise.sqr > 0.0 && noise.var > 0.0);
    // Each epoch ends with a report, and the noise is another then.
    let ends = trained.iter().filter(|(steps, ..)| (*steps - 390.714_385_966).abs() < 1e-6).count();
    assert_eq!(ends, 1);
    assert!(trained.windows(2).filter(|pair| pair[0].2 != pair[1].2).count() >= 99);
    assert!(outcome.record.jobs[0].end.is_some());
}

#[test]
fn shapes_are_those_of_sia() {
    let Some(setup) = Setup::new("t4:6x4,rtx:3x8,a100:2x8", None) else { return };
    let (_, workload) = setup.workload(&format!("{HEADER}a,0,cifar10,16,4096\nb,0,bert,6,384\n")).unwrap();
    let spec = &workload.specs[0];
    let mut sizes: Vec<(u16, u32, Level)> =
        spec.shapes.iter().map(|shape| (shape.needs[0].kind.0, shape.devices(), shape.level())).collect();
    assert_eq!(sizes[0].1, 16);
    sizes.sort_unstable();
    use Level::{Any, Node};
    let t4 = [(1, Node), (2, Node), (4, Node), (8, Any), (12, Any), (16, Any), (20, Any), (24, Any)];
    let rtx = [(1, Node), (2, Node), (4, Node), (8, Node), (16, Any), (24, Any)];
    let a100 = [(1, Node), (2, Node), (4, Node), (8, Node), (16, Any)];
    let kinds: [&[(u32, Level)]; 3] = [&t4, &rtx, &a100];
    let all =
        (0..).zip(kinds).flat_map(|(kind, sizes)| sizes.iter().map(move |(n, spread)| (kind, *n, *spread)));
    assert_eq!(sizes, all.collect::<Vec<_>>());
    let training = spec.training.as_ref().unwrap();
    assert_eq!((training.batch, training.batch_max, training.adapts), (128, 4096, true));
    // Of bert, 384 examples are at most 96 devices of 4: no size is too large here.
    assert_eq!(workload.specs[1].shapes.len(), 19);
}

#[test]
fn belief_begins_with_one_device_where_it_is_to_learn() {
    let Some(mut setup) = Setup::new("t4:6x4,rtx:3x8", None) else { return };
    let trace = format!("{HEADER}a,0,cifar10,16,4096\n");
    let devices = |setup: &Setup| {
        let (_, workload) = setup.workload(&trace).unwrap();
        let spec = &workload.specs[0];
        let profiled = spec.training.as_ref().unwrap().profiled.iter();
        let most = profiled.map(|profiled| profiled.timing.devices).max();
        (most, spec.usable().map(|shape| spec.shapes[shape as usize].devices()).max())
    };
    assert_eq!(devices(&setup), (Some(24), Some(24)));
    setup.profiled = false;
    assert_eq!(devices(&setup), (Some(1), Some(1)));
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let Some(setup) = Setup::new("t4:6x4", None) else { return };
    let native = "job_id,submit_s,gpus,model,batch_size,mode,batch_max,duration_s\n";
    let said = |row: &str| setup.workload(&format!("{native}{row}\n")).map(|_| ()).unwrap_err();
    assert_eq!(
        said("a,0,4,bert,768,strong,,"),
        "t.csv, line 2, field batch_size: job a gives 768, and the runs of bert are of 12 to 384; 384 would work"
    );
    assert_eq!(
        said("a,0,4,bert,,adaptive,,60"),
        "t.csv, line 2, field duration_s: job a gives 60 seconds, and its profile has steps; leave it empty for the whole run, or give steps"
    );
    assert_eq!(
        said("a,0,4,resnet,,adaptive,,"),
        "t.csv, line 2, field model: job a trains resnet to the end of its profile, and the profiles given have none of it; name Sia's folder of profiles with --throughputs"
    );
    assert!(said("a,0,40,bert,384,rigid,,").contains("asks for 40"));
}
