//! Deadlines that are promised, in every third scenario. In half of those nothing happens that nobody could plan for: no
//! faults, no cancellations, true beliefs. There every promise must be kept, whatever the policy does.

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{JobSpec, JobState, Late, Reward, Sharing};

use super::Scenario;
use crate::faults::Faults;
use crate::random::Random;
use crate::record::{JobRecord, Record};

/// Whether deadlines are promised, and whether nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FuzzPromises {
    pub(super) on: bool,
    /// Then every promise must be kept.
    pub(super) calm: bool,
}

/// In which scenarios deadlines are promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In every third, half of those calm.
    Some,
    /// In all, and nothing goes wrong.
    Calm,
    /// In all, whatever happens.
    Rough,
}

/// Lets jobs have deadlines, soft ones among them. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, scenario: &mut Scenario, kind: Kind) {
    let mut random = Random::new(seed ^ 0x0dea_d11e);
    if !random.chance(0.33) && kind == Kind::Some {
        return;
    }
    let calm = random.chance(0.5);
    let calm = kind == Kind::Calm || (calm && kind == Kind::Some);
    scenario.promises = FuzzPromises { on: true, calm };
    if calm {
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
        for (_, spec) in &mut self.jobs {
            spec.training = None;
            // What neighbours do to each other is then as it is believed to be.
            let said = spec.sharing.as_deref().map(|said| Sharing { usage: None, ..said.clone() });
            spec.sharing = said.map(Arc::new);
        }
        self.upsets.calm_down();
        self.faults = Faults::default();
    }

    /// What became of a promise as it may not: where nothing went wrong, that it was broken; else, that it was and
    /// nobody said before that it might be.
    pub(super) fn broken(&self, record: &Record) -> Option<String> {
        let late = |job: &JobRecord| job.promise.is_some_and(|by| job.end.is_none_or(|end| end > by));
        let unsaid = |job: &JobRecord| job.state == JobState::Succeeded && job.at_risk.is_none();
        let wrong = |job: &JobRecord| late(job) && (self.promises.calm || unsaid(job));
        let (id, job) = record.jobs.iter().enumerate().find(|(_, job)| wrong(job))?;
        let end = job.end.map_or("never".into(), |end| end.to_string());
        let by = job.promise.unwrap_or_default();
        let said = if unsaid(job) { "; nobody said that it was at risk" } else { "" };
        Some(format!("job {id} was promised by {by} and ended at {end}{said}"))
    }
}
