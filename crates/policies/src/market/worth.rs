//! What shapes are worth to jobs, deadlines aside.

use yard_core::ids::JobIdx;
use yard_core::job::Length;
use yard_core::view::View;

use super::MarketPolicy;
use crate::choosing::{kept, slowest};
use crate::ranked::finite;

/// The power of goodputs, and the most that a shape may cost; Sia's.
const POWER: f64 = -0.5;
const COST_MAX: f64 = 3000.0;

/// How much being nearly done counts where that is known by an index only: an order by chances has many that are alike,
/// and is worth something only if it is kept to.
const OPEN: f64 = 2.0;

/// By how much a job must be nearer to its end than one that runs to have its devices, where the order moves as jobs run:
/// equal ones would take turns.
const STAY: f64 = 2.0;

/// What counts for all shapes of a job.
pub(super) struct Worth {
    /// How much it counts beside others.
    weight: f64,
    /// The part of all jobs that have as much work left or more.
    pub(super) place: f64,
    /// Its speed in its slowest shape.
    slowest: f64,
    /// The part of its time that a restart would leave it, as things went so far.
    kept: f64,
}

impl MarketPolicy {
    /// The jobs that can run. Who has much work left counts less; who waited long for what it has to do counts more.
    pub(super) fn worths(&self, view: &View) -> Vec<(JobIdx, Worth)> {
        let able = view.active().filter_map(|job| Some((job, slowest(view, job)?)));
        let rows = |job, slow: (f64, f64)| {
            let seconds = seconds(view, job, slow.0);
            (finite(seconds * slow.1), job, slow, seconds)
        };
        let mut order: Vec<_> = able.map(|(job, slow)| rows(job, slow)).collect();
        let key = |job: JobIdx| (view.run(job).submitted, view.run(job).id);
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| key(b.1).cmp(&key(a.1))));
        let all = order.len() as f64;
        let worth = |(at, (_, job, (slowest, devices), seconds)): (usize, (f64, JobIdx, (f64, f64), f64))| {
            let place = (at + 1) as f64 / all;
            let patience = self.patience * finite(seconds).max(1.0);
            // On the mean over all places both count the same.
            let short = if is_open(view, job) { OPEN } else { self.short };
            let even = (1.0 + short) / (1.0 + self.short);
            let counts = even * libm::pow(place, short) * libm::pow(devices, self.gang);
            let waited = grown(view, job, waited(view, job) / patience);
            let weight = view.spec(job).weight * counts * (1.0 + waited);
            (job, Worth { weight, place, slowest, kept: kept(view, job) })
        };
        order.into_iter().enumerate().map(worth).collect()
    }

    /// What a shape is worth to a job.
    pub(super) fn value(&self, view: &View, job: JobIdx, shape: u16, worth: &Worth) -> f64 {
        let (run, speed) = (view.run(job), view.speed(job, shape));
        let moves = run.lease.is_some() && run.shape != shape;
        let lost = view.spec(job).costs.restart().secs() / (view.steps_left(job) / speed);
        let kept = if moves { worth.kept * (1.0 - lost.min(1.0)) / (1.0 + self.gain) } else { 1.0 };
        let faster = kept * speed / worth.slowest;
        // Most shapes are the slowest, and powers are dear.
        let cost = if faster == 1.0 { 1.0 } else { libm::pow(faster, POWER).min(COST_MAX) };
        worth.weight * (self.lambda - cost)
    }
}

/// Seconds left in its slowest shape; where nobody said how long it is, what it costs to have such a job done
/// (`Rates::cost`). Where lengths are not learned, who did more than was believed of it is taken to go as far beyond that
/// again.
fn seconds(view: &View, job: JobIdx, slowest: f64) -> f64 {
    let (spec, done) = (view.spec(job), view.run(job).done_at(view.now));
    match &view.lengths {
        Some(told) if spec.length != Length::Stated => {
            let cost = told.of_job(spec).0.cost(done / slowest);
            if view.is_running(job) { cost / STAY } else { cost }
        }
        Some(_) => view.steps_left(job) / slowest,
        None => (spec.steps - done).abs() / slowest,
    }
}

/// Whether its length is believed by the past.
fn is_open(view: &View, job: JobIdx) -> bool {
    view.lengths.is_some() && view.spec(job).length != Length::Stated
}

/// How much the time counts that a job waited, in its patience. Where nobody said how long it is, only as the logarithm: who
/// runs does not wait, and waiting would soon undo an order by chances.
fn grown(view: &View, job: JobIdx, waited: f64) -> f64 {
    if is_open(view, job) { libm::log1p(waited) } else { waited }
}

/// Seconds since it was submitted in which it had no devices.
fn waited(view: &View, job: JobIdx) -> f64 {
    let run = view.run(job);
    ((view.now - run.submitted).secs() - run.executed_at(view.now).secs()).max(0.0)
}
