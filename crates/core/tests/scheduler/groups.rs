//! Jobs that share devices.

use yard_core::job::JobState;
use yard_core::message::{Event, Outcome};

use crate::common::World;

/// Jobs 0 and 1 packed on one device, job 2 waiting for it.
fn packed() -> World {
    let mut world = World::new("a:1");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1 1");
    world
}

fn freed(world: &World) -> usize {
    world.events.iter().filter(|event| matches!(event, Event::Freed { .. })).count()
}

#[test]
fn a_group_is_granted_as_one() {
    let mut world = packed();
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+1 | waits 2", "grant 0+1"));
}

#[test]
fn when_one_of_a_group_is_done_the_other_runs_on_and_the_devices_come_back_once() {
    let mut world = packed();
    world.orders();
    world.script("end 0");
    assert_eq!((world.picture().as_str(), world.orders().as_str(), freed(&world)), ("a: 1 | waits 2", "", 0));
    world.script("end 1");
    assert_eq!((world.picture().as_str(), freed(&world)), ("a: 2", 1));
}

#[test]
fn a_cancelled_member_leaves_its_group() {
    let mut world = packed();
    world.script("cancel 1");
    assert_eq!(world.picture(), "a: 0 | waits 2");
    assert_eq!(world.orders(), "grant 0+1, revoke 1 cancelled");
    assert_eq!(world.end(1), Some(JobState::Cancelled));
}

#[test]
fn a_group_is_stopped_as_one_and_its_devices_wait_for_the_last() {
    let mut world = World::manual("a:1");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1; submit 1 rank -1");
    assert_eq!(world.orders(), "grant 0+1, revoke 0+1 preempted");
    world.stopped(1, Outcome::Saved);
    assert_eq!(world.picture(), "a: 0 | stops 0 | waits 1 2");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 2 | waits 0 1");
}

#[test]
fn the_jobs_of_a_group_each_receive_the_time_they_held_the_devices() {
    let mut world = packed();
    world.script("wait 10; end 0; wait 5; end 1");
    let ledger = world.engine.ledger();
    assert_eq!((ledger.leased, ledger.ended_attained), (25_000_000, 25_000_000));
}
