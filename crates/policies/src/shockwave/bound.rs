//! What no plan of a window is worth more than. A price on devices, μ for one round of one, and shares ν_j of the cost k of
//! the longest time left make jobs independent: for any μ, ν ≥ 0 with Σ ν ≤ k,
//!
//! worth ≤ μ · room + Σ_j max_n (utility_j(n) / (J·R) − μ · devices_j · n − ν_j · late_j(n)).
//!
//! Each term is concave in n. At a price, ν is what makes each job take the rounds that a level of lateness asks for, at
//! the level where these sum up to k; the best price is found by thirds of its magnitude, the bound being convex in it.
//! It holds for the paper's program too, which also has each round fit by itself. Cost: O(J · log R) for each of some
//! 80 × 40 trials.

use super::window::{PlanWindow, WindowRow};

/// Halvings in search of a level, and thirds in search of a price.
const TRIALS: u32 = 40;

/// The magnitude, as a logarithm, of the least price that is tried against the most that any could be.
const LEAST: f64 = -40.0;

/// The rows under a price.
struct PricedWindow<'a> {
    rows: &'a [WindowRow],
    window: &'a PlanWindow,
    scale: f64,
    price: f64,
}

pub(super) fn bound(rows: &[WindowRow], window: &PlanWindow) -> f64 {
    let scale = 1.0 / (rows.len().max(1) as f64 * f64::from(window.rounds));
    let at = |price: f64| PricedWindow { rows, window, scale, price }.bound();
    let gain = |row: &WindowRow| scale * row.gain(row.floor, window);
    let worth_a_round = rows.iter().map(gain).fold(0.0, f64::max);
    let most = worth_a_round + window.k * window.seconds;
    // By magnitude: weights make some rounds worth millions of times what others are.
    let price = |magnitude: f64| most * libm::exp(magnitude);
    let (mut low, mut high) = (LEAST, 0.0);
    for _ in 0..TRIALS {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if at(price(left)) <= at(price(right)) { high = right } else { low = left }
    }
    at(price(low)).min(at(price(high))).min(at(0.0))
}

impl PricedWindow<'_> {
    /// The least of the sum over the shares of k, or near it.
    fn bound(&self) -> f64 {
        let late = |row: &WindowRow| row.late(self.window.most(row.left), self.window);
        // Nobody can be sooner than its last round in the window.
        let mut low = self.rows.iter().map(late).fold(0.0, f64::max);
        let mut high = self.rows.iter().map(|row| row.left).fold(low, f64::max);
        let k = self.window.k;
        if self.shares(low).iter().sum::<f64>() <= k {
            return self.at(&self.with_rest(self.shares(low), low));
        }
        for _ in 0..TRIALS {
            let middle = (low + high) / 2.0;
            if self.shares(middle).iter().sum::<f64>() <= k { high = middle } else { low = middle }
        }
        self.at(&self.mixed(&self.shares(high), &self.shares(low)))
    }

    /// What each job's lateness must cost so that it takes the rounds of this level.
    fn shares(&self, level: f64) -> Vec<f64> {
        let share = |row: &WindowRow| {
            let wanted = ((row.left - level) / self.window.seconds - 1e-9).ceil().max(0.0);
            let rounds = wanted.min(f64::from(self.window.most(row.left))) as u32;
            if rounds <= row.floor {
                return 0.0;
            }
            let saved = row.late(rounds - 1, self.window) - row.late(rounds, self.window);
            (-self.marginal(row, rounds - 1, 0.0)).max(0.0) / saved.max(f64::MIN_POSITIVE)
        };
        self.rows.iter().map(share).collect()
    }

    /// What is left of k costs nothing more where it is on who cannot be sooner.
    fn with_rest(&self, mut shares: Vec<f64>, level: f64) -> Vec<f64> {
        let rest = self.window.k - shares.iter().sum::<f64>();
        let at_level = |row: &WindowRow| row.late(self.window.most(row.left), self.window) >= level;
        if let Some(at) = self.rows.iter().position(at_level) {
            shares[at] += rest.max(0.0);
        }
        shares
    }

    /// Between shares that sum up to less than k and to more: just k.
    fn mixed(&self, less: &[f64], more: &[f64]) -> Vec<f64> {
        let (low, high) = (less.iter().sum::<f64>(), more.iter().sum::<f64>());
        let part = if high > low { ((self.window.k - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        let all: Vec<f64> = less.iter().zip(more).map(|(less, more)| less + part * (more - less)).collect();
        // Rounding must not make it more than k: the bound would not hold.
        let (sum, k) = (all.iter().sum::<f64>(), self.window.k);
        if sum > k { all.iter().map(|share| share * (k / sum)).collect() } else { all }
    }

    fn at(&self, shares: &[f64]) -> f64 {
        let rows: f64 = self.rows.iter().zip(shares).map(|(row, share)| self.best(row, *share)).sum();
        self.price * self.window.room() as f64 + rows
    }

    /// The most that a job is worth net of what it costs: rounds are added while each gains.
    fn best(&self, row: &WindowRow, share: f64) -> f64 {
        let (mut low, mut high) = (row.floor, self.window.most(row.left).max(row.floor));
        while low < high {
            let middle = (low + high) / 2;
            if self.marginal(row, middle, share) > 0.0 { low = middle + 1 } else { high = middle }
        }
        let paid = self.price * f64::from(row.devices) * f64::from(low);
        self.scale * row.utility(low, self.window) - paid - share * row.late(low, self.window)
    }

    /// What one round more is worth, net of its price.
    fn marginal(&self, row: &WindowRow, rounds: u32, share: f64) -> f64 {
        let sooner = row.late(rounds, self.window) - row.late(rounds + 1, self.window);
        let gain = self.scale * (row.utility(rounds + 1, self.window) - row.utility(rounds, self.window));
        gain - self.price * f64::from(row.devices) + share * sooner
    }
}
