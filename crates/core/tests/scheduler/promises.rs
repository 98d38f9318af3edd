//! Deadlines that are promised, and how they are kept.

use yard_core::ids::JobId;
use yard_core::job::{JobSpec, JobState, Late, Reward};
use yard_core::message::{Event, Input, Outcome};
use yard_core::{Settings, Span, Time};

use crate::common::{QUEUE, World};

/// A cluster on which deadlines are promised, and first come is first served.
fn promising(cluster: &str) -> World {
    let settings = Settings { promises: true, lease: Span(u64::MAX), ..Settings::default() };
    let mut world = World::with(settings, cluster);
    world.policy.mode = QUEUE;
    world
}

/// Submits a job of 100 steps, one a second, with a deadline in so many seconds. The last word on it.
fn submit(world: &mut World, shapes: &str, seconds: f64, late: Late) -> Event {
    let deadline = Some(world.now + Span::from_secs(seconds));
    let spec = JobSpec { deadline, late, ..world.spec(shapes) };
    world.step(Input::Submit(Box::new(spec)));
    world.events.last().expect("an answer").clone()
}

/// Submits a job. The last word on it.
fn ask(world: &mut World, spec: JobSpec) -> Event {
    world.step(Input::Submit(Box::new(spec)));
    world.events.last().expect("an answer").clone()
}

fn at(seconds: f64) -> Time {
    Time::from_secs(seconds)
}

#[test]
fn a_promised_job_has_its_devices_when_it_must_and_not_before() {
    let mut world = promising("a:1");
    world.script("submit 1");
    let answer = submit(&mut world, "1", 250.0, Late::Refuse);
    assert_eq!(answer, Event::Promised { job: JobId(1), by: at(250.0), devices: 1 });
    world.script("wait 145");
    assert_eq!(world.picture(), "a: 0 | waits 1");
    world.script("wait 5");
    assert_eq!(world.picture(), "a: 1 | waits 0");
    world.script("wait 99; end 1");
    assert_eq!((world.picture().as_str(), world.now <= at(250.0)), ("a: 0", true));
}

#[test]
fn what_was_promised_is_not_promised_again() {
    let mut world = promising("a:2");
    assert!(matches!(submit(&mut world, "2", 150.0, Late::Refuse), Event::Promised { .. }));
    let Event::Rejected { earliest: Some(earliest), reason, .. } =
        submit(&mut world, "1", 160.0, Late::Refuse)
    else {
        panic!("it does not fit: {:?}", world.events.last())
    };
    assert!(reason.contains("earliest that can is"), "{reason}");
    assert!(earliest > at(200.0) && earliest < at(260.0), "{earliest}");
    let seconds = (earliest - world.now).secs();
    let answer = submit(&mut world, "1", seconds, Late::Refuse);
    assert!(matches!(answer, Event::Promised { .. }), "the earliest works: {answer:?}");
    let answer = submit(&mut world, "1", 160.0, Late::Try);
    assert!(matches!(answer, Event::Unpromised { job: JobId(3), earliest: Some(_) }), "{answer:?}");
}

#[test]
fn a_deadline_in_the_past_is_refused_in_one_sentence() {
    let mut world = promising("a:1");
    world.script("wait 10");
    let spec = JobSpec { deadline: Some(at(5.0)), ..world.spec("1") };
    world.step(Input::Submit(Box::new(spec)));
    let Some(Event::Rejected { reason, .. }) = world.events.last() else { panic!("it was taken") };
    assert!(reason.contains("in the past"), "{reason}");
}

#[test]
fn who_does_not_say_how_long_it_takes_is_promised_nothing() {
    let mut world = promising("a:1");
    let open = |world: &World, late| yard_core::job::JobSpec {
        deadline: Some(at(500.0)),
        length: yard_core::job::Length::Predicted,
        late,
        ..world.spec("1")
    };
    world.step(Input::Submit(Box::new(open(&world, Late::Refuse))));
    let Some(Event::Rejected { reason, .. }) = world.events.last() else { panic!("it was taken") };
    assert!(reason.contains("how long it takes"), "{reason}");
    world.step(Input::Submit(Box::new(open(&world, Late::Try))));
    assert!(!world.events.iter().any(|event| matches!(event, Event::Promised { .. })));
    world.settle();
    assert_eq!(world.picture(), "a: 1", "it is tried");
}

#[test]
fn of_soft_deadlines_the_best_that_can_be_kept_is_promised() {
    let mut world = promising("a:1");
    assert!(matches!(submit(&mut world, "1", 110.0, Late::Refuse), Event::Promised { .. }));
    let rewards = [(120.0, 10.0), (180.0, 8.0), (230.0, 5.0)].map(|(by, worth)| Reward { by: at(by), worth });
    let spec = JobSpec { deadline: Some(at(120.0)), rewards: Some(rewards.into()), ..world.spec("1") };
    world.step(Input::Submit(Box::new(spec)));
    let promised = Event::Promised { job: JobId(1), by: at(230.0), devices: 1 };
    assert_eq!(world.events.last(), Some(&promised));
}

#[test]
fn who_must_lie_together_finds_room_among_those_who_were_promised() {
    let mut world = promising("a:2 b:2");
    for _ in 0..4 {
        submit(&mut world, "1", 900.0, Late::Refuse);
    }
    world.settle();
    // One on each node is done; those that are left lie apart.
    world.script("end 0; end 2; submit 1 1; wait 1");
    let answer = submit(&mut world, "2@node", 300.0, Late::Refuse);
    assert!(matches!(answer, Event::Promised { .. }), "{answer:?}");
    world.script("wait 299");
    assert_eq!(world.state(6), Some(JobState::Running), "{}", world.picture());
}

#[test]
fn a_long_job_with_little_time_to_spare_is_planned_before_short_ones_that_are_due_sooner() {
    let mut world = promising("a:2");
    for _ in 0..2 {
        assert!(matches!(submit(&mut world, "1", 250.0, Late::Refuse), Event::Promised { .. }));
    }
    // As late as may be both short ones run from 150 s on, which leaves 210 s of the 310.
    let long = JobSpec { deadline: Some(at(310.0)), steps: 300.0, ..world.spec("1") };
    world.step(Input::Submit(Box::new(long)));
    let promised = Event::Promised { job: JobId(2), by: at(310.0), devices: 1 };
    assert_eq!(world.events.last(), Some(&promised));
}

#[test]
fn a_promise_that_may_not_be_kept_is_said_to_be_at_risk_once() {
    let mut world = promising("a:1 b:1");
    submit(&mut world, "1", 130.0, Late::Refuse);
    submit(&mut world, "1", 150.0, Late::Refuse);
    world.script("fail b; wait 10");
    let risks = |world: &World| {
        let risk = |event: &&Event| matches!(event, Event::AtRisk { .. });
        world.events.iter().filter(risk).cloned().collect::<Vec<_>>()
    };
    let said = risks(&world);
    assert!(matches!(said[..], [Event::AtRisk { job: JobId(1), likely: Some(_), .. }]), "{said:?}");
    world.script("wait 50");
    assert_eq!(risks(&world).len(), 1);
    assert_eq!(world.picture(), "a: 0 | b: . | waits 1");
}

#[test]
fn what_is_scattered_just_before_a_deadline_is_looked_for_earlier() {
    let mut world = promising("a:2 b:1 c:2");
    let by = |seconds: f64, shapes: &str, world: &World| JobSpec {
        deadline: Some(at(seconds)),
        ..world.spec(shapes)
    };
    // From 100 s to 150 s on b, which has no more than it asks for; from 156 s to 200 s, and not before, on a.
    let early = JobSpec { steps: 50.0, ..by(150.0, "1", &world) };
    let late = JobSpec { steps: 40.0, not_before: Some(at(152.0)), ..by(200.0, "2@node", &world) };
    assert!(matches!(ask(&mut world, early), Event::Promised { .. }));
    assert!(matches!(ask(&mut world, late), Event::Promised { .. }));
    // At any time there are three devices, but from 110 s to 200 s never the same: it must be done before 156 s.
    let wide = JobSpec { steps: 90.0, ..by(200.0, "3", &world) };
    assert_eq!(ask(&mut world, wide), Event::Promised { job: JobId(2), by: at(200.0), devices: 3 });
}

#[test]
fn who_may_not_be_stopped_and_is_about_to_have_its_devices_is_not_planned_elsewhere() {
    let mut world = promising("a:1");
    world.obeys = false;
    world.script("submit 1");
    world.started(0);
    submit(&mut world, "1", 300.0, Late::Refuse);
    let by = |seconds: f64, world: &World| JobSpec { deadline: Some(at(seconds)), ..world.spec("1") };
    // Before the last hundred seconds, which are the other's: it is to have the device from 148 s on.
    let whole = JobSpec { steps: 50.0, pausable: false, ..by(280.0, &world) };
    assert!(matches!(ask(&mut world, whole), Event::Promised { job: JobId(2), .. }));
    world.script("wait 150; cancel 1");
    assert_eq!(world.picture(), "a: 0 | stops 0 | waits 2");
    // Planned anew, the other would begin at 230 s; but it begins as soon as the device is given back.
    let short = JobSpec { steps: 30.0, ..by(200.0, &world) };
    let answer = ask(&mut world, short);
    assert!(matches!(answer, Event::Unpromised { job: JobId(3), .. }), "{answer:?}");
    world.stopped(0, Outcome::Saved);
    world.script("wait 1");
    assert_eq!(world.state(2), Some(JobState::Starting), "{}", world.picture());
}

#[test]
fn a_promise_that_is_broken_by_a_microsecond_is_said_to_be_at_risk_before_its_job_is_done() {
    let round = Span::from_secs(60.0);
    let settings = Settings { promises: true, round, lease: Span(u64::MAX), ..Settings::default() };
    let mut world = World::with(settings, "a:1");
    assert!(matches!(submit(&mut world, "1", 150.0, Late::Refuse), Event::Promised { .. }));
    world.script("wait 150");
    let risk = |event: &Event| matches!(event, Event::AtRisk { job: JobId(0), .. });
    assert!(!world.events.iter().any(risk), "it may still be done in time");
    world.now = world.now + Span(1);
    world.stopped(0, Outcome::Finished);
    let said = world.events.iter().position(risk).expect("it is too late");
    let ended = world.events.iter().position(|event| matches!(event, Event::Ended { .. }));
    assert!(Some(said) < ended, "{:?}", world.events);
}

#[test]
fn who_is_held_gives_up_what_was_promised_to_it() {
    let mut world = promising("a:1");
    submit(&mut world, "1", 150.0, Late::Refuse);
    world.script("hold 0");
    let promise = |world: &World| world.engine.job(JobId(0)).expect("it lives").promise;
    assert_eq!((promise(&world), world.picture().as_str()), (None, "a: . | waits 0"));
    let other = submit(&mut world, "1", 150.0, Late::Refuse);
    assert!(matches!(other, Event::Promised { .. }), "the devices are there for others: {other:?}");
    world.script("wait 10; release 0; wait 300; end 1");
    assert_eq!(world.picture(), "a: 0");
}
