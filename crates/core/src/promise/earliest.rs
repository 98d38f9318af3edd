//! The earliest deadline that works: the answer to one that does not.

use super::{Ask, Grid, Stretch, Timeline, satisfy};
use crate::units::{Span, Time};

/// The furthest that is looked ahead.
const HORIZON: Span = Span::from_whole_secs(400 * 86_400);

/// The earliest time on the grid by which a job can be done on what others leave, and how; none where it never is.
/// `satisfy` succeeds for a later deadline wherever it does for an earlier one, so halving finds it.
pub fn earliest(ask: &Ask, timeline: &Timeline, grid: &Grid) -> Option<(Time, Vec<Stretch>)> {
    let by = |by: Time| satisfy(&Ask { by, ..ask.clone() }, timeline, grid);
    let begin = ask.from.max(grid.now);
    let (mut low, mut high) = (begin, grid.after(begin + grid.step(begin)));
    let mut best = by(high);
    while best.is_none() {
        if high - begin > HORIZON {
            return None;
        }
        (low, high) = (high, grid.after(begin + Span((high - begin).0.saturating_mul(2))));
        best = by(high);
    }
    while (high - low).0 > grid.step(high).0 {
        let middle = grid.after(Time(low.0 / 2 + high.0 / 2));
        if middle >= high {
            break;
        }
        match by(middle) {
            Some(plan) => (high, best) = (middle, Some(plan)),
            None => low = middle,
        }
    }
    best.map(|plan| (high, plan))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::smallvec;

    use super::*;
    use crate::promise::Way;

    proptest! {
        #[test]
        fn no_earlier_step_works(
            taken in prop::collection::vec((0u64..60, 1u64..30, 1u32..4), 0..8),
            left in 1u32..50,
        ) {
            let secs = |seconds: u64| Time::from_secs(seconds as f64);
            let grid = Grid::new(Time::ZERO, Span::from_secs(1.0));
            let mut line = Timeline::new(Time::ZERO, &[12]);
            taken.iter().for_each(|(from, long, count)| line.take(&[(0, *count)], secs(*from), secs(from + long)));
            prop_assume!(line.is_sound());
            let way = |shape, devices, speed| Way { shape, speed, devices, takes: smallvec![(0, devices)], family: 0 };
            let ways = vec![way(0, 3, 1.0), way(1, 6, 1.7)];
            let ask = Ask { by: Time::ZERO, from: Time::ZERO, left: f64::from(left), ways, overhead: Span::ZERO, whole: false };
            let (by, plan) = earliest(&ask, &line, &grid).unwrap();
            prop_assert!(!plan.is_empty());
            for earlier in 1..(by.secs() as u64).min(64) {
                let sooner = Ask { by: secs(earlier), ..ask.clone() };
                prop_assert_eq!(satisfy(&sooner, &line, &grid), None, "{} before {}", earlier, by);
            }
        }
    }
}
