//! Shares of time in several kinds: who has what in a round, in our own order and in Gavel's.

use yard_core::allocation::Mode;
use yard_core::turns::{GavelTurns, Turns};
use yard_core::{Settings, Span, Time};

use crate::common::World;

const ROUND: f64 = 60.0;

/// A cluster with rounds of a minute, on which jobs have these parts of their shapes.
fn world(settings: Settings, cluster: &str, parts: &[&[f64]]) -> World {
    let (round, lease) = (Span::from_secs(ROUND), Span(u64::MAX));
    let mut world = World::with(Settings { round, lease, ..settings }, cluster);
    world.policy.mode = Mode::Fractions;
    world.policy.parts = (0..).zip(parts.iter().map(|parts| parts.to_vec())).collect();
    world
}

fn gavel(shuffle: Option<u64>, leftovers: bool) -> Settings {
    Settings { turns: Turns::Gavel(GavelTurns { shuffle, leftovers }), ..Settings::default() }
}

/// Who holds what after each of so many rounds.
fn pictures(world: &mut World, rounds: usize) -> Vec<String> {
    (0..rounds).map(|_| (world.settle(), world.picture(), world.wait(ROUND)).1).collect()
}

/// In how many of so many rounds a picture holds.
fn rounds_with(world: &mut World, rounds: usize, what: &str) -> usize {
    pictures(world, rounds).iter().filter(|picture| picture.contains(what)).count()
}

#[test]
fn a_job_follows_its_shares_from_kind_to_kind() {
    let mut world = world(Settings::default(), "a:1 b:1:slow", &[&[0.75, 0.25], &[0.25, 0.75]]);
    world.script("submit 1|1slow 1|1slow");
    let fast = rounds_with(&mut world, 40, "a: 0 | b: 1");
    assert!((29..=31).contains(&fast), "{fast} of 40 rounds");
}

#[test]
fn a_job_that_goes_on_elsewhere_is_moved_and_not_preempted() {
    let mut world = world(Settings::default(), "a:1 b:1:slow", &[&[0.5, 0.5], &[0.5, 0.5]]);
    world.script("submit 1|1slow 1|1slow; wait 59").orders();
    world.wait(ROUND);
    assert_eq!(world.orders(), "revoke 0 moved, revoke 1 moved, grant 0, grant 1");
}

/// Two jobs with half of each kind, and how often they changed kinds in so many rounds.
fn changes(world: &mut World, rounds: usize) -> usize {
    pictures(world, rounds).windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn jobs_that_only_change_kinds_do_so_less_often_the_longer_they_are_there() {
    let mut world = world(Settings::default(), "a:1 b:1:slow", &[&[0.5, 0.5], &[0.5, 0.5]]);
    world.script("submit 1|1slow 1|1slow");
    let (first, then) = (changes(&mut world, 40), pictures(&mut world, 800));
    let later = changes(&mut world, 200);
    assert!(first >= 8 && (8..=20).contains(&later), "{first} in 40 rounds, then {later} in 200");
    let fast = then.iter().filter(|picture| picture.contains("a: 0")).count();
    assert!((376..=424).contains(&fast), "{fast} of 800 rounds");
}

#[test]
fn a_newcomer_has_its_part_beside_jobs_that_change_kinds_seldom() {
    let mut world = world(Settings::default(), "a:1 b:1:slow", &[&[0.5, 0.5], &[0.5, 0.5], &[0.5, 0.0]]);
    world.script("submit 1|1slow 1|1slow");
    pictures(&mut world, 600);
    world.script("submit 1|1slow");
    let had: Vec<bool> = pictures(&mut world, 24).iter().map(|picture| picture.contains("a: 2")).collect();
    // One that is behind in the kind it wants goes first, for half of the twelve rounds that a job may be behind at most.
    // Then the three jobs that want that kind have a third of it each.
    assert!(had.iter().position(|has| *has).is_some_and(|first| first <= 6), "{had:?}");
    assert!((8..=10).contains(&had.iter().filter(|has| **has).count()), "{had:?}");
}

#[test]
fn what_nobody_else_wants_goes_to_who_can_use_it() {
    let mut world = world(Settings::default(), "a:1 b:1:slow", &[&[1.0, 0.0], &[0.0, 0.0]]);
    world.script("submit 1|1slow 1|1slow");
    assert_eq!(pictures(&mut world, 3), ["a: 0 | b: 1"; 3]);
}

#[test]
fn a_job_leaves_a_leftover_for_a_share_that_it_is_owed() {
    let mut world = world(Settings::default(), "a:1 b:1:slow", &[&[0.5, 0.0], &[0.5, 0.0]]);
    world.script("submit 1|1slow 1|1slow");
    // Two rounds in a row where both are due at the same time: nobody is moved without need.
    let (zero, one) = ("a: 0 | b: 1", "a: 1 | b: 0");
    assert_eq!(pictures(&mut world, 6), [zero, one, one, zero, zero, one]);
}

#[test]
fn who_stays_in_its_share_stays_on_its_devices() {
    let third = 1.0 / 3.0;
    let mut world = world(Settings::default(), "a:2", &[&[1.0], &[third], &[third], &[third]]);
    world.script("submit 1 1 1 1").orders();
    world.script("wait 600");
    assert!(world.revoked().iter().all(|job| *job != 0), "{}", world.picture());
}

#[test]
fn a_newcomer_between_rounds_takes_what_is_left_of_any_kind() {
    let settings = Settings { fill: true, ..Settings::default() };
    let mut world = world(settings, "a:1 b:1:slow", &[&[1.0, 0.0]]);
    world.script("submit 1|1slow; wait 67; submit 1|1slow");
    assert_eq!(world.picture(), "a: 0 | b: 1");
}

#[test]
fn in_gavels_order_a_kind_is_served_before_the_next_whatever_is_owed() {
    // By what is owed, job 0 would have its slow device; but the fast one comes first, and nobody else has a
    // better claim to it.
    let mut world = world(gavel(None, true), "a:1 b:1:slow", &[&[0.1, 0.9]]);
    world.script("submit 1|1slow");
    assert_eq!(pictures(&mut world, 3), ["a: 0 | b: ."; 3]);
}

#[test]
fn in_gavels_order_small_jobs_go_past_large_ones_and_nothing_is_kept_for_those() {
    let mut world = world(gavel(None, true), "a:3", &[&[0.5], &[0.9], &[0.1]]);
    world.script("submit 2 2 1");
    assert_eq!(world.picture(), "a: 1 1 2 | waits 0");
}

#[test]
fn in_gavels_order_accounts_begin_anew_with_each_plan_and_deficits_break_ties() {
    // 0 has more of a share, so it goes first after each plan; equal shares take turns by deficit.
    let mut one = world(gavel(None, true), "a:1", &[&[0.6], &[0.4]]);
    one.script("submit 1 1");
    for _ in 0..4 {
        assert_eq!(one.picture(), "a: 0 | waits 1");
        one.begin();
        one.wait(ROUND);
    }
    let mut other = world(gavel(None, true), "a:1", &[&[0.5], &[0.5]]);
    other.script("submit 1 1");
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(other.picture());
        other.begin();
        other.wait(ROUND);
    }
    let (zero, one) = ("a: 0 | waits 1", "a: 1 | waits 0");
    assert_eq!(seen, [zero, one, zero, one]);
}

#[test]
fn in_gavels_order_newcomers_do_not_run_before_they_are_planned_for() {
    for leftovers in [true, false] {
        let plan_gap = Span::from_secs(300.0);
        let mut world = world(Settings { plan_gap, ..gavel(None, leftovers) }, "a:2", &[&[1.0], &[1.0]]);
        world.script("wait 60; submit 1; wait 70; submit 1; wait 60");
        assert_eq!(world.picture(), "a: 0 . | waits 1", "leftovers: {leftovers}");
        world.script("wait 300");
        assert_eq!(world.picture(), "a: 0 1");
    }
}

#[test]
fn in_gavels_order_newcomers_keep_others_from_what_is_left() {
    // Job 0 belongs on the slow device and has had more than it was owed of the fast one.
    let plan_gap = Span::from_secs(300.0);
    let settings = Settings { plan_gap, ..gavel(None, true) };
    let mut world = world(settings, "a:1 b:1:slow", &[&[0.0, 1.0], &[1.0, 0.0]]);
    world.script("wait 60; submit 1|1slow; wait 70");
    assert_eq!(world.picture(), "a: 0 | b: .");
    world.begin();
    world.script("wait 360; submit 1|1slow; wait 60");
    assert_eq!(world.picture(), "a: . | b: 0 | waits 1");
    world.script("wait 300");
    assert_eq!(world.picture(), "a: 1 | b: 0");
}

#[test]
fn kinds_drawn_anew_each_round_all_come_first_now_and_then() {
    let mut world = world(gavel(Some(7), true), "a:1 b:1:slow", &[&[0.5, 0.5]]);
    world.script("submit 1|1slow");
    let fast = rounds_with(&mut world, 100, "a: 0");
    assert!((35..=65).contains(&fast), "{fast} of 100 rounds");
}

#[test]
fn plans_keep_their_distance() {
    let plan_gap = Span::from_secs(150.0);
    let mut world = world(Settings { plan_gap, ..Settings::default() }, "a:9", &[]);
    world.script("wait 60; submit 1");
    assert_eq!(world.engine.ledger().plans, 2);
    // The plan at 60 s is followed by the one at the first beat after 210 s.
    world.script("wait 10; submit 1; wait 160");
    assert_eq!((world.now, world.engine.ledger().plans), (Time::from_secs(230.0), 2));
    world.script("wait 10");
    assert_eq!((world.engine.ledger().plans, world.picture().as_str()), (3, "a: 0 1 . . . . . . ."));
    assert_eq!(world.engine.deadline(), None);
}

#[test]
fn a_plan_that_has_to_wait_lets_time_go_on_without_rounds() {
    let settings = Settings { plan_gap: Span::from_secs(100.0), ..Settings::default() };
    let mut world = World::with(settings, "a:2");
    world.script("wait 10; submit 1; wait 20; submit 1; wait 79");
    assert_eq!(world.picture(), "a: 0 . | waits 1");
    world.script("wait 1");
    assert_eq!(world.picture(), "a: 0 1");
}
