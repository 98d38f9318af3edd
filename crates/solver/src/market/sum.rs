//! The most that all are worth together: maximise Σ value_j · speed_j so that each buyer of row j has at least
//! the speed `floor_j`. Total throughput, throughput per dollar and the tie-break after max-min are of this form.
//!
//! The bound at prices p: p·N + Σ_j max over its hull of (value · speed − cost), the usual Lagrangian one.

use super::Solution;
use super::hull::{Answer, HullAsk};
use super::pass::PassTally;
use super::problem::Market;
use super::search::{Goal, MarketStart, MarketWork, Search, relative};

/// What speed is worth to each row, and what each must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum<'a> {
    pub(crate) value: &'a [f64],
    pub(crate) floor: Option<&'a [f64]>,
    /// What all devices of each kind cost beside their price: worth is counted net of it.
    pub(crate) fee: Option<&'a [f64]>,
}

impl HullAsk for Sum<'_> {
    #[inline]
    fn stop(&self, row: usize, from: f64, to: f64, slope: f64) -> Option<f64> {
        if slope <= self.value[row] {
            return None;
        }
        let floor = self.floor.map_or(0.0, |floor| floor[row]);
        (floor <= to).then_some(floor.max(from))
    }

    #[inline]
    fn worth(&self, row: usize, answer: &Answer) -> f64 {
        self.value[row] * answer.speed
    }
}

impl<'a> Goal for Sum<'a> {
    type Ask = Sum<'a>;
    const RELATIVE: bool = false;

    fn ask(&self, _level: f64) -> Sum<'a> {
        *self
    }

    fn fee(&self) -> Option<&[f64]> {
        self.fee
    }

    fn judge(&self, tally: &PassTally, spend: &[f64], _level: f64) -> (f64, f64) {
        let net = tally.worth - self.fees(&tally.load);
        (net, spend.iter().sum::<f64>() + tally.worth - tally.cost)
    }
}

impl Sum<'_> {
    /// What a load costs beside its price.
    fn fees(&self, load: &[f64]) -> f64 {
        self.fee.map_or(0.0, |fee| fee.iter().zip(load).map(|(fee, load)| fee * load).sum())
    }

    /// The worth of `shares` to all rows.
    fn worth_of(&self, market: &Market, shares: &[f64]) -> f64 {
        let each = |row: usize| self.value[row] * market.count[row] * market.reached(row, shares);
        (0..market.rows()).map(each).sum::<f64>() - self.fees(&market.load(shares))
    }
}

/// Finds the most, beginning with an answer that fits and keeps the floors (`None`: nothing, without floors).
pub(crate) fn most(
    market: &Market,
    sum: Sum<'_>,
    start: Option<Vec<f64>>,
    prices: Option<&[f64]>,
    limits: &MarketWork,
) -> Solution {
    let start = match start {
        Some(shares) => {
            let worth = sum.worth_of(market, &shares);
            MarketStart { load: market.load(&shares), shares: Some(shares), worth }
        }
        None => MarketStart::nothing(market.kinds(), 0.0),
    };
    let best = |row: usize| sum.value[row] * market.count[row] * market.best(row);
    let free: f64 = (0..market.rows()).map(best).sum();
    let mut search = Search::new(market, &sum, start, f64::INFINITY);
    let nothing = vec![0.0; market.kinds()];
    search.ask(&nothing, 0.0);
    search.ask(&first(market, prices, free), 0.0);
    search.run(limits);
    let shares = search.shares();
    let objective = sum.worth_of(market, &shares);
    Solution {
        objective,
        bound: search.bound.max(objective),
        prices: search.spend.iter().zip(&market.capacity).map(|(spend, n)| spend / n).collect(),
        shares,
        passes: search.passes,
    }
}

/// First prices, of which only the given ratios count: everything costs what it could be worth.
fn first(market: &Market, prices: Option<&[f64]>, free: f64) -> Vec<f64> {
    relative(market, prices).iter().map(|part| part * free).collect()
}
