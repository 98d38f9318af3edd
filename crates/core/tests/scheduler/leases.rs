//! Promises, grants, renewals, and reports that come too late.

use yard_core::cluster::Slice;
use yard_core::engine::HeldJob;
use yard_core::ids::{JobId, LeaseId, NodeId};
use yard_core::message::{Event, Input, News, Outcome, Report, Why};
use yard_core::{Settings, Span};

use crate::common::World;

#[test]
fn a_promise_waits_until_the_old_holder_is_gone_and_is_granted_at_that_report() {
    let mut world = World::manual("a:2");
    world.script("submit 2").started(0);
    world.script("submit 1 1 rank -1");
    assert_eq!(world.picture(), "a: 0 0 | stops 0 | waits 1 2");
    assert_eq!(world.orders(), "grant 0, revoke 0 preempted");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.orders(), "grant 1, grant 2");
    assert_eq!(world.picture(), "a: 1 2 | waits 0");
}

#[test]
fn a_promise_on_two_nodes_waits_for_the_last_of_its_holders() {
    let mut world = World::manual("a:1 b:1");
    world.script("submit 1 1; submit 2 rank -1");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: . | b: 1 | stops 1 | waits 0 2");
    world.stopped(1, Outcome::Saved);
    assert_eq!(world.picture(), "a: 2 | b: 2 | waits 0 1");
}

#[test]
fn a_job_that_moves_is_granted_its_new_devices_only_after_it_left_the_old() {
    let mut world = World::manual("a:1 b:1:slow");
    world.script("submit 1|1slow; submit 1 rank -1");
    assert_eq!(world.picture(), "a: 0 | b: . | stops 0 | waits 1");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 1 | b: 0");
}

#[test]
fn a_promise_taken_back_before_the_grant_gives_no_orders() {
    let mut world = World::manual("a:1");
    world.script("submit 1; submit 1 rank -1").orders();
    world.script("submit 1 rank -2");
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0 | stops 0 | waits 1 2", ""));
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 2 | waits 0 1");
}

#[test]
fn a_job_that_ends_while_told_to_stop_leaves_its_devices_to_the_promise() {
    let mut world = World::manual("a:1");
    world.script("submit 1").started(0);
    world.script("submit 1 rank -1; end 0");
    assert_eq!(world.picture(), "a: 1");
}

#[test]
fn the_report_of_an_old_lease_is_ignored_with_an_event() {
    let mut world = World::new("a:1");
    world.script("submit 1; submit 1 rank -1; end 1");
    let (old, job) = (LeaseId(0), JobId(0));
    assert!(world.engine.job(job).is_some_and(|run| run.lease != Some(old)));
    let before = world.engine.state().clone();
    let news = News::Stopped { steps: 5.0, outcome: Outcome::Finished };
    world.step(Input::Report(Report { lease: old, job, news }));
    assert_eq!(world.events.last(), Some(&Event::Stale { lease: old, job }));
    assert_eq!(*world.engine.state(), before);
}

#[test]
fn the_report_of_a_job_that_never_was_is_ignored_with_an_event() {
    let mut world = World::new("a:1");
    let (lease, job) = (LeaseId(7), JobId(9));
    world.step(Input::Report(Report { lease, job, news: News::Started }));
    assert_eq!(world.events.last(), Some(&Event::Stale { lease, job }));
}

#[test]
fn a_start_reported_after_the_order_to_stop_changes_nothing() {
    let mut world = World::manual("a:1");
    world.script("submit 1; submit 1 rank -1");
    world.started(0);
    assert_eq!(world.picture(), "a: 0 | stops 0 | waits 1");
}

#[test]
fn lease_numbers_only_grow() {
    let mut world = World::new("a:2");
    world.script("submit 1 1; submit 1 rank -1; end 2; submit 2 rank -2; end 3; cancel 0; end 1; submit 1");
    let granted = world.granted();
    assert!(granted.len() >= 6 && granted.is_sorted_by(|one, next| one < next), "{granted:?}");
}

#[test]
fn a_lease_is_renewed_before_it_lapses_and_for_as_long_as_it_is_held() {
    let settings = Settings { lease: Span::from_secs(100.0), ..Settings::default() };
    let mut world = World::with(settings, "a:1");
    world.script("submit 1");
    assert_eq!(world.orders(), "grant 0");
    world.wait(49.0);
    assert_eq!(world.orders(), "");
    world.wait(1.0);
    assert_eq!(world.orders(), "renew lease 0");
    world.wait(100.0);
    assert_eq!(world.orders(), "renew lease 0, renew lease 0");
    world.script("end 0; wait 1000");
    assert_eq!((world.orders().as_str(), world.engine.deadline()), ("", None));
}

#[test]
fn a_lease_that_is_revoked_is_not_renewed() {
    let settings = Settings { lease: Span::from_secs(100.0), ..Settings::default() };
    let mut world = World::with(settings, "a:1");
    world.obeys = false;
    world.script("submit 1; submit 1 rank -1").orders();
    world.wait(1_000.0);
    assert_eq!(world.orders(), "");
}

#[test]
fn who_holds_what_can_be_read_back() {
    let mut world = World::manual("a:2");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1|2 1|2; submit 2 rank -1");
    let held: Vec<_> = world.engine.leases().collect();
    let job = |job| HeldJob { job: JobId(job), shape: 0, start: 1, stopping: Some(Why::Preempted) };
    let slice = Slice::of(NodeId(0), 1);
    // What is promised to job 2 is in nobody's hands yet.
    assert_eq!(held.len(), 1);
    assert_eq!((&held[0].placement.0[..], &held[0].jobs[..]), (&[slice][..], &[job(0), job(1)][..]));
    world.stopped(1, Outcome::Saved);
    world.stopped(0, Outcome::Saved);
    let held: Vec<_> = world.engine.leases().flat_map(|held| held.jobs).collect();
    assert_eq!(held, [HeldJob { job: JobId(2), shape: 0, start: 1, stopping: None }]);
}
