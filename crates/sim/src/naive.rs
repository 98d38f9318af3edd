//! The reference that intervals are scored beside: the middle of the estimate, times what the time that was left turned out
//! to be of it, between the 5th and the 95th of a hundred earlier ones, whatever they were. Who learns no more than that
//! from the past needs no further runs.

use yard_core::forecast::interval::Interval;
use yard_core::{Span, Time};

/// Outcomes that are enough; with fewer, a third to three times.
const ENOUGH: usize = 20;
const USUAL: f64 = 3.0;

/// Added to each time left, in seconds: below it, factors mean nothing.
const FLOOR: f64 = 10.0;

/// How far outcomes were from the middle, as factors.
#[derive(Clone, Debug, Default)]
pub struct Naive(Vec<f64>);

impl Naive {
    /// What was foretold at `at` for `mid` happened.
    pub fn note(&mut self, at: Time, mid: Time, real: Time) {
        let factor = ((real - at).secs() + FLOOR) / ((mid - at).secs() + FLOOR);
        let place = self.0.partition_point(|other| *other < factor);
        self.0.insert(place, factor);
    }

    /// The interval around a middle.
    pub fn interval(&self, now: Time, mid: Time) -> Interval {
        let place = |part: f64| self.0[libm::floor(part * self.0.len() as f64) as usize];
        let known = self.0.len() >= ENOUGH;
        let (low, high) = if known { (place(0.05), place(0.95)) } else { (1.0 / USUAL, USUAL) };
        let at = |factor: f64| {
            let left = ((mid - now).secs() + FLOOR) * factor - FLOOR;
            now + Span::from_secs(left.max(0.0))
        };
        Interval { low: at(low), mid, high: at(high), ..Interval::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_the_past_make_the_next_interval() {
        let at = Time::from_secs;
        let mut naive = Naive::default();
        let first = naive.interval(at(0.0), at(90.0));
        assert!((first.low.secs() - 70.0 / 3.0).abs() < 0.1 && first.high == at(290.0), "{first:?}");
        // Each a hundredth longer than the one before, from half as long on.
        (0..100).for_each(|nth| naive.note(at(0.0), at(990.0), at(490.0 + 10.0 * f64::from(nth))));
        let next = naive.interval(at(0.0), at(90.0));
        assert!((next.low.secs() - 45.0).abs() < 0.1 && (next.high.secs() - 135.0).abs() < 0.1, "{next:?}");
    }
}
