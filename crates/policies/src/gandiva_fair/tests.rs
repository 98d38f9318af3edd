//! Ticket shares on one kind, trades on two, and that nobody is worse off than with its own ticket share.

use std::sync::Arc;

use proptest::prelude::*;
use yard_core::allocation::{Share, Shares};
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::{Need, Shape};
use yard_core::view::View;

use crate::testing::{TestNode, World, nodes, policy};

/// A user's jobs: weight, gang, and speed on each of two kinds.
type Owned = (f64, u32, [f64; 2], usize);

/// Two kinds of so many devices each, and the jobs of some users.
fn two_kinds(devices: [u32; 2], users: &[Owned]) -> View {
    let mut world = World::new(&[1]);
    for (_, gang, _, jobs) in users {
        (0..*jobs).for_each(|_| world.submit_all(&[(*gang, 1000.0)]));
    }
    let mut view = world.view.clone();
    let node = |kind: usize| TestNode {
        kind: kind as u16,
        devices: devices[kind],
        rack: 0,
        up: true,
        free: (1 << devices[kind]) - 1,
    };
    view.nodes = Arc::new(nodes(&[node(0), node(1)]));
    Arc::make_mut(&mut view.kinds).intern("slow");
    let specs = Arc::make_mut(&mut view.specs);
    let owners =
        users.iter().enumerate().flat_map(|(user, owned)| std::iter::repeat_n((user, owned), owned.3));
    for (spec, (user, (weight, gang, speeds, _))) in specs.iter_mut().zip(owners) {
        let spec = Arc::make_mut(spec);
        spec.user = Some(format!("u{user:02}").into());
        spec.weight = *weight;
        spec.shapes = [0, 1].map(|kind| Shape::of(KindId(kind), *gang)).into();
        spec.speeds = (*speeds).into();
    }
    view.changed.all = true;
    view
}

/// Steps per second by user, and devices used by kind.
fn outcome(view: &View, users: &[Owned]) -> (Vec<f64>, [f64; 2]) {
    let answer = policy("gandiva-fair").allocate(view).unwrap();
    let Shares::All(shares) = answer.shares else { panic!("an answer in full") };
    let (mut speeds, mut used) = (vec![0.0; users.len()], [0.0; 2]);
    for share in shares {
        let (job, shape) = (share.jobs[0], share.shape.unwrap());
        let user: usize = view.spec(job).user.as_ref().unwrap()[1..].parse().unwrap();
        speeds[user] += share.fraction * view.speed(job, shape);
        used[shape as usize] += share.fraction * f64::from(view.spec(job).shapes[shape as usize].devices());
    }
    (speeds, used)
}

#[test]
fn users_share_by_tickets_whatever_they_submit() {
    let mut world = World::new(&[8]);
    world.submit_all(&[(1, 10.0); 30]);
    let specs = Arc::make_mut(&mut world.view.specs);
    for (at, spec) in specs.iter_mut().enumerate() {
        Arc::make_mut(spec).user = Some(if at < 10 { "a" } else { "b" }.into());
    }
    world.plan(&mut *policy("gandiva-fair"));
    let fractions = world.fractions();
    let sum = |rows: std::ops::Range<usize>| fractions[rows].iter().sum::<f64>();
    assert!((sum(0..10) - 4.0).abs() < 1e-6 && (sum(10..30) - 4.0).abs() < 1e-6, "{fractions:?}");
}

#[test]
fn a_gang_is_charged_for_all_its_devices() {
    let mut world = World::new(&[4]);
    world.submit_all(&[(4, 10.0), (1, 10.0), (1, 10.0), (1, 10.0)]);
    world.plan(&mut *policy("gandiva-fair"));
    // Four users of one device each: a quarter of the time for the gang of four, all of it for the others.
    let fractions = world.fractions();
    assert!((fractions[0] - 0.25).abs() < 1e-6 && (fractions[1] - 1.0).abs() < 1e-6, "{fractions:?}");
}

#[test]
fn jobs_of_a_user_share_by_weight() {
    let users: [Owned; 2] = [(1.0, 1, [1.0, 1.0], 4), (1.0, 1, [1.0, 1.0], 4)];
    let mut view = two_kinds([1, 1], &users);
    Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[0]).weight = 5.0;
    let Shares::All(shares) = policy("gandiva-fair").allocate(&view).unwrap().shares else { panic!() };
    let part = |row: u32| {
        shares.iter().filter(|share| share.jobs[0] == JobIdx(row)).map(|share| share.fraction).sum::<f64>()
    };
    // Tickets of 2 and 1; of 4/3 devices 5/8 are for the heavy job.
    assert!((part(0) - 4.0 / 3.0 * 5.0 / 8.0).abs() < 1e-6, "{}", part(0));
    assert!((part(1) - 4.0 / 3.0 / 8.0).abs() < 1e-6, "{}", part(1));
}

#[test]
fn who_gains_most_from_fast_devices_gets_more_of_them() {
    let users: [Owned; 2] = [(1.0, 1, [1.2, 1.0], 8), (1.0, 1, [5.0, 1.0], 8)];
    let (speeds, _) = outcome(&two_kinds([4, 4], &users), &users);
    // Alone on half of each kind: 2 · 1.2 + 2 and 2 · 5 + 2. The second buys at 1.2: 2 / 1.2 more fast ones.
    assert!(
        (speeds[0] - 4.4).abs() < 1e-6 && (speeds[1] - (2.0 + 2.0 / 1.2) * 5.0).abs() < 1e-6,
        "{speeds:?}"
    );
}

#[test]
fn what_nobody_holds_replaces_slower_devices() {
    let users: [Owned; 2] = [(1.0, 1, [2.0, 1.0], 1), (1.0, 1, [3.0, 1.0], 1)];
    let (speeds, used) = outcome(&two_kinds([4, 4], &users), &users);
    assert!((speeds[0] - 2.0).abs() < 1e-6 && (speeds[1] - 3.0).abs() < 1e-6, "{speeds:?}");
    assert_eq!(used[1], 0.0, "who has all of its time on the fast kind is not let onto the slow one");
}

fn owned() -> impl Strategy<Value = Owned> {
    let gang = prop_oneof![Just(1u32), Just(2), Just(4)];
    (0.5f64..4.0, gang, (0.1f64..10.0, 0.1f64..10.0), 1usize..6)
        .prop_map(|(w, g, (a, b), n)| (w, g, [a, b], n))
}

proptest! {
    /// A ticket share of each kind, as far as the user's jobs can use it, is what nobody falls below.
    #[test]
    fn nobody_falls_below_its_ticket_share(users in prop::collection::vec(owned(), 1..6), a in 4u32..12, b in 4u32..12) {
        let view = two_kinds([a, b], &users);
        let (speeds, used) = outcome(&view, &users);
        prop_assert!(used[0] <= f64::from(a) + 1e-6 && used[1] <= f64::from(b) + 1e-6, "{:?}", used);
        let tickets: f64 = users.iter().map(|user| user.0).sum();
        for (user, speed) in users.iter().zip(&speeds) {
            let (weight, gang, rates, jobs) = user;
            let demand = f64::from(*gang) * *jobs as f64;
            let devices = f64::from(a + b) * weight / tickets;
            let usable = (demand / devices).min(1.0);
            let own: f64 = [a, b].iter().zip(rates).map(|(n, rate)| f64::from(*n) * rate / f64::from(*gang)).sum::<f64>() * weight / tickets * usable;
            prop_assert!(*speed >= own * (1.0 - 1e-6), "{:?}: {} below {}", user, speed, own);
        }
    }
}

#[test]
fn a_job_that_runs_on_several_kinds_at_once_has_what_is_left_over() {
    let mut view = two_kinds([4, 4], &[(1.0, 1, [2.0, 1.0], 1), (1.0, 1, [1.0, 1.0], 1)]);
    let spec = Arc::make_mut(&mut Arc::make_mut(&mut view.specs)[1]);
    let needs = [0, 1].map(|kind| Need { kind: KindId(kind), devices: 1 }).to_vec();
    spec.shapes = [Shape { needs, ..Shape::of(KindId(0), 1) }].into();
    spec.speeds = [1.0].into();
    let Shares::All(shares) = policy("gandiva-fair").allocate(&view).unwrap().shares else { panic!("all") };
    let own: Vec<_> = shares.iter().filter(|share| share.jobs[0] == JobIdx(1)).collect();
    assert!(own.len() == 1 && own[0].shape == Some(0) && own[0].fraction <= Share::LEFTOVER, "{own:?}");
}
