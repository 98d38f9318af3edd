//! The model that suits what was seen: least errors of logarithms,
//!
//! `min rms(ln grad / seen) + rms(ln step / seen) + 10⁻³ (γ - 1)² + 10⁻² ((b'/a')² + (b''/a'')²)`
//!
//! over numbers of at least 10⁻⁸ and 1 ≤ γ ≤ 10, with Pollux's priors: what was never seen costs nothing, so that a
//! job tries it. The search is Gauss and Newton's with Marquardt's damping, on the numbers that are not at a bound
//! they press against; the curvature is that of parabolas which touch the two roots from above.
//!
//! Cost: a pass over the points for each trial; a few trials from a model that was right before, some tens else.

mod errors;
mod solve;

use self::errors::Errors;
use super::model::{Line, Model};
use crate::training::Timing;

/// How many numbers a model has.
const N: usize = 7;

/// The least that any of them may be, but for the overlap.
const LEAST: f64 = 1e-8;

/// Where the search starts if nothing better is known.
const START: Line = Line { base: 0.1, each: 0.01 };
const START_OVERLAP: f64 = 1.1;

/// The least and most of each.
const LOW: [f64; N] = [LEAST, LEAST, LEAST, LEAST, LEAST, LEAST, 1.0];
const HIGH: [f64; N] = [f64::MAX, f64::MAX, f64::MAX, f64::MAX, f64::MAX, f64::MAX, 10.0];

/// Trials after which the search ends wherever it is.
const TRIALS_MAX: u32 = 200;

/// What a step across nodes costs at least, measured by one within a node, until it was seen.
const ACROSS_MIN: f64 = 1.1;

/// Which numbers are free, and what the others are; by what was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Priors {
    fixed: [Option<f64>; N],
    across_seen: bool,
}

impl Priors {
    fn of(points: &[Timing]) -> Priors {
        let across_seen = points.iter().any(|point| point.nodes > 1 && point.devices > 1);
        let within_seen = points.iter().any(|point| point.nodes <= 1 && point.devices > 1);
        let many_seen = points.iter().any(|point| point.devices > 2);
        let unless = |seen: bool| (!seen).then_some(LEAST);
        let one_size = points.iter().all(|point| point.local == points[0].local);
        let mean = points.iter().map(|point| point.grad_s).sum::<f64>() / points.len() as f64;
        let fixed = [
            one_size.then_some((mean / 2.0).max(LEAST)),
            None,
            unless(across_seen),
            unless(across_seen && many_seen),
            unless(within_seen),
            unless(within_seen && many_seen),
            None,
        ];
        Priors { fixed, across_seen }
    }

    /// Where to start: at what was right before, but for numbers that said nothing then.
    fn start(&self, points: &[Timing], before: Option<&Model>) -> [f64; N] {
        let rough = rough(points).numbers();
        let before = before.map_or(rough, Model::numbers);
        std::array::from_fn(|at| match self.fixed[at] {
            Some(fixed) => fixed,
            None if before[at] <= 2.0 * LEAST => rough[at].clamp(LOW[at], HIGH[at]),
            None => before[at].clamp(LOW[at], HIGH[at]),
        })
    }
}

/// A first guess: lines through the gradients and through what steps take beyond them, as if hardly anything
/// overlapped.
fn rough(points: &[Timing]) -> Model {
    let beyond = |point: &Timing| {
        let sync_s = (point.step_s - point.grad_s).max(0.01 * point.step_s);
        (f64::from(point.devices.saturating_sub(2)), sync_s)
    };
    let sync = |across: bool| {
        let here = points.iter().filter(move |point| point.devices > 1 && (point.nodes > 1) == across);
        line(here.map(beyond))
    };
    let grad = line(points.iter().map(|point| (f64::from(point.local), point.grad_s)));
    Model { grad, across: sync(true), within: sync(false), overlap: START_OVERLAP }
}

/// The line of least relative errors. Where it would fall or begin below zero, or there is one place only: through
/// the mean, half of which is then taken for fixed.
fn line(points: impl Iterator<Item = (f64, f64)>) -> Line {
    let [mut ones, mut x, mut xx, mut y, mut xy] = [0.0; 5];
    for (at, value) in points {
        let weight = 1.0 / (value * value);
        ones += weight;
        x += weight * at;
        xx += weight * at * at;
        y += weight * value;
        xy += weight * at * value;
    }
    let spread = ones * xx - x * x;
    let found = Line { base: (y * xx - x * xy) / spread, each: (ones * xy - x * y) / spread };
    let (mean, at) = (y / ones, x / ones);
    let halves = Line { base: mean / 2.0, each: mean / 2.0 / at.max(1.0) };
    let sound = |line: &Line| line.base > 0.0 && line.each > 0.0 && (line.base + line.each).is_finite();
    let found = Some(found).filter(|line| spread > 1e-9 * ones * xx && sound(line));
    found.or(Some(halves).filter(sound)).unwrap_or(START)
}

/// The model that suits the points best, from one that did before. All times must be above zero and finite.
///
/// # Panics
/// Where there is no point.
pub fn fit(points: &[Timing], before: Option<&Model>) -> Model {
    let priors = Priors::of(points);
    let errors = Errors::new(points);
    let mut model = Model::of(search(&errors, &priors, priors.start(points, before)));
    if !priors.across_seen {
        model.across.base = model.across.base.max(ACROSS_MIN * model.within.base);
        model.across.each = model.across.each.max(ACROSS_MIN * model.within.each);
    }
    model
}

/// How far a model is from the points, in the measure of the fit.
pub fn misfit(points: &[Timing], model: &Model) -> f64 {
    Errors::new(points).value(&model.numbers())
}

fn search(errors: &Errors, priors: &Priors, start: [f64; N]) -> [f64; N] {
    let (mut at, mut damping) = (start, 1e-3);
    let mut slope = errors.slope(&at);
    for _ in 0..TRIALS_MAX {
        let presses = |i: usize| {
            (at[i] <= LOW[i] && slope.gradient[i] > 0.0) || (at[i] >= HIGH[i] && slope.gradient[i] < 0.0)
        };
        let free: [bool; N] = std::array::from_fn(|i| priors.fixed[i].is_none() && !presses(i));
        let Some(way) = solve::step(&slope.curvature, &slope.gradient, &free, damping) else { break };
        let next: [f64; N] = std::array::from_fn(|i| (at[i] + way[i]).clamp(LOW[i], HIGH[i]));
        let value = errors.value(&next);
        if value < slope.value {
            let gained = slope.value - value;
            (at, damping) = (next, (damping * 0.2).max(1e-9));
            slope = errors.slope(&at);
            if gained < 1e-7 * value {
                break;
            }
        } else if damping > 1e6 {
            break;
        } else {
            damping *= 4.0;
        }
    }
    at
}

#[cfg(test)]
mod tests;
