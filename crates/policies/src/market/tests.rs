//! Small clusters on which each rule of the market shows.

use std::sync::Arc;

use proptest::prelude::*;
use yard_core::allocation::{Certificate, Shares};
use yard_core::ids::LeaseId;
use yard_core::job::{Costs, JobState, Reward};
use yard_core::units::{Span, Time};
use yard_core::view::View;

use crate::testing::{World, elastic, policy, run};

/// The shapes given to the jobs of a view, leftovers aside, and the proof.
fn answer(spec: &str, view: &View) -> (Vec<Option<u16>>, Certificate) {
    let allocation = policy(spec).allocate(view).unwrap();
    let Shares::All(shares) = &allocation.shares else { panic!("all of them") };
    let mut given = vec![None; view.runs.len()];
    for share in shares.iter().filter(|share| share.rank.0 < 0.0) {
        given[share.jobs[0].index()] = Some(share.shape.unwrap_or(0));
    }
    (given, *allocation.certificate.unwrap())
}

fn set_deadline(view: &mut View, row: usize, seconds: f64) {
    let spec = Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[row]);
    spec.deadline = Some(Time::from_secs(seconds));
}

/// The job runs in this shape; a restart costs so many seconds.
fn running(view: &mut View, row: usize, shape: u16, restart: f64) {
    Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[row]).costs =
        Costs { load: Span::from_secs(restart), ..Costs::default() };
    let job = &mut Arc::make_mut(&mut view.runs)[row];
    (job.state, job.lease, job.shape, job.starts) = (JobState::Running, Some(LeaseId(1)), shape, 1);
}

#[test]
fn rigid_jobs_go_by_the_work_they_have_left() {
    let mut world = World::new(&[2]);
    world.submit_all(&[(1, 50.0), (1, 10.0), (2, 30.0), (1, 20.0)]);
    assert_eq!(run("market", &mut world)[1], 10.0);
    assert_eq!(run("market", &mut world)[3], 20.0);
    let ends: f64 = world.ends.values().sum();
    let mut other = World::new(&[2]);
    other.submit_all(&[(1, 50.0), (1, 10.0), (2, 30.0), (1, 20.0)]);
    assert!(ends <= run("srsf", &mut other).iter().sum::<f64>() + 1e-6);
}

#[test]
fn of_like_jobs_the_one_nearly_done_has_more() {
    let sizes = [(0, 1, 1.0), (0, 2, 1.7)];
    let view = elastic(&[3], &[(&sizes, 9000.0), (&sizes, 100.0)]);
    assert_eq!(answer("market", &view).0, [Some(0), Some(1)]);
    let view = elastic(&[3], &[(&sizes, 100.0), (&sizes, 9000.0)]);
    assert_eq!(answer("market", &view).0, [Some(1), Some(0)]);
}

#[test]
fn a_move_must_pay_before_the_job_is_done() {
    let sizes = [(0, 1, 1.0), (0, 2, 1.9)];
    let mut view = elastic(&[2], &[(&sizes, 100_000.0)]);
    view.now = Time::from_secs(10_000.0);
    running(&mut view, 0, 0, 60.0);
    assert_eq!(answer("market", &view).0, [Some(1)]);
    // A hundred seconds are left, and a minute of them would go: not worth it, though Sia would.
    Arc::make_mut(&mut view.runs)[0].done = 99_900.0;
    assert_eq!(answer("market", &view).0, [Some(0)]);
    assert_eq!(answer("sia", &view).0, [Some(1)]);
}

#[test]
fn a_move_must_gain_something() {
    let shape = |faster: f64| {
        let mut view = elastic(&[2], &[(&[(0, 1, 1.0), (0, 2, faster)], 100_000.0)]);
        view.now = Time::from_secs(10_000.0);
        running(&mut view, 0, 0, 0.0);
        answer("market", &view).0
    };
    assert_eq!(shape(1.04), [Some(0)]);
    assert_eq!(shape(1.06), [Some(1)]);
}

#[test]
fn who_runs_longer_than_believed_is_not_nearly_done_for_ever() {
    let jobs = |done: f64| {
        let mut view = elastic(&[1], &[(&[(0, 1, 1.0)], 100.0), (&[(0, 1, 1.0)], 200.0)]);
        running(&mut view, 0, 0, 0.0);
        Arc::make_mut(&mut view.runs)[0].done = done;
        answer("market", &view).0
    };
    assert_eq!(jobs(150.0), [Some(0), None]);
    assert_eq!(jobs(400.0), [None, Some(0)], "as long again as it is over");
}

#[test]
fn who_waited_long_enough_has_its_turn() {
    let jobs = |age: f64| {
        let mut view = elastic(&[1], &[(&[(0, 1, 1.0)], 9000.0), (&[(0, 1, 1.0)], 100.0)]);
        view.now = Time::from_secs(age);
        Arc::make_mut(&mut view.runs)[1].submitted = view.now;
        answer("market", &view).0
    };
    assert_eq!(jobs(60.0), [None, Some(0)]);
    assert_eq!(jobs(40_000.0), [Some(0), None]);
}

#[test]
fn weights_count() {
    let mut view = elastic(&[1], &[(&[(0, 1, 1.0)], 100.0), (&[(0, 1, 1.0)], 100.0)]);
    let first = answer("market", &view).0;
    let other = first.iter().position(Option::is_none).unwrap();
    Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[other]).weight = 2.0;
    assert!(answer("market", &view).0[other].is_some());
}

#[test]
fn deadlines_come_before_all_else_and_what_cannot_be_kept_is_named() {
    let sizes = [(0, 1, 1.0), (0, 2, 2.0), (0, 4, 4.0)];
    let mut view = elastic(&[4], &[(&sizes, 390.0), (&sizes, 10.0), (&sizes, 10.0)]);
    set_deadline(&mut view, 0, 100.0);
    let (given, proof) = answer("market", &view);
    assert_eq!((given, proof.unmet.len()), (vec![Some(2), None, None], 0), "it needs all four");
    set_deadline(&mut view, 0, 90.0);
    let (given, proof) = answer("market", &view);
    assert_ne!(given, [Some(2), None, None], "no use any more");
    assert_eq!(proof.unmet.iter().map(|job| job.index()).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_rigid_job_with_time_to_spare_lets_others_go_first() {
    let mut view = elastic(&[1], &[(&[(0, 1, 1.0)], 100.0), (&[(0, 1, 1.0)], 10.0)]);
    set_deadline(&mut view, 0, 1000.0);
    assert_eq!(answer("market", &view).0, [None, Some(0)]);
    set_deadline(&mut view, 0, 120.0);
    assert_eq!(answer("market", &view).0, [Some(0), None]);
}

#[test]
fn a_deadline_takes_no_more_than_it_needs_now() {
    let sizes = [(0, 1, 1.0), (0, 2, 1.8), (0, 4, 3.0)];
    let mut view = elastic(&[4], &[(&sizes, 5000.0), (&sizes, 3000.0), (&sizes, 100.0)]);
    let without = answer("market", &view).0;
    set_deadline(&mut view, 0, 50_000.0);
    assert_eq!(answer("market", &view).0, without, "it has time");
    set_deadline(&mut view, 0, 2900.0);
    assert_eq!(answer("market", &view).0[0], Some(1), "half of the devices are enough");
    set_deadline(&mut view, 0, 1700.0);
    assert_eq!(answer("market", &view).0[0], Some(2));
}

#[test]
fn as_many_deadlines_are_kept_as_can_be() {
    // One that needs four devices, or two that need two.
    let (four, two) = ([(0, 4, 1.0)], [(0, 2, 1.0)]);
    let mut view = elastic(&[4], &[(&four, 95.0), (&two, 95.0), (&two, 95.0)]);
    (0..3).for_each(|row| set_deadline(&mut view, row, 100.0));
    assert_eq!(answer("market", &view).0, [None, Some(0), Some(0)]);
}

#[test]
fn promised_jobs_are_worked_ahead_on_and_a_large_one_is_not_put_off_for_small_ones() {
    let (large, small) = ([(0, 4, 1.0)], [(0, 1, 1.0)]);
    let mut view = elastic(
        &[4],
        &[(&large, 1_000.0), (&small, 100.0), (&small, 100.0), (&small, 100.0), (&small, 100.0)],
    );
    set_deadline(&mut view, 0, 15_000.0);
    (1..5).for_each(|row| set_deadline(&mut view, row, 14_000.0));
    assert_eq!(answer("market", &view).0[0], None, "it need not begin yet");
    for row in 0..5 {
        Arc::make_mut(&mut view.runs)[row].promise = view.specs[row].deadline;
    }
    assert_eq!(answer("market", &view).0, [Some(0), None, None, None, None], "it must begin first");
}

#[test]
fn of_a_soft_deadline_the_next_reward_counts() {
    let mut view = elastic(&[1], &[(&[(0, 1, 1.0)], 150.0), (&[(0, 1, 1.0)], 10.0)]);
    let spec = Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[0]);
    let reward = |by, worth| Reward { by: Time::from_secs(by), worth };
    spec.deadline = Some(Time::from_secs(100.0));
    assert_eq!(answer("market", &view).0, [None, Some(0)]);
    let spec = Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[0]);
    spec.rewards = Some(Arc::from([reward(100.0, 10.0), reward(155.0, 8.0)]));
    assert_eq!(answer("market", &view).0, [Some(0), None]);
}

/// The largest sum of Sia's gains over all ways to choose: what the market is without weights, ages and deadlines.
fn brute(jobs: &[Vec<(u16, u32, f64)>], free: [u32; 2]) -> f64 {
    let Some((sizes, rest)) = jobs.split_first() else { return 0.0 };
    let slowest = sizes.iter().copied().reduce(|a, b| if b.2 < a.2 { b } else { a }).unwrap();
    let mut best = brute(rest, free);
    for (kind, devices, speed) in sizes.iter().filter(|size| size.1 <= free[size.0 as usize]) {
        let mut left = free;
        left[*kind as usize] -= devices;
        let gain = libm::pow(f64::from(slowest.1), 0.3) * (1.1 - libm::pow(speed / slowest.2, -0.5));
        best = best.max(gain + brute(rest, left));
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_choice_is_worth_more(
        jobs in prop::collection::vec((0.2..1.0f64, 0.5..3.0f64, 1u32..3), 1..5), free in (1u32..7, 1u32..7),
    ) {
        let sizes = |(power, fast, least): &(f64, f64, u32)| {
            let size = |(kind, times): (u16, u32)| {
                let fast = if kind == 0 { 1.0 } else { *fast };
                (kind, times * least, fast * libm::pow(f64::from(times), *power))
            };
            [(0, 1), (0, 2), (0, 4), (1, 1), (1, 2)].map(size).to_vec()
        };
        let jobs: Vec<Vec<(u16, u32, f64)>> = jobs.iter().map(sizes).collect();
        let rows: Vec<_> = jobs.iter().map(|sizes| (&sizes[..], 100.0)).collect();
        let view = elastic(&[free.0, free.1], &rows);
        let most = brute(&jobs, [free.0, free.1]);
        // Next to no preference for short jobs.
        let (_, proof) = answer("market:short=0.000000001", &view);
        prop_assert!(proof.objective <= most + 1e-6 && proof.objective >= most * 0.997, "{proof:?} {most}");
        prop_assert!(proof.bound >= most - 1e-6, "{proof:?} {most}");
    }
}
