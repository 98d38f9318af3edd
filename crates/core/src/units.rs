//! Time as whole microseconds: sums and comparisons are exact, so equal inputs give equal bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Microseconds in a second.
pub const MICROS: u64 = 1_000_000;

/// An instant: microseconds since the start of a simulation, or since the Unix epoch when live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(pub u64);

/// Seconds to the nearest microsecond. Negative values and NaN give zero, huge ones the maximum.
fn micros(seconds: f64) -> u64 {
    (seconds * MICROS as f64).round() as u64
}

impl Time {
    /// The instant before all others.
    pub const ZERO: Time = Time(0);
    /// The instant that does not come.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `seconds` after zero, to the nearest microsecond.
    pub fn from_secs(seconds: f64) -> Time {
        Time(micros(seconds))
    }

    /// Seconds since zero.
    pub fn secs(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// The first multiple of `step` that is not before this instant; itself where `step` is zero.
    pub fn round_up(self, step: Span) -> Time {
        if step.0 == 0 { self } else { Time(self.0.div_ceil(step.0).saturating_mul(step.0)) }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of whole seconds, for constants.
    pub const fn from_whole_secs(seconds: u64) -> Span {
        Span(seconds * MICROS)
    }

    /// A span of `seconds`, to the nearest microsecond.
    pub fn from_secs(seconds: f64) -> Span {
        Span(micros(seconds))
    }

    /// Its length in seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub for Time {
    type Output = Span;
    /// Zero where `other` is later: a span is never negative.
    fn sub(self, other: Time) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.secs())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_microsecond() {
        assert_eq!(Time::from_secs(1.000_000_4), Time(1_000_000));
        assert_eq!(Time::from_secs(-3.0), Time::ZERO);
        assert_eq!(Time::from_secs(f64::INFINITY), Time::NEVER);
        assert_eq!(Span::from_secs(f64::NAN), Span::ZERO);
    }

    #[test]
    fn rounding_up_stays_on_a_multiple() {
        let step = Span::from_secs(360.0);
        assert_eq!(Time::from_secs(360.0).round_up(step), Time::from_secs(360.0));
        assert_eq!(Time::from_secs(360.5).round_up(step), Time::from_secs(720.0));
        assert_eq!(Time(7).round_up(Span::ZERO), Time(7));
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER + Span(5), Time::NEVER);
        assert_eq!(Time(3) - Time(5), Span::ZERO);
    }
}
