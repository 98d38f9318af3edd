//! Users hold their jobs, release them, have them start again, and change what they ask for.

use yard_core::ids::JobId;
use yard_core::job::{JobState, Length};
use yard_core::message::{Edit, Input, Outcome, Why};
use yard_core::{Settings, Span, State, Time};

use crate::common::World;

fn is_held(world: &World, job: u64) -> bool {
    world.engine.job(JobId(job)).expect("a living job").held
}

fn edit(world: &World, job: u64) -> Edit {
    let spec = world.engine.job_spec(JobId(job)).expect("a living job");
    Edit {
        job: JobId(job),
        name: spec.name.clone(),
        weight: spec.weight,
        priority: spec.priority,
        deadline: spec.deadline,
        steps: None,
    }
}

#[test]
fn a_job_that_is_held_gets_no_devices_until_it_is_released() {
    let mut world = World::new("a:1");
    world.script("submit 1 1; hold 1; end 0");
    assert_eq!((world.picture().as_str(), is_held(&world, 1)), ("a: . | waits 1", true));
    assert_eq!(world.engine.view().active().count(), 0, "no policy sees it");
    world.script("wait 100000");
    assert_eq!((world.picture().as_str(), world.engine.deadline()), ("a: . | waits 1", None));
    world.script("release 1");
    assert_eq!((world.picture().as_str(), is_held(&world, 1)), ("a: 1", false));
}

#[test]
fn a_job_that_runs_is_paused_and_stays_held_and_its_devices_go_to_others() {
    let mut world = World::new("a:1");
    world.obeys = false;
    world.script("submit 1 1");
    world.started(0);
    world.orders();
    world.script("hold 0");
    assert_eq!(world.orders(), "revoke 0 held");
    assert_eq!(world.picture(), "a: 0 | stops 0 | waits 1");
    world.stopped(0, Outcome::Saved);
    world.settle();
    assert_eq!((world.picture().as_str(), world.state(0)), ("a: 1 | waits 0", Some(JobState::Suspended)));
    world.script("release 0");
    world.stopped(1, Outcome::Finished);
    world.settle();
    assert_eq!(world.picture(), "a: 0");
}

#[test]
fn a_hold_that_is_taken_back_while_the_job_stops_holds_nobody() {
    let mut world = World::new("a:1");
    world.obeys = false;
    world.script("submit 1");
    world.started(0);
    world.script("hold 0; release 0");
    world.stopped(0, Outcome::Saved);
    world.settle();
    assert_eq!(world.picture(), "a: 0");
}

#[test]
fn a_job_that_is_held_before_its_time_or_its_turn_stays_held_after_it() {
    let mut world = World::new("a:2");
    world.not_before = Some(Time::from_secs(50.0));
    world.script("submit 1");
    world.not_before = None;
    world.script("submit 1; after 1; submit 1; hold 0; hold 2; wait 60; end 1");
    assert_eq!(world.picture(), "a: . . | waits 0 2");
    world.script("release 2; release 0");
    assert_eq!(world.picture(), "a: 2 0");
}

#[test]
fn a_job_that_is_released_before_its_time_still_waits_for_it() {
    let mut world = World::new("a:1");
    world.not_before = Some(Time::from_secs(50.0));
    world.script("submit 1; hold 0; release 0; wait 49");
    assert_eq!(world.picture(), "a: . | waits 0");
    world.script("wait 1");
    assert_eq!(world.picture(), "a: 0");
}

#[test]
fn a_job_that_fails_while_it_is_held_is_not_let_in_by_its_back_off() {
    let settings = Settings { backoff: Span::from_secs(10.0), ..Settings::default() };
    let mut world = World::with(settings, "a:1");
    (world.failures_max, world.obeys) = (100, false);
    world.script("submit 1");
    world.started(0);
    world.script("hold 0");
    world.stopped(0, Outcome::Crashed);
    world.script("wait 100");
    assert_eq!(world.picture(), "a: . | waits 0");
}

#[test]
fn a_member_of_a_group_that_is_held_leaves_it_and_the_group_goes_on() {
    let mut world = World::new("a:1");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1; hold 0");
    assert_eq!(world.picture(), "a: 1 | waits 0");
}

#[test]
fn a_job_that_is_held_can_be_cancelled() {
    let mut world = World::new("a:1");
    world.script("submit 1; hold 0; cancel 0");
    assert_eq!(world.end(0), Some(JobState::Cancelled));
}

#[test]
fn a_job_that_starts_again_gives_its_devices_back_first() {
    let mut world = World::new("a:1");
    world.obeys = false;
    world.script("submit 1");
    world.started(0);
    world.orders();
    world.script("requeue 0");
    assert_eq!(world.orders(), "revoke 0 requeued");
    assert_eq!(world.engine.job(JobId(0)).and_then(|run| run.stopping), Some(Why::Requeued));
    world.stopped(0, Outcome::Saved);
    world.settle();
    let run = world.engine.job(JobId(0)).expect("it lives");
    assert_eq!((run.starts, run.preemptions, world.orders().as_str()), (2, 0, "grant 0"));
    world.script("submit 1; requeue 1");
    assert_eq!(world.orders(), "", "who waits has nothing to give back");
}

#[test]
fn what_a_waiting_job_asks_for_may_change_and_with_it_its_place() {
    let mut world = World::new("a:1");
    world.script("submit 1 1 1");
    let change =
        Edit { name: "new".into(), priority: 5, steps: Some((7.0, Length::Stated)), ..edit(&world, 2) };
    world.step(Input::Edit(Box::new(change)));
    world.script("end 0");
    assert_eq!(world.picture(), "a: 2 | waits 1");
    let spec = world.engine.job_spec(JobId(2)).expect("it lives");
    assert_eq!((&*spec.name, spec.priority, spec.steps), ("new", 5, 7.0));
}

#[test]
fn what_makes_no_sense_or_runs_is_not_changed() {
    let mut world = World::new("a:1");
    world.script("submit 1 1");
    let before = [0, 1].map(|job| world.engine.job_spec(JobId(job)).cloned());
    world.step(Input::Edit(Box::new(Edit { weight: 2.0, ..edit(&world, 0) })));
    world.step(Input::Edit(Box::new(Edit { weight: f64::NAN, ..edit(&world, 1) })));
    let change = Edit { job: JobId(9), ..edit(&world, 1) };
    world.step(Input::Edit(Box::new(change)));
    assert_eq!([0, 1].map(|job| world.engine.job_spec(JobId(job)).cloned()), before);
}

#[test]
fn a_state_that_was_saved_before_jobs_could_be_held_can_be_read() {
    let mut world = World::new("a:1");
    world.script("submit 1 1");
    let saved = serde_json::to_string(world.engine.state()).expect("plain data");
    let before = saved.replace("\"held\":false,", "");
    assert!(before.len() < saved.len());
    let state: State = serde_json::from_str(&before).expect("what is missing has a default");
    assert!(&state == world.engine.state());
}
