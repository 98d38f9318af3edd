//! One of several options for each row, under a few capacities: maximise Σ value of the options taken, where a row
//! takes one option at most and the options taken of a kind of devices must fit its capacity (a multiple-choice
//! knapsack with as many coupling rows as there are kinds). This is the integer program of Sia's scheduler.
//!
//! Rows couple through the capacities alone, so it is solved in prices (`prices`): at given prices each row takes
//! what is worth most to it net of its cost, and any prices prove a bound, Σ price · capacity + Σ net worth. At the
//! best prices every selection loses to that bound exactly what its rows forgo and what its idle devices cost, and
//! that is what remains to be made small: by moving rows that forgo least until all fits and nothing that fits is
//! left (`fit`), and, where the distance is still above what is asked for, by dynamic programming over the few rows
//! that could close it (`close`). It proves the optimum where the work allowed suffices.
//!
//! Work: passes × options, then states; memory: the options and the states of one search. Numbers only.

mod close;
mod fit;
mod prices;
mod problem;

pub use problem::BuyerChoice;

use self::fit::Picked;
use self::problem::NONE;

/// When to stop, counted in work: the same problem gives the same answer anywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChoiceWork {
    /// Passes over all options in search of prices, at most.
    pub passes: u32,
    /// The distance from the bound that is good enough, as a part of the objective.
    pub gap: f64,
    /// States to look at, at most, to get there.
    pub states: u64,
}

impl Default for ChoiceWork {
    fn default() -> ChoiceWork {
        ChoiceWork { passes: 200, gap: 1e-3, states: 300_000 }
    }
}

/// What was chosen, with its proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The option that each row takes, counted from the row's first.
    pub chosen: Vec<Option<u32>>,
    /// What they are worth together.
    pub objective: f64,
    /// What no selection can beat.
    pub bound: f64,
    /// The price of one device of each kind at which the first bound was proved.
    pub prices: Vec<f64>,
    /// Passes over all options.
    pub passes: u32,
    /// States looked at.
    pub states: u64,
}

impl Selection {
    /// The proven distance from the optimum, relative to what was reached.
    pub fn gap(&self) -> f64 {
        let distance = self.bound - self.objective;
        if distance <= 0.0 { 0.0 } else { distance / self.objective.abs().max(f64::MIN_POSITIVE) }
    }
}

impl BuyerChoice {
    /// The best selection that the limits allow.
    pub fn solve(&self, limits: &ChoiceWork) -> Selection {
        let priced = prices::search(self, limits);
        let mut picked = Picked::at_prices(self, &priced);
        picked.fit();
        let closed = close::close(&mut picked, limits);
        let objective = self.pinned + picked.value();
        let chosen = |(row, option): (usize, &u32)| (*option != NONE).then(|| option - self.first(row));
        Selection {
            chosen: picked.at.iter().enumerate().map(chosen).collect(),
            objective,
            bound: (self.pinned + closed.bound).max(objective),
            passes: priced.passes,
            prices: priced.prices,
            states: closed.states,
        }
    }
}
