//! What devices cost over time, where the policy solves a market, and how near the optimum its plans were.

use yard_core::Time;
use yard_core::allocation::Certificate;

use crate::thin::Thin;

/// What one plan said.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSample {
    /// When it came into force.
    pub time: Time,
    /// The price of each kind, by its number.
    pub prices: Vec<f64>,
    /// What it reached, in the policy's measure.
    pub objective: f64,
    /// Its proven distance from the optimum.
    pub gap: f64,
}

/// Prices over time.
#[derive(Debug, Default)]
pub struct Prices {
    /// The plans with a certificate; some of them where there are many.
    pub samples: Thin<PlanSample>,
    /// The largest gap of all plans.
    pub gap_max: Option<f64>,
    in_force: Vec<f64>,
    since: Time,
    sums: Vec<f64>,
    seconds: f64,
}

impl Prices {
    /// A plan is in force from now on.
    pub(crate) fn planned(&mut self, now: Time, proof: &Certificate, keep: bool) {
        self.close(now);
        self.gap_max = Some(self.gap_max.unwrap_or(0.0).max(proof.gap()));
        self.in_force.clone_from(&proof.prices);
        if keep {
            let (prices, objective, gap) = (proof.prices.clone(), proof.objective, proof.gap());
            self.samples.push(PlanSample { time: now, prices, objective, gap });
        }
    }

    /// Counts the prices in force up to now.
    pub(crate) fn close(&mut self, now: Time) {
        let seconds = (now - std::mem::replace(&mut self.since, now)).secs();
        if self.in_force.is_empty() {
            return;
        }
        self.sums.resize(self.sums.len().max(self.in_force.len()), 0.0);
        self.seconds += seconds;
        self.sums.iter_mut().zip(&self.in_force).for_each(|(sum, price)| *sum += price * seconds);
    }

    /// The mean price of each kind over the time in which there were prices.
    pub fn means(&self) -> Option<Vec<f64>> {
        (self.seconds > 0.0).then(|| self.sums.iter().map(|sum| sum / self.seconds).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_averaged_over_the_time_they_were_in_force() {
        let mut prices = Prices::default();
        let proof = |price: f64, bound: f64| Certificate {
            objective: 1.0,
            bound,
            prices: vec![price, 0.5],
            unmet: vec![],
        };
        prices.planned(Time::from_secs(10.0), &proof(1.0, 1.5), true);
        prices.planned(Time::from_secs(20.0), &proof(4.0, 1.25), true);
        prices.close(Time::from_secs(50.0));
        assert_eq!(prices.means(), Some(vec![(10.0 + 120.0) / 40.0, 0.5]));
        assert_eq!((prices.gap_max, prices.samples.kept().len()), (Some(0.5), 2));
        assert_eq!(Prices::default().means(), None);
    }
}
