//! The beat: when decisions are made, and how fractions become turns.

use std::collections::BTreeMap;

use yard_core::allocation::Mode;
use yard_core::job::Costs;
use yard_core::{Settings, Span, Time};

use crate::common::{PREEMPT, World};

const ROUND: f64 = 60.0;

/// Jobs of one device each on one device, with these fractions.
fn sharing(fractions: &[f64]) -> World {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = (0..).zip(fractions.iter().copied()).collect();
    for _ in fractions {
        world.submit("1");
    }
    world
}

/// How many of `rounds` rounds each job held the device.
fn turns(world: &mut World, rounds: usize, mut before: impl FnMut(&mut World)) -> Vec<usize> {
    let mut turns: BTreeMap<u64, usize> = (0..world.engine.next_job().0).map(|job| (job, 0)).collect();
    for _ in 0..rounds {
        before(world);
        world.settle();
        world.running().into_iter().for_each(|job| *turns.entry(job).or_default() += 1);
        world.wait(ROUND - 1.0);
        world.wait(1.0);
    }
    turns.into_values().collect()
}

#[test]
fn nothing_is_decided_between_beats() {
    let mut world = World::with_rounds("a:2");
    world.script("wait 1");
    let rounds = world.engine.ledger().rounds;
    world.script("submit 1; wait 58");
    assert_eq!((world.picture().as_str(), world.engine.ledger().rounds), ("a: . . | waits 0", rounds));
    assert_eq!(world.engine.deadline(), Some(Time::from_secs(ROUND)));
    world.script("wait 1");
    assert_eq!(world.picture(), "a: 0 .");
}

#[test]
fn one_decision_is_made_at_each_beat_whatever_happens() {
    let mut world = World::with_rounds("a:4");
    world.script("submit 1; submit 1; submit 1");
    assert_eq!((world.picture().as_str(), world.engine.ledger().rounds), ("a: 0 . . . | waits 1 2", 1));
    world.script("wait 60; submit 1; wait 59");
    assert_eq!((world.picture().as_str(), world.engine.ledger().rounds), ("a: 0 1 2 . | waits 3", 2));
}

#[test]
fn rounds_cost_nothing_while_nothing_changes() {
    let mut world = World::with_rounds("a:1");
    world.script("submit 1 1");
    let rounds = world.engine.ledger().rounds;
    assert_eq!(world.engine.deadline(), None);
    world.script("wait 9999");
    assert_eq!((world.engine.deadline(), world.engine.ledger().rounds), (None, rounds));
}

#[test]
fn an_order_that_changes_with_time_is_asked_for_every_round_in_which_somebody_waits() {
    let (round, lease) = (Span::from_secs(ROUND), Span(u64::MAX));
    let mut world = World::with(Settings { round, lease, every_round: true, ..Settings::default() }, "a:1");
    world.script("submit 1 1; wait 600");
    assert_eq!(world.engine.ledger().plans, 11);
    world.script("end 0; wait 60");
    assert_eq!((world.engine.ledger().plans, world.engine.deadline()), (12, None));
}

#[test]
fn equal_jobs_on_one_device_take_turns() {
    assert_eq!(turns(&mut sharing(&[1.0 / 3.0; 3]), 30, |_| ()), [10, 10, 10]);
}

#[test]
fn fractions_are_received_within_one_round() {
    for (fractions, expected) in
        [([0.5, 0.25, 0.25], [20, 10, 10]), ([0.6, 0.3, 0.1], [24, 12, 4]), ([0.8, 0.1, 0.1], [32, 4, 4])]
    {
        let got = turns(&mut sharing(&fractions), 40, |_| ());
        let close = got.iter().zip(expected).all(|(got, want): (&usize, usize)| got.abs_diff(want) <= 1);
        assert!(close, "{fractions:?}: {got:?}");
    }
}

#[test]
fn what_is_owed_is_owed_still_after_a_new_allocation() {
    let got = turns(&mut sharing(&[1.0 / 3.0; 3]), 30, |world| world.begin());
    assert!(got.iter().all(|got| got.abs_diff(10) <= 1), "{got:?}");
}

#[test]
fn a_job_alone_keeps_its_device_whatever_its_fraction() {
    let mut world = sharing(&[0.2]);
    assert_eq!(turns(&mut world, 5, |_| ()), [5]);
    assert_eq!((world.orders().as_str(), world.engine.deadline()), ("grant 0", None));
}

#[test]
fn young_leases_are_not_stopped_where_jobs_take_turns() {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = [(0, 0.5), (1, 0.5)].into();
    // Save, load and start take 75 s: a lease is young for 150 s, so turns last three rounds at least.
    let third = Span::from_secs(25.0);
    world.costs = Costs { save: third, load: third, start: third };
    world.script("submit 1 1");
    let mut turns: Vec<(String, usize)> = Vec::new();
    for _ in 0..40 {
        let holder = world.picture();
        match turns.last_mut().filter(|turn| turn.0 == holder) {
            Some(turn) => turn.1 += 1,
            None => turns.push((holder, 1)),
        }
        world.wait(ROUND);
    }
    turns.pop();
    assert!(turns.len() > 4 && turns.iter().all(|turn| turn.1 >= 3), "{turns:?}");
}

#[test]
fn young_leases_are_stopped_where_only_events_decide() {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = PREEMPT;
    world.costs.start = Span::from_secs(9_999.0);
    world.script("submit 1; wait 60; submit 1 rank -1");
    assert_eq!(world.picture(), "a: 1 | waits 0");
}

#[test]
fn where_each_round_places_anew_who_finds_the_same_devices_is_left_alone() {
    let settings = Settings { repack: true, lease: Span(u64::MAX), ..Settings::default() };
    let mut world = World::with(settings, "a:2 b:2");
    world.script("submit 1 1 1 1").orders();
    world.script("end 0");
    assert_eq!(world.picture(), "a: 1 2 | b: 3 .");
    assert_eq!(world.orders(), "revoke 1 moved, revoke 2 moved, revoke 3 moved, grant 1, grant 2, grant 3");
    world.script("end 3");
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 1 2 | b: . .", ""));
}

/// Rounds of a minute, with devices given out in between.
fn filling(cluster: &str) -> World {
    let (round, lease) = (Span::from_secs(ROUND), Span(u64::MAX));
    World::with(Settings { round, lease, fill: true, ..Settings::default() }, cluster)
}

#[test]
fn between_rounds_a_newcomer_takes_what_is_free() {
    let mut world = filling("a:2");
    world.script("wait 7");
    let before = world.engine.ledger().plans;
    world.script("submit 1");
    assert_eq!(world.picture(), "a: 0 .");
    assert_eq!(world.engine.ledger().plans, before, "no policy was asked for it");
}

#[test]
fn between_rounds_nobody_is_stopped_however_urgent_the_newcomer() {
    let mut world = filling("a:2");
    world.script("submit 2; wait 60; wait 7; submit 1 rank -9");
    assert_eq!(world.picture(), "a: 0 0 | waits 1");
    world.script("wait 60");
    assert_eq!(world.picture(), "a: 1 . | waits 0");
}

#[test]
fn between_rounds_who_waits_in_order_goes_before_a_newcomer() {
    let mut world = filling("a:1");
    world.script("submit 1 1; wait 60; wait 7; submit 1; end 0");
    assert_eq!(world.picture(), "a: 1 | waits 2");
}
