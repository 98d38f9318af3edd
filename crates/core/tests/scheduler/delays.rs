//! Jobs that are held back: until their user's time, or for a while after a failure.

use yard_core::ids::{JobId, JobIdx};
use yard_core::job::JobState;
use yard_core::message::{Input, Outcome};
use yard_core::{Settings, Span, Time};

use crate::common::World;

/// A cluster where a job that fails is held back for 10 s, then 20 s, then 40 s and so on.
fn patient(cluster: &str) -> World {
    let settings = Settings { backoff: Span::from_secs(10.0), lease: Span(u64::MAX), ..Settings::default() };
    let mut world = World::with(settings, cluster);
    world.failures_max = 100;
    world
}

fn held_until(world: &World, job: u64) -> Option<f64> {
    world.engine.job(JobId(job)).expect("a living job").held_until.map(Time::secs)
}

#[test]
fn a_job_does_not_start_before_its_time_and_starts_then() {
    let mut world = World::new("a:1");
    world.not_before = Some(Time::from_secs(50.0));
    world.script("submit 1");
    assert_eq!((world.picture().as_str(), world.engine.deadline()), ("a: . | waits 0", world.not_before));
    world.script("wait 49");
    assert_eq!(world.picture(), "a: . | waits 0");
    world.script("wait 1");
    assert_eq!((world.picture().as_str(), held_until(&world, 0)), ("a: 0", None));
}

#[test]
fn a_time_that_has_passed_holds_nobody_back() {
    let mut world = World::new("a:1");
    world.script("wait 60");
    world.not_before = Some(Time::from_secs(50.0));
    world.script("submit 1");
    assert_eq!(world.picture(), "a: 0");
}

#[test]
fn a_policy_does_not_see_a_job_that_is_held_back() {
    let mut world = World::new("a:1");
    world.script("submit 1");
    world.not_before = Some(Time::from_secs(50.0));
    world.script("submit 1");
    assert_eq!(world.engine.view().active().collect::<Vec<_>>(), [JobIdx(0)]);
    world.answers = false;
    world.script("wait 50");
    let (_, view) = world.plans.last().expect("the job came in");
    assert_eq!(view.changed.added, [JobIdx(1)]);
}

#[test]
fn each_failure_holds_a_job_back_twice_as_long_and_others_go_first_meanwhile() {
    let mut world = patient("a:1");
    world.script("submit 1 1; crash 0");
    assert_eq!((world.picture().as_str(), held_until(&world, 0)), ("a: 1 | waits 0", Some(10.0)));
    world.script("end 1; wait 10; crash 0");
    assert_eq!(held_until(&world, 0), Some(30.0));
    world.script("wait 20; crash 0");
    assert_eq!(held_until(&world, 0), Some(70.0));
}

#[test]
fn holding_back_has_a_longest_time() {
    let settings = Settings { backoff: Span::from_secs(10.0), ..Settings::default() };
    let seconds: Vec<_> = [0, 1, 2, 7, 8, 40, u32::MAX].map(|n| settings.hold_after(n).secs()).into();
    assert_eq!(seconds, [0.0, 10.0, 20.0, 640.0, 640.0, 640.0, 640.0]);
}

#[test]
fn who_was_stopped_or_lost_is_not_held_back() {
    let mut world = patient("a:1 b:1");
    world.script("submit 1 1; submit 1 rank -1; fail a");
    let held = (0..3).filter_map(|job| held_until(&world, job)).count();
    assert_eq!((held, world.picture().as_str()), (0, "a: . | b: 2 | waits 0 1"));
}

#[test]
fn a_member_that_fails_leaves_its_group_which_goes_on() {
    let mut world = patient("a:1");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1; crash 0");
    assert_eq!((world.picture().as_str(), held_until(&world, 0)), ("a: 1 | waits 0", Some(10.0)));
}

#[test]
fn a_promise_to_a_job_that_fails_falls() {
    let mut world = patient("a:1 b:1:slow");
    world.obeys = false;
    // Job 0 has to go to the slow device for the sake of 1, and fails instead of saving.
    world.script("submit 1|1slow; submit 1 rank -1; crash 0");
    assert_eq!((world.picture().as_str(), held_until(&world, 0)), ("a: 1 | b: . | waits 0", Some(10.0)));
    world.script("wait 10");
    assert_eq!(world.picture(), "a: 1 | b: 0");
}

#[test]
fn a_job_that_is_held_back_can_be_cancelled() {
    let mut world = patient("a:1");
    world.script("submit 1; crash 0; cancel 0");
    assert_eq!((world.end(0), world.engine.deadline()), (Some(JobState::Cancelled), None));
}

#[test]
fn a_plan_that_still_names_a_job_held_back_meanwhile_does_not_start_it() {
    let mut world = patient("a:2");
    world.script("submit 1");
    world.answers = false;
    world.script("submit 1");
    let answer = world.policy.allocate(&world.plans.last().expect("a newcomer is planned for").1);
    world.stopped(0, Outcome::Crashed);
    world.answer(Ok(answer));
    assert_eq!(world.picture(), "a: 1 . | waits 0");
}

#[test]
fn a_job_whose_time_is_used_up_has_failed_whatever_restarts_it_has_left() {
    let mut world = patient("a:1");
    world.script("submit 1");
    world.stopped(0, Outcome::Expired);
    assert_eq!(world.end(0), Some(JobState::Failed));
}

#[test]
fn a_driver_that_begins_brings_its_settings() {
    let mut world = patient("a:1");
    world.script("submit 1");
    let settings = Settings { backoff: Span::from_secs(3.0), ..world.engine.settings().clone() };
    world.step(Input::Begin(Box::new(settings)));
    world.script("crash 0");
    assert_eq!(held_until(&world, 0), Some(3.0));
}
