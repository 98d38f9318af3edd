//! When generated jobs come: a Poisson process, whose rate may swing over the day.

use yard_core::Time;

use super::Arrivals;
use super::draw::TraceDraw;

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

/// The first `count` submissions, the first at 0, to the millisecond.
///
/// With a swing of `s` the rate at time t is rate × (1 + s·sin(2πt/day)), made by thinning: draw at
/// the highest rate, keep each with the chance that the rate then has against the highest.
pub(super) fn times(
    count: usize,
    arrivals: Arrivals,
    swing: f64,
    mut draw: TraceDraw,
) -> impl Iterator<Item = Time> {
    let mut now = 0.0;
    (0..count).map(move |job| {
        if let (Arrivals::Rate(rate), true) = (arrivals, job > 0) {
            assert!(rate > 0.0 && rate.is_finite(), "a rate of arrivals is a number above 0, and not {rate}");
            now = next(now, HOUR / rate, swing, &mut draw);
        }
        Time::from_secs((now * 1e3).round() / 1e3)
    })
}

fn next(mut now: f64, mean_gap: f64, swing: f64, draw: &mut TraceDraw) -> f64 {
    loop {
        now += draw.exponential(mean_gap / (1.0 + swing));
        if swing == 0.0 || draw.unit() * (1.0 + swing) < 1.0 + swing * day_wave(now) {
            return now;
        }
    }
}

fn day_wave(now: f64) -> f64 {
    libm::sin(std::f64::consts::TAU * (now / DAY).fract())
}
