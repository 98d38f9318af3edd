//! Jobs whose batch size changes by itself as they train: which sizes there are, and how long a step takes in each. The
//! job reports the size it is at; policies that look ahead go by what they have seen.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::training::Regime;

use super::JobRequest;
use super::check::{Problem, problem};

/// Regimes that one job may name.
const REGIMES_MAX: usize = 16;

/// The longest step beside the shortest.
const RATIO_MAX: f64 = 1_000.0;

/// One way in which a job makes its steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegimeRequest {
    /// Examples in one step, over all devices.
    pub batch: u32,
    /// Seconds of a step, beside those of the other regimes.
    pub step_s: f64,
}

pub(super) fn check(request: &JobRequest) -> Result<(), Problem> {
    let regimes = &request.regimes;
    if regimes.is_empty() {
        return Ok(());
    }
    if !(2..=REGIMES_MAX).contains(&regimes.len()) {
        return problem("regimes", format!("a job has from 2 to {REGIMES_MAX} regimes, in order"));
    }
    let shortest = regimes.iter().map(|regime| regime.step_s).fold(f64::INFINITY, f64::min);
    let sound = |regime: &RegimeRequest| {
        let step = regime.step_s > 0.0 && regime.step_s <= shortest * RATIO_MAX && regime.step_s.is_finite();
        step && regime.batch > 0
    };
    if !regimes.iter().all(sound) {
        return problem(
            "regimes",
            "each is a batch and the seconds of a step, above 0, the longest at most 1000 times the shortest",
        );
    }
    if (1..regimes.len()).any(|at| regimes[..at].iter().any(|other| other.batch == regimes[at].batch)) {
        return problem("regimes", "two have the same batch; each needs its own, by which it is recognised");
    }
    if request.training.is_some() {
        return problem(
            "regimes",
            "training already tells the scheduler the speeds; leave out one of the two",
        );
    }
    Ok(())
}

/// The regimes as the engine takes them.
pub(crate) fn regimes(request: &JobRequest) -> Option<Arc<[Regime]>> {
    let regime = |one: &RegimeRequest| Regime { batch: one.batch, seconds: one.step_s };
    (!request.regimes.is_empty()).then(|| request.regimes.iter().map(regime).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TrainingRequest;

    fn wrong(change: impl Fn(&mut JobRequest)) -> String {
        let regime = |batch, step_s| RegimeRequest { batch, step_s };
        let mut request =
            JobRequest { regimes: vec![regime(32, 0.1), regime(64, 0.17)], ..JobRequest::default() };
        change(&mut request);
        check(&request).map_or_else(|wrong| wrong.to_string(), |()| String::new())
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(wrong(|_| ()), "");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(wrong(|job| job.regimes[1].step_s = bad).contains("above 0"), "{bad}");
        }
        assert!(wrong(|job| job.regimes[1].batch = 0).contains("above 0"));
        assert!(wrong(|job| job.regimes[1].batch = 32).contains("same batch"));
        assert!(wrong(|job| job.regimes.truncate(1)).contains("from 2 to 16"));
        assert!(wrong(|job| job.regimes = vec![job.regimes[0]; 100_000]).contains("from 2 to 16"));
        assert!(wrong(|job| job.training = Some(TrainingRequest::default())).contains("training"));
    }
}
