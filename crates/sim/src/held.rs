//! How intervals turned out: how often they held, how long they were, and what both together are worth (the interval score
//! of Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 2007, section 6.2: the
//! length, and by how much it was missed times 2/α), beside a naive reference for the same estimates (`naive`).

use yard_core::forecast::interval::{Foretold, Interval};
use yard_core::{Span, Time};

/// What is foretold counts as true if it is off by no more: decisions wait for beats, and beats for each other.
const SLACK: Span = Span::from_whole_secs(1);

/// The part of outcomes that intervals are meant to miss.
const ALPHA: f64 = 0.1;

/// How intervals turned out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldIntervals {
    held: usize,
    without: usize,
    /// How long each was, as a part of the time that was left.
    widths: Vec<f64>,
    /// Sums of the time that was left, of our scores, and of the reference's.
    left: f64,
    score: f64,
    naive: f64,
}

impl HeldIntervals {
    /// An estimate that was made at `now`, what the reference said, and what came of it.
    pub fn note(&mut self, now: Time, foretold: Foretold, naive: Interval, real: Time) {
        let Ok(interval) = foretold else {
            self.without += 1;
            return;
        };
        let left = (real - now).max(SLACK).secs();
        self.held += usize::from(missed_by(&interval, real) == Span::ZERO);
        self.widths.push((interval.high - interval.low).secs() / left);
        self.left += left;
        self.score += score(&interval, real);
        self.naive += score(&naive, real);
    }

    /// These and those of another run.
    pub fn join(&mut self, other: HeldIntervals) {
        self.held += other.held;
        self.without += other.without;
        self.widths.extend(other.widths);
        self.left += other.left;
        self.score += other.score;
        self.naive += other.naive;
    }

    /// How many intervals there were.
    pub fn count(&self) -> usize {
        self.widths.len()
    }

    /// Estimates without an interval.
    pub fn without(&self) -> usize {
        self.without
    }

    /// The part that held.
    pub fn part(&self) -> f64 {
        self.held as f64 / (self.count() as f64).max(1.0)
    }

    /// The median length, as a part of the time that was left.
    pub fn width(&self) -> f64 {
        let mut widths = self.widths.clone();
        widths.sort_by(f64::total_cmp);
        widths.get(widths.len() / 2).copied().unwrap_or_default()
    }

    /// The mean score, and that of the reference, as parts of the mean time that was left.
    pub fn scores(&self) -> (f64, f64) {
        let left = self.left.max(f64::MIN_POSITIVE);
        (self.score / left, self.naive / left)
    }
}

fn missed_by(interval: &Interval, real: Time) -> Span {
    let miss = (interval.low - real).max(real - interval.high);
    if miss <= SLACK { Span::ZERO } else { miss }
}

fn score(interval: &Interval, real: Time) -> f64 {
    (interval.high - interval.low).secs() + 2.0 / ALPHA * missed_by(interval, real).secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_core::forecast::interval::Unknown;

    fn from(low: f64, high: f64) -> Interval {
        let at = Time::from_secs;
        Interval { low: at(low), mid: at((low + high) / 2.0), high: at(high), ..Interval::default() }
    }

    #[test]
    fn a_miss_costs_twenty_times_its_distance_and_a_hit_its_width() {
        let mut held = HeldIntervals::default();
        held.note(Time::ZERO, Ok(from(90.0, 110.0)), from(50.0, 150.0), Time::from_secs(100.0));
        assert_eq!((held.part(), held.width(), held.scores()), (1.0, 0.2, (0.2, 1.0)));
        held.note(Time::ZERO, Ok(from(90.0, 110.0)), from(50.0, 150.0), Time::from_secs(200.0));
        // 20 and 20 + 20·90 of 300 s; 100 and 100 + 20·50.
        assert_eq!((held.part(), held.scores()), (0.5, (1_840.0 / 300.0, 1_200.0 / 300.0)));
        held.note(Time::ZERO, Err(Unknown::Beyond), from(0.0, 0.0), Time::from_secs(1.0));
        assert_eq!((held.count(), held.without(), held.part()), (2, 1, 0.5));
        let twice = held.clone();
        held.join(twice);
        assert_eq!((held.count(), held.without(), held.scores().0), (4, 2, 1_840.0 / 300.0));
    }

    #[test]
    fn nothing_is_known_of_none() {
        let none = HeldIntervals::default();
        assert_eq!((none.count(), none.part(), none.width(), none.scores()), (0, 0.0, 0.0, (0.0, 0.0)));
    }
}
