//! Every field of a job has an effect: two simulations that differ in nothing else go differently, or people are shown
//! something else. A new field does not compile here until it is shown to have one.

use std::sync::Arc;

use yard_core::belief::Belief;
use yard_core::ids::{JobId, JobIdx, KindId, ProfileId};
use yard_core::job::{Claim, Costs, JobSpec, Late, Length, Reward, Shape, Sharing, Usage};
use yard_core::policy::{Cadence, Policy};
use yard_core::training::{Fits, Regime, Training};
use yard_core::{Settings, Span, Time};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::record::Keep;
use yard_sim::{Quirks, RunOutcome, Simulation, Speeds};

/// Where the effect of a field is seen: under this policy, or in what people are shown.
#[derive(Clone, Copy)]
enum Seen {
    Under(&'static str),
    /// With deadlines promised at submission.
    Promised(&'static str),
    /// With jobs that fail now and then.
    Failing(&'static str),
    InPlans,
}
use Seen::{Failing, InPlans, Promised, Under};

type Change = (&'static str, Seen, fn(&mut JobSpec));

/// A change of each field, and where its effect is seen; all fields, or it does not compile.
macro_rules! changes {
    ($($field:ident: $seen:expr, $value:expr;)*) => {{
        let JobSpec { $($field: _),* } = job();
        let all: Vec<Change> = vec![$((stringify!($field), $seen, |job| job.$field = $value)),*];
        all
    }};
}

fn changes() -> Vec<Change> {
    changes! {
        name: InPlans, "other".into();
        user: Under("gandiva-fair"), Some("ann".into());
        tenant: Under("hierarchical:weights=vision*8"), Some("vision".into());
        weight: Under("max-min"), 8.0;
        priority: Under("fifo"), 1;
        deadline: Under("edf"), Some(Time::from_secs(500.0));
        steps: Under("fifo"), 77.0;
        length: Under("srsf"), Length::Unknown;
        shapes: Under("fifo"), Arc::from([Shape::of(KindId(0), 2), Shape::of(KindId(0), 1)]);
        speeds: Under("fifo"), Arc::from([3.0, 1.5]);
        profile: Under("fifo-het:packed=true"), ProfileId(2);
        costs: Under("fifo"), Costs { start: Span::from_secs(9.0), ..Costs::default() };
        failures_max: Failing("fifo"), 50;
        pausable: Under("srtf"), false;
        not_before: Under("fifo"), Some(Time::from_secs(1000.0));
        sharing: Under("antman"), Some(Arc::new(Sharing { claim: Claim::Guaranteed, ..Sharing::PLAIN }));
        training: Under("sia"), Some(Arc::new(training()));
        regimes: Under("shockwave"), Some(regimes());
        rewards: Promised("fifo"), Some(rewards());
        late: Promised("fifo"), Late::Refuse;
        after: Under("fifo"), Box::from([JobId(2)]);
    }
}

fn training() -> Training {
    let fits = vec![Fits { kind: KindId(0), least: 1, most: 64 }];
    Training {
        batch: 32,
        batch_max: 128,
        adapts: true,
        accumulates: false,
        fits,
        profiled: Vec::new(),
        noise: None,
    }
}

fn regimes() -> Arc<[Regime]> {
    Arc::from([1.0, 40.0].map(|seconds| Regime { batch: 32 * seconds as u32, seconds }))
}

/// A deadline that cannot be kept.
const DEADLINE_S: f64 = 20.0;

/// That deadline, and a later one, which can be kept.
fn rewards() -> Arc<[Reward]> {
    Arc::from([(DEADLINE_S, 2.0), (5000.0, 1.0)].map(|(by, worth)| Reward { by: Time::from_secs(by), worth }))
}

/// A job of two sizes that asks for nothing in particular.
fn job() -> JobSpec {
    let usage = Some(Usage { busy: 0.3, memory_mib: 10 });
    JobSpec {
        name: "job".into(),
        user: None,
        tenant: None,
        weight: 1.0,
        priority: 0,
        deadline: None,
        steps: 60.0,
        length: Length::Stated,
        shapes: Arc::from([Shape::of(KindId(0), 1), Shape::of(KindId(0), 2)]),
        speeds: Arc::from([1.0, 1.5]),
        profile: ProfileId(1),
        costs: Costs::default(),
        failures_max: 0,
        pausable: true,
        not_before: None,
        sharing: Some(Arc::new(Sharing { usage, ..Sharing::PLAIN })),
        training: None,
        regimes: None,
        rewards: None,
        late: Late::Try,
        after: Box::default(),
    }
}

/// When the jobs are submitted, and how long they take.
const JOBS: [(f64, f64); 5] = [(0.0, 90.0), (1.0, 60.0), (2.0, 60.0), (3.0, 40.0), (25.0, 10.0)];

/// The one that is changed.
const CHANGED: usize = 3;

/// Jobs on two devices. The last wants both, and is of the same user as the changed one may be.
fn jobs(seen: Seen, change: fn(&mut JobSpec)) -> Vec<JobSpec> {
    let mut jobs = JOBS.map(|(_, steps)| JobSpec { steps, ..job() });
    let [.., last] = &mut jobs;
    (last.shapes, last.speeds) = (Arc::from([Shape::of(KindId(0), 2)]), Arc::from([1.0]));
    last.user = Some("ann".into());
    if let Promised(_) = seen {
        jobs[CHANGED].deadline = Some(Time::from_secs(DEADLINE_S));
    }
    change(&mut jobs[CHANGED]);
    jobs.into()
}

fn simulated<T>(seen: Seen, change: fn(&mut JobSpec), take: impl FnOnce(Simulation<'_>) -> T) -> T {
    let name = if let Under(name) | Promised(name) | Failing(name) = seen { name } else { "fifo" };
    let mut policy: Box<dyn Policy> = yard_policies::make(name, Arc::from([10.0])).expect("a policy").1;
    let mut pairs = Belief::default();
    pairs.set_beside(ProfileId(1), ProfileId(1), KindId(0), 0.9);
    let specs = jobs(seen, change);
    let jobs: Vec<_> = specs.iter().zip(JOBS).map(|(job, (at, _))| (Time::from_secs(at), job)).collect();
    let job_mtbf = matches!(seen, Failing(_)).then_some(Span::from_secs(30.0));
    take(Simulation {
        jobs: &jobs,
        speeds: Speeds { pairs, ..Speeds::default() },
        cluster: &ClusterSpec::parse("gpu:1x2").expect("a cluster"),
        settings: Settings {
            round: Span::from_secs(10.0),
            every_round: policy.cadence() == Cadence::EveryRound,
            promises: matches!(seen, Promised(_)),
            learns_lengths: true,
            ..Settings::default()
        },
        policy: &mut *policy,
        placer: yard_policies::placer("pack").expect("there is such a placer"),
        checkpoint_every: Span::from_secs(5.0),
        quirks: Quirks::default(),
        faults: Faults { job_mtbf, ..Faults::default() },
        script: Vec::new(),
        seed: 3,
        keep: Keep::default(),
        events: None,
        progress: None,
        steps_max: 100_000,
        stop: None,
        probe: None,
    })
}

/// What became of the jobs, or what people are shown of them.
fn seen(seen: Seen, change: fn(&mut JobSpec)) -> String {
    if let InPlans = seen {
        let view = simulated(seen, change, |simulation| yard_sim::view_at(simulation, Time::from_secs(4.0)));
        return view.spec(JobIdx(CHANGED as u32)).name.to_string();
    }
    let outcome: RunOutcome =
        simulated(seen, change, |simulation| yard_sim::run(simulation).expect("nothing is written"));
    let became = outcome.record.jobs.iter().map(|job| (job.first_start, job.end, job.state, job.promise));
    format!("{:?}", became.collect::<Vec<_>>())
}

#[test]
fn every_field_of_a_job_has_an_effect() {
    let dead: Vec<_> =
        changes().into_iter().filter(|(_, at, change)| seen(*at, |_| ()) == seen(*at, *change)).collect();
    let names: Vec<_> = dead.iter().map(|(field, ..)| *field).collect();
    assert!(names.is_empty(), "these change nothing: {names:?}");
}
