//! When jobs will start and end, foretold on a thread of its own from a copy of the engine's state. The driver never
//! waits for it: it hands a copy over now and then, and what comes of it goes onto the board. A forecast that took long
//! is followed by a rest ten times as long, and one that breaks down by none at all until the next start.
//!
//! What was foretold is compared with what happens, and the intervals that are shown are those that would have held nine
//! times in ten of late (`record`). That record is kept with each snapshot, and the past is in the store.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use yard_core::State;
use yard_core::forecast::interval::{Estimate, Foretold, Interval, RUNS, Unknown, estimates};
use yard_core::forecast::past::{Past, Ratio};
use yard_core::forecast::record::{Moves, Record, What};
use yard_core::forecast::{self, Limits};
use yard_core::ids::JobId;
use yard_core::job::{JobRun, JobSpec, JobState, Length};
use yard_core::policy::Placer;
use yard_core::units::{Span, Time};

use crate::background::give_way;
use crate::board::Board;
use crate::driver::clock::Stopwatch;
use crate::planner::MakePolicy;
use crate::views::{EstimateView, IntervalView, JobView, UnknownView};

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
pub(crate) const PAST_MAX: usize = 1_000;

/// How far one run goes: a forecast of thousands of jobs takes seconds, not minutes.
const LIMITS: Limits = Limits {
    steps_max: 50_000,
    plans_max: 5_000,
    work_max: u64::MAX,
    exact_max: Limits::EXACT,
    horizon: Span::from_whole_secs(30 * 86_400),
};

/// A rest is so many times as long as the work before it.
const REST: u64 = 10;

/// The work is under way.
const BUSY: u64 = u64::MAX;

/// The driver's end.
#[derive(Default)]
pub(crate) struct Forecaster {
    how: Option<(Estimating, MakePolicy)>,
    arrivals: VecDeque<(Time, Arc<JobSpec>)>,
    ratios: VecDeque<Ratio>,
    /// How estimates turned out.
    record: Arc<Mutex<Record>>,
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
        self.took(spec, run.done_at(now));
    }

    /// A job that is done had so much to do.
    pub(crate) fn took(&mut self, spec: &JobSpec, steps: f64) {
        let ratio = steps / spec.steps;
        if spec.length == Length::Stated && ratio > 0.0 && ratio.is_finite() {
            keep(&mut self.ratios, Ratio::of(spec, ratio));
        }
    }

    /// Forgets who came and how they turned out, to be told again.
    pub(crate) fn forget(&mut self) {
        self.arrivals.clear();
        self.ratios.clear();
    }

    /// A job has devices.
    pub(crate) fn began(&self, now: Time, job: JobId) {
        self.record().happened(now, job, What::Start);
    }

    /// A job is over. Only one that is done ended as it was foretold.
    pub(crate) fn ended(&self, now: Time, job: JobId, state: JobState) {
        let mut record = self.record();
        record.forget(job, What::Start);
        match state {
            JobState::Succeeded => record.happened(now, job, What::End),
            _ => record.forget(job, What::End),
        }
    }

    /// The record of how estimates turned out, to be kept.
    pub(crate) fn keep(&self) -> Arc<Mutex<Record>> {
        self.record.clone()
    }

    /// Goes on with a record that was kept. What became of jobs that are gone was not seen.
    pub(crate) fn remember(&self, mut record: Record, lives: impl Fn(JobId) -> bool) {
        record.retain(lives);
        *self.record() = record;
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How jobs are foretold; none where they are not.
    pub(crate) fn how(&self) -> Option<(Estimating, MakePolicy)> {
        self.how.clone()
    }

    /// By how much limits are moved now.
    pub(crate) fn moves(&self, now: Time) -> Moves {
        self.record().moves(now)
    }

    /// What was.
    pub(crate) fn past(&self) -> Past {
        Past {
            arrivals: self.arrivals.iter().cloned().collect(),
            ratios: Some(self.ratios.iter().cloned().collect()),
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
        let past = self.past();
        let (took, board, record) = (self.took.clone(), board.clone(), self.record.clone());
        took.store(BUSY, Ordering::Release);
        let thread = std::thread::Builder::new().name("yard-forecast".into());
        let started = thread.spawn(move || {
            give_way();
            let watch = Stopwatch::start();
            let told = catch_unwind(AssertUnwindSafe(|| told(&state, &past, &how, &make, seq)));
            match told {
                Ok(told) => show(&board, &record, state.now(), &told),
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
    for nth in 0..RUNS {
        let scenario = past.scenario(nth, state, LIMITS.horizon, &mut |below| draws.below(below));
        match forecast::run(state, (how.placer)(), &mut *make(), &scenario, LIMITS) {
            Ok(run) => runs.push(run),
            Err(error) => tracing::error!(%error, "a state of its own version cannot be foretold"),
        }
    }
    estimates(&runs)
}

/// Puts estimates on the board, with limits that should hold, where the jobs are still there.
fn show(board: &RwLock<Board>, record: &Mutex<Record>, now: Time, told: &BTreeMap<JobId, Estimate>) {
    let mut board = board.write().unwrap_or_else(PoisonError::into_inner);
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    let moves = record.moves(now);
    let Board { jobs, changes, .. } = &mut *board;
    changes.begin(now.0);
    let guessed = guessed_end(jobs, told);
    for (job, estimate) in told {
        if let Some(view) = jobs.get_mut(&job.0).filter(|view| is_foretold(view)) {
            let mut told = seen(now, &moves.moved(now, estimate));
            // Where nothing is known of a length, an interval for the end would be made up.
            if view.length.as_ref().is_some_and(|length| length.seconds.is_none()) {
                (told.end, told.end_unknown) = (None, Some(UnknownView::Length));
            }
            // Nor does a start say anything that may come of the end of such a job.
            let waits = view.started_at.is_none();
            if waits && told.start.zip(guessed).is_some_and(|(start, end)| start.mid >= end) {
                (told.start, told.start_unknown) = (None, Some(UnknownView::Length));
            }
            if view.estimate.is_none_or(|before| before.moved(&told)) {
                changes.job(job.0);
            }
            Arc::make_mut(view).estimate = Some(told);
            record.note(now, [(job, estimate)]);
        }
    }
}

/// Whether it is of use to say when a job will start and end: not where it is over, or held.
fn is_foretold(view: &JobView) -> bool {
    view.ended_at.is_none() && view.held_by.is_none()
}

/// From when on devices fall free, as forecasts have it, of jobs of whose length nothing is known.
fn guessed_end(jobs: &BTreeMap<u64, Arc<JobView>>, told: &BTreeMap<JobId, Estimate>) -> Option<f64> {
    let guessed = told.iter().filter(|(job, _)| {
        let unknown = |view: &Arc<JobView>| {
            !view.nodes.is_empty() && view.length.as_ref().is_some_and(|length| length.seconds.is_none())
        };
        jobs.get(&job.0).is_some_and(unknown)
    });
    guessed.filter_map(|(_, estimate)| Some(estimate.end.ok()?.low.secs())).reduce(f64::min)
}

/// An estimate as people see it.
pub(crate) fn seen(now: Time, estimate: &Estimate) -> EstimateView {
    let seconds = |interval: Interval| IntervalView {
        low: interval.low.secs(),
        mid: interval.mid.secs(),
        high: (interval.high < Time::NEVER).then(|| interval.high.secs()),
    };
    let (start, end) = (estimate.start.ok().map(seconds), estimate.end.ok().map(seconds));
    let (start_unknown, end_unknown) = (why(estimate.start), why(estimate.end));
    EstimateView { made_at: now.secs(), start, end, start_unknown, end_unknown }
}

fn why(foretold: Foretold) -> Option<UnknownView> {
    foretold.err().map(|unknown| match unknown {
        Unknown::Beyond => UnknownView::Beyond,
        Unknown::Scattered => UnknownView::Scattered,
    })
}

/// Numbers that look random and follow from a seed (Steele et al., "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(below)) >> 64) as u64
    }
}
