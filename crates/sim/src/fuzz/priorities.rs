//! Priorities, in every fifth scenario: what goes before what, also against a policy that orders jobs in another way.

use yard_core::Time;
use yard_core::job::JobSpec;

use crate::random::Random;

/// With this number the seeds that tests name have no priorities, and stay the histories that once failed.
const STREAM: u64 = 0x9211_6cfb;

/// Lets jobs have priorities. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, jobs: &mut [(Time, JobSpec)]) {
    let mut random = Random::new(seed ^ STREAM);
    if !random.chance(0.2) {
        return;
    }
    let often = *random.pick(&[0.1, 0.5, 1.0]);
    for (_, spec) in jobs {
        let priority = *random.pick(&[-1, 1, 1, 2, 100, i32::MAX, i32::MIN]);
        spec.priority = if random.chance(often) { priority } else { 0 };
    }
}
