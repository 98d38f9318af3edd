//! When jobs will start and end, foretold on a thread of its own from a copy of the engine's state. The driver never
//! waits for it: it hands a copy over now and then, and what comes of it goes onto the board. A forecast that took long
//! is followed by a rest ten times as long, and one that breaks down by none at all until the next start.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use yard_core::State;
use yard_core::forecast::interval::{Estimate, Interval, RUNS, estimates};
use yard_core::forecast::past::Past;
use yard_core::forecast::{self, Limits};
use yard_core::ids::JobId;
use yard_core::job::{JobRun, JobSpec};
use yard_core::policy::Placer;
use yard_core::units::{Span, Time};

use crate::board::Board;
use crate::driver::clock::Stopwatch;
use crate::planner::MakePolicy;
use crate::views::{EstimateView, IntervalView};

/// Makes a placer, for each run of a forecast.
pub type MakePlacer = Arc<dyn Fn() -> Box<dyn Placer> + Send + Sync>;

/// How jobs are foretold.
#[derive(Clone)]
pub struct Estimating {
    /// How often at most.
    pub every: Span,
    /// Who places in forecasts.
    pub placer: MakePlacer,
}

/// Jobs that are remembered, those that came and those that are over.
const PAST_MAX: usize = 1_000;

/// How far one run goes: a forecast of thousands of jobs takes seconds, not minutes.
const LIMITS: Limits =
    Limits { steps_max: 50_000, plans_max: 5_000, horizon: Span::from_whole_secs(30 * 86_400) };

/// A rest is so many times as long as the work before it.
const REST: u64 = 10;

/// The work is under way.
const BUSY: u64 = u64::MAX;

/// The driver's end.
#[derive(Default)]
pub(crate) struct Forecaster {
    how: Option<(Estimating, MakePolicy)>,
    arrivals: VecDeque<(Time, Arc<JobSpec>)>,
    ratios: VecDeque<f64>,
    /// When the last work began, and the input up to which it knew everything.
    begun: Span,
    seq: u64,
    /// How long the last work took, in microseconds, or that it is under way.
    took: Arc<AtomicU64>,
}

impl Forecaster {
    /// From now on jobs are foretold.
    pub(crate) fn begin(&mut self, how: Estimating, make: MakePolicy) {
        self.how = Some((how, make));
    }

    /// A job came.
    pub(crate) fn came(&mut self, now: Time, spec: &JobSpec) {
        keep(&mut self.arrivals, (now, Arc::new(spec.clone())));
    }

    /// A job is done: how much it had to do, beside what it said.
    pub(crate) fn done(&mut self, now: Time, run: &JobRun, spec: &JobSpec) {
        let ratio = run.done_at(now) / spec.steps;
        if ratio > 0.0 && ratio.is_finite() {
            keep(&mut self.ratios, ratio);
        }
    }

    /// Whether it is time to foretell anew: something happened, and the last forecast was paid for.
    pub(crate) fn wants(&self, now: Span, seq: u64) -> bool {
        let took = self.took.load(Ordering::Acquire);
        let Some((how, _)) = self.how.as_ref().filter(|_| seq > self.seq && took != BUSY) else {
            return false;
        };
        now >= self.begun + how.every.max(Span(took.saturating_mul(REST)))
    }

    /// Foretells all jobs of a state.
    pub(crate) fn foretell(&mut self, now: Span, seq: u64, state: State, board: &Arc<RwLock<Board>>) {
        let Some((how, make)) = self.how.clone() else { return };
        (self.begun, self.seq) = (now, seq);
        let past = Past {
            arrivals: self.arrivals.iter().cloned().collect(),
            ratios: self.ratios.iter().copied().collect(),
        };
        let (took, board) = (self.took.clone(), board.clone());
        took.store(BUSY, Ordering::Release);
        let thread = std::thread::Builder::new().name("yard-forecast".into());
        let started = thread.spawn(move || {
            let watch = Stopwatch::start();
            let told = catch_unwind(AssertUnwindSafe(|| told(&state, &past, &how, &make, seq)));
            match told {
                Ok(told) => show(&board, state.now(), &told),
                // Left busy for good: what broke down once would again.
                Err(_) => {
                    return tracing::error!(
                        "a forecast broke down; there are no estimates until the next start"
                    );
                }
            }
            took.store((watch.took().as_micros() as u64).min(BUSY - 1), Ordering::Release);
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for a forecast");
        }
    }
}

fn keep<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == PAST_MAX {
        list.pop_front();
    }
    list.push_back(item);
}

/// The estimates of all jobs. The same state and past give the same ones.
fn told(
    state: &State,
    past: &Past,
    how: &Estimating,
    make: &MakePolicy,
    seed: u64,
) -> BTreeMap<JobId, Estimate> {
    let mut draws = Draws(seed);
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let scenario = past.scenario(state, LIMITS.horizon, &mut |below| draws.below(below));
        match forecast::run(state, (how.placer)(), &mut *make(), &scenario, LIMITS) {
            Ok(run) => runs.push(run),
            Err(error) => tracing::error!(%error, "a state of its own version cannot be foretold"),
        }
    }
    estimates(&runs)
}

/// Puts estimates on the board, where the jobs are still there.
fn show(board: &RwLock<Board>, now: Time, told: &BTreeMap<JobId, Estimate>) {
    let seconds = |interval: Interval| IntervalView {
        low: interval.low.secs(),
        mid: interval.mid.secs(),
        high: (interval.high < Time::NEVER).then(|| interval.high.secs()),
    };
    let mut board = board.write().unwrap_or_else(PoisonError::into_inner);
    let Board { jobs, changes, .. } = &mut *board;
    changes.begin(now.0);
    for (job, estimate) in told {
        if let Some(view) = jobs.get_mut(&job.0).filter(|view| view.ended_at.is_none()) {
            let (start, end) = (estimate.start.map(seconds), estimate.end.map(seconds));
            let told = EstimateView { made_at: now.secs(), start, end };
            if view.estimate.is_none_or(|before| before.moved(&told)) {
                changes.job(job.0);
            }
            view.estimate = Some(told);
        }
    }
}

/// Numbers that look random and follow from a seed (Steele et al., "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(below)) >> 64) as u64
    }
}
