//! The first seeds of `yard fuzz`, with every test run. A failure names its seed and how to repeat it
//! (`make fuzz SEED=n`, or `yard fuzz --seed n --count 1` on any build); the same seed fails the same way.

mod common;

use common::Dir;

#[test]
fn invariants_hold_on_the_first_seeds() {
    let answer = Dir::new().yard("fuzz --seed 0 --count 400");
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(answer.out.starts_with("400 seeds from 0: "), "{}", answer.out);
    assert!(answer.out.ends_with("; every invariant held\n"), "{}", answer.out);
}

/// Jobs that are in several groups, some of which hold devices while their members change.
#[test]
fn invariants_hold_on_seeds_that_once_broke_them() {
    for seed in [351, 498, 1071, 2091, 4083, 6204] {
        Dir::new().yard(&format!("fuzz --seed {seed} --count 1")).quietly();
    }
}

/// More was promised than there was, a job never ended, or a promise was broken.
#[test]
fn promises_stay_sound_and_jobs_end_on_seeds_where_they_did_not() {
    let unsound = [5002152, 7000335, 9004190, 20025148, 20067304, 20082169, 30044158, 30058093];
    let endless = [5003659, 20016451, 30034180, 30072047];
    for seed in unsound.into_iter().chain(endless).chain([20056803, 50032350, 50076315]) {
        Dir::new().yard(&format!("fuzz --seed {seed} --count 1")).quietly();
    }
}

/// Deadlines that were promised, where nothing happens that nobody could plan for.
#[test]
fn promises_are_kept_whatever_the_policy() {
    for policy in ["fifo", "max-min", "srtf", "las", "elasticflow", "market", "chaos"] {
        Dir::new().yard(&format!("fuzz --calm --policy {policy} --seed 0 --count 100")).quietly();
    }
}

#[test]
fn a_seed_is_one_scenario() {
    let dir = Dir::new();
    let once = || dir.yard("fuzz --seed 17 --count 5").quietly();
    assert_eq!(once(), once());
}
