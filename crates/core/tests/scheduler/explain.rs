//! Reasons, and remedies that are tried: what an explanation says would start a job, starts it.

use proptest::prelude::*;
use yard_core::Time;
use yard_core::allocation::{Allocation, Certificate, Mode, Share, Shares};
use yard_core::cluster::NodeSpec;
use yard_core::explain::{Ahead, Explained, Reason, Remedy};
use yard_core::ids::{JobId, JobIdx, KindId, NodeId};
use yard_core::job::{JobSpec, Need, Rank, Shape};
use yard_core::message::{Event, Input, NodeChange, Why};

use crate::common::{PREEMPT, QUEUE, SKIP, World};

fn explained(world: &World, job: u64) -> Explained {
    world.engine.explain(JobId(job)).expect("a living job")
}

#[track_caller]
fn check(cluster: &str, script: &str, job: u64, reason: Reason, remedies: &[Remedy]) {
    let mut world = World::new(cluster);
    world.script(script);
    let got = explained(&world, job);
    assert_eq!((got.reason, &got.remedies[..]), (reason, remedies), "{}", world.picture());
}

fn fewer(kind: u16, devices: u32) -> Remedy {
    Remedy::Fewer { kind: KindId(kind), devices }
}

#[test]
fn who_works_is_said_to() {
    check("a:1", "submit 1", 0, Reason::Running, &[]);
}

#[test]
fn of_a_job_that_is_over_there_is_nothing_to_say() {
    let mut world = World::new("a:1");
    world.script("submit 1; end 0");
    assert_eq!(world.engine.explain(JobId(0)), None);
}

#[test]
fn who_is_in_front_is_named_with_what_it_holds() {
    let mut world = World::new("a:3 b:1:slow");
    world.script("submit 2 1slow 2 1; submit 2 rank 9");
    let got = explained(&world, 4);
    let ahead = |job, devices| Ahead { job: JobId(job), devices, urgent: false };
    assert_eq!((got.reason, got.n_ahead), (Reason::Priority, 3));
    assert_eq!(got.ahead, [ahead(0, 2), ahead(2, 0), ahead(3, 1)]);
}

#[test]
fn who_is_in_front_by_its_priority_is_counted() {
    let mut world = World::new("a:2");
    world.script("submit 1 2");
    world.submit_spec(JobSpec { priority: 5, ..world.spec("2") });
    world.settle();
    let got = explained(&world, 1);
    assert_eq!((got.reason, got.n_ahead, got.n_urgent), (Reason::Priority, 2, 1), "{}", world.picture());
    let urgent: Vec<_> = got.ahead.iter().filter(|other| other.urgent).map(|other| other.job).collect();
    assert_eq!(urgent, [JobId(2)]);
}

#[test]
fn too_few_free_devices_with_nobody_in_front_is_a_matter_of_capacity() {
    check("a:4", "mode skip; submit 3; submit 2 rank -1", 1, Reason::Capacity, &[fewer(0, 1)]);
}

#[test]
fn devices_that_lie_apart_do_not_help_a_gang() {
    let script = "mode skip; submit 2 1; end 0; submit 1; submit 2@node";
    check("a:2 b:2", script, 3, Reason::Topology, &[fewer(0, 1)]);
}

#[test]
fn a_gang_larger_than_what_is_up_waits_for_nodes() {
    let resume = Remedy::Resume { node: NodeId(1) };
    check("a:2 b:2", "drain b; submit 4", 0, Reason::Gang, &[fewer(0, 2), resume]);
    check(
        "a:2 b:2",
        "bad b 1; submit 2@node 2@node",
        1,
        Reason::Priority,
        &[fewer(0, 1), Remedy::Repair { node: NodeId(1) }],
    );
}

#[test]
fn without_nodes_of_its_kinds_a_job_is_told_of_others() {
    let other = Remedy::Kind { kind: KindId(1), free: 2 };
    let resume = Remedy::Resume { node: NodeId(0) };
    check("a:1 b:2:slow", "drain a; submit 1", 0, Reason::Nodes, &[other, resume]);
}

#[test]
fn what_those_in_line_will_take_is_not_offered() {
    // The node would go to job 1, which is first.
    check("a:1 b:1", "mode queue; drain b; submit 1 1 1", 2, Reason::Priority, &[]);
}

#[test]
fn who_is_held_back_is_told_until_when() {
    let mut world = World::new("a:1");
    world.not_before = Some(Time::from_secs(9.0));
    world.script("submit 1");
    let got = explained(&world, 0);
    assert_eq!((got.reason, got.until), (Reason::Held, world.not_before));
}

#[test]
fn who_was_promised_devices_starts_and_who_gives_them_back_stops() {
    let mut world = World::manual("a:1");
    world.script("submit 1; submit 1 rank -1");
    assert_eq!(explained(&world, 0).reason, Reason::Stopping);
    assert_eq!(explained(&world, 1).reason, Reason::Starting);
}

#[test]
fn who_is_stopped_learns_for_whom() {
    let mut world = World::new("a:2 b:1");
    world.script("submit 2@node 1; submit 2@node rank -1");
    let stops: Vec<_> = world.events.iter().filter(|event| matches!(event, Event::Stopping { .. })).collect();
    let stopping =
        Event::Stopping { job: JobId(0), why: Why::Preempted, to: [JobId(2)].into_iter().collect() };
    assert_eq!(stops, [&stopping], "{}", world.picture());
}

#[test]
fn who_gets_nothing_at_the_prices_in_force_is_told_so() {
    let mut world = World::new("a:1");
    world.answers = false;
    world.script("submit 1 1");
    let certificate = Certificate { objective: 1.0, bound: 1.0, prices: vec![1.0], unmet: Vec::new() };
    let only = Share::whole(JobIdx(0), Rank::default());
    let plan = Allocation {
        certificate: Some(Box::new(certificate)),
        ..Allocation::preemptive(Shares::All(vec![only]))
    };
    world.answer(Ok(plan));
    world.settle();
    assert_eq!((explained(&world, 0).reason, explained(&world, 1).reason), (Reason::Running, Reason::Price));
    assert_eq!(explained(&world, 1).kinds[0].price, Some(1.0));
}

#[test]
fn who_gets_nothing_because_others_have_all_waits_for_those() {
    let mut world = World::new("a:1");
    world.answers = false;
    world.script("submit 1 1");
    let only = Share::whole(JobIdx(0), Rank::default());
    world.answer(Ok(Allocation::preemptive(Shares::All(vec![only]))));
    world.settle();
    let got = explained(&world, 1);
    let ahead = Ahead { job: JobId(0), devices: 1, urgent: false };
    assert_eq!((got.reason, &got.ahead[..]), (Reason::Priority, &[ahead][..]), "{}", world.picture());
}

#[test]
fn who_comes_to_a_full_cluster_waits_for_devices_where_nobody_is_stopped() {
    for (mode, reason) in [(SKIP, Reason::Priority), (PREEMPT, Reason::Policy)] {
        let mut world = World::new("a:1");
        world.policy.mode = mode;
        world.script("submit 1");
        world.answers = false;
        world.script("submit 1");
        assert_eq!(explained(&world, 1).reason, reason, "{}", world.picture());
    }
}

#[test]
fn the_ways_of_a_job_are_told_fastest_first() {
    let mut world = World::new("a:4");
    world.script("submit 4|2|1");
    let sizes: Vec<_> = explained(&world, 0).ways.iter().map(|way| (way.devices, way.held)).collect();
    assert_eq!(sizes.len(), 3);
    assert_eq!(sizes.iter().filter(|(_, held)| *held).count(), 1, "{}", world.picture());
}

#[test]
fn where_time_is_shared_it_is_another_s_turn() {
    let mut world = World::with_rounds("a:1");
    world.policy.mode = Mode::Fractions;
    world.policy.fractions = [(0, 0.75), (1, 0.25)].into();
    world.script("submit 1 1");
    let waits = if world.running().contains(&0) { 1 } else { 0 };
    let got = explained(&world, waits);
    let other = Ahead { job: JobId(1 - waits), devices: 1, urgent: false };
    assert_eq!(
        (got.reason, got.share, &got.ahead[..]),
        (Reason::Share, [0.75, 0.25][waits as usize], &[other][..])
    );
}

#[test]
fn a_job_that_no_plan_names_waits_for_one() {
    let mut world = World::new("a:1");
    world.answers = false;
    world.script("submit 1");
    assert_eq!((explained(&world, 0).reason, explained(&world, 0).share), (Reason::Policy, 0.0));
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Op {
    Submit(u32, u16, bool, i8),
    End(usize),
    Drain(u32),
    Bad(u32, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u32..5, 0u16..2, any::<bool>(), -3i8..3).prop_map(|(devices, kind, node, rank)| Op::Submit(devices, kind, node, rank)),
        2 => any::<usize>().prop_map(Op::End),
        1 => (0u32..4).prop_map(Op::Drain),
        1 => (0u32..4, 0u8..16).prop_map(|(node, bad)| Op::Bad(node, bad)),
    ]
}

fn world(mode: Mode, ops: &[Op]) -> World {
    let mut world = World::new("a:4 b:2 c:4:slow d:1:slow");
    world.policy.mode = mode;
    for op in ops {
        match *op {
            Op::Submit(devices, kind, node, rank) => {
                let text =
                    format!("{devices}{}{}", ["", "slow"][kind as usize], ["", "@node"][node as usize]);
                // No two ranks are equal, so that whoever takes a job's place takes exactly that.
                let rank = f64::from(rank) + world.engine.next_job().0 as f64 / 100.0;
                world.script(&format!("submit {text} rank {rank}"));
            }
            Op::End(at) => {
                let running: Vec<_> = world.running().into_iter().collect();
                if let Some(job) = running.get(at % running.len().max(1)) {
                    world.script(&format!("end {job}"));
                }
            }
            Op::Drain(node) => world.step(Input::Node(NodeChange::Drain(NodeId(node)))),
            Op::Bad(node, bad) => {
                world.step(Input::Node(NodeChange::Health { node: NodeId(node), bad: bad.into() }));
            }
        }
        world.settle();
    }
    world
}

/// Does what the remedy says; the job that should then run.
fn apply(world: &mut World, spec: &JobSpec, job: u64, remedy: Remedy) -> u64 {
    let mut instead = |shape: Shape| {
        // At one instant, or others would take its place in between.
        world.step(Input::Cancel(JobId(job)));
        let next = world.engine.next_job().0;
        world.policy.ranks.insert(next, world.policy.rank(job));
        let spec = JobSpec { shapes: [shape].into(), ..spec.clone() };
        world.step(Input::Submit(Box::new(spec)));
        next
    };
    let shape = spec.shapes[0].clone();
    let runs = match remedy {
        Remedy::Fewer { kind, devices } => instead(Shape { needs: vec![Need { kind, devices }], ..shape }),
        Remedy::Kind { kind, .. } => instead(Shape { needs: vec![Need { kind, ..shape.needs[0] }], ..shape }),
        Remedy::Resume { node } => {
            world.step(Input::Node(NodeChange::Resume(node)));
            job
        }
        Remedy::Repair { node } => {
            world.step(Input::Node(NodeChange::Health { node, bad: 0 }));
            job
        }
    };
    world.settle();
    runs
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_remedy_starts_the_job(
        ops in prop::collection::vec(op(), 1..25),
        mode in prop_oneof![Just(PREEMPT), Just(SKIP), Just(QUEUE)],
    ) {
        let before = world(mode, &ops);
        for job in 0..before.engine.next_job().0 {
            let Some(got) = before.engine.explain(JobId(job)) else { continue };
            let waits = !before.running().contains(&job);
            prop_assert_eq!(waits, got.reason != Reason::Running, "{:?}: {}", got, before.picture());
            // Once all is settled, nobody waits for nothing.
            prop_assert!(!matches!(got.reason, Reason::Policy | Reason::Starting), "{:?}: {}", got, before.picture());
            let spec = before.engine.job_spec(JobId(job)).expect("it lives").clone();
            for remedy in got.remedies {
                let mut after = world(mode, &ops);
                let runs = apply(&mut after, &spec, job, remedy);
                prop_assert!(after.running().contains(&runs), "{job} {remedy:?}: {} -> {}", before.picture(), after.picture());
            }
        }
    }

    #[test]
    fn the_reason_is_what_keeps_it_from_running(
        ops in prop::collection::vec(op(), 1..25),
        mode in prop_oneof![Just(PREEMPT), Just(SKIP), Just(QUEUE)],
    ) {
        let before = world(mode, &ops);
        for job in 0..before.engine.next_job().0 {
            let Some(got) = before.engine.explain(JobId(job)).filter(|got| got.reason != Reason::Running) else { continue };
            let mut after = world(mode, &ops);
            remove(&mut after, &got);
            prop_assert!(after.running().contains(&job), "{:?}: {} -> {}", got, before.picture(), after.picture());
        }
    }
}

/// Takes away what is said to keep a job from running, and nothing else.
fn remove(world: &mut World, told: &Explained) {
    match told.reason {
        // Those in front.
        Reason::Priority => {
            told.ahead.iter().for_each(|ahead| world.step(Input::Cancel(ahead.job)));
        }
        // Too few devices, or none in one place, or none at all: a large node for everybody who waits.
        Reason::Capacity | Reason::Gang | Reason::Topology | Reason::Nodes => {
            let waits = |job: &u64| !world.running().contains(job);
            let waiting: Vec<u64> = (0..world.engine.next_job().0).filter(waits).collect();
            waiting.into_iter().for_each(|job| add_node(world, job));
        }
        other => panic!("{other:?} has no business here"),
    }
    world.settle();
}

/// One more node, with room for a job that waits whoever else goes there.
fn add_node(world: &mut World, job: u64) {
    let Some(spec) = world.engine.job_spec(JobId(job)) else { return };
    let kind = spec.shapes[0].needs[0].kind;
    let node = NodeSpec::of(format!("more-{job}"), kind, 100);
    world.step(Input::Node(NodeChange::Join(node)));
}
