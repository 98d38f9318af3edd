//! How good estimates are: at random instants of a run all jobs are foretold, and when the run is over it shows how
//! often the interval held, how long it was, and what both are worth beside a naive one. The forecast knows the past, how its own earlier estimates turned out, and the jobs that
//! are there, and nothing of who comes later. The first half of the instants only teaches; the second is judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::forecast::interval::{Estimate, Foretold, RUNS, estimates};
use yard_core::forecast::past::{Past, Ratio};
use yard_core::forecast::record::{Record, What};
use yard_core::forecast::{self, Limits};
use yard_core::ids::JobId;
use yard_core::job::JobSpec;
use yard_core::message::Input;
use yard_core::policy::{Placer, Policy};
use yard_core::{Engine, Span, State, Time};

use crate::held::HeldIntervals;
use crate::naive::Naive;
use crate::random::Random;
use crate::record::JobRecord;
use crate::run::{Probe, RunOutcome};

/// How the intervals turned out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// First starts of jobs that waited for them then.
    pub starts: HeldIntervals,
    /// Ends of jobs that were there then.
    pub ends: HeldIntervals,
    /// Starts and ends that claimed to be exact.
    pub exact: HeldIntervals,
    /// Mean distance of the middle from the true end, as a part of the mean time that was left.
    pub error: f64,
}

/// How forecasts are made. Whoever answers and places in them has to be new.
pub struct EstimatesHow<'a> {
    /// Makes the policy.
    pub policy: &'a dyn Fn() -> Box<dyn Policy>,
    /// Makes the placer.
    pub placer: &'a dyn Fn() -> Box<dyn Placer>,
    /// Whether jobs like those of the past are expected to come.
    pub recurs: bool,
}

/// Has a simulation of these jobs run, foretells them at so many instants, and compares. `said` is what they say that
/// they have to do, where that is not the truth.
pub fn calibrate<E>(
    jobs: &[(Time, &JobSpec)],
    said: Option<&[f64]>,
    how: &EstimatesHow<'_>,
    (instants, seed): (usize, u64),
    simulate: impl FnOnce(Probe<'_>) -> Result<RunOutcome, E>,
) -> Result<Calibration, E> {
    let mut random = Random::new(seed ^ 0xe571);
    let times = moments(jobs, instants, &mut random);
    let mut kept: Vec<State> = Vec::new();
    let outcome = simulate(&mut |engine: &Engine, now: Time, _: &Input| {
        // When the instant has passed all that happened at it is known.
        if times.get(kept.len()).is_some_and(|time| now > *time) {
            kept.push(engine.state().clone());
        }
    })?;
    let real = &outcome.record.jobs;
    let (mut sums, mut record, mut before) = (EstimateSums::default(), Record::default(), Time::ZERO);
    for (at, state) in kept.iter().enumerate() {
        let now = state.now();
        let mut past = past(now, jobs, said, real);
        past.arrivals.retain(|_| how.recurs);
        let raw = foretell(state, &past, how, &mut random);
        for (time, job, what) in happened(real, before, now) {
            record.happened(time, job, what);
            sums.turn_out(time, job, what);
        }
        if at >= kept.len() / 2 {
            sums.add(now, &raw, &record, real);
        }
        record.note(now, &raw);
        sums.note(now, &raw);
        before = now;
    }
    Ok(sums.calibration())
}

/// What happened between two instants.
fn happened(real: &[JobRecord], after: Time, until: Time) -> impl Iterator<Item = (Time, JobId, What)> {
    let since = move |time: &Time| *time > after && *time <= until;
    real.iter().enumerate().flat_map(move |(at, job)| {
        let start = job.first_start.filter(since).map(|time| (time, JobId(at as u64), What::Start));
        let end = job.end.filter(since).map(|time| (time, JobId(at as u64), What::End));
        start.into_iter().chain(end)
    })
}

/// What jobs say that they have to do, up to `most` times too much or too little.
pub fn misjudged(jobs: &[JobSpec], most: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed ^ 0x5a1d);
    jobs.iter().map(|job| job.steps * libm::pow(most, 2.0 * random.unit() - 1.0)).collect()
}

/// Instants from the first tenth of the submissions on, ascending: before it there is no past to learn from.
fn moments(jobs: &[(Time, &JobSpec)], instants: usize, random: &mut Random) -> Vec<Time> {
    let Some(last) = jobs.len().checked_sub(1) else { return Vec::new() };
    let (from, to) = (jobs[last / 10].0, jobs[last].0);
    let mut times: Vec<Time> = (0..instants).map(|_| from + Span(random.below((to - from).0 + 1))).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// What is known at an instant of the jobs that came by then, and of those that were over.
pub(crate) fn past(now: Time, jobs: &[(Time, &JobSpec)], said: Option<&[f64]>, real: &[JobRecord]) -> Past {
    let came = jobs.iter().take_while(|(time, _)| *time <= now).enumerate();
    let (mut arrivals, mut ratios) = (Vec::new(), Vec::new());
    for (at, (time, spec)) in came {
        let steps = said.map_or(spec.steps, |said| said[at]);
        let told = JobSpec { steps, ..JobSpec::clone(spec) };
        if real[at].end.is_some_and(|end| end <= now) {
            ratios.push(Ratio::of(&told, spec.steps / steps));
        }
        arrivals.push((*time, Arc::new(told)));
    }
    Past { arrivals, ratios: said.map(|_| ratios) }
}

/// The estimates of all jobs that are there.
fn foretell(
    state: &State,
    past: &Past,
    how: &EstimatesHow<'_>,
    random: &mut Random,
) -> BTreeMap<JobId, Estimate> {
    let limits = Limits { exact_max: Limits::EXACT, ..Limits::default() };
    let runs: Vec<_> = (0..RUNS)
        .map(|nth| {
            let scenario = past.scenario(nth, state, limits.horizon, &mut |below| random.below(below));
            let mut policy = (how.policy)();
            forecast::run(state, (how.placer)(), &mut *policy, &scenario, limits)
                .expect("a state of this version")
        })
        .collect();
    estimates(&runs)
}

#[derive(Default)]
struct EstimateSums {
    all: Calibration,
    left: f64,
    /// What was foretold when and for when, and has not happened yet; and the reference that follows from what has.
    open: BTreeMap<(JobId, What), Vec<(Time, Time)>>,
    naive: Naive,
}

impl EstimateSums {
    fn turn_out(&mut self, time: Time, job: JobId, what: What) {
        let told = self.open.remove(&(job, what)).unwrap_or_default();
        told.into_iter().for_each(|(at, mid)| self.naive.note(at, mid, time));
    }

    fn note(&mut self, now: Time, raw: &BTreeMap<JobId, Estimate>) {
        for (job, estimate) in raw {
            let start = estimate.start.ok().filter(|start| start.high > now);
            for (what, interval) in [(What::Start, start), (What::End, estimate.end.ok())] {
                let told = interval.map(|interval| (now, interval.mid));
                self.open.entry((*job, what)).or_default().extend(told);
            }
        }
    }

    fn add(&mut self, now: Time, raw: &BTreeMap<JobId, Estimate>, record: &Record, real: &[JobRecord]) {
        let moves = record.moves(now);
        for (job, raw) in raw {
            let (estimate, real) = (moves.moved(now, raw), &real[job.index()]);
            let start = real.first_start.filter(|start| *start > now);
            start.into_iter().for_each(|start| self.count(now, What::Start, estimate.start, start));
            if let Some(end) = real.end {
                self.count(now, What::End, estimate.end, end);
                self.measure(now, raw.end, end);
            }
        }
    }

    fn count(&mut self, now: Time, what: What, foretold: Foretold, time: Time) {
        let Calibration { starts, ends, exact, .. } = &mut self.all;
        let of_it = match what {
            _ if foretold.is_ok_and(|interval| interval.exact) => exact,
            What::Start => starts,
            What::End => ends,
        };
        let mid = foretold.map_or(now, |interval| interval.mid);
        of_it.note(now, foretold, self.naive.interval(now, mid), time);
    }

    fn measure(&mut self, now: Time, foretold: Foretold, end: Time) {
        self.left += (end - now).secs();
        self.all.error += foretold.map_or(0.0, |interval| (interval.mid.secs() - end.secs()).abs());
    }

    fn calibration(self) -> Calibration {
        let error = self.all.error / self.left.max(f64::MIN_POSITIVE);
        Calibration { error, ..self.all }
    }
}
