//! What once went wrong, each in a few lines.

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::cluster::{Level, NodeSpec};
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::{JobSpec, Need, Rank, Shape};
use yard_core::message::{Input, NodeChange, Outcome};
use yard_core::{Settings, Span, State};

use crate::common::{PREEMPT, World};

fn share(rows: &[u32], fraction: f64, rank: f64) -> Share {
    Share {
        jobs: rows.iter().map(|row| JobIdx(*row)).collect(),
        shape: None,
        fraction,
        rank: Rank(rank, 0.0),
    }
}

fn all(shares: Vec<Share>) -> Allocation {
    Allocation { mode: PREEMPT, shares: Shares::All(shares), replan_at: None, certificate: None }
}

#[test]
fn a_job_may_be_done_before_anybody_said_that_it_started() {
    let mut world = World::manual("a:1");
    world.script("submit 1; end 0");
}

#[test]
fn a_group_that_names_a_job_twice_is_refused() {
    let mut world = World::new("a:1");
    world.answers = false;
    world.script("submit 1");
    world.answer(Ok(all(vec![share(&[0, 0], 0.5, 0.0)])));
    assert!(world.refusal().is_some());
}

#[test]
fn a_group_whose_newcomer_ends_before_it_came_goes_on() {
    let mut world = World::manual("a:1 b:1");
    world.script("submit 1 1");
    world.started(0);
    world.started(1);
    world.policy.groups = vec![vec![0, 1]];
    world.replan();
    assert_eq!(world.picture(), "a: 0 | b: 1 | stops 1");
    world.stopped(1, Outcome::Finished);
    world.wait(10_000.0);
    assert_eq!(world.picture(), "a: 0 | b: .");
}

#[test]
fn a_member_of_a_group_that_crashed_runs_again_though_the_other_runs_on() {
    let mut world = World::new("a:1");
    world.failures_max = 3;
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1; crash 0; wait 10000");
    assert_eq!(world.picture(), "a: 1+0");
}

#[test]
fn who_fits_beside_the_newcomer_anyway_is_not_moved() {
    let mut world = World::new("a:6");
    // 1 must go either way; then there is room for 0, which is last.
    world.script("submit 1; rank 0 9; submit 4; submit 3 rank -1");
    assert!(!world.orders().contains("moved"), "{}", world.picture());
}

#[test]
fn a_newcomer_is_owed_nothing_for_the_time_before_it_came() {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = [(0, 0.5), (1, 0.5)].into();
    world.script("submit 1 1; wait 6000");
    assert_eq!(world.picture(), "a: 0 | waits 1");
    let third = 1.0 / 3.0;
    world.policy.fractions = [(0, third), (1, third), (2, third)].into();
    world.script("submit 1; wait 60");
    // It is 1's turn by age and by what it is owed.
    assert_eq!(world.picture(), "a: 1 | waits 0 2");
}

#[test]
fn a_small_share_is_received_though_plans_are_frequent() {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = [(0, 0.8), (1, 0.2)].into();
    world.script("submit 1 1");
    let mut turns = 0;
    for _ in 0..100 {
        world.begin();
        world.wait(60.0);
        turns += world.running().contains(&1) as u32;
    }
    assert!(turns >= 15, "{turns} of 100 rounds");
}

#[test]
fn a_job_of_an_unknown_kind_is_rejected() {
    let mut world = World::new("a:1");
    let shapes = [Shape::of(KindId(7), 1)].into();
    let spec = JobSpec { shapes, ..world.spec("1") };
    world.step(Input::Submit(Box::new(spec)));
}

#[test]
fn a_shape_without_devices_is_never_used() {
    let mut world = World::new("a:1");
    world.script("submit 1 1|0");
}

#[test]
fn a_shape_without_devices_is_rejected_though_no_node_has_joined() {
    let mut world = World::new("");
    world.script("submit 0");
    let spec = NodeSpec::of("a", KindId(0), 1);
    world.step(Input::Node(NodeChange::Join(spec)));
    world.settle();
}

#[test]
fn a_shape_that_names_a_kind_twice_is_rejected_or_counted_right() {
    let mut world = World::new("a:4");
    let need = Need { kind: KindId(0), devices: 2 };
    let shape = Shape::of_needs(vec![need, need], Level::Any);
    let spec = JobSpec { shapes: [shape].into(), ..world.spec("1") };
    world.step(Input::Submit(Box::new(spec)));
    world.settle();
}

#[test]
fn a_state_with_an_infinite_rank_can_be_read_back() {
    let mut world = World::new("a:1");
    world.script("submit 1 rank inf");
    world.replan();
    let saved = serde_json::to_string(world.engine.state()).unwrap();
    let state: State = serde_json::from_str(&saved).unwrap();
    assert_eq!(state, *world.engine.state());
}

#[test]
fn a_queue_stops_nobody_when_it_places_anew() {
    let mut world = World::new("a:2 b:2");
    world.script("mode skip; submit 1 1 1 1; end 0; end 3");
    // First by rank and scattered: 4. Before those that run, but too large today: 5.
    world.script("submit 2@node rank -2; submit 2@node rank -1");
    world.orders();
    (0..6).for_each(|_| world.replan());
    assert!(!world.orders().contains("preempted"), "{}", world.picture());
}

#[test]
fn a_queue_stops_nobody_where_every_round_places_anew() {
    let settings = Settings { repack: true, ..Settings::default() };
    let mut world = World::with(settings, "a:1");
    world.script("mode queue; submit 1; submit 1 rank -1");
    assert_eq!(world.picture(), "a: 0 | waits 1");
}

#[test]
fn a_draining_node_keeps_its_jobs_when_everybody_is_placed_anew() {
    let settings = Settings { repack: true, ..Settings::default() };
    let mut world = World::with(settings, "a:1");
    world.script("submit 1; drain a");
    assert_eq!(world.picture(), "a: 0");
}

#[test]
fn fractions_without_rounds_let_time_go_on() {
    let mut world = World::new("a:1");
    world.policy.fractions = [(0, 0.5), (1, 0.5)].into();
    world.script("mode fractions; submit 1 1");
}

#[test]
fn the_same_shape_named_is_the_same_place() {
    let mut world = World::new("a:1");
    world.script("submit 1").orders();
    world.answers = false;
    world.replan();
    world.answer(Ok(all(vec![Share { shape: Some(0), ..share(&[0], 1.0, 0.0) }])));
    assert_eq!(world.orders(), "");
}

#[test]
fn a_node_of_too_many_devices_does_not_stop_the_engine() {
    let mut world = World::new("a:1");
    let spec = NodeSpec::of("b", KindId(0), 129);
    world.step(Input::Node(NodeChange::Join(spec)));
}

#[test]
fn counts_do_not_overflow() {
    let mut world = World::new("a:1");
    let need = |devices| Need { kind: KindId(0), devices };
    let shape = Shape::of_needs(vec![need(u32::MAX), need(2)], Level::Any);
    let spec = JobSpec { shapes: [shape].into(), ..world.spec("1") };
    world.step(Input::Submit(Box::new(spec)));
}

#[test]
fn huge_costs_do_not_overflow() {
    let mut world = World::with_rounds("a:1");
    world.costs.start = Span(u64::MAX);
    world.policy.fractions = [(0, 0.5), (1, 0.5)].into();
    world.policy.mode = Mode::Fractions;
    world.script("submit 1 1; wait 60");
}

#[test]
fn a_nan_speed_is_rejected() {
    let mut world = World::new("a:1");
    let spec = JobSpec { speeds: [f64::NAN].into(), ..world.spec("1") };
    world.step(Input::Submit(Box::new(spec)));
    world.settle();
    world.wait(5.0);
    assert!(serde_json::from_str::<State>(&serde_json::to_string(world.engine.state()).unwrap()).is_ok());
}

#[test]
fn a_group_without_its_lead_is_credited_the_time_it_holds() {
    // The lead of a group ends: the credit goes on for the other.
    let mut world = World::with_rounds("a:1");
    world.policy.fractions = [(0, 0.5), (1, 0.5), (2, 0.5)].into();
    world.policy.groups = vec![vec![0, 1]];
    world.failures_max = 9;
    world.policy.mode = Mode::Fractions;
    world.script("submit 1 1 1; wait 1; crash 0");
    let mut turns = [0; 3];
    for _ in 0..40 {
        world.wait(60.0);
        world.running().into_iter().for_each(|job| turns[job as usize] += 1);
    }
    assert!(turns[2] >= 19, "{turns:?}");
}

#[test]
fn a_share_passed_over_because_its_job_runs_on_a_draining_node_is_no_broken_promise() {
    let settings = Settings { round: Span::from_secs(60.0), repack: true, ..Settings::default() };
    let mut world = World::with(settings, "a:1 b:1");
    world.answers = false;
    world.script("submit 1|1");
    let part = |shape, fraction| Share { shape: Some(shape), ..share(&[0], fraction, 0.0) };
    let (shares, mode) = (Shares::All(vec![part(0, 0.5), part(1, 0.5)]), Mode::Fractions);
    world.answer(Ok(Allocation { mode, shares, replan_at: None, certificate: None }));
    // It keeps its device; its other share falls behind, so that it comes first, and node b would take it.
    world.script("drain a");
    (0..5).for_each(|_| world.wait(60.0));
    assert_eq!(world.picture(), "a: 0 | b: .");
}
