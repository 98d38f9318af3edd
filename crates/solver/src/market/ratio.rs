//! The largest ratio of worth to cost: maximise Σ value · speed / Σ dollars · devices under floors, by
//! Dinkelbach's method. For a guess θ of the ratio, the most of (worth − θ · cost) is a sum with fees; its
//! answer's own ratio is the next guess, and where nothing above 0 is left, θ is the optimum. Guesses only
//! grow, and converge faster than linearly: a handful of sums.

use super::Solution;
use super::problem::{Market, MarketError, positive};
use super::search::MarketWork;
use super::sum::{Sum, most};

/// Guesses at most.
const GUESSES: usize = 40;

/// Finds the ratio, beginning with shares that keep the floors.
pub(crate) fn best(
    market: &Market,
    value: &[f64],
    dollars: &[f64],
    floor: &[f64],
    mut shares: Vec<f64>,
    limits: &MarketWork,
) -> Result<Solution, MarketError> {
    for (kind, cost) in dollars.iter().enumerate() {
        positive("dollars", kind, *cost)?;
    }
    let all: Vec<f64> = dollars.iter().zip(&market.capacity).map(|(cost, devices)| cost * devices).collect();
    let per_speed = per_speed(market, dollars);
    let mut solution = Solution::empty(market);
    let mut ratio = ratio_of(market, value, &all, &shares);
    for _ in 0..GUESSES {
        let fee: Vec<f64> = all.iter().map(|cost| ratio * cost).collect();
        let kept: Vec<f64> =
            (0..market.rows()).map(|row| floor[row].min(market.reached(row, &shares))).collect();
        let sum = Sum { value, floor: Some(&kept), fee: Some(&fee) };
        let found = most(market, sum, Some(shares.clone()), None, limits);
        let next = ratio_of(market, value, &all, &found.shares);
        solution.passes += found.passes;
        // Any shares: worth − ratio · cost ≤ the sum's bound, and they cost what the floors do, or more.
        let above = found.bound.max(0.0) / least_cost(market, &per_speed, &kept);
        let bound = (ratio + above).min(best_option(market, value, &per_speed));
        (solution.objective, solution.bound) = (next.max(ratio), bound.max(next).max(ratio));
        solution.prices = found.prices;
        if next <= ratio * (1.0 + limits.gap) {
            break;
        }
        (ratio, shares) = (next, found.shares);
    }
    solution.shares = shares;
    Ok(solution)
}

fn cost_of(market: &Market, all: &[f64], shares: &[f64]) -> f64 {
    market.load(shares).iter().zip(all).map(|(load, cost)| load * cost).sum()
}

/// What one unit of speed costs by each option.
fn per_speed(market: &Market, dollars: &[f64]) -> Vec<f64> {
    let cost =
        |option: usize| -> f64 { market.uses(option).map(|(kind, devices)| devices * dollars[kind]).sum() };
    (0..market.options()).map(|option| cost(option) / market.speed(option)).collect()
}

/// What the floors cost at the very least.
fn least_cost(market: &Market, per_speed: &[f64], floor: &[f64]) -> f64 {
    let least = |row: usize| per_speed[market.options_of(row)].iter().copied().fold(f64::INFINITY, f64::min);
    let rows = (0..market.rows()).filter(|row| floor[*row] > 0.0);
    rows.map(|row| floor[row] * market.count[row] * least(row)).sum()
}

/// The ratio of the best option of all: no mix has a better one.
fn best_option(market: &Market, value: &[f64], per_speed: &[f64]) -> f64 {
    let of = |row: usize| market.options_of(row).map(move |option| value[row] / per_speed[option]);
    (0..market.rows()).flat_map(of).fold(0.0, f64::max)
}

fn ratio_of(market: &Market, value: &[f64], all: &[f64], shares: &[f64]) -> f64 {
    let worth: f64 =
        (0..market.rows()).map(|row| value[row] * market.count[row] * market.reached(row, shares)).sum();
    let cost = cost_of(market, all, shares);
    if cost > 0.0 { worth / cost } else { 0.0 }
}
