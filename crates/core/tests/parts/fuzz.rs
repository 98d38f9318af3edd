//! Many seeds, each a world in which anything may break at any time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::world::{Tally, World};

/// What must have happened somewhere, or the fuzzer tests less than it says.
const SEEN: [&str; 33] = [
    "spawn",
    "hold",
    "stop",
    "stop at",
    "signal",
    "kill",
    "freeze",
    "freeze deeply",
    "frozen",
    "freeze failed",
    "thaw",
    "thaw deeply",
    "thawed",
    "thaw failed",
    "died in the driver's hands",
    "stuck",
    "not stuck any more",
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

/// A world in which nothing breaks: all ranks of a job stop before the same step.
fn run_tame(seed: u64, tally: &mut Tally) {
    let mut world = World::tame(seed);
    (0..600).for_each(|_| world.step(tally));
    assert!(world.settle(tally), "something never ends\n{}", world.describe());
    let stopped = world.stopped();
    let torn = stopped.iter().find(|(_, steps)| steps.len() > 1);
    assert!(torn.is_none(), "ranks stopped before different steps: {torn:?}");
}

/// Runs a seed, and once more with all that happens where it fails.
fn check(run: fn(u64, &mut Tally), seed: u64, tally: &mut Tally) {
    let safely = |tally: &mut Tally| catch_unwind(AssertUnwindSafe(|| run(seed, tally))).is_ok();
    if !safely(tally) {
        let mut again = Tally { tracing: true, ..Tally::default() };
        safely(&mut again);
        panic!("seed {seed} failed, as said above, after this:\n{}", again.log.join("\n"));
    }
}

#[test]
fn whatever_breaks_devices_have_one_lease_and_jobs_end() {
    let mut tally = Tally::default();
    (0..2500).for_each(|seed| check(run, seed, &mut tally));
    let missing: Vec<_> = SEEN.iter().filter(|what| !tally.counts.contains_key(**what)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?} in {tally:?}");
}

#[test]
fn where_nothing_breaks_all_ranks_of_a_job_stop_before_the_same_step() {
    let mut tally = Tally::default();
    (0..500).for_each(|seed| check(run_tame, seed, &mut tally));
    let gangs = tally.counts.get("order stop at").copied().unwrap_or(0);
    assert!(gangs > 100, "only {gangs} gangs over several agents were stopped");
}
