//! The instants at which stretches may begin.

use crate::units::{MICROS, Span, Time};

/// The finest step where decisions follow events.
const FINEST: Span = Span(MICROS);

/// Steps of one size before they double.
const STEPS: u64 = 64;

/// Multiples of a round, of two rounds further away, of four beyond that and so on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// The first instant at which anything can be decided.
    pub now: Time,
    step: Span,
    free: bool,
}

impl Grid {
    /// Of decisions at multiples of `round` from `now` on; at any time where it is zero.
    pub fn new(now: Time, round: Span) -> Grid {
        let free = round == Span::ZERO;
        let step = if free { FINEST } else { round };
        Grid { now: now.round_up(round), step, free }
    }

    /// The length of a step at this distance.
    fn step_at(&self, time: Time) -> u64 {
        let steps = (time - self.now).0 / self.step.0 / STEPS;
        let doublings = u64::BITS - steps.leading_zeros();
        self.step.0.saturating_mul(1 << doublings.min(32))
    }

    /// The last instant of the grid that is not after `time`.
    pub fn before(&self, time: Time) -> Time {
        let step = self.step_at(time);
        Time(time.0 / step * step).max(self.now)
    }

    /// The first instant of the grid that is not before `time`.
    pub fn after(&self, time: Time) -> Time {
        let step = self.step_at(time);
        if time.0 > u64::MAX - step { Time::NEVER } else { time.round_up(Span(step)).max(self.now) }
    }

    /// One step, as long as those that begin at `time`.
    pub fn step(&self, time: Time) -> Span {
        Span(self.step_at(time))
    }

    /// Whether decisions follow events, at any time.
    pub fn is_free(&self) -> bool {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_get_longer_with_distance_and_stay_multiples_of_the_round() {
        let round = Span::from_secs(60.0);
        let grid = Grid::new(Time::from_secs(90.0), round);
        assert_eq!(grid.now, Time::from_secs(120.0));
        let mut last = 0;
        for minutes in [3.0, 50.0, 500.0, 5_000.0, 500_000.0] {
            let time = Time::from_secs(minutes * 60.0 + 7.0);
            let (before, after) = (grid.before(time), grid.after(time));
            assert!(before <= time && time <= after && before.0 % round.0 == 0 && after.0 % round.0 == 0);
            assert!(grid.step(time).0 >= last, "{minutes}");
            // A step is a small part of the distance.
            assert!(grid.step(time).0 <= round.0.max((time - grid.now).0 / 16), "{minutes}");
            last = grid.step(time).0;
        }
        assert_eq!(grid.after(Time::NEVER), Time::NEVER);
    }
}
