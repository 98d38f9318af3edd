//! Who gets devices, who waits, and who is stopped for whom.

use yard_core::job::{Costs, JobSpec};
use yard_core::message::{Event, Input};
use yard_core::{Settings, Span};

use crate::common::{World, check};

#[test]
fn in_a_plain_queue_the_first_that_does_not_fit_blocks() {
    check("a:4", "mode queue; submit 2 3 1", "a: 0 0 . . | waits 1 2");
    check("a:4", "mode queue; submit 2 3 1; end 0", "a: 1 1 1 2");
}

#[test]
fn where_skipping_is_allowed_the_small_go_past() {
    check("a:4", "mode skip; submit 2 3 1", "a: 0 0 2 . | waits 1");
    check("a:4", "mode skip; submit 2 3 1 2; end 0", "a: 1 1 2 1 | waits 3");
}

#[test]
fn a_queue_goes_by_rank_and_then_by_age() {
    check("a:1", "mode queue; submit 1; submit 1 1; submit 1 rank -1; end 0", "a: 3 | waits 1 2");
    check("a:1", "mode queue; submit 1; submit 1 1 rank 7; end 0", "a: 1 | waits 2");
}

#[test]
fn a_queue_stops_nobody() {
    check("a:1", "mode queue; submit 1; submit 1 rank -1", "a: 0 | waits 1");
    check("a:1", "mode skip; submit 1; rank 0 5; submit 1 rank -1", "a: 0 | waits 1");
}

#[test]
fn preemption_takes_the_last_in_order_first_and_only_as_many_as_needed() {
    check("a:4", "submit 1 1 1 1; submit 2 rank -1", "a: 0 1 4 4 | waits 2 3");
    check("a:4", "submit 1 1 1 1; submit 1 rank 1.5", "a: 0 1 2 4 | waits 3");
    check("a:4", "submit 1 1 1; submit 2 rank -1", "a: 0 1 3 3 | waits 2");
}

#[test]
fn nobody_is_stopped_for_a_job_behind_it_or_for_one_that_would_not_fit_anyway() {
    check("a:2", "submit 1 1; submit 1", "a: 0 1 | waits 2");
    check("a:3", "submit 2 1; submit 2 rank 0.5", "a: 0 0 1 | waits 2");
}

#[test]
fn who_keeps_its_place_in_the_order_keeps_its_devices() {
    let mut world = World::new("a:4");
    world.script("submit 1 1 1 1").orders();
    world.script("submit 1 rank -1");
    assert_eq!(world.orders(), "revoke 3 preempted, grant 4");
    world.script("rank 1 0.5; rank 2 0.7");
    assert_eq!(world.orders(), "");
}

#[test]
fn a_preempted_job_goes_on_elsewhere_if_it_may() {
    let mut world = World::new("a:1 b:1:slow");
    world.script("submit 1|1slow").orders();
    world.script("submit 1 rank -1");
    assert_eq!(world.picture(), "a: 1 | b: 0");
    assert_eq!(world.orders(), "revoke 0 moved, grant 1, grant 0");
}

#[test]
fn a_gang_is_placed_whole_or_not_at_all() {
    check("a:2 b:2", "mode skip; submit 1 4", "a: 0 . | b: . . | waits 1");
    check("a:2 b:2", "mode skip; submit 1 4; end 0", "a: 1 1 | b: 1 1");
    check("a:2 b:2", "submit 1 1 1; submit 4 rank 0.5", "a: 0 1 | b: 2 . | waits 3");
}

#[test]
fn the_second_choice_is_taken_when_the_first_is_full() {
    check("a:1 b:2:slow", "submit 1|2slow 1|2slow 1|2slow", "a: 0 | b: 1 1 | waits 2");
    check("a:1 b:2:slow", "submit 1|2slow 1|2slow; end 0", "a: . | b: 1 1");
}

#[test]
fn free_devices_of_a_later_choice_are_taken_before_anybody_is_stopped() {
    check("a:1 b:1:slow", "submit 1; submit 1|1slow rank -1", "a: 0 | b: 1");
}

#[test]
fn room_is_made_on_one_node_although_enough_is_free_in_scattered_places() {
    let mut world = World::new("a:2 b:2");
    world.script("submit 1 1 1 1; end 0; end 3");
    assert_eq!(world.picture(), "a: . 1 | b: 2 .");
    world.script("submit 2@node rank -1");
    assert_eq!(world.picture(), "a: 2 1 | b: 4 4");
}

#[test]
fn who_was_stopped_in_vain_goes_on_without_noticing() {
    let mut world = World::new("a:2 b:2");
    world.script("submit 1 2@node 1").orders();
    world.script("submit 2@node rank 0.5");
    assert_eq!(world.picture(), "a: 0 2 | b: 3 3 | waits 1");
    assert_eq!(world.orders(), "revoke 1 preempted, grant 3");
}

#[test]
fn a_head_kept_waiting_by_scattered_young_leases_runs_after_a_bounded_number_of_rounds() {
    let (round, lease) = (Span::from_secs(60.0), Span(u64::MAX));
    let settings = Settings { round, every_round: true, lease, ..Settings::default() };
    let mut world = World::with(settings, "a:2 b:2");
    // So young that nobody may be stopped for as long as this test lasts.
    world.costs = Costs { start: Span::from_secs(9_999.0), ..Costs::default() };
    world.script("submit 1 1 1 1; end 0; end 3; submit 2@node rank -1");
    for _ in 0..4 {
        world.wait(60.0);
        assert_eq!(world.picture(), "a: . 1 | b: 2 . | waits 4");
    }
    world.wait(60.0);
    assert_eq!(world.picture(), "a: 4 4 | b: 1 2");
}

#[test]
fn without_preemption_nobody_is_moved_for_a_head_that_waits_for_adjacent_devices() {
    let mut world = World::new("a:2 b:2");
    world.script("mode skip; submit 1 1 1 1; end 0; end 3; submit 2@node rank -1");
    (0..9).for_each(|_| world.replan());
    assert_eq!(world.picture(), "a: . 1 | b: 2 . | waits 4");
    world.script("end 1");
    assert_eq!(world.picture(), "a: 4 4 | b: 2 .");
}

#[test]
fn a_job_larger_than_the_cluster_is_rejected_with_the_reason() {
    let cases = [
        ("5", "it asks for 5 devices of gpu, and the cluster has 4"),
        ("3@node", "it asks for 3 devices of gpu, and no node has more than 2"),
        ("2slow", "it asks for 2 devices of slow, and the cluster has 1"),
        ("9|7slow", "it asks for 7 devices of slow, and the cluster has 1"),
    ];
    for (shapes, expected) in cases {
        let mut world = World::new("a:2 b:2 c:1:slow");
        let job = world.submit(shapes);
        let Some(Event::Rejected { reason, .. }) = world.events.last() else { panic!("{shapes} was taken") };
        assert_eq!((reason.as_str(), world.state(job)), (expected, None), "{shapes}");
    }
}

#[test]
fn a_job_whose_numbers_make_no_sense_is_rejected() {
    let world = World::new("a:1");
    let spec = || world.spec("1");
    let cases = [
        JobSpec { steps: f64::NAN, ..spec() },
        JobSpec { steps: 0.0, ..spec() },
        JobSpec { weight: f64::INFINITY, ..spec() },
        JobSpec { shapes: [].into(), speeds: [].into(), ..spec() },
        JobSpec { speeds: [1.0, 2.0].into(), ..spec() },
    ];
    for spec in cases {
        let mut world = World::new("a:1");
        world.settle();
        world.step(Input::Submit(Box::new(spec)));
        assert!(matches!(world.events.last(), Some(Event::Rejected { .. })), "{:?}", world.events);
        assert_eq!(world.engine.deadline(), None);
    }
}
