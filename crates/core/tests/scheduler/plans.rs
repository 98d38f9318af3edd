//! Plans that fail, make no sense, come late or not at all.

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::cluster::NodeSpec;
use yard_core::ids::{JobId, JobIdx, PlanId};
use yard_core::job::Rank;
use yard_core::message::{Event, Input, NodeChange};
use yard_core::state::RestoreError;
use yard_core::{Engine, Span};

use crate::common::{FirstFit, PREEMPT, World};

fn group(rows: &[u32]) -> Share {
    Share { jobs: rows.iter().map(|row| JobIdx(*row)).collect(), ..whole(0, 0.0) }
}

fn all(shares: Vec<Share>) -> Allocation {
    Allocation { mode: PREEMPT, shares: Shares::All(shares), replan_at: None, certificate: None }
}

fn whole(row: u32, rank: f64) -> Share {
    Share::whole(JobIdx(row), Rank(rank, 0.0))
}

/// Job 0 runs, 1 and 2 wait, 2 of other shapes; the test answers the plan about them and all later ones.
fn asked() -> World {
    let mut world = World::new("a:1");
    world.script("submit 1");
    world.answers = false;
    world.script("submit 1 1|1");
    world
}

/// The same in rounds of a minute.
fn asked_in_rounds() -> World {
    let mut world = World::with_rounds("a:1");
    world.script("submit 1; wait 60");
    world.answers = false;
    world.script("submit 1 1|1; wait 60");
    world
}

#[test]
fn without_rounds_one_plan_is_made_at_a_time() {
    let mut world = asked();
    let first = world.plans[0].0;
    world.script("submit 1");
    assert_eq!(world.plans.len(), 1, "the first is not superseded, or it might never be done");
    world.answer(Ok(all(vec![whole(1, 0.0)])));
    assert_eq!(world.picture(), "a: 1 | waits 0 2 3");
    world.settle();
    assert!(
        world.plans.last().is_some_and(|(plan, _)| *plan > first),
        "what came meanwhile is asked about next"
    );
}

#[test]
fn a_plan_that_makes_no_sense_is_refused_changes_nothing_and_is_asked_for_again() {
    let ranked = |rank| Share { rank, ..whole(1, 0.0) };
    let part = |fraction| Share { fraction, ..whole(1, 0.0) };
    let cases = [
        (vec![part(1.5)], "a share's fraction is 1.5, not in (0, 1]"),
        (vec![part(0.0)], "a share's fraction is 0, not in (0, 1]"),
        (vec![part(f64::NAN)], "a share's fraction is NaN, not in (0, 1]"),
        (
            vec![part(0.6), Share { shape: Some(0), ..part(0.6) }],
            "the shares of job 1 add up to 1.2, above 1",
        ),
        (vec![ranked(Rank(f64::NAN, 0.0))], "a share's rank is not a number"),
        (vec![ranked(Rank(0.0, f64::NAN))], "a share's rank is not a number"),
        (vec![whole(9, 0.0)], "a share names row 9, which does not exist"),
        (vec![group(&[])], "a share without a job"),
        (vec![group(&[1, 2])], "a group in any shape, of jobs with different shapes"),
        (vec![Share { shape: Some(3), ..whole(1, 0.0) }], "a share names shape 3 of 1"),
    ];
    for (shares, expected) in cases {
        let mut world = asked();
        world.answer(Ok(all(shares)));
        assert_eq!(world.refusal(), Some(expected));
        assert_asked_again(world);
    }
}

#[test]
fn a_policy_that_has_no_answer_leaves_the_last_one_in_force() {
    let mut world = asked();
    world.answer(Err("the solver gave up".into()));
    assert_eq!(world.refusal(), Some("the solver gave up"));
    assert_asked_again(world);
}

fn assert_asked_again(mut world: World) {
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0 | waits 1 2", "grant 0"));
    let first = world.plans[0].1.clone();
    assert!(world.engine.deadline().is_some_and(|time| time > world.now), "not at once: it would fail again");
    world.wait(60.0);
    let again = &world.plans.last().expect("it was asked again").1;
    assert_eq!((world.plans.len(), &again.changed), (2, &first.changed));
    world.answer(Ok(all(vec![whole(1, 0.0)])));
    assert_eq!(world.picture(), "a: 1 | waits 0 2");
}

#[test]
fn the_answer_to_a_superseded_plan_is_ignored() {
    let mut world = asked_in_rounds();
    let late = world.plans[0].0;
    world.script("submit 1; wait 60");
    assert_eq!(world.plans.len(), 2);
    world.step(Input::Tick);
    let before = world.engine.state().clone();
    world.step(Input::Planned { plan: late, answer: Ok(all(vec![whole(1, 0.0)])) });
    assert_eq!(*world.engine.state(), before);
    world.answer(Ok(all(vec![whole(2, 0.0)])));
    assert_eq!(world.picture(), "a: 2 | waits 0 1 3");
}

#[test]
fn an_answer_nobody_asked_for_is_ignored() {
    let mut world = World::new("a:1");
    world.script("submit 1");
    let before = world.engine.state().clone();
    for plan in [PlanId(0), PlanId(1), PlanId(99)] {
        world.step(Input::Planned { plan, answer: Ok(all(Vec::new())) });
    }
    assert_eq!(*world.engine.state(), before);
}

#[test]
fn a_superseded_plan_is_asked_again_with_all_its_news() {
    let mut world = asked_in_rounds();
    world.script("submit 1; cancel 1; wait 60");
    let view = &world.plans.last().expect("it was asked again").1;
    // Job 0 started after the plan that chose it.
    assert_eq!(view.dirty(), [JobIdx(0), JobIdx(2), JobIdx(3)]);
    assert_eq!(view.changed.ended, [JobIdx(1)]);
}

#[test]
fn the_row_of_a_job_that_ended_while_a_plan_is_made_is_not_used_before_the_answer() {
    let mut world = asked();
    world.script("cancel 1; submit 1");
    assert_eq!(world.engine.view().runs[1].id.0, 1);
    world.answer(Ok(all(vec![whole(0, 0.0)])));
    world.script("submit 1");
    assert_eq!(world.engine.view().runs[1].id.0, 4);
}

#[test]
fn a_plan_may_name_a_job_that_ended_meanwhile() {
    let mut world = World::new("a:1");
    world.answers = false;
    world.script("submit 1 1");
    world.step(Input::Cancel(JobId(0)));
    world.answer(Ok(all(vec![whole(0, 0.0), whole(1, 1.0)])));
    assert_eq!(world.picture(), "a: 1");
}

#[test]
fn a_job_that_the_full_answer_leaves_out_gets_nothing() {
    let mut world = asked();
    world.answer(Ok(all(vec![whole(2, 0.0)])));
    assert_eq!(world.picture(), "a: 2 | waits 0 1");
}

#[test]
fn where_nothing_is_preempted_a_job_that_the_answer_leaves_out_runs_on() {
    let mut world = asked();
    world.answer(Ok(Allocation::queue(Shares::All(vec![whole(2, 0.0)]), true)));
    assert_eq!(world.picture(), "a: 0 | waits 1 2");
}

#[test]
fn an_answer_about_what_changed_leaves_the_others_as_they_are() {
    let mut world = asked();
    let changed = Shares::Changed(vec![whole(1, 1.0), whole(2, 0.5)]);
    world.answer(Ok(Allocation::preemptive(changed)));
    assert_eq!(world.picture(), "a: 0 | waits 1 2");
    world.answers = false;
    world.script("end 0");
    world.answer(Ok(Allocation::preemptive(Shares::Changed(Vec::new()))));
    assert_eq!(world.picture(), "a: 2 | waits 1");
}

#[test]
fn a_policy_is_asked_again_when_it_wanted_to_be() {
    let mut world = asked();
    let replan_at = Some(world.now + Span::from_secs(30.0));
    world.answer(Ok(Allocation { replan_at, ..all(vec![whole(0, 0.0)]) }));
    assert_eq!(world.engine.deadline(), replan_at);
    world.wait(29.0);
    assert_eq!(world.plans.len(), 1);
    world.wait(1.0);
    assert_eq!(world.plans.len(), 2);
}

#[test]
fn a_wish_to_be_asked_in_the_past_is_not_heard() {
    let mut world = asked();
    let replan_at = Some(world.now);
    world.answer(Ok(Allocation { replan_at, ..all(vec![whole(0, 0.0)]) }));
    assert_eq!(world.engine.deadline(), None);
}

#[test]
fn a_new_policy_is_asked_about_everything() {
    let mut world = World::new("a:1");
    world.script("submit 1 1");
    world.answers = false;
    world.replan();
    let view = &world.plans[0].1;
    assert!(view.changed.all);
    // Job 0 started after the plan that chose it.
    assert_eq!(view.dirty(), [JobIdx(0), JobIdx(1)]);
}

#[test]
fn while_a_plan_is_late_rounds_go_on_with_the_last_one() {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = [(0, 0.5), (1, 0.5)].into();
    world.script("submit 1 1");
    world.answers = false;
    world.script("wait 1; submit 1");
    let mut seen = Vec::new();
    for _ in 0..4 {
        world.wait(60.0);
        seen.extend(world.running());
    }
    assert!(seen.contains(&0) && seen.contains(&1), "{seen:?}");
}

#[test]
fn a_state_of_another_version_is_refused() {
    let mut world = World::new("a:1");
    world.script("submit 1 1");
    let mut saved = serde_json::to_value(world.engine.state()).expect("a state is data");
    saved["version"] = 0.into();
    let state = serde_json::from_value(saved).expect("the form is the same");
    let refused = Engine::restore(state, Box::new(FirstFit)).err().expect("another version is not read");
    assert_eq!(refused, RestoreError::Version { found: 0 });
    assert_eq!(refused.to_string(), "the saved state has version 0, this program reads versions 8 to 10");
}

#[test]
fn refused_plans_are_published_one_by_one() {
    let mut world = asked();
    for _ in 0..3 {
        world.answer(Err("no".into()));
        world.wait(60.0);
    }
    let failed = world.events.iter().filter(|event| matches!(event, Event::PlanFailed { .. }));
    assert_eq!((failed.count(), world.plans.len()), (3, 4));
}

#[test]
fn a_driver_that_begins_has_its_policy_asked_about_everything_and_waits_for_no_old_plan() {
    let mut world = World::new("a:2");
    world.answers = false;
    world.script("submit 1; submit 1");
    let (old, _) = world.plans.pop().expect("a plan is being made");
    world.begin();
    world.settle();
    let (new, view) = world.plans.last().expect("another is asked for");
    assert!(old != *new && view.changed.all);
    let before = world.engine.state().clone();
    world.step(Input::Planned { plan: old, answer: Err("too late".into()) });
    assert_eq!(*world.engine.state(), before);
}

#[test]
fn rows_kept_for_a_plan_that_will_not_come_are_used_again() {
    let mut world = World::new("a:1");
    world.script("submit 1");
    world.answers = false;
    world.script("submit 1; cancel 1");
    world.begin();
    world.script("submit 1");
    assert_eq!(world.engine.view().runs.len(), 2, "the row of the cancelled job is used again");
}

#[test]
fn a_kind_is_named_once_and_then_has_nodes() {
    let mut world = World::new("a:1");
    for name in ["h100", "gpu", "h100"] {
        world.step(Input::Kind(name.into()));
    }
    let kind = world.engine.kinds().find("h100").expect("it was just named");
    assert_eq!((kind.0, world.engine.kinds().len()), (1, 2));
    let spec = NodeSpec::of("b", kind, 1);
    world.step(Input::Node(NodeChange::Join(spec)));
    world.script("submit 1h100");
    assert_eq!(world.picture(), "a: . | b: 0");
}
