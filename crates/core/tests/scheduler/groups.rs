//! Jobs that share devices.

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::belief::Belief;
use yard_core::explain::Reason;
use yard_core::ids::{JobId, JobIdx, KindId, ProfileId};
use yard_core::job::{JobSpec, JobState, Rank, Usage};
use yard_core::message::{Event, Input, News, Outcome, Report};

use crate::common::{PREEMPT, World};

/// Jobs 0 and 1 packed on one device, job 2 waiting for it.
fn packed() -> World {
    let mut world = World::new("a:1");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1 1");
    world
}

fn freed(world: &World) -> usize {
    world.events.iter().filter(|event| matches!(event, Event::Freed { .. })).count()
}

#[test]
fn a_group_is_granted_as_one() {
    let mut world = packed();
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+1 | waits 2", "grant 0+1"));
}

#[test]
fn when_one_of_a_group_is_done_the_other_runs_on_and_the_devices_come_back_once() {
    let mut world = packed();
    world.orders();
    world.script("end 0");
    assert_eq!((world.picture().as_str(), world.orders().as_str(), freed(&world)), ("a: 1 | waits 2", "", 0));
    world.script("end 1");
    assert_eq!((world.picture().as_str(), freed(&world)), ("a: 2", 1));
}

#[test]
fn a_cancelled_member_leaves_its_group() {
    let mut world = packed();
    world.script("cancel 1");
    assert_eq!(world.picture(), "a: 0 | waits 2");
    assert_eq!(world.orders(), "grant 0+1, revoke 1 cancelled");
    assert_eq!(world.end(1), Some(JobState::Cancelled));
}

#[test]
fn a_group_is_stopped_as_one_and_its_devices_wait_for_the_last() {
    let mut world = World::manual("a:1");
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1; submit 1 rank -1");
    assert_eq!(world.orders(), "grant 0+1, revoke 0+1 preempted");
    world.stopped(1, Outcome::Saved);
    assert_eq!(world.picture(), "a: 0 | stops 0 | waits 1 2");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 2 | waits 0 1");
}

#[test]
fn the_jobs_of_a_group_each_receive_the_time_they_held_the_devices() {
    let mut world = packed();
    world.script("wait 10; end 0; wait 5; end 1");
    let ledger = world.engine.ledger();
    assert_eq!((ledger.leased, ledger.ended_attained), (25_000_000, 25_000_000));
}

/// Job 0 may take one device or two, jobs 1 and 2 one; 0 and 1 are packed in the shape of one device.
fn unlike(world: &mut World) {
    world.answers = false;
    world.script("submit 2|1 1 1");
    let share = |rows: &[u32], shape| Share {
        jobs: rows.iter().map(|row| JobIdx(*row)).collect(),
        shape,
        ..Share::whole(JobIdx(0), Rank(rows[0] as f64, 0.0))
    };
    let shares = Shares::All(vec![share(&[0, 1], Some(1)), share(&[2], None)]);
    world.answer(Ok(Allocation { mode: PREEMPT, shares, replan_at: None, certificate: None }));
}

#[test]
fn jobs_with_different_shapes_share_devices_in_one_that_both_have() {
    let mut world = World::new("a:1");
    unlike(&mut world);
    assert_eq!(world.refusal(), None);
    assert_eq!(world.picture(), "a: 0+1 | waits 2");
    let shape = |world: &World, job| world.engine.job(JobId(job)).map(|run| run.shape);
    assert_eq!((shape(&world, 0), shape(&world, 1)), (Some(1), Some(0)), "each by its own list");
    // The first of the group leaves: its shape is the other's by its own name, and the policy can go on with it.
    world.script("end 0");
    world.engine.check();
    world.answers = true;
    world.replan();
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 1 | waits 2", "grant 0+1"));
}

/// Jobs 0 and 1, profiles 1 and 2, packed on one device under a belief that learns; both are up.
fn learning() -> World {
    let mut world = World::manual("a:1");
    world.step(Input::Believe(Box::new(Belief::default().learning())));
    world.policy.groups = vec![vec![0, 1]];
    world.answers = false;
    for profile in [1, 2] {
        let spec = JobSpec { profile: ProfileId(profile), ..world.spec("1") };
        world.step(Input::Submit(Box::new(spec)));
    }
    world.answers = true;
    world.replan();
    world.started(0);
    world
}

#[test]
fn speeds_alone_and_of_pairs_are_learned_from_reports() {
    let mut world = learning();
    let spec = |world: &World, row: usize| world.engine.view().specs[row].speeds[0];
    world.wait(10.0);
    world.report(0, News::Progress { steps: 40.0 });
    assert_eq!(
        (spec(&world, 0), spec(&world, 1)),
        (4.0, 1.0),
        "4 steps a second, not 1; the other is not up"
    );
    assert_eq!(world.engine.job(JobId(0)).map(|run| run.speed), Some(4.0));
    world.started(1);
    // Alone until now, in company from now on: the next report speaks of the pair.
    world.wait(10.0);
    world.report(0, News::Progress { steps: 70.0 });
    let beside = |world: &World| world.engine.view().belief.beside(ProfileId(1), ProfileId(2), KindId(0));
    assert_eq!((beside(&world), spec(&world, 0)), (Some(0.75), 4.0));
    // The other leaves between two reports: the stretch in mixed company is not taken for either.
    world.wait(5.0);
    world.stopped(1, Outcome::Crashed);
    world.wait(5.0);
    world.report(0, News::Progress { steps: 71.0 });
    assert_eq!((beside(&world), spec(&world, 0)), (Some(0.75), 4.0));
}

#[test]
fn believed_speeds_follow_the_company() {
    let mut world = World::manual("a:1");
    let mut belief = Belief::default();
    belief.set_beside(ProfileId(0), ProfileId(0), KindId(0), 0.75);
    belief.set_beside(ProfileId(9), ProfileId(9), KindId(0), f64::NAN);
    world.step(Input::Believe(Box::new(belief)));
    world.policy.groups = vec![vec![0, 1]];
    world.script("submit 1 1");
    let speed = |world: &World, job| world.engine.job(JobId(job)).map(|run| run.speed);
    let alone = world.spec("1").speeds[0];
    world.started(0);
    assert_eq!((speed(&world, 0), speed(&world, 1)), (Some(alone), Some(0.0)), "the other is not up yet");
    world.started(1);
    assert_eq!((speed(&world, 0), speed(&world, 1)), (Some(0.75 * alone), Some(0.75 * alone)));
    let rows: Vec<_> = world.engine.view().active().collect();
    assert_eq!(world.engine.view().packed(rows[0], rows[1], 0), Some([0.75 * alone; 2]));
    world.wait(8.0);
    world.stopped(1, Outcome::Finished);
    assert_eq!(speed(&world, 0), Some(alone));
    let run = world.engine.job(JobId(0)).expect("it goes on");
    assert_eq!((run.done, run.as_of), (6.0 * alone, world.now));
    assert_eq!(world.engine.view().belief.beside(ProfileId(9), ProfileId(9), KindId(0)), None, "no number");
}

/// Job 0 on a device that it has alone, and job 1 waiting.
fn alone_and_waiting() -> World {
    let mut world = World::manual("a:1");
    world.script("submit 1 1");
    world.started(0);
    assert_eq!(world.orders(), "grant 0");
    world
}

fn group(world: &mut World, groups: &[&[u64]]) {
    world.policy.groups = groups.iter().map(|group| group.to_vec()).collect();
    world.replan();
}

#[test]
fn a_job_joins_one_that_runs_and_leaves_it_unnoticed() {
    let mut world = alone_and_waiting();
    group(&mut world, &[&[0, 1]]);
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+1", "grant 1"));
    world.started(1);
    group(&mut world, &[]);
    assert_eq!(world.orders(), "revoke 1 preempted");
    // Wanted again before it is gone: it comes back as soon as it is.
    group(&mut world, &[&[0, 1]]);
    assert_eq!(world.orders(), "");
    world.stopped(1, Outcome::Saved);
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+1", "grant 1"));
    assert_eq!(world.engine.job(JobId(0)).map(|run| (run.starts, run.preemptions)), Some((1, 0)));
}

#[test]
fn nobody_joins_while_somebody_leaves() {
    let mut world = alone_and_waiting();
    world.script("submit 1");
    group(&mut world, &[&[0, 1]]);
    world.started(1);
    world.orders();
    group(&mut world, &[&[0, 2]]);
    assert_eq!(world.orders(), "revoke 1 preempted");
    world.stopped(1, Outcome::Saved);
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+2 | waits 1", "grant 2"));
}

#[test]
fn a_group_goes_on_without_the_one_that_was_first() {
    let mut world = alone_and_waiting();
    group(&mut world, &[&[0, 1]]);
    world.started(1);
    world.orders();
    world.answers = false;
    world.replan();
    let only = Share::whole(JobIdx(1), Rank::default());
    world.answer(Ok(Allocation {
        mode: PREEMPT,
        shares: Shares::All(vec![only]),
        replan_at: None,
        certificate: None,
    }));
    assert_eq!(world.orders(), "revoke 0 preempted");
    world.stopped(0, Outcome::Saved);
    assert_eq!(world.picture(), "a: 1 | waits 0");
    world.engine.check();
}

#[test]
fn who_waits_to_join_those_that_all_leave_finds_other_devices() {
    let mut world = World::manual("a:1 b:1");
    world.script("submit 1 1");
    world.started(0);
    world.started(1);
    // 1 is to join 0, and is still at work elsewhere when 0 is done.
    group(&mut world, &[&[0, 1]]);
    world.script("end 0");
    world.stopped(1, Outcome::Saved);
    assert_eq!(world.running(), [1].into());
    world.engine.check();
}

#[test]
fn where_nobody_is_stopped_jobs_join_and_none_leaves() {
    let mut world = alone_and_waiting();
    world.policy.mode = Mode::Ordered { preempt: false, skip: true, classes: true };
    group(&mut world, &[&[0, 1]]);
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+1", "grant 1"));
    group(&mut world, &[]);
    assert_eq!((world.picture().as_str(), world.orders().as_str()), ("a: 0+1", ""));
}

#[test]
fn a_job_that_never_says_how_far_it_is_is_measured_by_how_much_it_computes() {
    let mut world = World::manual("a:1");
    world.step(Input::Believe(Box::new(Belief::default().learning())));
    for profile in [1, 2] {
        let spec = JobSpec { profile: ProfileId(profile), ..world.spec("1") };
        world.step(Input::Submit(Box::new(spec)));
        world.settle();
    }
    world.started(0);
    let used = |world: &mut World, busy| {
        let lease = world.engine.job(JobId(0)).and_then(|run| run.lease).expect("it runs");
        let news = News::Usage(Usage { busy, memory_mib: 100 });
        world.step(Input::Report(Report { lease, job: JobId(0), news }));
        let beside = world.engine.view().belief.beside(ProfileId(1), ProfileId(2), KindId(0));
        (beside, world.engine.job(JobId(0)).and_then(|run| run.usage).map(|usage| usage.busy))
    };
    assert_eq!(used(&mut world, 0.8), (None, Some(0.8)));
    group(&mut world, &[&[0, 1]]);
    world.started(1);
    assert_eq!(used(&mut world, 0.2), (Some(0.25), Some(0.8)), "what it does alone stays known");
    assert_eq!(used(&mut world, 7.0), (Some(0.25), Some(0.8)), "nonsense is no news");
    let usage = world.engine.view().belief.usage(ProfileId(1)).map(|usage| usage.busy);
    assert_eq!(usage, Some(0.8), "and holds for the next of its sort");
}

#[test]
fn a_job_of_several_shares_joins_none_while_it_has_devices_through_another() {
    let mut world = World::new("a:1 b:1");
    world.answers = false;
    world.script("submit 1 1 1");
    let share = |rows: &[u32], fraction| Share {
        jobs: rows.iter().map(|row| JobIdx(*row)).collect(),
        fraction,
        ..Share::whole(JobIdx(rows[0]), Rank::default())
    };
    let answer = |world: &mut World, shares: Vec<Share>| {
        let shares = Shares::All(shares);
        world.answer(Ok(Allocation { mode: Mode::Fractions, shares, replan_at: None, certificate: None }));
        world.engine.check();
    };
    answer(&mut world, vec![share(&[0], 1.0), share(&[1], 1.0), share(&[2], 0.1)]);
    world.replan();
    // 1 keeps its own; 2 is asked for by two groups that hold devices, and goes to one of them.
    answer(&mut world, vec![share(&[0, 1], 0.3), share(&[0, 2], 0.3), share(&[1], 0.3), share(&[1, 2], 0.3)]);
    world.replan();
    answer(&mut world, vec![share(&[0, 2], 0.5), share(&[1, 2], 0.5)]);
}

#[test]
fn a_frozen_job_goes_on_where_it_lies_and_nowhere_else() {
    let mut world = World::manual("a:1 b:1");
    world.script("submit 1 1; submit 1 rank -1");
    [0, 1].into_iter().for_each(|job| world.started(job));
    assert_eq!(world.picture(), "a: 0 | b: 1 | stops 1 | waits 2");
    world.stopped(1, Outcome::Frozen);
    world.started(2);
    assert_eq!(world.picture(), "a: 0 | b: 2 | waits 1");
    // A device is free, but not the one where it lies.
    world.script("end 0");
    assert_eq!(world.picture(), "a: . | b: 2 | waits 1");
    assert_eq!(world.engine.explain(JobId(1)).map(|told| told.reason), Some(Reason::Frozen));
    world.script("end 2");
    assert_eq!(world.picture(), "a: . | b: 1");
}

#[test]
fn a_frozen_job_whose_home_is_lost_begins_anew_elsewhere() {
    for script in ["fail b", "leave b", "bad b 1"] {
        let mut world = World::manual("a:1 b:1");
        world.script("submit 1 1; submit 1 rank -1");
        [0, 1].into_iter().for_each(|job| world.started(job));
        world.stopped(1, Outcome::Frozen);
        world.started(2);
        world.script(&format!("end 0; rank 1 -2; {script}"));
        assert!(world.picture().starts_with("a: 1"), "{script}: {}", world.picture());
        world.engine.check();
    }
}

#[test]
fn jobs_that_take_turns_do_so_where_they_lie() {
    let mut world = World::with_rounds("a:1 b:1");
    world.policy.mode = Mode::Fractions;
    world.freezes = true;
    world.policy.fractions = (0..5).map(|job| (job, 0.4)).collect();
    world.script("submit 1 1 1 1 1");
    let mut turns = [0; 5];
    for _ in 0..200 {
        world.wait(60.0);
        world.engine.check();
        world.running().into_iter().for_each(|job| turns[job as usize] += 1);
    }
    assert!(turns.iter().all(|turns| *turns > 40), "{turns:?}");
    let moves = (0..5).filter_map(|job| world.engine.job(JobId(job))).map(|run| run.migrations);
    assert_eq!(moves.sum::<u32>(), 0);
}
