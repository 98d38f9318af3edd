//! When a job will have converged, from the losses it reported: ℓ(k) = 1/(β₀·k + β₁) + β₂ with β ≥ 0, fitted by weighted
//! least squares, later losses counting more (Optimus §3.1). For a given β₂ the rest is a line, 1/(ℓ − β₂) = β₀·k + β₁;
//! the best β₂ is searched for between nothing and the least loss.
//! The unit of k is an epoch, a hundredth of the stated steps, because reports count steps and the paper stops at a
//! hundred epochs: what was stated is the most that it can take.

/// Epochs that the stated steps are.
const EPOCHS: f64 = 100.0;

/// Losses without which nothing is fitted.
const POINTS_MIN: usize = 3;

/// A job has converged where its loss, as a part of the largest, falls by no more than this over ten epochs.
const CHANGE: f64 = 0.05;
const OVER: f64 = 10.0;

/// How much more each third of the losses counts than the one before.
const LATER: f64 = 4.0;

/// Trials of β₂: first evenly spread, then ever closer to the best.
const SPREAD: u32 = 32;
const CLOSER: u32 = 40;

/// A fitted curve, in epochs and parts of the largest loss.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    slope: f64,
    start: f64,
    floor: f64,
}

/// One loss as it enters the fit.
#[derive(Clone, Copy, Debug)]
struct LossPoint {
    epoch: f64,
    loss: f64,
    weight: f64,
}

/// Steps until the loss hardly falls any more, of so many that were stated; none where too little was reported, or what
/// was reported does not fall.
pub(super) fn steps_to_converge(losses: &[(f64, f64)], stated: f64) -> Option<f64> {
    let epoch = stated / EPOCHS;
    let points = points(losses, epoch)?;
    let curve = fit(&points).filter(|curve| curve.slope > 0.0)?;
    let falls = |at: f64| curve.at(at) - curve.at(at + OVER);
    let (mut low, mut high) = (0.0, EPOCHS);
    if falls(low) <= CHANGE {
        return Some(epoch);
    }
    for _ in 0..CLOSER {
        let middle = (low + high) / 2.0;
        if falls(middle) <= CHANGE { high = middle } else { low = middle }
    }
    Some(high * epoch)
}

fn points(losses: &[(f64, f64)], epoch: f64) -> Option<Vec<LossPoint>> {
    let largest = losses.iter().map(|point| point.1).fold(0.0, f64::max);
    let sound = losses.len() >= POINTS_MIN && epoch > 0.0 && largest > 0.0 && largest.is_finite();
    let weight = |at: usize| {
        if at * 3 < losses.len() {
            1.0
        } else if at * 3 < 2 * losses.len() {
            LATER
        } else {
            LATER * LATER
        }
    };
    let point = |(at, (steps, loss)): (usize, &(f64, f64))| LossPoint {
        epoch: steps / epoch,
        loss: loss / largest,
        weight: weight(at),
    };
    sound.then(|| losses.iter().enumerate().map(point).collect())
}

impl Curve {
    fn at(&self, epoch: f64) -> f64 {
        1.0 / (self.slope * epoch + self.start) + self.floor
    }

    /// The weighted squares by which it misses.
    fn misses(&self, points: &[LossPoint]) -> f64 {
        points
            .iter()
            .map(|point| {
                point.weight * (self.at(point.epoch) - point.loss) * (self.at(point.epoch) - point.loss)
            })
            .sum()
    }
}

fn fit(points: &[LossPoint]) -> Option<Curve> {
    let least = points.iter().map(|point| point.loss).fold(f64::INFINITY, f64::min);
    let curve = |floor: f64| line(points, floor).map(|curve| (curve.misses(points), curve));
    let better = |a: (f64, Curve), b: (f64, Curve)| if b.0 < a.0 { b } else { a };
    let step = least / f64::from(SPREAD);
    let (_, best) = (0..SPREAD).filter_map(|at| curve(step * f64::from(at))).reduce(better)?;
    let (mut low, mut high) = ((best.floor - step).max(0.0), (best.floor + step).min(least * (1.0 - 1e-9)));
    for _ in 0..CLOSER {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        let misses = |floor| curve(floor).map_or(f64::INFINITY, |found| found.0);
        if misses(left) <= misses(right) { high = right } else { low = left }
    }
    [best.floor, low, high].into_iter().filter_map(curve).reduce(better).map(|found| found.1)
}

/// The line through 1/(loss − floor), both of its numbers not below zero. A miss of the loss is about (loss − floor)² times
/// that of the line, hence the weights.
fn line(points: &[LossPoint], floor: f64) -> Option<Curve> {
    let (mut sums, mut ups) = ([0.0; 3], [0.0; 2]);
    for point in points {
        let above = point.loss - floor;
        let (x, y, weight) = (point.epoch, 1.0 / above, point.weight * above * above * above * above);
        [weight, weight * x, weight * x * x].iter().zip(&mut sums).for_each(|(part, sum)| *sum += part);
        [weight * y, weight * x * y].iter().zip(&mut ups).for_each(|(part, sum)| *sum += part);
    }
    let [one, x, xx] = sums;
    let [y, xy] = ups;
    let spread = one * xx - x * x;
    let (slope, start) = ((one * xy - x * y) / spread, (xx * y - x * xy) / spread);
    let both = (spread > 0.0 && slope >= 0.0 && start >= 0.0).then_some((slope, start));
    let flat = (one > 0.0).then(|| (0.0, y / one));
    let through = (xx > 0.0 && slope > 0.0).then(|| (xy / xx, 0.0));
    let (slope, start) = both.or(through).or(flat)?;
    let curve = Curve { slope, start: start.max(f64::MIN_POSITIVE), floor };
    (slope.is_finite() && start.is_finite()).then_some(curve)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reported(slope: f64, start: f64, floor: f64, steps: f64, until: f64, noise: f64) -> Vec<(f64, f64)> {
        let loss = |at: f64| 1.0 / (slope * at + start) + floor;
        let at = |point: u32| until * f64::from(point) / 30.0;
        let wobble = |point: u32| 1.0 + noise * if point.is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..30).map(|point| (at(point) * steps / EPOCHS, loss(at(point)) * wobble(point))).collect()
    }

    /// By trying every hundredth of an epoch.
    fn brute(slope: f64, start: f64, floor: f64) -> f64 {
        let loss = |at: f64| (1.0 / (slope * at + start) + floor) / (1.0 / start + floor);
        (0..=10_000)
            .map(|at| f64::from(at) / 100.0)
            .find(|at| loss(*at) - loss(at + OVER) <= CHANGE)
            .unwrap_or(EPOCHS)
    }

    proptest! {
        #[test]
        fn a_curve_is_found_again_from_its_first_part(
            slope in 0.05..2.0f64, start in 0.2..3.0f64, floor in 0.0..1.0f64, steps in 1e2..1e7f64, until in 20.0..90.0f64,
        ) {
            let losses = reported(slope, start, floor, steps, until, 0.0);
            let (found, real) = (steps_to_converge(&losses, steps).unwrap() / steps * EPOCHS, brute(slope, start, floor));
            prop_assert!((found - real.max(1.0)).abs() <= 0.05 * real + 1.0, "{found} where it is {real}");
        }

        #[test]
        fn noise_moves_it_little(slope in 0.1..1.0f64, start in 0.5..2.0f64, floor in 0.0..0.5f64) {
            let losses = reported(slope, start, floor, 1e4, 60.0, 0.01);
            let (found, real) = (steps_to_converge(&losses, 1e4).unwrap() / 100.0, brute(slope, start, floor));
            prop_assert!((found - real).abs() <= 0.25 * real + 3.0, "{found} where it is {real}");
        }

        #[test]
        fn whatever_is_reported_the_answer_is_within_what_was_stated(
            losses in prop::collection::vec((0.0..1e6f64, 0.0..1e3f64), 0..20), steps in 1.0..1e6f64,
        ) {
            if let Some(found) = steps_to_converge(&losses, steps) {
                prop_assert!(found > 0.0 && found <= steps * (1.0 + 1e-9), "{found} of {steps}");
            }
        }
    }

    #[test]
    fn what_does_not_fall_says_nothing() {
        assert_eq!(steps_to_converge(&[(0.0, 1.0), (10.0, 0.5)], 100.0), None, "two are too few");
        assert_eq!(steps_to_converge(&[(0.0, 1.0), (10.0, 2.0), (20.0, 4.0)], 100.0), None);
        assert_eq!(steps_to_converge(&[(0.0, 0.0), (10.0, 0.0), (20.0, 0.0)], 100.0), None);
    }
}
