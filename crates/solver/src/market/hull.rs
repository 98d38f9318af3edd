//! One buyer's answer to prices. Its options are points (speed, cost); the cheapest way to any speed lies on
//! their lower convex hull from (0, 0) on, and mixes at most two neighbours. The hull is walked from its flat
//! end, each next corner found by one look at all options: few corners are ever needed.

use super::problem::Market;

/// How far along its hull a buyer wants to go.
pub(crate) trait HullAsk: Sync {
    /// The speed at which the buyer stops on the piece of its hull between two speeds, each further unit of
    /// speed costing `slope`; `None` takes the whole piece and looks at the next one.
    fn stop(&self, row: usize, from: f64, to: f64, slope: f64) -> Option<f64>;

    /// What the answer is worth, for one buyer of the row.
    fn worth(&self, row: usize, answer: &Answer) -> f64;
}

/// No option: the buyer idles.
pub(crate) const IDLE: u32 = u32::MAX;

/// What one buyer of a row takes: a part of `high`, the rest of that time `low` (or nothing).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) part: f64,
    pub(crate) speed: f64,
    pub(crate) cost: f64,
    /// What one more unit of speed would cost here.
    pub(crate) slope: f64,
}

/// A corner of the hull.
#[derive(Clone, Copy)]
struct Corner {
    option: u32,
    speed: f64,
    cost: f64,
}

/// Cost of one unit of speed by an option.
#[inline]
fn unit_cost(market: &Market, option: usize, prices: &[f64]) -> f64 {
    let cost = market.effort[option] * prices[market.kind[option] as usize];
    let more = market.more_of(option).iter();
    more.fold(cost, |sum, more| sum + more.effort * prices[more.kind as usize])
}

/// What a buyer takes at these prices.
#[inline]
pub(crate) fn answer<A: HullAsk>(market: &Market, row: usize, prices: &[f64], ask: &A) -> Answer {
    let Some((first, slope)) = first_corner(market, row, prices) else {
        return Answer { low: IDLE, high: IDLE, part: 0.0, speed: 0.0, cost: 0.0, slope: f64::INFINITY };
    };
    let origin = Corner { option: IDLE, speed: 0.0, cost: 0.0 };
    match ask.stop(row, 0.0, first.speed, slope) {
        Some(speed) => between(origin, first, speed, slope),
        None => walk(market, row, prices, ask, first, slope),
    }
}

#[inline]
fn first_corner(market: &Market, row: usize, prices: &[f64]) -> Option<(Corner, f64)> {
    let options = market.options_of(row);
    if !market.more.is_empty() {
        return first_of_mixed(market, options, prices);
    }
    let from = options.start;
    let (effort, kind) = (&market.effort[options.clone()], &market.kind[options.clone()]);
    let speed = &market.speed[options];
    let (mut best, mut least) = (usize::MAX, f64::INFINITY);
    for (at, (effort, kind)) in effort.iter().zip(kind).enumerate() {
        // Written so that no branch depends on the comparison: at the prices that matter, it is anybody's guess.
        let cost = effort * prices[*kind as usize];
        let better = cost < least;
        best = if better { at } else { best };
        least = if better { cost } else { least };
    }
    let speed = *speed.get(best)?;
    Some((Corner { option: (from + best) as u32, speed, cost: least * speed }, least))
}

fn first_of_mixed(market: &Market, options: std::ops::Range<usize>, prices: &[f64]) -> Option<(Corner, f64)> {
    let mut best: Option<(Corner, f64)> = None;
    for option in options {
        let (cost, speed) = (unit_cost(market, option, prices), market.speed[option]);
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((Corner { option: option as u32, speed, cost: cost * speed }, cost));
        }
    }
    best
}

/// Goes on from a corner that is not far enough.
fn walk<A: HullAsk>(
    market: &Market,
    row: usize,
    prices: &[f64],
    ask: &A,
    mut at: Corner,
    mut slope: f64,
) -> Answer {
    while let Some((next, steeper)) = next_corner(market, row, prices, at) {
        if let Some(speed) = ask.stop(row, at.speed, next.speed, steeper) {
            return between(at, next, speed, steeper);
        }
        (at, slope) = (next, steeper);
    }
    Answer { low: IDLE, high: at.option, part: 1.0, speed: at.speed, cost: at.cost, slope }
}

fn next_corner(market: &Market, row: usize, prices: &[f64], at: Corner) -> Option<(Corner, f64)> {
    let mut best: Option<(Corner, f64)> = None;
    for option in market.options_of(row) {
        let speed = market.speed[option];
        if speed <= at.speed {
            continue;
        }
        let cost = unit_cost(market, option, prices) * speed;
        let slope = ((cost - at.cost) / (speed - at.speed)).max(0.0);
        if best.is_none_or(|(_, least)| slope < least) {
            best = Some((Corner { option: option as u32, speed, cost }, slope));
        }
    }
    best
}

#[inline]
fn between(low: Corner, high: Corner, speed: f64, slope: f64) -> Answer {
    let part = ((speed - low.speed) / (high.speed - low.speed)).clamp(0.0, 1.0);
    let cost = low.cost + part * (high.cost - low.cost);
    Answer { low: low.option, high: high.option, part, speed, cost, slope }
}
