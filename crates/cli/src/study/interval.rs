//! Means with the interval in which the true mean lies with 95 % confidence, by Student's t ("The probable error of a
//! mean", Biometrika 1908): for independent runs of one distribution, however few.

use serde::Serialize;

/// Of what part of the samples one could draw the interval would hold the true mean.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (Abramowitz and Stegun, table 26.10).
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A mean of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Mean {
    pub(crate) mean: f64,
    /// The sample's standard deviation; none of a single run.
    pub(crate) sd: Option<f64>,
    /// Where the interval begins and ends; none of a single run.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Runs that have the figure.
    pub(crate) n: usize,
}

impl Mean {
    /// Of these values, if there are any.
    pub(crate) fn of(values: &[f64]) -> Option<Mean> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        if n < 2 {
            return (n == 1).then_some(Mean { mean, sd: None, low: None, high: None, n });
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let sd = (squares / (n - 1) as f64).sqrt();
        let half = t(n - 1) * sd / (n as f64).sqrt();
        Some(Mean { mean, sd: Some(sd), low: Some(mean - half), high: Some(mean + half), n })
    }

    /// Half the width of the interval.
    pub(crate) fn half(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

/// The 97.5 % quantile for so many degrees of freedom; beyond the table by its expansion around the normal one (26.7.5
/// in the same).
fn t(freedom: usize) -> f64 {
    if let Some(known) = T.get(freedom - 1) {
        return *known;
    }
    let (z, v) = (1.959_963_985_f64, freedom as f64);
    let first = (z.powi(3) + z) / (4.0 * v);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v);
    z + first + second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        // Worked by hand: mean 5, sum of squares 10, sd √(10/4), half 2.776·sd/√5.
        let mean = Mean::of(&[3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!((mean.mean, mean.n), (5.0, 5));
        assert!((mean.sd.unwrap() - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((mean.half().unwrap() - 2.776 * 0.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[2.0]), Some(Mean { mean: 2.0, sd: None, low: None, high: None, n: 1 }));
    }

    #[test]
    fn beyond_the_table_it_goes_on() {
        assert!(
            (t(31) - 2.0395).abs() < 1e-4 && (t(60) - 2.0003).abs() < 1e-4 && (t(120) - 1.9799).abs() < 1e-4
        );
        assert!((1..200).all(|freedom| t(freedom) > t(freedom + 1)), "it falls all the way");
    }
}
