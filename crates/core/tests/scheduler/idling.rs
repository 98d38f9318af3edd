//! While nobody runs, a job that may run does not wait: whatever the policy named, and whatever was believed.

use yard_core::ids::JobId;
use yard_core::message::Input;
use yard_core::{Settings, Span};

use crate::common::World;

/// A world whose policy names the first shape of job 0 and no other.
fn fixed_on_the_first_shape(cluster: &str) -> World {
    let mut world = World::new(cluster);
    world.policy.parts.insert(0, vec![1.0]);
    world
}

#[test]
fn a_shape_that_no_node_in_service_could_hold_gives_way_to_one_that_could() {
    let mut world = fixed_on_the_first_shape("a:4 b:2 c:2");
    world.script("fail a; submit 4@node|2@node");
    assert_eq!(world.picture(), "a: . . . . | b: 0 0 | c: . .", "four are up, but not on one node");
    world.script("cancel 0; resume a");
    let mut world = fixed_on_the_first_shape("a:4 b:2 c:2");
    world.script("bad a 1; submit 4@rack|4@node|2@node");
    assert_eq!(world.picture(), "a: . 0 0 0 | b: 0 . | c: . .", "one rack has four");
}

#[test]
fn the_fastest_of_those_shapes_is_taken_and_the_policy_has_its_way_once_it_can() {
    let mut world = fixed_on_the_first_shape("a:4 b:2");
    let mut spec = world.spec("4@node|1|2");
    spec.speeds = vec![4.0, 1.0, 2.0].into();
    world.script("fail a");
    world.submit_spec(spec);
    world.settle();
    assert_eq!(world.picture(), "a: . . . . | b: 0 0");
    world.script("resume a");
    assert_eq!(world.picture(), "a: 0 0 0 0 | b: . .");
}

#[test]
fn what_a_job_holds_it_keeps_while_part_of_it_drains() {
    let mut world = fixed_on_the_first_shape("a:2 b:2");
    world.script("submit 4|2; drain b");
    world.replan();
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0 0 | b: 0 0", "grant 0"));
}

#[test]
fn who_lies_frozen_goes_on_in_the_shape_it_has_there() {
    let mut world = fixed_on_the_first_shape("a:1 b:2");
    world.freezes = true;
    world.script("fail b; submit 2@node|1; submit 1 rank -1; resume b");
    assert_eq!(world.picture(), "a: 1 | b: . . | waits 0");
    world.script("end 1");
    assert_eq!(world.picture(), "a: 0 | b: . .", "it was named in the shape that b has room for");
}

#[test]
fn a_job_that_waits_though_nobody_holds_a_device_is_found() {
    let mut world = World::new("a:2");
    world.answers = false;
    world.script("submit 1 1");
    assert_eq!(world.engine.idles_for(false), Some(JobId(0)), "the policy has not answered");
    assert_eq!(world.engine.idles_for(true), None, "no plan has named it");
    world.script("fail a");
    assert_eq!(world.engine.idles_for(false), None, "there is no room");
    world.script("resume a; cancel 0");
    assert_eq!(world.engine.idles_for(false), Some(JobId(1)));
    world.answers = true;
    world.replan();
    assert_eq!((world.picture().as_str(), world.engine.idles_for(false)), ("a: 1 .", None));
}

#[test]
fn one_that_was_taught_to_be_of_no_use_anywhere_counts_all_the_same() {
    let mut world = World::new("a:1");
    world.answers = false;
    let mut spec = world.spec("1");
    spec.speeds = vec![0.0].into();
    world.step(Input::Submit(Box::new(spec)));
    world.settle();
    assert_eq!(world.engine.idles_for(false), Some(JobId(0)));
}

#[test]
fn in_a_strict_queue_only_the_first_counts() {
    let mut world = World::new("a:2 b:1");
    world.script("mode queue; fail a; submit 2 1");
    assert_eq!(
        (world.picture().as_str(), world.engine.idles_for(false)),
        ("a: . . | b: . | waits 0 1", None)
    );
    world.script("mode skip");
    world.replan();
    assert_eq!(world.picture(), "a: . . | b: 1 | waits 0");
}

#[test]
fn who_is_held_back_does_not_count_and_the_limit_grows_with_rounds() {
    let mut world = World::with_rounds("a:1");
    world.not_before = Some(yard_core::Time::from_secs(1e6));
    world.script("submit 1");
    assert_eq!(world.engine.idles_for(false), None);
    let slow = Settings { plan_gap: Span::from_secs(900.0), ..world.engine.settings().clone() };
    let least = World::new("a:1").engine.idles_at_most();
    let rounds = world.engine.idles_at_most();
    assert!(Span::ZERO < least && least < rounds);
    assert_eq!(World::with(slow, "a:1").engine.idles_at_most(), rounds + Span::from_secs(900.0));
}
