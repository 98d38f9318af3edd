//! Workflows: in every second scenario some jobs come after others, in chains, forks and joins.

use yard_core::Time;
use yard_core::ids::JobId;
use yard_core::job::JobSpec;

use crate::random::Random;

/// Most jobs that one comes after, named twice or not.
const AFTER_MAX: u64 = 4;

/// Lets jobs come after others. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, jobs: &mut [(Time, JobSpec)]) {
    let mut random = Random::new(seed ^ 0xaf7e4);
    if random.chance(0.5) {
        return;
    }
    // Near ones make chains, any make forks and joins.
    let (bound, near) = (*random.pick(&[0.1, 0.5, 0.9]), *random.pick(&[1, 3, u64::MAX]));
    for (at, (_, spec)) in (0..).zip(jobs) {
        if at > 0 && random.chance(bound) {
            let other = |random: &mut Random| JobId(at - 1 - random.below(near.min(at)));
            spec.after = (0..1 + random.below(AFTER_MAX)).map(|_| other(&mut random)).collect();
        }
    }
}
