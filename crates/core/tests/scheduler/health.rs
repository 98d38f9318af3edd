//! Devices that go out of service while their node stays.

use yard_core::ids::{KindId, NodeId};
use yard_core::message::{Event, Input, NodeChange, NodeNews, Outcome};

use crate::common::{World, check};

#[test]
fn a_device_out_of_service_takes_nothing_until_it_is_back() {
    check("a:2", "bad a 1; submit 1 1", "a: . 0 | waits 1");
    check("a:2", "bad a 1; submit 1 1; bad a 0", "a: 1 0");
}

#[test]
fn its_jobs_go_elsewhere_and_others_on_the_node_stay() {
    let mut world = World::new("a:2 b:1");
    world.script("submit 1 1; bad a 1");
    assert_eq!(world.picture(), "a: . 1 | b: 0");
    assert_eq!(world.orders(), "grant 0, grant 1, revoke 0 drained, grant 0");
}

#[test]
fn a_gang_with_a_device_out_of_service_stops_whole() {
    check("a:2 b:2", "submit 3; bad b 1; submit 1", "a: 0 0 | b: . 0 | waits 1");
    check("a:2 b:2", "submit 4; bad b 1; submit 1", "a: 1 . | b: . . | waits 0");
}

#[test]
fn the_next_change_replaces_the_last() {
    check("a:3", "bad a 1; bad a 2; submit 1 1 1", "a: 0 . 1 | waits 2");
}

#[test]
fn a_node_that_comes_back_still_has_its_devices_out_of_service() {
    check("a:2", "bad a 1; fail a; resume a; submit 1 1", "a: . 0 | waits 1");
    check("a:2", "submit 1 1; drain a; bad a 1; submit 1", "a: . 1 | waits 0 2");
}

#[test]
fn capacity_counts_what_is_in_service() {
    let mut world = World::new("a:4");
    world.script("bad a 5");
    let counts = |world: &World| (world.engine.nodes().up(KindId(0)), world.engine.nodes().free(KindId(0)));
    assert_eq!(counts(&world), (2, 2));
    world.script("submit 1; drain a");
    assert_eq!(counts(&world), (0, 0));
    world.script("resume a; bad a 0");
    assert_eq!((counts(&world), world.engine.nodes().total(KindId(0))), ((4, 3), 4));
}

#[test]
fn a_device_is_granted_again_only_after_its_job_gave_it_back() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.script("bad a 1; bad a 0; submit 1 rank -1");
    assert_eq!(world.picture(), "a: 0 | stops 0 | waits 1");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 1 | waits 0");
}

#[test]
fn what_changes_nothing_is_no_news() {
    let mut world = World::new("a:2");
    world.script("bad a 1");
    let before = world.engine.state().clone();
    // The node has two devices, so that the third bit means nothing.
    for (node, bad) in [(0, 1), (0, 5), (7, 1)] {
        world.step(Input::Node(NodeChange::Health { node: NodeId(node), bad }));
    }
    assert_eq!(*world.engine.state(), before);
    let told = |event: &&Event| matches!(event, Event::Node { change: NodeNews::Health, .. });
    assert_eq!(world.events.iter().filter(told).count(), 1);
}
