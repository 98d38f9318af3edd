//! Draws from the distributions that the generators use.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A stream of random numbers.
pub(super) struct TraceDraw(ChaCha8Rng);

impl TraceDraw {
    /// Stream number `stream` of a seed.
    pub(super) fn new(seed: u64, stream: u64) -> TraceDraw {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        TraceDraw(rng)
    }

    /// Uniform in [0, 1), in steps of 2⁻⁵³.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [low, high).
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// One of `count` numbers from 0, all alike; `count` is small, so the bias is far below notice.
    pub(super) fn index(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    /// Exponential with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }
}

/// A draw among a few outcomes by their weights.
pub(super) struct Weighted(Vec<f64>);

impl Weighted {
    /// Outcomes 0, 1, … with these weights.
    pub(super) fn new(weights: impl IntoIterator<Item = f64>) -> Weighted {
        let mut sum = 0.0;
        Weighted(weights.into_iter().map(|weight| (sum += weight, sum).1).collect())
    }

    /// The number of an outcome.
    pub(super) fn draw(&self, draw: &mut TraceDraw) -> usize {
        let total = self.0.last().copied().unwrap_or_default();
        let at = draw.unit() * total;
        self.0.partition_point(|&sum| sum <= at).min(self.0.len().saturating_sub(1))
    }
}
