//! Water filling to the end: the lexicographic max-min. All levels rise together until somebody can rise no
//! further; those are frozen where they stand, the others rise on, until all are frozen.
//!
//! Who cannot rise is read off the prices: at the optimum all needs together cost exactly what there is, so a
//! row whose next unit of speed costs anything cannot have it without taking from a level already reached.
//! Work: one search for each distinct level at which somebody is frozen, each begun from the last prices.
//!
//! Where a row's gang is larger than a kind it may use, frozen rows can leave the next search next to no room, and
//! it may then end with its passes, below the optimum of that level. The first level is certified in any case.

use super::Solution;
use super::hull::{Answer, HullAsk, answer};
use super::level::{Affine, Hints, cap, highest};
use super::problem::{Market, MarketError};
use super::search::MarketWork;

/// A unit of speed is free if all of a row's speed at that price costs less than this part of a mean budget.
const FREE: f64 = 1e-6;

/// The gap of each step: prices of devices that are left over must come out as nothing.
const GAP: f64 = 1e-10;

/// How far each row has come.
struct Tide<'a> {
    market: &'a Market,
    best: Vec<f64>,
    /// The speed that each row is sure of.
    sure: Vec<f64>,
    frozen: Vec<bool>,
    shares: Vec<f64>,
    prices: Option<Vec<f64>>,
    passes: u32,
    limits: MarketWork,
}

/// How the weights come about.
pub enum Weights<'a> {
    /// Always these.
    Fixed(&'a [f64]),
    /// Anew after each freeze, from who is frozen; a weight of 0 does not rise for now.
    Shared(&'a dyn Fn(&[bool]) -> Vec<f64>),
}

impl Weights<'_> {
    fn now(&self, frozen: &[bool]) -> Vec<f64> {
        let mut weights = match self {
            Weights::Fixed(weights) => weights.to_vec(),
            Weights::Shared(of) => of(frozen),
        };
        weights
            .iter_mut()
            .zip(frozen)
            .for_each(|(weight, frozen)| *weight = if *frozen { 0.0 } else { *weight });
        weights
    }
}

/// Fills to the end, from nothing or from speeds that rows are sure of with shares that give them. Objective,
/// bound and prices are those of the first level: from nothing, max-min fairness.
pub(crate) fn fill(
    market: &Market,
    weights: &Weights<'_>,
    start: Option<(Vec<f64>, Vec<f64>)>,
    prices: Option<&[f64]>,
    limits: &MarketWork,
) -> Result<Solution, MarketError> {
    let nothing = || (vec![0.0; market.rows()], vec![0.0; market.options()]);
    let (sure, shares) = start.unwrap_or_else(nothing);
    let mut tide = Tide {
        market,
        best: (0..market.rows()).map(|row| market.best(row)).collect(),
        sure,
        frozen: (0..market.rows()).map(|row| market.options_of(row).is_empty()).collect(),
        shares,
        prices: prices.map(<[f64]>::to_vec),
        passes: 0,
        limits: MarketWork { gap: limits.gap.min(GAP), ..*limits },
    };
    let mut first: Option<Solution> = None;
    // Each step freezes at least one row.
    for _ in 0..=market.rows() {
        let slope = weights.now(&tide.frozen);
        market.check_column("weight", &slope)?;
        if slope.iter().all(|slope| *slope == 0.0) {
            break;
        }
        let step = tide.rise(&slope, matches!(weights, Weights::Fixed(_)))?;
        first.get_or_insert(step);
    }
    let Tide { shares, passes, .. } = tide;
    Ok(Solution { shares, passes, ..first.unwrap_or_else(|| Solution::empty(market)) })
}

impl Tide<'_> {
    /// Raises all rows with a slope as far as they come together, and freezes who can rise no further.
    fn rise(&mut self, slope: &[f64], fixed: bool) -> Result<Solution, MarketError> {
        let sure = self.sure.clone();
        let needs = Affine { base: Some(&sure), slope };
        let hints = Hints { prices: self.prices.as_deref(), start: Some((self.shares.clone(), 0.0)) };
        let step = highest(self.market, &needs, hints, &self.limits);
        self.passes += step.passes;
        let highest = cap(self.market, &needs);
        let mut level = step.objective.max(0.0);
        self.shares.clone_from(&step.shares);
        self.prices = Some(step.prices.clone());
        let capped = level >= highest * (1.0 - 1e-12);
        if capped && fixed {
            level = self.flood(&needs, level)?;
        }
        for row in (0..self.sure.len()).filter(|row| slope[*row] > 0.0) {
            self.sure[row] = (sure[row] + slope[row] * level).min(self.best[row]);
        }
        self.freeze(slope, &step.prices, capped);
        Ok(step)
    }

    /// Where own best speeds are what holds rows back, many are passed at once: the highest of their levels
    /// that fits with everybody below it at its best, found by halving.
    fn flood(&mut self, needs: &Affine<'_>, reached: f64) -> Result<f64, MarketError> {
        let rows = (0..self.sure.len()).filter(|row| needs.slope[*row] > 0.0);
        let mut caps: Vec<f64> = rows
            .map(|row| (self.best[row] - self.sure[row]) / needs.slope[row])
            .filter(|cap| *cap > reached)
            .collect();
        caps.sort_by(f64::total_cmp);
        caps.dedup();
        let (mut level, mut from, mut to) = (reached, 0, caps.len());
        let mut middle = caps.len().saturating_sub(1);
        while from < to {
            match self.fits(needs, caps[middle])? {
                Some(shares) => {
                    (level, from) = (caps[middle], middle + 1);
                    self.shares = shares;
                }
                None => to = middle,
            }
            middle = from + (to - from) / 2;
        }
        Ok(level)
    }

    /// Shares with which every row is at this level or at its best, if there are any.
    fn fits(&mut self, needs: &Affine<'_>, level: f64) -> Result<Option<Vec<f64>>, MarketError> {
        let need = |row: usize| (self.sure[row] + needs.slope[row] * level).min(self.best[row]);
        let need: Vec<f64> = (0..self.sure.len()).map(need).collect();
        let tried = self.market.max_min(&need, self.prices.as_deref(), &self.limits)?;
        self.passes += tried.passes;
        // A level of exactly 1 is reached where each row idles for what it does not need.
        Ok((tried.objective >= 1.0 - 1e-9).then_some(tried.shares))
    }

    fn freeze(&mut self, slope: &[f64], prices: &[f64], capped: bool) {
        let rising: Vec<usize> = (0..self.sure.len()).filter(|row| slope[*row] > 0.0).collect();
        let mut any = false;
        for row in &rising {
            let full = self.sure[*row] >= self.best[*row] * (1.0 - 1e-12);
            if full || (!capped && self.dearness(*row, prices) > FREE) {
                (self.frozen[*row], any) = (true, true);
            }
        }
        if !any {
            // Rounding hides who is held back; the dearest is.
            let dear = |row: &&usize| self.dearness(**row, prices);
            if let Some(row) = rising.iter().max_by(|a, b| dear(a).total_cmp(&dear(b))) {
                self.frozen[*row] = true;
            }
        }
    }

    /// What the row's speed would cost at the price of its next unit, over a mean budget.
    fn dearness(&self, row: usize, prices: &[f64]) -> f64 {
        let sure = self.sure[row] * (1.0 + 1e-9);
        answer(self.market, row, prices, &Want(sure)).slope
            * sure
            * self.market.count[row]
            * self.sure.len() as f64
    }
}

/// A certain speed.
struct Want(f64);

impl HullAsk for Want {
    fn stop(&self, _row: usize, _from: f64, to: f64, _slope: f64) -> Option<f64> {
        (self.0 <= to).then_some(self.0)
    }

    fn worth(&self, _row: usize, answer: &Answer) -> f64 {
        answer.speed
    }
}
