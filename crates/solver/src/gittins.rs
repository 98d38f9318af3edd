//! The Gittins index of an empirical distribution of service S:
//!
//!   G(a) = sup over Δ > 0 of  P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a],
//!
//! the best rate of completions per service that can be had from a job that has received `a` and is
//! not done (Gittins, J. Royal Statistical Society B, 1979; for the M/G/1 queue Aalto, Ayesta and
//! Righter, Queueing Systems, 2009).
//!
//! Geometry. Let R(x) be the number of samples above x, and H(x) = ∫ R from 0 to x. The quotient is
//! (R(a) − R(d)) / (H(d) − H(a)) with d = a + Δ: the slope from the point (H(a), −R(a)) to a later
//! point. R falls only at samples, so only those count as d, and the best of them is where the upper
//! hull of the later points is touched from a. The hull is grown from right to left; the vertices that
//! a new point hides are the ones that can be touched from just right of it, so they are kept for that
//! gap. All gaps together keep at most two entries per sample: O(n) after sorting, O(log n) a query.
//!
//! H is summed from the left: service times have heavy tails, and a sum that began in the tail would
//! drown the small steps at the start, where most jobs are.

use std::fmt;
use std::ops::Range;

/// Why samples make no distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GittinsError {
    /// There are none: give at least one.
    Empty,
    /// One of them is negative, infinite or not a number: drop or mend it.
    Sample(f64),
}

impl fmt::Display for GittinsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GittinsError::Empty => write!(f, "no samples"),
            GittinsError::Sample(value) => write!(f, "sample {value}: must be finite and not negative"),
        }
    }
}

impl std::error::Error for GittinsError {}

/// The index of one distribution, ready to be asked.
#[derive(Clone, Debug)]
pub struct Gittins {
    /// The origin, then one point for each distinct sample, ascending.
    points: Vec<ServicePoint>,
    /// The points that can be touched from between each point and the next, nearest first.
    gaps: Vec<Range<usize>>,
    touched: Vec<usize>,
}

/// The curve at a sample.
#[derive(Clone, Copy, Debug)]
struct ServicePoint {
    value: f64,
    /// Samples above it.
    above: f64,
    /// Service up to it, over all samples.
    spent: f64,
}

impl Gittins {
    /// Reads past services, in any order.
    pub fn new(samples: &[f64]) -> Result<Gittins, GittinsError> {
        if samples.is_empty() {
            return Err(GittinsError::Empty);
        }
        if let Some(bad) = samples.iter().find(|value| !value.is_finite() || **value < 0.0) {
            return Err(GittinsError::Sample(*bad));
        }
        let points = curve(samples);
        let (gaps, touched) = candidates(&points);
        Ok(Gittins { points, gaps, touched })
    }

    /// The index after `attained` service, finite; zero where no sample is above it.
    pub fn index(&self, attained: f64) -> f64 {
        let attained = attained.max(0.0);
        let next = self.points.partition_point(|point| point.value <= attained);
        let Some(gap) = self.gaps.get(next - 1) else { return 0.0 };
        let candidates = &self.touched[gap.clone()];
        let slope = |at: usize| slope(&self.points, next, attained, candidates[at]);
        slope(climb(candidates.len(), slope)).min(f64::MAX)
    }
}

/// The slope to the point `to` from service `from`, which lies between the point `next` and the one
/// before it. The part up to `next` is taken by itself: in the sum it could vanish.
fn slope(points: &[ServicePoint], next: usize, from: f64, to: usize) -> f64 {
    let (above, next, to) = (points[next - 1].above, points[next], points[to]);
    (above - to.above) / ((next.value - from) * above + (to.spent - next.spent))
}

/// The first place in `0..len` from which `slope` does not rise further; it rises, then falls.
fn climb(len: usize, slope: impl Fn(usize) -> f64) -> usize {
    let (mut low, mut high) = (0, len - 1);
    while low < high {
        let middle = (low + high) / 2;
        if slope(middle) < slope(middle + 1) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The origin, with all samples still above it, and one point for each distinct sample.
fn curve(samples: &[f64]) -> Vec<ServicePoint> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|value| *value > 0.0).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut last = ServicePoint { value: 0.0, above: sorted.len() as f64, spent: 0.0 };
    let mut points = vec![last];
    for equal in sorted.chunk_by(|left, right| left == right) {
        let spent = last.spent + last.above * (equal[0] - last.value);
        last = ServicePoint { value: equal[0], above: last.above - equal.len() as f64, spent };
        points.push(last);
    }
    points
}

/// For each gap between two points, the vertices of the hull to its right that can be touched from it.
fn candidates(points: &[ServicePoint]) -> (Vec<Range<usize>>, Vec<usize>) {
    let (mut gaps, mut touched) = (Vec::new(), Vec::new());
    let mut hull: Vec<usize> = Vec::new();
    for next in (1..points.len()).rev() {
        hull.push(next);
        let begin = touched.len();
        let from = points[next - 1].value;
        while let [.., second, first] = hull[..]
            && slope(points, next, from, first) < slope(points, next, from, second)
        {
            touched.push(first);
            hull.pop();
        }
        touched.extend(hull.last());
        gaps.push(begin..touched.len());
    }
    gaps.reverse();
    (gaps, touched)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, over every sample as the end of the quantum.
    fn brute(samples: &[f64], attained: f64) -> f64 {
        let left: Vec<f64> = samples.iter().filter(|s| **s > attained).map(|s| s - attained).collect();
        let quotient = |quantum: f64| {
            let done = left.iter().filter(|s| **s <= quantum).count() as f64;
            done / left.iter().map(|s| s.min(quantum)).sum::<f64>()
        };
        left.iter().map(|quantum| quotient(*quantum)).fold(0.0, f64::max)
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-9 * left.abs().max(right.abs())
    }

    #[test]
    fn one_sample_is_worth_more_the_nearer_it_is() {
        let index = Gittins::new(&[10.0]).unwrap();
        assert_eq!([0.0, 5.0, 9.0, 10.0, 99.0].map(|a| index.index(a)), [0.1, 0.2, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_short_crowd_hides_the_long_tail_until_it_is_past() {
        let index = Gittins::new(&[1.0, 1.0, 1.0, 100.0]).unwrap();
        assert_eq!(index.index(0.0), 3.0 / 4.0);
        assert_eq!(index.index(1.0), 1.0 / 99.0);
    }

    #[test]
    fn no_service_at_all_has_no_index() {
        assert_eq!(Gittins::new(&[0.0, -0.0]).unwrap().index(0.0), 0.0);
    }

    #[test]
    fn bad_samples_are_named() {
        assert_eq!(Gittins::new(&[]).unwrap_err(), GittinsError::Empty);
        assert_eq!(Gittins::new(&[1.0, -2.0]).unwrap_err(), GittinsError::Sample(-2.0));
        assert!(Gittins::new(&[f64::NAN]).is_err());
        assert!(Gittins::new(&[f64::INFINITY]).is_err());
    }

    #[test]
    fn odd_questions_have_finite_answers() {
        let index = Gittins::new(&[1e-300, 5.0, 1e300]).unwrap();
        for attained in [f64::NAN, -1.0, 0.0, f64::INFINITY, 5.0f64.next_down()] {
            assert!(index.index(attained).is_finite(), "{attained}");
        }
    }

    /// Half of them small whole numbers, so that many are equal.
    fn sample() -> impl Strategy<Value = f64> {
        prop_oneof![0.0..1000.0f64, (0u8..12).prop_map(f64::from)]
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            samples in prop::collection::vec(sample(), 1..60),
            more in prop::collection::vec(0.0..1000.0f64, 20),
        ) {
            let index = Gittins::new(&samples).unwrap();
            for attained in samples.iter().chain(&more).copied().chain([0.0]) {
                let (fast, slow) = (index.index(attained), brute(&samples, attained));
                prop_assert!(close(fast, slow), "at {attained}: {fast} but {slow}");
            }
        }

        #[test]
        fn heavy_tails_keep_their_digits(exponents in prop::collection::vec(-3.0..9.0f64, 1..60)) {
            let samples: Vec<f64> = exponents.iter().map(|e| power(*e)).collect();
            let index = Gittins::new(&samples).unwrap();
            for attained in samples.iter().map(|s| s * 0.999) {
                let (fast, slow) = (index.index(attained), brute(&samples, attained));
                prop_assert!(close(fast, slow), "at {attained}: {fast} but {slow}");
            }
        }
    }

    /// Near enough to 10^e for a test: the point is the range, not the digits.
    fn power(exponent: f64) -> f64 {
        10f64.powi(exponent.floor() as i32) * (1.0 + 9.0 * (exponent - exponent.floor()))
    }
}
