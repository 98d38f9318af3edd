//! What users do to their jobs: they hold them, release all they held, have jobs start again, and change what they ask
//! for. The last word on each job that is held is that it is released, so that every job can end.

use yard_core::Time;
use yard_core::ids::JobId;
use yard_core::job::{JobSpec, Length};
use yard_core::message::{Edit, Input};

use crate::random::Random;

/// When all that is held is released at the latest.
const RELEASED_BY: Time = Time(5_000_000_000);

/// What happens to jobs. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, jobs: &[(Time, JobSpec)]) -> Vec<(Time, Input)> {
    let mut random = Random::new(seed ^ 0x0401_d1e5);
    let mut script = Vec::new();
    if random.chance(0.5) {
        return script;
    }
    for _ in 0..random.below(8) {
        // Also jobs that are over, or do not exist.
        let job = JobId(random.below(jobs.len() as u64 + 2));
        match random.below(4) {
            0 => script.push((instant(&mut random), Input::Requeue(job))),
            1 => script.extend(edit(&mut random, job, jobs)),
            _ => hold(&mut random, job, &mut script),
        }
    }
    script
}

fn instant(random: &mut Random) -> Time {
    Time::from_secs((random.unit() * 4_000.0).floor())
}

/// A hold, often a release soon after, and one that comes last.
fn hold(random: &mut Random, job: JobId, script: &mut Vec<(Time, Input)>) {
    let from = instant(random);
    script.push((from, Input::Hold(job)));
    if random.chance(0.7) {
        let soon = from.secs() + (random.unit() * 500.0).floor();
        script.push((Time::from_secs(soon), Input::Release(job)));
    }
    script.push((RELEASED_BY, Input::Release(job)));
}

fn edit(random: &mut Random, job: JobId, jobs: &[(Time, JobSpec)]) -> Option<(Time, Input)> {
    let (_, spec) = jobs.get(job.index())?;
    let edit = Edit {
        job,
        name: spec.name.clone(),
        weight: 0.5 + random.unit(),
        priority: spec.priority,
        deadline: random.chance(0.5).then(|| instant(random)),
        steps: random.chance(0.5).then(|| (1.0 + (random.unit() * 1_500.0).floor(), Length::Stated)),
    };
    Some((instant(random), Input::Edit(Box::new(edit))))
}
