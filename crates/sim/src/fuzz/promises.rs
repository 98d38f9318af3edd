//! Deadlines that are promised, in every third scenario. In half of those nothing happens that nobody could plan for: no
//! faults, no cancellations, true beliefs. There every promise must be kept, whatever the policy does.

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{JobSpec, Late, Reward};

use super::Scenario;
use crate::faults::Faults;
use crate::random::Random;
use crate::record::{JobRecord, Record};

/// Whether deadlines are promised, and whether nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promises {
    pub(super) on: bool,
    pub(super) calm: bool,
    /// Whether every promise must be kept.
    pub(super) strict: bool,
}

/// Lets jobs have deadlines, soft ones among them. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, scenario: &mut Scenario, always: bool) {
    let mut random = Random::new(seed ^ 0x0dea_d11e);
    if !random.chance(0.33) && !always {
        return;
    }
    scenario.promises = Promises { on: true, calm: random.chance(0.5) || always, strict: always };
    if scenario.promises.calm {
        scenario.calm_down();
    }
    let often = *random.pick(&[0.3, 0.7, 1.0]);
    let loose = *random.pick(&[1.5, 3.0, 10.0]);
    for (submitted, spec) in &mut scenario.jobs {
        set_deadline(&mut random, *submitted, spec, (often, loose));
    }
}

fn set_deadline(random: &mut Random, submitted: Time, spec: &mut JobSpec, (often, loose): (f64, f64)) {
    let fastest = spec.speeds.iter().copied().fold(0.0, f64::max);
    let seconds = 60.0 + spec.steps / fastest * (1.0 + random.unit() * loose);
    let from = spec.not_before.unwrap_or(submitted).max(submitted);
    let by = |factor: f64| Time::from_secs(from.secs() + seconds * factor);
    spec.deadline = random.chance(often).then(|| by(1.0));
    spec.late = *random.pick(&[Late::Try, Late::Refuse]);
    let rewards: Arc<[Reward]> =
        [(1.0, 10.0), (1.5, 5.0), (3.0, 2.0)].map(|(factor, worth)| Reward { by: by(factor), worth }).into();
    spec.rewards = spec.deadline.filter(|_| random.chance(0.3)).map(|_| rewards);
}

impl Scenario {
    /// Only what can be planned for.
    fn calm_down(&mut self) {
        self.script.clear();
        self.jobs.iter_mut().for_each(|(_, spec)| spec.training = None);
        self.upsets.calm_down();
        self.faults = Faults::default();
    }

    /// The job whose promise was broken, if there is one where nothing went wrong.
    pub(super) fn broken(&self, record: &Record) -> Option<String> {
        let late =
            |(_, job): &(usize, &JobRecord)| job.promise.is_some_and(|by| job.end.is_none_or(|end| end > by));
        let (id, job) = record.jobs.iter().enumerate().filter(|_| self.promises.strict).find(late)?;
        let end = job.end.map_or("never".into(), |end| end.to_string());
        Some(format!("job {id} was promised by {} and ended at {end}", job.promise.unwrap_or_default()))
    }
}
