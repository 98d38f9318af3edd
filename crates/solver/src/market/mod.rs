//! The market solver. Rows of buyers share kinds of devices; only the capacities couple them, so the problem
//! is solved in prices rather than in shares: at given prices every row answers by itself in a handful of
//! operations, a master problem with one row a kind mixes recorded answers into one that fits and names the
//! next prices, and any prices at all prove a bound. Work: passes × options; memory: the columns.
//!
//! All solvers return shares that fit exactly, what they reach, a bound that no allocation can beat, and
//! prices: the certificate holds for every outcome, also where the passes ran out.

mod fill;
mod finish;
mod hull;
mod level;
mod master;
mod nash;
mod pass;
mod problem;
mod ratio;
mod sample;
mod search;
mod standing;
mod sum;

pub use fill::Weights;
pub use finish::Finish;
pub use problem::{Market, MarketError};
pub use search::MarketWork;
pub use standing::Standing;

use level::{Affine, Hints};
pub(crate) use master::MasterProblem;

/// Shares with their proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Time by option, for all buyers of a row together.
    pub shares: Vec<f64>,
    /// What they reach.
    pub objective: f64,
    /// What no shares can beat.
    pub bound: f64,
    /// The price of one device of each kind for all of the time.
    pub prices: Vec<f64>,
    /// Passes over all rows that it took.
    pub passes: u32,
}

impl Solution {
    pub(crate) fn empty(market: &Market) -> Solution {
        let (shares, prices) = (vec![0.0; market.options()], vec![0.0; market.kinds()]);
        Solution { shares, objective: 0.0, bound: 0.0, prices, passes: 0 }
    }

    /// The proven distance from the optimum, relative to what was reached.
    pub fn gap(&self) -> f64 {
        let distance = (self.bound - self.objective).abs();
        if distance == 0.0 { 0.0 } else { distance / self.objective.abs().max(f64::MIN_POSITIVE) }
    }
}

impl Market {
    /// Max-min fairness: the highest z such that each buyer of row j has at least the speed `weight_j · z`.
    /// A weight of zero asks for nothing.
    pub fn max_min(
        &self,
        weight: &[f64],
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        self.check_column("weight", weight)?;
        let needs = Affine { base: None, slope: weight };
        Ok(level::highest(self, &needs, Hints { prices, start: None }, limits))
    }

    /// Water filling to the end: the lexicographic max-min. Objective, bound and prices are those of its first
    /// level, which is max-min fairness.
    pub fn water_fill(
        &self,
        weights: &Weights<'_>,
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        fill::fill(self, weights, None, prices, limits)
    }

    /// The largest Σ value · speed of all shares with which each buyer of row j keeps `floor_j`, or what it has
    /// in `start` where that is less.
    pub fn most_from(
        &self,
        value: &[f64],
        floor: &[f64],
        start: Vec<f64>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        self.check_column("value", value)?;
        let floor = self.kept(floor, &start)?;
        Ok(sum::most(self, sum::Sum { value, floor: Some(&floor), fee: None }, Some(start), None, limits))
    }

    /// Water filling by `weight` on top of what each buyer is sure of: `floor_j`, or what it has in `start` where
    /// that is less.
    pub fn fill_from(
        &self,
        weight: &[f64],
        floor: &[f64],
        start: Vec<f64>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        let sure = self.kept(floor, &start)?;
        fill::fill(self, &Weights::Fixed(weight), Some((sure, start)), None, limits)
    }

    /// Floors, lowered to what `shares` reach.
    fn kept(&self, floor: &[f64], shares: &[f64]) -> Result<Vec<f64>, MarketError> {
        self.check_column("floor", floor)?;
        Ok((0..self.rows()).map(|row| floor[row].min(self.reached(row, shares))).collect())
    }

    /// The largest Σ value · speed, over all buyers.
    pub fn most(
        &self,
        value: &[f64],
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        self.check_column("value", value)?;
        Ok(sum::most(self, sum::Sum { value, floor: None, fee: None }, None, prices, limits))
    }

    /// The largest Σ value · speed such that each buyer of row j has at least `floor_j`. Where the floors
    /// cannot all be kept: `Ok(Err(level))`, the part of all floors that could be.
    pub fn most_above(
        &self,
        value: &[f64],
        floor: &[f64],
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Result<Solution, f64>, MarketError> {
        self.check_column("value", value)?;
        let kept = self.keep(floor, prices, limits)?;
        kept.map_or_else(|level| Ok(Err(level)), |start| self.most_from(value, floor, start, limits).map(Ok))
    }

    /// The largest Σ value · speed over Σ dollars · devices, such that each buyer of row j has at least
    /// `floor_j`. Where the floors cannot all be kept: `Ok(Err(level))`, the part of them that could be.
    pub fn best_ratio(
        &self,
        value: &[f64],
        dollars: &[f64],
        floor: &[f64],
        limits: &MarketWork,
    ) -> Result<Result<Solution, f64>, MarketError> {
        self.check_column("value", value)?;
        let start = match self.keep(floor, None, limits)? {
            Ok(start) => start,
            Err(level) => return Ok(Err(level)),
        };
        ratio::best(self, value, dollars, floor, start, limits).map(Ok)
    }

    /// Shares that keep the floors, or the part of them that could be kept.
    fn keep(
        &self,
        floor: &[f64],
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Result<Vec<f64>, f64>, MarketError> {
        self.check_column("floor", floor)?;
        for (row, needs) in floor.iter().enumerate() {
            let (needs, most) = (*needs, self.best(row));
            if needs > most {
                return Err(MarketError::Floor { row, needs, most });
            }
        }
        let kept = self.max_min(floor, prices, limits)?;
        let asks = floor.iter().any(|floor| *floor > 0.0);
        Ok(if asks && kept.objective < 1.0 { Err(kept.objective) } else { Ok(kept.shares) })
    }

    /// Nash social welfare: the largest Σ weight · log speed. Every row must have an option.
    pub fn nash(
        &self,
        weight: &[f64],
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        self.check_column("weight", weight)?;
        for (row, weight) in weight.iter().enumerate() {
            problem::positive("weight", row, *weight)?;
            problem::positive("best speed of row", row, self.best(row))?;
        }
        let budget = weight.iter().zip(&self.count).map(|(weight, count)| weight * count).sum();
        Ok(nash::most(self, nash::Nash { weight, budget }, prices, limits))
    }

    /// Finish-time fairness: the smallest largest (elapsed + steps / speed) / alone. Every row must have an
    /// option. Less is better: the bound lies below the objective.
    pub fn finish_time(
        &self,
        finish: &Finish<'_>,
        prices: Option<&[f64]>,
        limits: &MarketWork,
    ) -> Result<Solution, MarketError> {
        for row in 0..self.rows() {
            problem::positive("best speed of row", row, self.best(row))?;
        }
        finish::fairest(self, finish, prices, limits)
    }
}
