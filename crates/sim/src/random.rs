//! Seeded randomness that gives the same numbers on every machine and with every later version.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform among `0..below`; zero where `below` is.
    pub fn below(&mut self, below: u64) -> u64 {
        // The product's high half: no bias worth naming for the small ranges used here.
        ((self.0.next_u64() as u128 * below as u128) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        let mut again = Random::new(7);
        assert_eq!(drawn, (0..4).map(|_| again.below(1000)).collect::<Vec<_>>());
        assert_ne!(drawn, (0..4).map(|_| random.below(1000)).collect::<Vec<_>>());
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut random = Random::new(1);
        let mean = (0..20_000).map(|_| random.exponential(5.0)).sum::<f64>() / 20_000.0;
        assert!((mean - 5.0).abs() < 0.15, "{mean}");
    }
}
