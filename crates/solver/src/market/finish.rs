//! Finish-time fairness: minimise the largest ρ_j = (elapsed_j + steps_j / speed_j) / alone_j. To reach ρ a
//! row needs the speed steps / (ρ · alone − elapsed), which is convex in the level −ρ: the same market, with
//! one more scalar in it.

use super::level::{LevelGoal, LevelNeeds, cap, first_prices, open};
use super::problem::{Market, MarketError};
use super::search::{MarketStart, MarketWork, Search};
use super::{Solution, level, pass};

/// Where each row stands.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    /// Steps left, above 0.
    pub steps: &'a [f64],
    /// Seconds that the whole job would take on its fair share alone, above 0.
    pub alone: &'a [f64],
    /// Seconds since it came.
    pub elapsed: &'a [f64],
}

impl LevelNeeds for Finish<'_> {
    fn at(&self, row: usize, level: f64) -> f64 {
        self.steps[row] / self.left(row, level)
    }

    fn rate(&self, row: usize, level: f64) -> f64 {
        let left = self.left(row, level);
        self.steps[row] * self.alone[row] / (left * left)
    }

    fn cap(&self, row: usize, best: f64) -> f64 {
        self.level(row, best)
    }

    fn level(&self, row: usize, speed: f64) -> f64 {
        -(self.elapsed[row] + self.steps[row] / speed) / self.alone[row]
    }
}

impl Finish<'_> {
    /// The speed with which a row ends at ρ.
    pub fn speed(&self, row: usize, rho: f64) -> f64 {
        self.at(row, -rho)
    }

    /// Seconds in which the rest must be done to end at ρ = −level.
    fn left(&self, row: usize, level: f64) -> f64 {
        -level * self.alone[row] - self.elapsed[row]
    }

    fn check(&self, market: &Market) -> Result<(), MarketError> {
        for (what, column) in [("steps", self.steps), ("alone", self.alone)] {
            market.check_column(what, column)?;
            for (at, value) in column.iter().enumerate() {
                super::problem::positive(what, at, *value)?;
            }
        }
        market.check_column("elapsed", self.elapsed)
    }
}

/// Finds the smallest largest ρ; objective and bound are ρ itself, the bound below it.
pub(crate) fn fairest(
    market: &Market,
    finish: &Finish<'_>,
    prices: Option<&[f64]>,
    limits: &MarketWork,
) -> Result<Solution, MarketError> {
    finish.check(market)?;
    let cap = cap(market, finish);
    if !cap.is_finite() {
        return Ok(Solution::empty(market));
    }
    let goal = LevelGoal { needs: finish };
    let seeds = first_prices(market, finish, prices, limits);
    let (start, trials) = slack_start(market, finish, &seeds[0], cap);
    let mut search = Search::new(market, &goal, start, cap);
    open(&mut search, &seeds, cap);
    search.run(limits);
    let mut solution = level::finish(market, finish, &search);
    solution.passes += trials;
    solution.objective = -solution.objective;
    solution.bound = -solution.bound;
    Ok(solution)
}

/// An answer that fits: lets everybody finish later and later until it does.
fn slack_start(market: &Market, finish: &Finish<'_>, spend: &[f64], cap: f64) -> (MarketStart, u32) {
    let prices: Vec<f64> = spend.iter().zip(&market.capacity).map(|(spend, n)| spend / n).collect();
    let goal = LevelGoal { needs: finish };
    let (mut level, mut trials) = (cap, 0);
    loop {
        trials += 1;
        let ask = super::search::Goal::ask(&goal, level);
        let tally = pass::pass(market, &prices, &ask);
        if tally.load.iter().all(|load| *load <= 1.0) {
            let mut shares = vec![0.0; market.options()];
            pass::take(market, &[(prices, ask, 1.0)], &mut shares);
            return (MarketStart { load: tally.load, shares: Some(shares), worth: level }, trials);
        }
        level *= 2.0;
    }
}
