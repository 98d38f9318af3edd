//! The highest level that all can reach together: maximise z so that each buyer of row j has at least the
//! speed `base_j + slope_j z`. Max-min fairness, makespan and each step of water filling are of this form,
//! and so is finish-time fairness, whose needs are another convex function of the level.
//!
//! The bound: at prices at which everything together costs 1, the needs of a level cost C(z), which is convex
//! in z; a level that fits cannot cost more than 1, and C lies above its tangents. So one pass at any z
//! proves z* ≤ z + (1 − C(z)) / C'(z).

use super::hull::{Answer, HullAsk};
use super::pass::{PassTally, least};
use super::problem::Market;
use super::search::{Goal, MarketStart, MarketWork, Search, known, normalise};
use super::{Solution, sample};

/// What a level asks of each row: a convex, growing function of it.
pub(crate) trait LevelNeeds: Sync {
    /// The speed that one buyer of the row must have.
    fn at(&self, row: usize, level: f64) -> f64;
    /// How fast that grows with the level.
    fn rate(&self, row: usize, level: f64) -> f64;
    /// The level at which the row would need `best`, which it cannot exceed.
    fn cap(&self, row: usize, best: f64) -> f64;
    /// The level that a row is at with this speed; infinite where it needs the same at any.
    fn level(&self, row: usize, speed: f64) -> f64;
}

/// `base + slope · z`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine<'a> {
    pub(crate) base: Option<&'a [f64]>,
    pub(crate) slope: &'a [f64],
}

impl Affine<'_> {
    fn base(&self, row: usize) -> f64 {
        self.base.map_or(0.0, |base| base[row])
    }
}

impl LevelNeeds for Affine<'_> {
    #[inline]
    fn at(&self, row: usize, level: f64) -> f64 {
        self.base(row) + self.slope[row] * level
    }

    #[inline]
    fn rate(&self, row: usize, _level: f64) -> f64 {
        self.slope[row]
    }

    fn cap(&self, row: usize, best: f64) -> f64 {
        self.level(row, best)
    }

    fn level(&self, row: usize, speed: f64) -> f64 {
        if self.slope[row] > 0.0 { (speed - self.base(row)) / self.slope[row] } else { f64::INFINITY }
    }
}

/// Max-min over any needs.
pub(crate) struct LevelGoal<'a, N> {
    pub(crate) needs: &'a N,
}

/// What buyers are asked: the needs of one level.
pub(crate) struct AtLevel<'a, N> {
    pub(crate) needs: &'a N,
    pub(crate) level: f64,
}

impl<N: LevelNeeds> HullAsk for AtLevel<'_, N> {
    #[inline]
    fn stop(&self, row: usize, _from: f64, to: f64, _slope: f64) -> Option<f64> {
        let need = self.needs.at(row, self.level);
        (need <= to).then_some(need)
    }

    /// The growth of its cost with the level.
    #[inline]
    fn worth(&self, row: usize, answer: &Answer) -> f64 {
        let rate = self.needs.rate(row, self.level);
        if rate > 0.0 { answer.slope * rate } else { 0.0 }
    }
}

impl<'a, N: LevelNeeds> Goal for LevelGoal<'a, N> {
    type Ask = AtLevel<'a, N>;
    const RELATIVE: bool = true;

    fn ask(&self, level: f64) -> AtLevel<'a, N> {
        AtLevel { needs: self.needs, level }
    }

    fn judge(&self, tally: &PassTally, _spend: &[f64], level: f64) -> (f64, f64) {
        let growth = tally.worth;
        let bound = if growth > 0.0 { level + (1.0 - tally.cost) / growth } else { f64::INFINITY };
        (level, bound)
    }
}

/// The level above which some row would need more than its best speed.
pub(crate) fn cap<N: LevelNeeds>(market: &Market, needs: &N) -> f64 {
    least(market.rows(), |row| needs.cap(row, market.best(row)))
}

/// What is known beforehand: prices to begin with, or an answer that fits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints<'h> {
    pub(crate) prices: Option<&'h [f64]>,
    pub(crate) start: Option<(Vec<f64>, f64)>,
}

/// Finds the highest level.
pub(crate) fn highest<N: LevelNeeds>(
    market: &Market,
    needs: &N,
    hints: Hints<'_>,
    limits: &MarketWork,
) -> Solution {
    let goal = LevelGoal { needs };
    match seek(market, &goal, hints, limits) {
        Some(search) => finish(market, needs, &search),
        // Nobody asks for anything that grows.
        None => Solution::empty(market),
    }
}

/// The search for the highest level, done; none where nothing grows with it.
pub(crate) fn seek<'a, N: LevelNeeds>(
    market: &'a Market,
    goal: &'a LevelGoal<'a, N>,
    hints: Hints<'_>,
    limits: &MarketWork,
) -> Option<Search<'a, LevelGoal<'a, N>>> {
    let cap = cap(market, goal.needs);
    if !cap.is_finite() {
        return None;
    }
    let start = match hints.start {
        Some((shares, level)) => {
            MarketStart { load: market.load(&shares), shares: Some(shares), worth: level }
        }
        None => MarketStart::nothing(market.kinds(), 0.0),
    };
    let mut search = Search::new(market, goal, start, cap);
    let seeds = first_prices(market, goal.needs, hints.prices, limits);
    open(&mut search, &seeds, cap);
    search.run(limits);
    Some(search)
}

/// Asks at the first prices, coming down from the cap until the level is about right for them.
pub(crate) fn open<N: LevelNeeds>(search: &mut Search<'_, LevelGoal<'_, N>>, seeds: &[Vec<f64>], cap: f64) {
    for seed in seeds {
        let mut level = search.bound.min(cap);
        for _ in 0..8 {
            let bound = search.ask(seed, level).min(cap);
            let far = (level - bound).abs() > 0.05 * bound.abs();
            level = bound;
            if !far {
                break;
            }
        }
    }
}

/// Prices to begin with: the given ones, those of a sample where there are many rows, or by mean speed.
pub(crate) fn first_prices<N: LevelNeeds>(
    market: &Market,
    needs: &N,
    given: Option<&[f64]>,
    limits: &MarketWork,
) -> Vec<Vec<f64>> {
    if let Some(spend) = known(market, given) {
        return vec![spend];
    }
    sample::prices(market, needs, limits).unwrap_or_else(|| vec![by_speed(market)])
}

/// Each kind's part of the speed that all options promise per device: a fair first guess.
pub(crate) fn by_speed(market: &Market) -> Vec<f64> {
    let mut spend = vec![0.0; market.kinds()];
    for option in 0..market.options() {
        let kind = market.kind[option] as usize;
        spend[kind] += 1.0 / market.effort[option];
    }
    for (spend, capacity) in spend.iter_mut().zip(&market.capacity) {
        *spend *= capacity;
    }
    if !normalise(&mut spend) {
        spend.fill(1.0 / market.kinds().max(1) as f64);
    }
    spend
}

/// The mix, with the level that it really reaches.
pub(crate) fn finish<N: LevelNeeds>(
    market: &Market,
    needs: &N,
    search: &Search<'_, LevelGoal<'_, N>>,
) -> Solution {
    let shares = search.shares();
    let level = least(market.rows(), |row| needs.level(row, market.reached(row, &shares)));
    Solution {
        objective: level,
        bound: search.bound.max(level),
        prices: search.spend.iter().zip(&market.capacity).map(|(spend, n)| spend / n).collect(),
        shares,
        passes: search.passes,
    }
}
