//! Jobs that may not be stopped for others.

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::{Settings, Span};

use crate::common::{PREEMPT, World};

/// Job 0 may not be stopped, all others may.
fn one_fixed(settings: Settings, cluster: &str, shapes: &str) -> World {
    let mut world = World::with(Settings { lease: Span(u64::MAX), ..settings }, cluster);
    world.pausable = false;
    world.script(&format!("submit {shapes}"));
    world.pausable = true;
    world
}

#[test]
fn a_better_rank_does_not_stop_it_but_others() {
    let mut world = one_fixed(Settings::default(), "a:2", "1");
    world.script("submit 1; submit 1 rank -1; submit 1 rank -2");
    assert_eq!(world.picture(), "a: 0 3 | waits 1 2");
    world.script("end 0");
    assert_eq!(world.picture(), "a: 2 3 | waits 1");
}

#[test]
fn it_does_not_take_turns() {
    let round = Span::from_secs(60.0);
    let mut world = one_fixed(Settings { round, ..Settings::default() }, "a:1", "1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = [(0, 0.1), (1, 0.9)].into();
    world.script("submit 1; wait 600");
    assert_eq!(world.picture(), "a: 0 | waits 1");
    world.script("end 0; wait 60");
    assert_eq!(world.picture(), "a: 1");
}

#[test]
fn it_is_not_moved_when_everybody_is_placed_anew() {
    let mut world = one_fixed(Settings { repack: true, ..Settings::default() }, "a:2 b:2", "1");
    world.script("submit 1; submit 2@node rank -1; submit 2@node rank -2");
    assert_eq!(world.picture(), "a: 0 1 | b: 3 3 | waits 2");
}

#[test]
fn the_first_in_order_runs_soon_after_it_is_gone() {
    let round = Span::from_secs(60.0);
    let mut world = one_fixed(Settings { round, ..Settings::default() }, "a:2 b:2", "1");
    world.policy.mode = Mode::Fractions;
    // Jobs 1 and 2 lie apart; 3 is owed two devices of one node, and waits until 0 is gone.
    world.script("submit 1 1; wait 60; submit 2@node; wait 900; end 0; wait 900");
    assert!(world.engine.job(yard_core::ids::JobId(3)).expect("it lives").starts > 0, "{}", world.picture());
}

fn answer(world: &mut World, shares: Vec<Share>) {
    world.answer(Ok(Allocation {
        mode: PREEMPT,
        shares: Shares::All(shares),
        replan_at: None,
        certificate: None,
    }));
}

#[test]
fn an_allocation_without_it_takes_nothing_from_it() {
    let mut world = one_fixed(Settings::default(), "a:1", "1");
    world.answers = false;
    world.script("submit 1");
    answer(&mut world, vec![Share::whole(JobIdx(1), Rank::default())]);
    assert_eq!(world.picture(), "a: 0 | waits 1");
}

#[test]
fn it_keeps_the_shape_it_has() {
    let mut world = one_fixed(Settings::default(), "a:2", "1|2");
    world.answers = false;
    world.script("submit 1");
    let other = Share { shape: Some(1), ..Share::whole(JobIdx(0), Rank::default()) };
    answer(&mut world, vec![other, Share::whole(JobIdx(1), Rank(1.0, 0.0))]);
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0 1", "grant 0, grant 1"));
}

#[test]
fn who_shares_its_devices_joins_it_and_asks_for_no_more_than_it_has() {
    let mut world = one_fixed(Settings::default(), "a:2", "2|1");
    world.script("end 0");
    world.pausable = false;
    world.script("submit 1|2");
    world.pausable = true;
    world.answers = false;
    // 2 has another list of shapes than 1, with which it was to share a device.
    world.script("submit 2|1");
    let row = |world: &World, job| {
        let view = world.engine.view();
        view.active().find(|row| view.run(*row).id.0 == job).expect("it lives")
    };
    let jobs = [row(&world, 1), row(&world, 2)].into_iter().collect();
    let share = |shape| Share { jobs, shape: Some(shape), ..Share::whole(JobIdx(0), Rank::default()) };
    let (both, more) = (share.clone()(0), share(1));
    answer(&mut world, vec![more]);
    assert_eq!(world.picture(), "a: 1 . | waits 2");
    world.replan();
    answer(&mut world, vec![both]);
    assert_eq!(world.picture(), "a: 1+2 .");
}

#[test]
fn its_user_and_its_node_can_take_its_devices() {
    for script in ["cancel 0", "fail a", "leave a", "bad a 1"] {
        let mut world = one_fixed(Settings::default(), "a:1", "1");
        world.script(script);
        assert!(world.running().is_empty(), "after {script}: {}", world.picture());
    }
}

#[test]
fn a_promise_to_it_can_be_taken_back() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.pausable = false;
    world.script("submit 1 rank -1");
    world.pausable = true;
    world.script("submit 1 rank -2");
    world.stopped(0, yard_core::message::Outcome::Saved);
    assert_eq!(world.picture(), "a: 2 | waits 0 1");
}
