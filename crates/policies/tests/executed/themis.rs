//! `themis`: what winners pay and losers lost is not given back to them.

use yard_core::job::JobSpec;

use super::{HOUR, ROUND, Scene, held, on_kinds, rigid, spans};

const LEASE: f64 = 1200.0;
const UNTIL: f64 = 8.0 * HOUR;

#[test]
fn who_wins_pays_in_executed_time() {
    // One device and two like jobs: without the winner the other would have had all of it, so that half is the price.
    let jobs = [on_kinds(&[1.0]), on_kinds(&[1.0])];
    let outcome = Scene::new("a:1x1", &jobs).run("themis:lease=1200:f=0");
    let early_on = |job| spans(&outcome, job).into_iter().filter(|span| span.1 < UNTIL).collect();
    let all: Vec<Vec<(f64, f64)>> = (0..2).map(early_on).collect();
    let first = all.iter().map(|own| own[0]).find(|span| span.0 == 0.0).expect("one begins");
    assert!(first.1 < 0.6 * LEASE, "it held the device until {}", first.1);
    for (job, own) in all.iter().enumerate() {
        // Whoever gave the device back early is not asked before its lease would have been over.
        let early = own.windows(2).find(|pair| pair[1].0 - pair[0].0 < LEASE - ROUND);
        assert_eq!(early, None, "job {job} came back early");
    }
    let each: Vec<f64> = held(&outcome, UNTIL).values().copied().collect();
    assert!(each.iter().all(|own| *own > 0.2 * UNTIL), "both have their turns: {each:?}");
}

/// Starts that are not on a beat, where the auctions are.
fn starts_between(policy: &str) -> usize {
    let jobs: Vec<JobSpec> = (0..12).map(|at| rigid(1, 1010.0 + 130.0 * f64::from(at))).collect();
    let outcome = Scene::new("a:1x3", &jobs).run(policy);
    assert!(outcome.record.jobs.iter().all(|job| job.end.is_some()), "all end");
    let ends = outcome.record.jobs.iter().filter_map(|job| job.end);
    assert!(ends.filter(|end| end.secs() % ROUND > 1.0).count() > 6, "devices fall free between beats");
    outcome.record.bars.iter().filter(|bar| bar.start.secs() % ROUND > 1.0).count()
}

#[test]
fn who_lost_waits_for_the_next_auction_and_who_was_not_asked_has_what_is_left() {
    assert_eq!(starts_between("themis:lease=1200:f=0"), 0, "all were asked");
    assert!(starts_between("themis:lease=1200:f=0.8") > 0, "four of five were not");
}
