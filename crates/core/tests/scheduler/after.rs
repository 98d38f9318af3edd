//! Jobs that come after others.

use yard_core::Time;
use yard_core::explain::Reason;
use yard_core::ids::{JobId, JobIdx};
use yard_core::job::JobState;
use yard_core::message::{Event, Input};

use crate::common::World;

/// Jobs that were given up because one before them did not succeed, and which.
fn orphans(world: &World) -> Vec<(u64, u64)> {
    let orphaned = |event: &Event| match event {
        Event::Orphaned { job, after } => Some((job.0, after.0)),
        _ => None,
    };
    world.events.iter().filter_map(orphaned).collect()
}

/// Why the last job that was refused was.
fn refused(world: &World) -> Option<&str> {
    world.events.iter().rev().find_map(|event| match event {
        Event::Rejected { reason, .. } => Some(reason.as_str()),
        _ => None,
    })
}

#[test]
fn a_job_starts_once_all_before_it_have_succeeded() {
    let mut world = World::new("a:4");
    world.script("submit 1 1; after 0 1; submit 1");
    assert_eq!(world.picture(), "a: 0 1 . . | waits 2");
    assert_eq!(world.engine.view().active().collect::<Vec<_>>(), [JobIdx(0), JobIdx(1)]);
    world.script("end 1");
    assert_eq!(world.picture(), "a: 0 . . . | waits 2");
    world.script("end 0");
    assert_eq!(world.picture(), "a: 2 . . .");
}

#[test]
fn one_that_has_succeeded_before_counts_and_one_named_twice_counts_once() {
    let mut world = World::new("a:4");
    world.script("submit 1 1; end 0; after 0 1 1; submit 1");
    assert_eq!(world.picture(), "a: . 1 . . | waits 2");
    world.script("end 1");
    assert_eq!(world.picture(), "a: 2 . . .");
    world.script("after 0 1; submit 1");
    assert_eq!(world.picture(), "a: 2 3 . .");
}

#[test]
fn whoever_comes_after_one_that_fails_is_given_up_and_so_on_down_the_line() {
    let mut world = World::new("a:4");
    world.script("submit 1; after 0; submit 1; after 1; submit 1; after 0 2; submit 1; crash 0");
    assert_eq!(world.picture(), "a: . . . .");
    let mut given_up = orphans(&world);
    given_up.sort_unstable();
    // The last comes after two that failed; either may be named, and once.
    assert_eq!(given_up.iter().map(|(job, _)| *job).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((given_up[0], given_up[1]), ((1, 0), (2, 1)));
    let cancelled = Event::Ended { job: JobId(2), state: JobState::Cancelled };
    assert!(world.events.contains(&cancelled));
    assert_eq!(world.engine.ledger().ended, 4);
}

#[test]
fn a_long_line_is_given_up_without_a_deep_call() {
    let mut world = World::new("a:1");
    world.script("submit 1");
    let mut spec = world.spec("1");
    for job in 0..20_000u64 {
        spec.after = [JobId(job)].into();
        // Not through `step`, which checks everything each time.
        world.engine.step(world.now, Input::Submit(Box::new(spec.clone())), &mut Vec::new());
    }
    world.script("cancel 0");
    assert_eq!(orphans(&world).len(), 20_000);
}

#[test]
fn who_can_never_start_is_refused_in_one_sentence() {
    let mut world = World::new("a:1");
    world.script("after 0; submit 1");
    assert_eq!(refused(&world), Some("it comes after job 0, which does not exist: submit that one first"));
    world.script("submit 1");
    assert_eq!(refused(&world), Some("it comes after job 0, which did not succeed"));
    world.script("after; submit 1; cancel 2; after 2; submit 1");
    assert_eq!(refused(&world), Some("it comes after job 2, which did not succeed"));
}

#[test]
fn a_job_that_waits_for_others_may_be_cancelled_and_leaves_no_trace() {
    let mut world = World::new("a:2");
    world.script("submit 1; after 0; submit 1 1; cancel 1; end 0");
    assert_eq!((world.picture().as_str(), orphans(&world).as_slice()), ("a: 2 .", &[][..]));
}

#[test]
fn its_own_time_still_counts_once_the_others_are_done() {
    let mut world = World::new("a:2");
    world.script("submit 1; after 0");
    world.not_before = Some(Time::from_secs(50.0));
    world.script("submit 1; end 0");
    assert_eq!((world.picture().as_str(), world.engine.deadline()), ("a: . . | waits 1", world.not_before));
    world.script("wait 50");
    assert_eq!(world.picture(), "a: 1 .");
}

#[test]
fn the_explanation_names_the_jobs_it_waits_for() {
    let mut world = World::new("a:2");
    world.script("submit 1 1; after 0 1; submit 1; end 0");
    let told = world.engine.explain(JobId(2)).expect("a living job");
    assert_eq!((told.reason, told.awaits, told.until), (Reason::Dependency, vec![JobId(1)], None));
    world.script("end 1");
    let told = world.engine.explain(JobId(2)).expect("a living job");
    assert_eq!((told.reason, told.awaits), (Reason::Running, vec![]));
}
