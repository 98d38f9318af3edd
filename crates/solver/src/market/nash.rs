//! Nash social welfare: maximise Σ_j weight_j · log(speed_j). Prices of this market are those at which every
//! buyer spends its weight, unless its own time is up first (a Fisher market with time limits).
//!
//! The bound at prices p: p·N + Σ_j max over its hull of (weight · log speed − cost).

use super::Solution;
use super::hull::{Answer, HullAsk};
use super::pass::PassTally;
use super::problem::Market;
use super::search::{Goal, MarketStart, MarketWork, Search, relative};

/// The weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nash<'a> {
    pub(crate) weight: &'a [f64],
    /// All weights together: a distance over it is one of logarithms of mean speeds.
    pub(crate) budget: f64,
}

impl HullAsk for Nash<'_> {
    fn stop(&self, row: usize, from: f64, to: f64, slope: f64) -> Option<f64> {
        // Where a piece costs nothing, all of it is taken.
        let wanted = self.weight[row] / slope;
        (wanted < to).then_some(wanted.max(from))
    }

    fn worth(&self, row: usize, answer: &Answer) -> f64 {
        self.weight[row] * libm::log(answer.speed)
    }
}

impl<'a> Goal for Nash<'a> {
    type Ask = Nash<'a>;
    const RELATIVE: bool = false;

    fn ask(&self, _level: f64) -> Nash<'a> {
        *self
    }

    fn scale(&self, _bound: f64) -> f64 {
        self.budget
    }

    fn judge(&self, tally: &PassTally, spend: &[f64], _level: f64) -> (f64, f64) {
        (tally.worth, spend.iter().sum::<f64>() + tally.worth - tally.cost)
    }
}

/// Σ weight · log speed of `shares`.
pub(crate) fn welfare(market: &Market, weight: &[f64], shares: &[f64]) -> f64 {
    let each = |row: usize| weight[row] * market.count[row] * libm::log(market.reached(row, shares));
    (0..market.rows()).map(each).sum()
}

/// Finds the welfare's maximum. Every row must have an option.
pub(crate) fn most(market: &Market, nash: Nash<'_>, prices: Option<&[f64]>, limits: &MarketWork) -> Solution {
    let shares = even(market);
    let start = MarketStart {
        load: market.load(&shares),
        worth: welfare(market, nash.weight, &shares),
        shares: Some(shares),
    };
    let mut search = Search::new(market, &nash, start, f64::INFINITY);
    // All budgets spent evenly over the kinds, or as the given prices say.
    let first: Vec<f64> = relative(market, prices).iter().map(|part| part * nash.budget).collect();
    search.ask(&first, 0.0);
    search.run(limits);
    let shares = search.shares();
    let objective = welfare(market, nash.weight, &shares);
    Solution {
        objective,
        bound: search.bound.max(objective),
        prices: search.spend.iter().zip(&market.capacity).map(|(spend, n)| spend / n).collect(),
        shares,
        passes: search.passes,
    }
}

/// Every buyer spreads its time evenly over its options, all as far as the scarcest kind allows.
fn even(market: &Market) -> Vec<f64> {
    let mut shares = vec![0.0; market.options()];
    for row in 0..market.rows() {
        let options = market.options_of(row);
        let each = market.count[row] / options.len().max(1) as f64;
        options.for_each(|option| shares[option] = each);
    }
    let most = market.load(&shares).into_iter().fold(1.0, f64::max);
    shares.iter_mut().for_each(|share| *share /= most);
    shares
}
