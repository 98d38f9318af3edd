//! What a job says of how it trains.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::ids::KindId;
use yard_core::training::{Fits, Training};

use super::check::{Problem, problem};

/// Steps at most: more are no longer told apart.
const STEPS_MAX: u64 = 1 << 50;

/// How a job trains whose speed the scheduler works out from its reports, and whose batch size it may choose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingRequest {
    /// Examples in one step, over all devices.
    pub batch: u32,
    /// Steps to do at that batch size.
    pub steps: u64,
    /// The most examples in one step that still train well; `batch` where nothing is said.
    pub max: Option<u32>,
    /// Whether the batch size is the scheduler's choice; where nothing is said, it is if `max` is above `batch`.
    pub adapt: Option<bool>,
    /// Whether gradients may be accumulated where memory does not hold the batch.
    pub accumulate: bool,
    /// The fewest examples on one device at once that are worth it.
    pub local_min: Option<u32>,
    /// The most examples on one device at once that its memory holds.
    pub local_max: Option<u32>,
}

impl TrainingRequest {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.steps == 0 || self.steps > STEPS_MAX {
            return problem("training", format!("training.steps must be above 0 and at most {STEPS_MAX}"));
        }
        if self.batch == 0 {
            return problem("training", "training.batch must be at least 1 example");
        }
        if self.max.is_some_and(|max| max < self.batch) {
            return problem("training", "training.max is less than training.batch; leave it out or raise it");
        }
        Ok(())
    }

    /// As the scheduler knows it, on any of these kinds.
    pub(crate) fn on(&self, kinds: &[KindId]) -> Training {
        let batch_max = self.max.unwrap_or(self.batch);
        let (least, most) = (self.local_min.unwrap_or(1), self.local_max.unwrap_or(batch_max));
        Training {
            batch: self.batch,
            batch_max,
            adapts: self.adapt.unwrap_or(batch_max > self.batch),
            accumulates: self.accumulate,
            fits: kinds.iter().map(|kind| Fits { kind: *kind, least, most }).collect(),
            profiled: Vec::new(),
            noise: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_follows_from_the_rest() {
        let plain = TrainingRequest { batch: 64, steps: 10, ..TrainingRequest::default() };
        let kinds = [KindId(1)];
        let training = plain.on(&kinds);
        assert!(!training.adapts && training.batch_max == 64);
        assert_eq!(training.fits, [Fits { kind: KindId(1), least: 1, most: 64 }]);
        let more = TrainingRequest { max: Some(512), local_max: Some(32), ..plain.clone() };
        assert!(more.on(&kinds).adapts);
        assert_eq!(more.on(&kinds).fits[0].most, 32);
        assert!(!TrainingRequest { adapt: Some(false), ..more }.on(&kinds).adapts);
        assert!(plain.check().is_ok());
        for wrong in [
            TrainingRequest { steps: 0, ..plain.clone() },
            TrainingRequest { batch: 0, ..plain.clone() },
            TrainingRequest { max: Some(63), ..plain },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
