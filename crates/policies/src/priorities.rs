//! What each policy in the table makes of priorities, shown for all of them: an urgent job goes first, jobs of a class
//! fare as if those of smaller priority were not there, and equal priorities change nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use yard_core::allocation::{Mode, Share};
use yard_core::ids::JobIdx;
use yard_core::policy::Priorities;

use crate::find;
use crate::properties::{elastic, variants};
use crate::testing::{World, policy};

/// Policies of the table that make this of priorities, with what else changes much in them.
fn with(wanted: &[Priorities]) -> Vec<String> {
    let name = |spec: &str| spec.split(':').next().unwrap_or_default().to_owned();
    let wants = |spec: &String| {
        let entry = find(&name(spec)).expect("a policy of the table");
        wanted.iter().any(|one| one == &entry.priority)
    };
    variants().filter(wants).collect()
}

/// Asks until starts and stops have settled.
fn decide(world: &mut World, spec: &str) -> Mode {
    let mut asked = policy(spec);
    let modes = [(); 3].map(|()| {
        let mode = world.plan(&mut *asked).mode;
        world.advance(1.0);
        mode
    });
    modes[2]
}

#[test]
fn an_urgent_job_that_comes_later_goes_first() {
    for spec in with(&[Priorities::Classes, Priorities::Worth]) {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 100.0)]);
        decide(&mut world, &spec);
        world.submit_all(&[(1, 100.0), (1, 100.0)]);
        world.set_priority(2, 5);
        let mode = decide(&mut world, &spec);
        if !matches!(mode, Mode::Ordered { preempt: true, .. }) {
            assert_eq!(world.running(), [0], "{spec} stops nobody");
            world.advance(100.0);
            decide(&mut world, &spec);
        }
        assert_eq!(world.running(), [2], "{spec}");
    }
}

#[test]
fn priorities_below_zero_go_last() {
    for spec in with(&[Priorities::Classes, Priorities::Worth]) {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 100.0), (1, 100.0)]);
        world.set_priority(0, i32::MIN);
        decide(&mut world, &spec);
        assert_eq!(world.running(), [1], "{spec}");
    }
}

/// Devices or sizes, seconds, deadline and class of a job.
type ClassedJob = (u32, u32, Option<u32>, usize);

const CLASSES: [i32; 3] = [7, 0, -2];

fn jobs() -> impl Strategy<Value = Vec<ClassedJob>> {
    prop::collection::vec((0u32..20, 1u32..60, prop::option::of(1u32..300), 0usize..3), 1..10)
}

/// Who runs in which shape, by the place of the job in the list, where those of `who` are submitted.
fn running(
    spec: &str,
    jobs: &[ClassedJob],
    who: impl Fn(&ClassedJob) -> Option<i32>,
) -> BTreeMap<usize, Share> {
    let mut world = World::new(&[4, 4]);
    let mut names = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let Some(priority) = who(job) else { continue };
        let (sizes, seconds, deadline, _) = *job;
        let row = names.len();
        match sizes {
            0..16 => world.submit_sizes(&elastic(sizes.max(1), seconds), f64::from(seconds)),
            _ => {
                world.submit_all(&[(sizes - 15, f64::from(seconds))]);
                row
            }
        };
        deadline.iter().for_each(|deadline| world.set_deadline(row, f64::from(*deadline)));
        world.set_priority(row, priority);
        names.push(at);
    }
    world.plan(&mut *policy(spec));
    let share = |row: usize| {
        let share = world.shares.values().find(|share| share.jobs.contains(&JobIdx(row as u32)));
        (names[row], share.cloned().expect("who runs has a share"))
    };
    world.running().into_iter().map(share).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_class_fares_as_if_those_below_were_not_there(jobs in jobs()) {
        for spec in with(&[Priorities::Classes]) {
            for lowest in 0..CLASSES.len() {
                let above = |job: &ClassedJob| job.3 <= lowest;
                let all = running(&spec, &jobs, |job| Some(CLASSES[job.3]));
                let alone = running(&spec, &jobs, |job| above(job).then(|| CLASSES[job.3]));
                let shapes = |runs: &BTreeMap<usize, Share>| -> Vec<(usize, Option<u16>)> {
                    let own = runs.iter().filter(|(at, _)| above(&jobs[**at]));
                    own.map(|(at, share)| (*at, share.shape)).collect()
                };
                prop_assert_eq!(shapes(&all), shapes(&alone), "{} with classes up to {}", spec, lowest);
            }
        }
    }

    #[test]
    fn equal_priorities_change_nothing(jobs in jobs(), priority in any::<i32>()) {
        for spec in with(&[Priorities::Classes, Priorities::Worth]) {
            let plain = running(&spec, &jobs, |_| Some(0));
            prop_assert_eq!(running(&spec, &jobs, |_| Some(priority)), plain, "{}", spec);
        }
    }
}
