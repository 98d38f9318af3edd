//! A job's life: cancelled, crashed, preempted, done.

use yard_core::ids::JobId;
use yard_core::job::{JobRun, JobState};
use yard_core::message::{Command, Effect, Input, News, Outcome, Why};

use crate::common::World;

fn run(world: &World, job: u64) -> &JobRun {
    world.engine.job(JobId(job)).expect("a living job")
}

#[test]
fn a_waiting_job_is_cancelled_at_once() {
    let mut world = World::new("a:1");
    world.script("submit 1 1; cancel 1");
    assert_eq!((world.end(1), world.picture().as_str()), (Some(JobState::Cancelled), "a: 0"));
    assert_eq!(world.orders(), "grant 0");
}

#[test]
fn a_running_job_is_cancelled_when_it_gave_its_devices_back() {
    let mut world = World::manual("a:1");
    world.script("submit 1 1").started(0);
    world.script("cancel 0");
    assert_eq!((world.end(0), world.picture().as_str()), (None, "a: 0 | stops 0 | waits 1"));
    world.stopped(0, Outcome::Saved);
    world.settle();
    assert_eq!((world.end(0), world.picture().as_str()), (Some(JobState::Cancelled), "a: 1"));
    assert_eq!(world.orders(), "grant 0, revoke 0 cancelled, grant 1");
}

#[test]
fn a_job_that_is_suspending_is_cancelled_without_being_told_to_stop_twice() {
    let mut world = World::manual("a:1");
    world.script("submit 1; submit 1 rank -1; cancel 0; cancel 0");
    assert_eq!(world.orders(), "grant 0, revoke 0 preempted");
    world.stopped(0, Outcome::Saved);
    assert_eq!((world.end(0), world.picture().as_str()), (Some(JobState::Cancelled), "a: 1"));
}

#[test]
fn a_job_that_is_done_before_its_cancellation_arrives_is_done() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.script("cancel 0; end 0");
    assert_eq!(world.end(0), Some(JobState::Succeeded));
}

#[test]
fn a_promised_job_is_cancelled_at_once_and_its_promise_falls() {
    let mut world = World::manual("a:1");
    world.script("submit 1; submit 1 rank -1; cancel 1");
    assert_eq!((world.end(1), world.picture().as_str()), (Some(JobState::Cancelled), "a: 0 | stops 0"));
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 0");
}

#[test]
fn a_job_that_is_being_stopped_can_be_killed_once() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.script("submit 1 rank -1");
    assert_eq!(run(&world, 0).stopping, Some(Why::Preempted));
    world.script("cancel 0");
    assert_eq!(run(&world, 0).stopping, Some(Why::Preempted), "it is on its way out already");
    let mut out = Vec::new();
    world.engine.step(world.now, Input::Kill(JobId(0)), &mut out);
    let killed = |effect: &Effect| matches!(effect, Effect::Execute(Command::Revoke { jobs, why: Why::Killed, .. }) if jobs[..] == [JobId(0)]);
    assert!(out.iter().any(killed), "{out:?}");
    assert_eq!(run(&world, 0).stopping, Some(Why::Killed), "a server that restarts goes on with it");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.end(0), Some(JobState::Cancelled));
    world.script("kill 1");
    world.stopped(1, Outcome::Crashed);
    assert_eq!(world.end(1), Some(JobState::Cancelled));
}

#[test]
fn cancelling_a_job_that_is_over_or_never_was_changes_nothing() {
    let mut world = World::new("a:1");
    world.script("submit 1; end 0");
    let before = world.engine.state().clone();
    world.step(Input::Cancel(JobId(0)));
    world.step(Input::Cancel(JobId(77)));
    assert_eq!(*world.engine.state(), before);
}

#[test]
fn a_job_crashes_no_more_often_than_it_may() {
    let mut world = World::new("a:1");
    world.failures_max = 2;
    world.script("submit 1; crash 0; crash 0");
    assert_eq!((world.end(0), world.picture().as_str()), (None, "a: 0"));
    world.script("crash 0");
    assert_eq!((world.end(0), world.picture().as_str()), (Some(JobState::Failed), "a: ."));
}

#[test]
fn preemption_and_lost_nodes_do_not_count_as_failures() {
    let mut world = World::new("a:1");
    world.script("submit 1; submit 1 rank -1; end 1; fail a; resume a");
    let run = run(&world, 0);
    assert_eq!((run.state, run.failures, run.preemptions, run.starts), (JobState::Running, 0, 1, 3));
}

#[test]
fn a_preempted_job_is_suspended_and_keeps_its_progress() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.script("wait 10; submit 1 rank -1; wait 5");
    world.report(0, News::Stopped { steps: 9.5, outcome: Outcome::Saved });
    let run = run(&world, 0);
    assert_eq!((run.state, run.done, run.speed), (JobState::Suspended, 9.5, 0.0));
    // It held the device while it wrote its checkpoint, too.
    assert_eq!(run.attained_at(world.now), 15.0);
}

#[test]
fn a_job_that_stops_by_itself_without_being_done_waits_for_its_turn_again() {
    let mut world = World::new("a:1");
    world.script("submit 1 1").stopped(0, Outcome::Saved);
    assert_eq!(run(&world, 0).state, JobState::Pending);
    world.settle();
    assert_eq!((world.picture().as_str(), run(&world, 0).failures), ("a: 0 | waits 1", 0));
}

#[test]
fn believed_progress_follows_the_reports() {
    let mut world = World::new("a:1");
    world.script("submit 1; wait 10");
    assert_eq!(run(&world, 0).done_at(world.now), 10.0);
    world.report(0, News::Progress { steps: 4.0 });
    world.wait(2.0);
    assert_eq!(run(&world, 0).done_at(world.now), 6.0);
    world.report(0, News::Progress { steps: f64::NAN });
    assert_eq!(run(&world, 0).done_at(world.now), 6.0);
}
