//! Many seeds, each a world in which anything may break at any time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::world::{Tally, World};

/// What must have happened somewhere, or the fuzzer tests less than it says.
const SEEN: [&str; 24] = [
    "spawn",
    "hold",
    "stop",
    "stop at",
    "signal",
    "kill",
    "freeze",
    "thaw",
    "drop",
    "forget",
    "order go",
    "order stop at",
    "order discard",
    "agent crashed",
    "power lost",
    "server crashed",
    "agent lost",
    "Refused",
    "Lost",
    "Expired",
    "Paused",
    "job Finished",
    "job Crashed",
    "job Saved",
];

fn run(seed: u64, tally: &mut Tally) {
    let mut world = World::new(seed);
    let steps = 300 + seed % 700;
    (0..steps).for_each(|_| world.step(tally));
    assert!(world.settle(tally), "something never ends\n{}", world.describe());
}

/// Runs a seed, and once more with all that happens where it fails.
fn check(seed: u64, tally: &mut Tally) {
    let safely = |tally: &mut Tally| catch_unwind(AssertUnwindSafe(|| run(seed, tally))).is_ok();
    if !safely(tally) {
        safely(&mut Tally { tracing: true, ..Tally::default() });
        panic!("seed {seed} failed, as said above");
    }
}

#[test]
fn whatever_breaks_devices_have_one_lease_and_jobs_end() {
    let mut tally = Tally::default();
    (0..2500).for_each(|seed| check(seed, &mut tally));
    let missing: Vec<_> = SEEN.iter().filter(|what| !tally.counts.contains_key(**what)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?} in {tally:?}");
}
