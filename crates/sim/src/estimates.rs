//! How good estimates are: at random instants of a run all jobs are foretold, and when the run is over it shows how
//! often the interval held. The forecast knows the past and the jobs that are there, and nothing of who comes later.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::forecast::interval::{Estimate, Interval, RUNS, estimates};
use yard_core::forecast::past::Past;
use yard_core::forecast::{self, Limits};
use yard_core::ids::JobId;
use yard_core::job::JobSpec;
use yard_core::message::Input;
use yard_core::policy::{Placer, Policy};
use yard_core::{Engine, Span, State, Time};

use crate::random::Random;
use crate::record::JobRecord;
use crate::run::{Outcome, Probe};

/// How often the intervals held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Instants at which the jobs were foretold.
    pub instants: usize,
    /// Jobs that waited for their first start then.
    pub starts: usize,
    /// Starts inside their interval.
    pub starts_inside: usize,
    /// Jobs that were there then.
    pub ends: usize,
    /// Ends inside their interval.
    pub ends_inside: usize,
    /// Mean length of the intervals of ends, as a part of the mean time that was left.
    pub width: f64,
    /// Mean distance of the middle from the true end, as a part of the mean time that was left.
    pub error: f64,
}

impl Calibration {
    /// The part of starts that were inside; none where nobody waited.
    pub fn starts_held(&self) -> Option<f64> {
        (self.starts > 0).then(|| self.starts_inside as f64 / self.starts as f64)
    }

    /// The part of ends that were inside.
    pub fn ends_held(&self) -> Option<f64> {
        (self.ends > 0).then(|| self.ends_inside as f64 / self.ends as f64)
    }
}

/// How forecasts are made. Whoever answers and places in them has to be new.
pub struct How<'a> {
    /// Makes the policy.
    pub policy: &'a dyn Fn() -> Box<dyn Policy>,
    /// Makes the placer.
    pub placer: &'a dyn Fn() -> Box<dyn Placer>,
    /// Whether jobs like those of the past are expected to come.
    pub recurs: bool,
}

/// What is foretold counts as true if it is off by no more: decisions wait for beats, and beats for each other.
const SLACK: Span = Span::from_whole_secs(1);

/// Has a simulation of these jobs run, foretells them at so many instants, and compares. `said` is what they say that
/// they have to do, where that is not the truth.
pub fn calibrate<E>(
    jobs: &[(Time, &JobSpec)],
    said: Option<&[f64]>,
    how: &How<'_>,
    (instants, seed): (usize, u64),
    simulate: impl FnOnce(Probe<'_>) -> Result<Outcome, E>,
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
    let mut sums = Sums::default();
    for state in &kept {
        let mut past = past(state.now(), jobs, said, &outcome.record.jobs);
        past.arrivals.retain(|_| how.recurs);
        let foretold = foretell(state, &past, how, &mut random);
        sums.add(state, &foretold, &outcome.record.jobs);
    }
    Ok(sums.calibration(kept.len()))
}

/// What jobs say that they have to do, up to `most` times too much or too little.
pub fn misjudged(jobs: &[JobSpec], most: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed ^ 0x5a1d);
    jobs.iter().map(|job| job.steps * libm::pow(most, 2.0 * random.unit() - 1.0)).collect()
}

/// Instants in the middle third of the submissions, ascending: before it there is no past to learn from, and after it
/// a future that is not like it, in which nobody comes any more.
fn moments(jobs: &[(Time, &JobSpec)], instants: usize, random: &mut Random) -> Vec<Time> {
    let Some(last) = jobs.len().checked_sub(1) else { return Vec::new() };
    let (from, to) = (jobs[last / 3].0, jobs[last * 2 / 3].0);
    let mut times: Vec<Time> = (0..instants).map(|_| from + Span(random.below((to - from).0 + 1))).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// What is known at an instant of the jobs that came by then, and of those that were over.
fn past(now: Time, jobs: &[(Time, &JobSpec)], said: Option<&[f64]>, real: &[JobRecord]) -> Past {
    let came = jobs.iter().take_while(|(time, _)| *time <= now).enumerate();
    let (mut arrivals, mut ratios) = (Vec::new(), Vec::new());
    for (at, (time, spec)) in came {
        let steps = said.map_or(spec.steps, |said| said[at]);
        if said.is_some() && real[at].end.is_some_and(|end| end <= now) {
            ratios.push(spec.steps / steps);
        }
        arrivals.push((*time, Arc::new(JobSpec { steps, ..JobSpec::clone(spec) })));
    }
    Past { arrivals, ratios }
}

/// The estimates of all jobs that are there.
fn foretell(state: &State, past: &Past, how: &How<'_>, random: &mut Random) -> BTreeMap<JobId, Estimate> {
    let limits = Limits::default();
    let runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let scenario = past.scenario(state, limits.horizon, &mut |below| random.below(below));
            let mut policy = (how.policy)();
            forecast::run(state, (how.placer)(), &mut *policy, &scenario, limits)
                .expect("a state of this version")
        })
        .collect();
    estimates(&runs)
}

#[derive(Default)]
struct Sums {
    all: Calibration,
    left: f64,
}

impl Sums {
    fn add(&mut self, state: &State, foretold: &BTreeMap<JobId, Estimate>, real: &[JobRecord]) {
        for (job, estimate) in foretold {
            let record = &real[job.index()];
            if let Some(start) = record.first_start.filter(|start| *start > state.now()) {
                self.all.starts += 1;
                self.all.starts_inside += holds(estimate.start, start) as usize;
            }
            if let Some(end) = record.end {
                self.all.ends += 1;
                self.all.ends_inside += holds(estimate.end, end) as usize;
                self.measure(state.now(), estimate.end, end);
            }
        }
    }

    fn measure(&mut self, now: Time, interval: Option<Interval>, end: Time) {
        self.left += (end - now).secs();
        let Some(interval) = interval.filter(|interval| interval.high < Time::NEVER) else { return };
        self.all.width += (interval.high - interval.low).secs();
        self.all.error += (interval.mid.secs() - end.secs()).abs();
    }

    fn calibration(self, instants: usize) -> Calibration {
        let left = self.left.max(f64::MIN_POSITIVE);
        let Calibration { width, error, .. } = self.all;
        Calibration { instants, width: width / left, error: error / left, ..self.all }
    }
}

fn holds(interval: Option<Interval>, time: Time) -> bool {
    interval.is_some_and(|interval| {
        let low = Time(interval.low.0.saturating_sub(SLACK.0));
        Interval { low, high: interval.high + SLACK, ..interval }.holds(time)
    })
}
