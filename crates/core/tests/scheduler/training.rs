//! Jobs that train: their speeds follow from what they report, and so does the batch that they are given.

use std::sync::Arc;

use proptest::prelude::*;
use yard_core::ids::{JobId, KindId};
use yard_core::job::JobSpec;
use yard_core::message::{Command, Event, Input, News};
use yard_core::training::{Batch, Fits, Noise, Profiled, Timing, Training};

use crate::common::World;

const GPU: KindId = KindId(0);
const NOISE: Noise = Noise { sqr: 1.0, var: 10.0 };

fn timing(nodes: u32, devices: u32, local: u32) -> Timing {
    let grad_s = 0.1 + 0.01 * f64::from(local);
    let sync_s = if devices > 1 { 0.04 * f64::from(nodes) } else { 0.0 };
    Timing { nodes, devices, local, grad_s, step_s: grad_s + sync_s }
}

fn training() -> Training {
    Training {
        batch: 32,
        batch_max: 512,
        adapts: true,
        accumulates: true,
        fits: vec![Fits { kind: GPU, least: 8, most: 64 }],
        profiled: [16, 64].map(|local| Profiled { kind: GPU, timing: timing(1, 1, local) }).to_vec(),
        noise: Some(NOISE),
    }
}

fn submit(world: &mut World, shapes: &str, training: Training) -> u64 {
    let job = world.engine.next_job().0;
    let spec = JobSpec { training: Some(Arc::new(training)), ..world.spec(shapes) };
    world.step(Input::Submit(Box::new(spec)));
    job
}

fn speeds(world: &World, job: u64) -> Vec<f64> {
    world.engine.job_spec(JobId(job)).expect("a living job").speeds.to_vec()
}

fn say(world: &mut World, job: u64, timing: Option<Timing>, noise: Option<Noise>) {
    world.report(job, News::Trained { steps: 1.0, timing, noise });
}

fn batch(world: &World, job: u64) -> Option<Batch> {
    world.engine.job(JobId(job)).expect("a living job").batch
}

#[test]
fn losses_are_kept_as_they_are_said() {
    let mut world = World::new("a:1");
    world.script("submit 1");
    [(1.0, 3.0), (2.0, 2.0), (3.0, f64::NAN)]
        .into_iter()
        .for_each(|(steps, loss)| world.report(0, News::Loss { steps, loss }));
    let run = world.engine.job(JobId(0)).expect("a living job");
    assert_eq!((run.losses.points(), run.done), (&[(1.0, 3.0), (2.0, 2.0)][..], 3.0));
}

#[test]
fn speeds_follow_from_the_profile_and_open_with_what_is_tried() {
    let mut world = World::new("a:4 b:4");
    let job = submit(&mut world, "1@node|2@node|4@node|8", training());
    let first = speeds(&world, job);
    assert!(first[0] > 0.0 && first[1] > first[0], "{first:?}");
    assert_eq!(first[2..], [0.0, 0.0], "four at once would be more than twice what it had");
    world.settle();
    say(&mut world, job, Some(timing(1, 1, 32)), None);
    assert_eq!(speeds(&world, job)[2..], [0.0, 0.0]);
    assert_eq!(world.engine.job(JobId(job)).expect("it lives").speed, speeds(&world, job)[0]);
}

#[test]
fn a_start_comes_with_a_batch() {
    let mut world = World::new("a:4");
    let fixed = Training { adapts: false, batch: 100, ..training() };
    let job = submit(&mut world, "1", fixed);
    let plain = world.submit("1");
    world.settle();
    assert_eq!(batch(&world, job), Some(Batch { local: 50, extra: 1 }), "memory holds 64 at once");
    assert_eq!(batch(&world, plain), None, "its own affair");
    let unknown = submit(&mut world, "1", Training { profiled: Vec::new(), ..training() });
    world.settle();
    assert_eq!(
        batch(&world, unknown),
        Some(Batch { local: 32, extra: 0 }),
        "as submitted until more is known"
    );
    assert_eq!(speeds(&world, unknown), [1.0], "as guessed until more is known");
}

#[test]
fn a_much_better_batch_is_put_in_force_while_it_runs() {
    let mut world = World::new("a:2");
    let job = submit(&mut world, "2@node", training());
    world.settle();
    let before = batch(&world, job).expect("it trains");
    let tuned = |world: &mut World| {
        let commands = world.commands().into_iter();
        commands
            .filter_map(|command| match command {
                Command::Tune { batch, .. } => Some(batch),
                _ => None,
            })
            .next()
    };
    say(&mut world, job, None, Some(Noise { var: 10.1, ..NOISE }));
    assert_eq!(tuned(&mut world), None, "hardly any news");
    say(&mut world, job, None, Some(Noise { sqr: 0.001, ..NOISE }));
    let after = tuned(&mut world).expect("nearly all is noise: a larger batch teaches more");
    assert!(after.global(2) > before.global(2), "{after:?} after {before:?}");
    assert_eq!(batch(&world, job), Some(after));
}

#[test]
fn nonsense_changes_nothing() {
    let mut world = World::new("a:2");
    let job = submit(&mut world, "1@node|2@node", training());
    world.settle();
    let before = speeds(&world, job);
    let good = timing(1, 1, 32);
    for bad in [
        Timing { step_s: f64::NAN, ..good },
        Timing { grad_s: -1.0, ..good },
        Timing { devices: 64, ..good },
        Timing { local: 0, ..good },
    ] {
        say(&mut world, job, Some(bad), Some(Noise { sqr: f64::INFINITY, var: 0.0 }));
    }
    assert_eq!(speeds(&world, job), before);
    let plain = world.submit("1");
    world.settle();
    say(&mut world, plain, Some(good), Some(NOISE));
    assert_eq!(speeds(&world, plain), [1.0], "who does not train has no such speeds");
}

#[test]
fn times_beside_another_job_are_not_its_own() {
    let mut world = World::new("a:1");
    world.policy.groups = vec![vec![0, 1]];
    let jobs = [(); 2].map(|()| submit(&mut world, "1", training()));
    world.settle();
    assert_eq!(world.running().len(), 2);
    let before = speeds(&world, jobs[0]);
    say(&mut world, jobs[0], Some(Timing { grad_s: 9.0, step_s: 9.0, ..timing(1, 1, 40) }), None);
    assert_eq!(speeds(&world, jobs[0]), before);
}

#[test]
fn a_batch_that_no_device_holds_is_refused() {
    let mut world = World::new("a:2");
    submit(&mut world, "1|2", Training { batch: 500, accumulates: false, ..training() });
    let reason = world.events.iter().find_map(|event| match event {
        Event::Rejected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(
        reason.as_ref().is_some_and(|reason| reason.ends_with("nearest that works is 128")),
        "{reason:?}"
    );
}

#[test]
fn larger_nodes_make_fewer_of_them() {
    let mut world = World::new("a:2 b:2");
    let mut known = training();
    known.profiled.extend([(1, 2), (2, 4)].map(|(nodes, devices)| {
        let far = if nodes > 1 { 5.0 } else { 0.0 };
        let timing = timing(nodes, devices, 32);
        Profiled { kind: GPU, timing: Timing { step_s: timing.step_s + far, ..timing } }
    }));
    let job = submit(&mut world, "4", known);
    let across = speeds(&world, job);
    world.join("c:4");
    assert!(speeds(&world, job)[0] > 2.0 * across[0], "four on one node need not wait for another");
}

/// Training for fuzzing: some of it makes sense.
pub(crate) fn some_training() -> impl Strategy<Value = Training> {
    let sizes = (0u32..200, 0u32..400, 0u32..20, 0u32..99);
    (sizes, any::<bool>(), any::<bool>(), prop::collection::vec(some_timing(), 0..4), some_noise()).prop_map(
        |((batch, batch_max, least, most), adapts, accumulates, timings, noise)| Training {
            batch,
            batch_max,
            adapts,
            accumulates,
            fits: vec![Fits { kind: GPU, least, most }],
            profiled: timings.into_iter().map(|timing| Profiled { kind: GPU, timing }).collect(),
            noise,
        },
    )
}

/// What such a job may say.
pub(crate) fn some_words() -> impl Strategy<Value = News> {
    let loss = prop_oneof![20 => 0.0f64..30.0, 1 => Just(f64::NAN), 1 => Just(-1.0)];
    let steps = 0.0f64..20.0;
    prop_oneof![
        4 => (steps.clone(), prop::option::weighted(0.8, some_timing()), some_noise())
            .prop_map(|(steps, timing, noise)| News::Trained { steps, timing, noise }),
        1 => (steps, loss).prop_map(|(steps, loss)| News::Loss { steps, loss }),
    ]
}

fn some_timing() -> impl Strategy<Value = Timing> {
    let seconds = || prop_oneof![20 => 0.01f64..3.0, 1 => Just(f64::NAN), 1 => Just(-1.0)];
    (1u32..3, 1u32..5, 1u32..99, seconds(), seconds())
        .prop_map(|(nodes, devices, local, grad_s, step_s)| Timing { nodes, devices, local, grad_s, step_s })
}

fn some_noise() -> impl Strategy<Value = Option<Noise>> {
    let part = || prop_oneof![20 => 0.0f64..30.0, 1 => Just(f64::INFINITY)];
    prop::option::of((part(), part()).prop_map(|(sqr, var)| Noise { sqr, var }))
}
