//! The incremental round against a walk over all jobs from scratch.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use yard_core::allocation::Mode;
use yard_core::ids::JobIdx;
use yard_core::job::{JobRun, JobSpec, JobState, Rank};
use yard_core::message::{Input, Outcome};
use yard_core::{Settings, Span};

use crate::common::{PREEMPT, QUEUE, SKIP, World};

/// Something that happens. Jobs are named by position among those that could be meant.
#[derive(Clone, Debug)]
enum Op {
    Submit { devices: u32, rank: i8, priority: i32 },
    End(usize),
    Cancel(usize),
    Rank(usize, i8),
    Crash(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1u32..=6, -4i8..4, prop_oneof![3 => Just(0), 1 => Just(i32::MAX), 1 => Just(-2)])
            .prop_map(|(devices, rank, priority)| Op::Submit { devices, rank, priority }),
        2 => any::<usize>().prop_map(Op::End),
        1 => any::<usize>().prop_map(Op::Cancel),
        2 => (any::<usize>(), -4i8..4).prop_map(|(job, rank)| Op::Rank(job, rank)),
    ]
}

fn op_or_crash() -> impl Strategy<Value = Op> {
    prop_oneof![6 => op(), 1 => any::<usize>().prop_map(Op::Crash)]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..60)
}

/// Jobs as the reference knows them.
#[derive(Default)]
struct Reference {
    devices: BTreeMap<u64, u32>,
    priorities: BTreeMap<u64, i32>,
    running: BTreeSet<u64>,
}

impl Reference {
    /// Walks over all jobs in order and takes who fits in what is left.
    fn decide(&mut self, mode: Mode, capacity: u32, rank: impl Fn(u64) -> f64) {
        let Mode::Ordered { preempt, skip, .. } = mode else {
            unreachable!("the reference knows orders only")
        };
        if preempt {
            self.running.clear();
        }
        let mut left = capacity - self.running.iter().map(|job| self.devices[job]).sum::<u32>();
        let mut waiting: Vec<_> = self.devices.keys().filter(|job| !self.running.contains(job)).collect();
        let class = |job: u64| Reverse(self.priorities[&job]);
        waiting.sort_by(|one, other| {
            let ranked = rank(**one).total_cmp(&rank(**other)).then(one.cmp(other));
            class(**one).cmp(&class(**other)).then(ranked)
        });
        for job in waiting {
            if self.devices[job] <= left {
                left -= self.devices[job];
                self.running.insert(*job);
            } else if !skip {
                return;
            }
        }
    }

    fn forget(&mut self, job: u64) {
        self.devices.remove(&job);
        self.running.remove(&job);
    }
}

fn pick(jobs: &BTreeSet<u64>, at: usize) -> Option<u64> {
    jobs.iter().nth(at % jobs.len().max(1)).copied()
}

/// Lets it happen to the world and to the reference; the former then settles.
fn happen(world: &mut World, reference: &mut Reference, op: &Op) {
    let living: BTreeSet<u64> = reference.devices.keys().copied().collect();
    match *op {
        Op::Submit { devices, rank, priority } => {
            let spec = JobSpec { priority, ..world.spec(&devices.to_string()) };
            let job = world.submit_spec(spec);
            reference.priorities.insert(job, priority);
            world.policy.ranks.insert(job, rank.into());
            reference.devices.insert(job, devices);
        }
        Op::End(at) => {
            let Some(job) = pick(&reference.running, at) else { return };
            world.stopped(job, Outcome::Finished);
            reference.forget(job);
        }
        Op::Crash(_) => unreachable!("the reference knows no failures"),
        Op::Cancel(at) => {
            let Some(job) = pick(&living, at) else { return };
            world.script(&format!("cancel {job}"));
            reference.forget(job);
        }
        Op::Rank(at, rank) => {
            let Some(job) = pick(&living, at) else { return };
            world.script(&format!("rank {job} {rank}"));
        }
    }
    world.settle();
}

/// What runs is what the walk from scratch takes, after every step.
fn runs_what_the_walk_takes(mode: Mode, incremental: bool, ops: &[Op]) {
    let mut world = World::new("a:4 b:1 c:3");
    (world.policy.mode, world.policy.incremental) = (mode, incremental);
    let mut reference = Reference::default();
    for op in ops {
        happen(&mut world, &mut reference, op);
        reference.decide(mode, 8, |job| world.policy.rank(job));
        assert_eq!(world.running(), reference.running, "after {op:?}");
    }
}

/// Everything of a row that a policy did not say itself.
fn without_rank(run: &JobRun) -> JobRun {
    JobRun { rank: Rank::default(), ..run.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn preemptive_rounds_run_what_a_greedy_walk_takes(ops in ops(), incremental: bool) {
        runs_what_the_walk_takes(PREEMPT, incremental, &ops);
    }

    #[test]
    fn queues_that_skip_fill_up_greedily_around_what_runs(ops in ops(), incremental: bool) {
        runs_what_the_walk_takes(SKIP, incremental, &ops);
    }

    #[test]
    fn plain_queues_fill_up_to_the_first_that_does_not_fit(ops in ops(), incremental: bool) {
        runs_what_the_walk_takes(QUEUE, incremental, &ops);
    }

    #[test]
    fn who_runs_before_and_after_a_round_is_not_stopped(ops in ops()) {
        let mut world = World::new("a:4 b:1 c:3");
        let mut reference = Reference::default();
        for op in ops {
            world.orders();
            happen(&mut world, &mut reference, &op);
            reference.running = world.running();
            let moved: Vec<_> = world.revoked().intersection(&world.running()).copied().collect();
            prop_assert!(moved.is_empty(), "{moved:?} moved after {op:?}: {}", world.picture());
        }
    }

    #[test]
    fn a_view_names_every_job_whose_row_changed_since_the_plan_in_force(
        ops in prop::collection::vec((op_or_crash(), 0u8..8), 1..40),
    ) {
        let mut world = World::manual("a:4 b:1 c:3");
        (world.answers, world.failures_max) = (false, 3);
        let settings = Settings { backoff: Span::from_secs(3.0), ..world.engine.settings().clone() };
        world.step(Input::Begin(Box::new(settings)));
        let mut seen: Vec<JobRun> = Vec::new();
        for (op, then) in ops {
            manually(&mut world, &op, then);
            let Some((plan, view)) = world.plans.pop() else { continue };
            for row in (0..view.runs.len() as u32).map(JobIdx) {
                let now = without_rank(view.run(row));
                let same = seen.get(row.index()).is_some_and(|then| without_rank(then) == now);
                let named = if !now.is_active() {
                    view.changed.all || view.changed.ended.contains(&row)
                } else {
                    view.dirty().contains(&row)
                };
                prop_assert!(same || named, "{now:?} changed unnoticed");
            }
            // Two in eight plans are late or fail: their news must be told again.
            if then % 4 > 0 {
                seen = view.runs.to_vec();
                let answer = Ok(world.policy.allocate(&view));
                world.step(Input::Planned { plan, answer });
            } else if then > 0 {
                world.step(Input::Planned { plan, answer: Err("no".into()) });
            }
        }
    }
}

/// As `happen`, with an executor that reports one thing at a time.
fn manually(world: &mut World, op: &Op, then: u8) {
    world.plans.clear();
    let holding: BTreeSet<u64> = (0..world.engine.next_job().0)
        .filter(|job| {
            let run = world.engine.job(yard_core::ids::JobId(*job));
            run.is_some_and(|run| run.lease.is_some())
        })
        .collect();
    match *op {
        Op::Submit { devices, rank, .. } => {
            let job = world.submit(&devices.to_string());
            world.policy.ranks.insert(job, rank.into());
        }
        Op::Cancel(at) if then < 2 => {
            let Some(job) = pick(&holding, at) else { return };
            world.script(&format!("cancel {job}"));
        }
        Op::Crash(at) => {
            let Some(job) = pick(&holding, at) else { return };
            world.stopped(job, Outcome::Crashed);
        }
        Op::End(at) | Op::Cancel(at) | Op::Rank(at, _) => {
            let Some(job) = pick(&holding, at) else { return };
            match world.state(job) {
                Some(JobState::Starting) => world.started(job),
                Some(JobState::Suspending) => world.stopped(job, Outcome::Saved),
                _ => world.stopped(job, Outcome::Finished),
            }
        }
    }
    world.wait(then.into());
}
