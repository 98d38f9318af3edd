//! Nodes that drain, leave, fail and come back.

use yard_core::allocation::{Allocation, Shares};
use yard_core::cluster::{NodeSpec, NodeState};
use yard_core::ids::{JobId, KindId, NodeId};
use yard_core::job::JobState;
use yard_core::message::{Input, NodeChange, Outcome};

use crate::common::{World, check};

#[test]
fn a_draining_node_keeps_its_jobs_and_takes_none() {
    check("a:2 b:1", "submit 1; drain a; submit 1 1", "a: 0 . | b: 1 | waits 2");
    check("a:2 b:1", "submit 1; drain a; submit 1 1; resume a", "a: 0 2 | b: 1");
}

#[test]
fn nobody_is_stopped_on_a_draining_node_since_that_would_help_nobody() {
    check("a:2", "submit 1 1; drain a; submit 2 rank -1", "a: 0 1 | waits 2");
}

#[test]
fn the_jobs_of_a_failed_node_are_lost_and_wait_until_it_comes_back() {
    let mut world = World::new("a:2");
    world.script("submit 2; fail a");
    assert_eq!((world.picture().as_str(), world.state(0)), ("a: . . | waits 0", Some(JobState::Pending)));
    world.script("resume a");
    assert_eq!(world.picture(), "a: 0 0");
    assert_eq!(world.orders(), "grant 0, revoke 0 lost, grant 0");
}

#[test]
fn the_jobs_of_a_failed_node_go_on_elsewhere_if_they_fit() {
    check("a:1 b:1", "submit 1; fail a", "a: . | b: 0");
    check("a:1 b:1", "submit 2; fail b; submit 1", "a: 1 | b: . | waits 0");
}

#[test]
fn a_node_that_leaves_asks_its_jobs_to_save() {
    let mut world = World::new("a:1");
    world.script("submit 1; leave a");
    assert_eq!(world.orders(), "grant 0, revoke 0 drained");
    assert_eq!((world.picture().as_str(), world.state(0)), ("a: . | waits 0", Some(JobState::Suspended)));
}

#[test]
fn a_promise_on_a_failed_node_falls() {
    let mut world = World::manual("a:1 b:1");
    world.script("submit 1 1; submit 1 rank -1; fail b");
    // Whoever was promised the device of `b` is now promised that of `a`, over the same old holder.
    world.stopped(1, Outcome::Lost);
    world.stopped(0, Outcome::Saved);
    world.settle();
    assert_eq!(world.picture(), "a: 2 | b: . | waits 0 1");
}

#[test]
fn a_node_back_before_its_lost_job_reported_is_granted_only_after_that_report() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.script("fail a; resume a");
    assert_eq!(world.picture(), "a: 0 | stops 0");
    world.stopped(0, Outcome::Lost);
    assert_eq!((world.picture().as_str(), world.state(0)), ("a: 0", Some(JobState::Starting)));
}

#[test]
fn a_node_that_joins_takes_the_waiting() {
    let mut world = World::new("a:1");
    world.script("submit 1 1");
    let spec = NodeSpec::of("b", KindId(0), 1);
    world.step(Input::Node(NodeChange::Join(spec)));
    world.settle();
    assert_eq!(world.picture(), "a: 0 | b: 1");
}

#[test]
fn a_job_submitted_before_any_node_waits_for_one() {
    let mut world = World::new("");
    world.script("submit 3");
    assert_eq!((world.picture().as_str(), world.engine.job(JobId(0)).is_some()), ("waits 0", true));
}

#[test]
fn a_change_of_a_node_that_never_joined_changes_nothing() {
    let mut world = World::new("a:1");
    world.script("submit 1");
    let before = world.engine.state().clone();
    let never = NodeId(7);
    for change in [NodeChange::Drain, NodeChange::Resume, NodeChange::Leave, NodeChange::Fail] {
        world.step(Input::Node(change(never)));
    }
    world.step(Input::Node(NodeChange::Lent { among: vec![NodeId(0), never], nodes: 0 }));
    assert_eq!(*world.engine.state(), before);
    assert_eq!(world.engine.nodes().get(NodeId(0)).state, NodeState::Up);
}

/// Of all nodes so many are there.
fn lent(world: &mut World, nodes: u32) {
    let among = (0..world.engine.nodes().len() as u32).map(NodeId).collect();
    world.step(Input::Node(NodeChange::Lent { among, nodes }));
    world.settle();
}

#[test]
fn of_lent_nodes_those_go_that_stop_the_fewest_jobs() {
    let mut world = World::new("a:2 b:2 c:2 d:2");
    world.script("submit 1 1 4 1");
    assert_eq!(world.picture(), "a: 0 1 | b: 2 2 | c: 2 2 | d: 3 .");
    lent(&mut world, 2);
    let up = |world: &World, node| world.engine.nodes().get(NodeId(node)).state == NodeState::Up;
    assert_eq!(
        [0, 1, 2, 3].map(|node| up(&world, node)),
        [true, false, false, true],
        "one wide job, not three"
    );
    assert_eq!(world.orders(), "grant 0, grant 1, grant 2, grant 3, revoke 2 drained");
    lent(&mut world, 4);
    assert_eq!(world.picture(), "a: 0 1 | b: 2 2 | c: 2 2 | d: 3 .");
    lent(&mut world, 4);
    assert_eq!(world.orders(), "grant 2", "nothing changed the second time");
}

#[test]
fn who_can_do_with_less_scales_in_before_anybody_is_stopped() {
    // `b` and `c` are lent. The wide job keeps `a` without its node there; the rigid one would have nowhere to go.
    let mut world = World::new("a:2 b:2 c:2");
    world.script("submit 4|2 2");
    assert_eq!(world.picture(), "a: 0 0 | b: 0 0 | c: 1 1");
    world.step(Input::Node(NodeChange::Lent { among: vec![NodeId(1), NodeId(2)], nodes: 1 }));
    world.settle();
    assert_eq!(world.picture(), "a: 0 0 | b: . . | c: 1 1", "the wide job goes on smaller");
}

#[test]
fn idle_nodes_go_first_and_one_that_drains_is_left_alone() {
    let mut world = World::new("a:1 b:1 c:1");
    world.script("submit 1 1; drain a");
    lent(&mut world, 1);
    assert_eq!(world.picture(), "a: 0 | b: 1 | c: .");
    let states = [0, 1, 2].map(|node| world.engine.nodes().get(NodeId(node)).state);
    assert_eq!(states, [NodeState::Draining, NodeState::Up, NodeState::Down]);
}

#[test]
fn a_plan_without_a_job_does_not_stop_it_on_a_node_that_takes_nothing_new() {
    let mut world = World::new("a:1 b:1");
    world.script("submit 1 1; drain a");
    world.answers = false;
    // Something happens, and the plan for it names nobody.
    world.script("submit 1");
    let nobody = Allocation::preemptive(Shares::All(Vec::new()));
    world.answer(Ok(nobody));
    world.settle();
    assert_eq!(world.running().into_iter().collect::<Vec<_>>(), [0], "{}", world.picture());
}

#[test]
fn a_kind_that_does_not_exist_brings_no_node_and_no_job() {
    let mut world = World::new("a:1");
    let kind = KindId(77);
    let node = NodeSpec::of("b", kind, 1);
    world.step(Input::Node(NodeChange::Join(node)));
    assert_eq!((world.engine.nodes().len(), world.engine.kinds().name(kind)), (1, "?"));
    let mut spec = world.spec("1");
    let mut odd = spec.shapes[0].clone();
    odd.needs[0].kind = kind;
    (spec.shapes, spec.speeds) = ([spec.shapes[0].clone(), odd].into(), [1.0, 1.0].into());
    world.step(Input::Submit(Box::new(spec)));
    assert!(world.engine.job(JobId(0)).is_none(), "it is rejected");
    world.script("submit 1");
    assert_eq!(world.picture(), "a: 1");
}
