//! Axes: where they begin and end, and the ticks on them.

/// An axis, from the values on it to places from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// Where ticks are, with what is written there.
    pub(super) ticks: Vec<(f64, String)>,
}

/// Times that people say, in seconds.
const TIMES: [(f64, &str); 10] = [
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (36_000.0, "10 h"),
    (86_400.0, "1 d"),
    (864_000.0, "10 d"),
    (8_640_000.0, "100 d"),
    (86_400_000.0, "1000 d"),
];

/// How many ticks there are, about: upwards, where the axis begins at 0, and across.
const TICKS_UP: f64 = 5.0;
const TICKS_ACROSS: f64 = 7.0;

impl Axis {
    /// A plain axis that holds these values; `zero`: and begins at 0.
    pub(super) fn plain(values: impl Iterator<Item = f64> + Clone, zero: bool) -> Axis {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        let least = if zero { least.min(0.0) } else { least };
        let span = if most > least { most - least } else { least.abs().max(1.0) };
        let step = step(span / if zero { TICKS_UP } else { TICKS_ACROSS });
        let (first, last) = if zero {
            ((least / step).floor(), (most.max(least + span) / step - 1e-9).ceil())
        } else {
            ((least / step - 1e-9).ceil(), (most / step + 1e-9).floor())
        };
        let tick = |at: i64| (at as f64 * step, written(at as f64 * step, step));
        let ticks: Vec<_> = (first as i64..=last as i64).map(tick).collect();
        let (low, high) = if zero {
            (first * step, last * step)
        } else if most > least {
            (least, most)
        } else {
            (least - span / 2.0, most + span / 2.0)
        };
        Axis { low, high, log: false, ticks }
    }

    /// A logarithmic axis of times in seconds; what is below a second counts as one.
    pub(super) fn times(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let least = values.clone().fold(f64::INFINITY, f64::min).max(1.0);
        let most = values.fold(1.0, f64::max).max(least * 2.0);
        let within = |tick: &&(f64, &str)| (least * 0.999..=most * 1.001).contains(&tick.0);
        let ticks = TIMES.iter().filter(within).map(|(time, name)| (*time, (*name).to_owned()));
        Axis { low: least, high: most, log: true, ticks: ticks.collect() }
    }

    /// Where a value lies, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let span = |from: f64, to: f64| if self.log { libm::log(to / from) } else { to - from };
        let value = if self.log { value.max(self.low) } else { value };
        span(self.low, value) / span(self.low, self.high)
    }
}

/// The nearest of 1, 2, 5, 10, 20 … that is not below.
fn step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(least).floor());
    let whole = [1.0, 2.0, 5.0].into_iter().find(|whole| whole * power >= least * (1.0 - 1e-9));
    whole.unwrap_or(10.0) * power
}

fn written(value: f64, step: f64) -> String {
    let digits = (-libm::log10(step)).ceil().clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(names(&Axis::plain([0.31, 1.02].into_iter(), true)), ["0.0", "0.5", "1.0", "1.5"]);
        assert_eq!(
            names(&Axis::plain([0.5, 1.1].into_iter(), false)),
            ["0.5", "0.6", "0.7", "0.8", "0.9", "1.0", "1.1"]
        );
        assert_eq!(
            names(&Axis::plain([0.0, 4200.0].into_iter(), true)),
            ["0", "1000", "2000", "3000", "4000", "5000"]
        );
        let one = Axis::plain([3.0].into_iter(), false);
        assert_eq!(one.place(3.0), 0.5, "a single value is in the middle");
    }

    #[test]
    fn times_are_on_a_logarithmic_axis() {
        let axis = Axis::times([0.0, 30.0, 7200.0].into_iter());
        assert_eq!(names(&axis), ["1 s", "10 s", "1 min", "10 min", "1 h"]);
        assert!((axis.place(7200.0) - 1.0).abs() < 1e-12 && axis.place(0.0) == 0.0);
        assert!((axis.place(10.0) * 2.0 - axis.place(100.0)).abs() < 1e-12);
    }
}
