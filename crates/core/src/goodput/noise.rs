//! How much of a step counts. Where the gradient is noisy, a batch twice as large teaches nearly twice as much; where
//! it is not, hardly more (McCandlish et al., "An Empirical Model of Large-Batch Training", 2018):
//!
//! `gain(S) = (var + sqr) / (var / S + sqr)`, `efficiency = gain(S) / S`, at S times the batch size of submission.

use crate::training::Noise;

impl Noise {
    /// Of a job whose noise is not known: a larger batch is then taken to teach no more than a small one.
    pub const NONE: Noise = Noise { sqr: 1.0, var: 0.0 };

    /// How many steps of the submitted batch size one step is worth that is `scale` times as large; from 1 to `scale`.
    pub fn gain(&self, scale: f64) -> f64 {
        (self.var + self.sqr) / (self.var / scale + self.sqr)
    }

    /// The part of the examples that counts, above 0 and at most 1.
    pub fn efficiency(&self, scale: f64) -> f64 {
        self.gain(scale) / scale
    }

    /// Whether it can be worked with, as it may come from outside.
    pub fn is_sound(&self) -> bool {
        let sum = self.sqr + self.var;
        self.sqr >= 0.0 && self.var >= 0.0 && sum > 0.0 && sum.is_finite()
    }

    /// How far two are apart, as far as efficiency can show it: at most that part of it.
    pub fn apart(&self, other: &Noise) -> f64 {
        // The efficiency is 1 / (1 - part + part scale): the more the scale, the more the two parts show.
        let part = |noise: &Noise| noise.sqr / (noise.var + noise.sqr);
        let (one, two) = (part(self), part(other));
        if one == two { 0.0 } else { one.max(two) / one.min(two) - 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_lies_between_one_and_the_scale() {
        for noise in
            [Noise { sqr: 1.0, var: 0.0 }, Noise { sqr: 0.0, var: 1.0 }, Noise { sqr: 0.3, var: 5.0 }]
        {
            for scale in [1.0, 2.0, 64.0] {
                let gain = noise.gain(scale);
                assert!((1.0..=scale).contains(&gain), "{noise:?} at {scale}: {gain}");
            }
        }
        assert_eq!(Noise { sqr: 0.0, var: 1.0 }.gain(8.0), 8.0, "all noise: every example counts");
        assert_eq!(Noise::NONE.gain(8.0), 1.0, "no noise: one is as good as many");
        // φ = var M0 / sqr, and (φ + M0) / (φ + M).
        let (noise, batch) = (Noise { sqr: 2.0, var: 6.0 }, 32.0);
        let phi = noise.var * batch / noise.sqr;
        assert!((noise.efficiency(4.0) - (phi + batch) / (phi + 4.0 * batch)).abs() < 1e-15);
    }

    #[test]
    fn apart_bounds_what_efficiency_shows() {
        let noises = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 1.1), (0.2, 7.0), (0.2, 7.3), (3.0, 0.01)];
        let noises = noises.map(|(sqr, var)| Noise { sqr, var });
        for (one, two) in noises.iter().flat_map(|one| noises.iter().map(move |two| (one, two))) {
            for scale in [1.0, 1.5, 8.0, 1000.0] {
                let ratio = one.efficiency(scale) / two.efficiency(scale);
                assert!(ratio <= (1.0 + one.apart(two)) * (1.0 + 1e-12), "{one:?} {two:?} {scale}: {ratio}");
            }
        }
        assert_eq!(noises[4].apart(&noises[4]), 0.0);
    }
}
