//! Whatever happens, the engine stands, its invariants hold, and its journal tells the same story again.

use std::sync::Arc;

use proptest::prelude::*;
use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::cluster::{Kinds, Level, NodeSpec};
use yard_core::ids::{JobId, JobIdx, KindId, LeaseId, NodeId, PlanId};
use yard_core::job::{Costs, JobSpec, JobState, Late, Length, Need, Rank, Shape, Usage};
use yard_core::message::{Effect, Input, News, NodeChange, Outcome, Report};
use yard_core::training::Regime;
use yard_core::turns::{GavelTurns, Turns};
use yard_core::view::View;
use yard_core::{Engine, Settings, Span, State, Time};

use crate::common::{FirstFit, PREEMPT, QUEUE, SKIP};
use crate::training::{some_training, some_words};

/// Something that happens, before it is known to what: numbers are taken modulo what there is, or a bit more.
#[derive(Clone, Debug)]
enum Raw {
    Submit(JobSpec),
    Cancel(u64),
    Join {
        devices: u32,
        rack: u32,
        kind: u16,
    },
    Node(u8, u32),
    /// Devices of a node go out of service.
    Health(u32, u8),
    /// A driver begins, with these settings.
    Begin(Settings),
    Kind(u8),
    /// News from a holder of a lease that is in force.
    True(usize, News),
    /// News from nowhere.
    False(u64, u64, News),
    /// An answer to the newest plan.
    Answer(Answer),
    /// An answer to some plan or none.
    Late(u64),
    Tick,
}

#[derive(Clone, Debug)]
struct Answer {
    mode: Mode,
    full: bool,
    /// Rows, shape, fraction and rank of each share; rows may not exist.
    shares: Vec<(Vec<u32>, Option<u16>, f64, f64)>,
    /// Whether it makes sense: one share for each job, instead of the above.
    sense: bool,
    fails: bool,
    replan_s: Option<u8>,
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![3 => Just(Level::Any), 1 => Just(Level::Node), 1 => Just(Level::Rack)]
}

fn shape() -> impl Strategy<Value = Shape> {
    let one = (0u16..2, 1u32..5, level())
        .prop_map(|(kind, devices, level)| Shape::of(KindId(kind), devices).within(level));
    let two = (1u32..3, 1u32..3).prop_map(|(one, other)| {
        let need = |kind, devices| Need { kind: KindId(kind), devices };
        Shape::of_needs(vec![need(0, one), need(1, other)], Level::Any)
    });
    // Many jobs alike, so that groups come about.
    prop_oneof![5 => Just(Shape::of(KindId(0), 1)), 5 => one, 1 => two, 1 => (0u16..4,0u32..2,0u16..2,0u32..2).prop_map(|(k,d,k2,d2)| Shape::of_needs(vec![Need{kind:KindId(k),devices:d},Need{kind:KindId(k2),devices:d2}],Level::Any))]
}

fn spec() -> impl Strategy<Value = JobSpec> {
    let numbers = (-0.5f64..20.0, 0u64..20, 0u32..3, -0.2f64..4.0);
    // Also after jobs that are over, that failed, and that do not exist.
    let after = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0u64..12, 1..4)];
    let bounds = (prop::bool::weighted(0.7), prop::option::weighted(0.2, 0u64..2_000), after);
    (prop::collection::vec(shape(), 0..3), numbers, bounds).prop_map(
        |(shapes, (steps, cost, failures_max, weight), (pausable, not_before, after))| JobSpec {
            name: "job".into(),
            user: None,
            tenant: None,
            weight,
            priority: 0,
            deadline: None,
            steps,
            length: if weight > 1.0 { Length::Predicted } else { Length::Stated },
            speeds: vec![1.5; shapes.len()].into(),
            shapes: shapes.into(),
            costs: Costs { save: Span::from_whole_secs(cost), ..Costs::default() },
            profile: Default::default(),
            failures_max,
            pausable,
            not_before: not_before.map(|seconds| Time::ZERO + Span::from_whole_secs(seconds)),
            sharing: None,
            training: None,
            regimes: (failures_max == 1)
                .then(|| [30.0, 60.0].map(|seconds| Regime { batch: 8, seconds }).into()),
            rewards: None,
            late: Late::Try,
            after: after.into_iter().map(JobId).collect(),
        },
    )
}

fn trainee() -> impl Strategy<Value = JobSpec> {
    let with = |(spec, training)| JobSpec { training: Some(Arc::new(training)), ..spec };
    (spec(), some_training()).prop_map(with)
}

fn steps() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.0f64..20.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(-3.0)]
}

fn news() -> impl Strategy<Value = News> {
    use Outcome::{Crashed, Expired, Finished, Frozen, Lost, Saved};
    let outcome =
        prop_oneof![Just(Finished), Just(Saved), Just(Frozen), Just(Lost), Just(Crashed), Just(Expired)];
    let usage = (steps(), any::<u32>()).prop_map(|(busy, memory_mib)| Usage { busy, memory_mib });
    let costs = (0u64..9, 0u64..9).prop_map(|(save, load)| Costs {
        save: Span::from_whole_secs(save),
        load: Span::from_whole_secs(load),
        start: Span::ZERO,
    });
    prop_oneof![
        3 => Just(News::Started),
        1 => steps().prop_map(|steps| News::Progress { steps }),
        1 => usage.prop_map(News::Usage),
        1 => costs.prop_map(News::Costs),
        1 => any::<bool>().prop_map(News::Stuck),
        1 => (steps(), 0u16..3).prop_map(|(steps, regime)| News::Regime { steps, regime }),
        2 => some_words(),
        4 => (steps(), outcome).prop_map(|(steps, outcome)| News::Stopped { steps, outcome }),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    let strict = Mode::Ordered { preempt: true, skip: false, classes: true };
    prop_oneof![4 => Just(PREEMPT), 1 => Just(QUEUE), 1 => Just(SKIP), 1 => Just(strict), 2 => Just(Mode::Fractions)]
}

fn answer() -> impl Strategy<Value = Answer> {
    let fraction = prop_oneof![18 => 0.01f64..0.5, 4 => Just(1.0), 1 => Just(f64::NAN), 1 => Just(-1.0)];
    let rank = prop_oneof![19 => -5.0f64..5.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY)];
    let share = (prop::collection::vec(0u32..5, 0..3), prop::option::of(0u16..3), fraction, rank);
    let shares = prop::collection::vec(share, 0..4);
    (mode(), any::<bool>(), shares, 0u8..10, prop::option::of(0u8..90)).prop_map(
        |(mode, full, shares, luck, replan_s)| Answer {
            mode,
            full,
            shares,
            sense: luck < 6,
            fails: luck == 9,
            replan_s,
        },
    )
}

fn raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        6 => spec().prop_map(Raw::Submit),
        3 => trainee().prop_map(Raw::Submit),
        3 => any::<u64>().prop_map(Raw::Cancel),
        2 => (0u32..5, 0u32..2, 0u16..2).prop_map(|(devices, rack, kind)| Raw::Join { devices, rack, kind }),
        2 => (0u8..5, 0u32..9).prop_map(|(change, node)| Raw::Node(change, node)),
        2 => (0u32..6, 0u8..16).prop_map(|(node, bad)| Raw::Health(node, bad)),
        1 => settings().prop_map(Raw::Begin),
        1 => (0u8..4).prop_map(Raw::Kind),
        9 => (any::<usize>(), news()).prop_map(|(at, news)| Raw::True(at, news)),
        1 => (0u64..20, 0u64..20, news()).prop_map(|(lease, job, news)| Raw::False(lease, job, news)),
        9 => answer().prop_map(Raw::Answer),
        1 => (0u64..20).prop_map(Raw::Late),
        9 => Just(Raw::Tick),
    ]
}

fn turns() -> impl Strategy<Value = Turns> {
    let gavel = (prop::option::of(any::<u64>()), any::<bool>());
    let gavel = gavel.prop_map(|(shuffle, leftovers)| Turns::Gavel(GavelTurns { shuffle, leftovers }));
    prop_oneof![Just(Turns::Owed), gavel]
}

fn settings() -> impl Strategy<Value = Settings> {
    let span = |seconds| prop_oneof![Just(0u64), Just(seconds)].prop_map(Span::from_whole_secs);
    let any = (span(60), any::<bool>(), 0u8..4, any::<bool>(), turns(), span(150), span(20));
    any.prop_map(|(round, every_round, luck, fill, turns, plan_gap, backoff)| Settings {
        round,
        every_round,
        repack: luck == 0,
        fill,
        turns,
        plan_gap,
        lease: Span::from_whole_secs(100),
        backoff,
        promises: false,
        apart: false,
        learns_lengths: luck < 2,
    })
}

/// An engine, what was last asked of the policy, and what happened so far.
struct Run {
    engine: Engine,
    plan: Option<(PlanId, View)>,
    journal: Vec<(Time, Input)>,
}

impl Run {
    fn step(&mut self, now: Time, input: Input) {
        let mut out = Vec::new();
        self.engine.step(now, input.clone(), &mut out);
        self.engine.check();
        self.journal.push((now, input));
        for effect in out {
            if let Effect::Plan { plan, view } = effect {
                self.plan = Some((plan, view));
            }
        }
    }

    fn input(&self, raw: Raw) -> Option<Input> {
        Some(match raw {
            Raw::Submit(spec) => Input::Submit(Box::new(spec)),
            Raw::Cancel(job) => {
                let (wanted, force) = (JobId(job % (self.engine.next_job().0 + 2)), job / 3 % 2 == 1);
                match job / 6 % 5 {
                    0 => return Some(Input::Hold(wanted)),
                    1 => return Some(Input::Release(wanted)),
                    2 => return Some(Input::Requeue(wanted)),
                    _ => {}
                }
                if force { Input::Kill(wanted) } else { Input::Cancel(wanted) }
            }
            Raw::Join { devices, rack, kind } => {
                let spec = NodeSpec::of("n", KindId(kind), devices).within(Level::Rack, &rack.to_string());
                Input::Node(NodeChange::Join(spec))
            }
            Raw::Node(change, node) => Input::Node(change_of(change, NodeId(node))),
            Raw::Health(node, bad) => Input::Node(NodeChange::Health { node: NodeId(node), bad: bad.into() }),
            Raw::Begin(settings) => Input::Begin(Box::new(settings)),
            Raw::Kind(at) => Input::Kind(format!("kind {at}")),
            Raw::True(at, news) => Input::Report(self.true_report(at, news)?),
            Raw::False(lease, job, news) => Input::Report(self.report(LeaseId(lease), JobId(job), news)),
            Raw::Answer(answer) => {
                let (plan, view) = self.plan.as_ref()?;
                Input::Planned { plan: *plan, answer: answer_of(answer, view) }
            }
            Raw::Late(plan) => Input::Planned { plan: PlanId(plan), answer: Err("late".into()) },
            Raw::Tick => Input::Tick,
        })
    }

    fn true_report(&self, at: usize, news: News) -> Option<Report> {
        let runs = (0..self.engine.next_job().0).filter_map(|job| self.engine.job(JobId(job)));
        let holders: Vec<_> = runs.filter_map(|run| Some((run.lease?, run.id))).collect();
        let (lease, job) = *holders.get(at % holders.len().max(1))?;
        Some(self.report(lease, job, news))
    }

    /// A job's first news is that it started.
    fn report(&self, lease: LeaseId, job: JobId, news: News) -> Report {
        let starts = self.engine.job(job).is_some_and(|run| run.state == JobState::Starting);
        let _ = starts;
        Report { lease, job, news }
    }
}

fn change_of(change: u8, node: NodeId) -> NodeChange {
    match change {
        0 => NodeChange::Drain(node),
        1 => NodeChange::Leave(node),
        2 => NodeChange::Fail(node),
        3 => NodeChange::Lent { among: vec![node, NodeId(0), NodeId(1)], nodes: node.0 % 3 },
        _ => NodeChange::Resume(node),
    }
}

fn answer_of(answer: Answer, view: &View) -> Result<Allocation, String> {
    if answer.fails {
        return Err("no".into());
    }
    let distinct = |rows: Vec<u32>| rows;
    let given = |(rows, shape, fraction, rank): (Vec<u32>, _, _, _)| Share {
        jobs: distinct(rows).into_iter().map(JobIdx).collect(),
        shape,
        fraction,
        rank: Rank(rank, 0.0),
    };
    let shares: Vec<_> = if answer.sense {
        view.active().map(|row| Share::whole(row, Rank((row.0 * 7 % 5) as f64, 0.0))).collect()
    } else {
        answer.shares.into_iter().map(given).collect()
    };
    let shares = if answer.full { Shares::All(shares) } else { Shares::Changed(shares) };
    let replan_at = answer.replan_s.map(|seconds| view.now + Span::from_whole_secs(seconds.into()));
    Ok(Allocation { mode: answer.mode, shares, replan_at, certificate: None })
}

fn engine(settings: &Settings) -> Engine {
    let mut kinds = Kinds::default();
    kinds.intern("gpu");
    kinds.intern("slow");
    Engine::new(settings.clone(), kinds, Box::new(FirstFit))
}

/// Two nodes of each kind, then what the script says.
fn live(settings: &Settings, script: Vec<(u8, Raw)>) -> Run {
    let mut run = Run { engine: engine(settings), plan: None, journal: Vec::new() };
    for kind in [0, 0, 1, 1] {
        let input = run.input(Raw::Join { devices: 3, rack: kind.into(), kind });
        run.step(Time::ZERO, input.expect("a node joins"));
    }
    let mut now = Time::ZERO;
    for (seconds, raw) in script {
        now = now + Span::from_whole_secs(seconds.into());
        if let Some(input) = run.input(raw) {
            run.step(now, input);
        }
    }
    run
}

fn replay(engine: &mut Engine, journal: &[(Time, Input)]) {
    for (now, input) in journal {
        engine.step(*now, input.clone(), &mut Vec::new());
    }
}

fn saved_and_restored(engine: &Engine) -> Engine {
    let saved = serde_json::to_string(engine.state()).expect("a state is data");
    let state: State = serde_json::from_str(&saved).expect("what was written can be read");
    assert_eq!(state, *engine.state(), "what is read is what was written");
    Engine::restore(state, Box::new(FirstFit)).expect("it is of this version")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_keeps_the_invariants_and_replays_to_the_same_state_across_a_restart(
        settings in settings(),
        script in prop::collection::vec((0u8..90, raw()), 1..90),
    ) {
        let run = live(&settings, script);
        let (before, after) = run.journal.split_at(run.journal.len() / 2);
        let mut again = engine(&settings);
        replay(&mut again, before);
        let mut restored = saved_and_restored(&again);
        replay(&mut again, after);
        replay(&mut restored, after);
        prop_assert_eq!(again.state(), run.engine.state());
        prop_assert_eq!(restored.state(), run.engine.state());
    }
}
