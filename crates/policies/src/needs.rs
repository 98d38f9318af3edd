//! Whether each policy in the table needs what it says it needs, and nothing else: what it is told is changed, one kind
//! of knowledge at a time, and its answers change exactly where it needs that kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::job::{JobRun, JobSpec};
use yard_core::policy::Knowledge;
use yard_core::training::Regime;
use yard_core::view::View;

use crate::ALL;
use crate::properties::elastic;
use crate::testing::{World, policy};

use Knowledge::{Durations, Losses, Progress, Regimes, Speeds};

/// Small numbers that look random, by seed and place.
fn random(seed: u32, at: usize, below: u32) -> u32 {
    let mixed =
        (seed.wrapping_mul(2_654_435_761) ^ (at as u32).wrapping_mul(40_503)).wrapping_mul(2_246_822_519);
    (mixed >> 7) % below
}

/// A few or many jobs of several sizes, some of which have run for a while in the size they like best.
fn lives(seed: u32) -> World {
    let mut world = World::new(&[4, 4]);
    for at in 0..2 + seed as usize % 24 {
        let pick = |below| random(seed, at, below);
        let sizes = elastic(1 + pick(15), 1 + pick(160));
        let row = world.submit_sizes(&sizes, f64::from(200 + 10 * pick(80)));
        (pick(3) == 0).then(|| world.set_deadline(row, f64::from(400 + 10 * pick(200))));
    }
    world.plan(&mut *policy("fifo-fit"));
    world.advance(150.0);
    // What was reported is as of now: nothing is carried on from believed speeds.
    let now = world.view.now;
    for run in Arc::make_mut(&mut world.view.runs).iter_mut() {
        (run.done, run.as_of) = (run.done_at(now), now);
    }
    world
}

/// The same jobs, of which something else is believed.
fn told_otherwise(view: &View, of: Knowledge, seed: u32) -> View {
    let mut view = view.clone();
    let runs = Arc::make_mut(&mut view.runs);
    for (at, spec) in Arc::make_mut(&mut view.specs).iter_mut().enumerate() {
        otherwise(Arc::make_mut(spec), &mut runs[at], of, random(seed, 100 + at, 1000));
    }
    view.changed.all = true;
    view
}

fn otherwise(spec: &mut JobSpec, run: &mut JobRun, of: Knowledge, luck: u32) {
    // Powers of two: what is the same part of a job stays so to the last bit.
    let factor = [0.25, 0.5, 1.0, 4.0, 8.0][luck as usize % 5];
    match of {
        // The part that is done stays what it is.
        Durations => (spec.steps, run.done) = (spec.steps * factor, run.done * factor),
        Progress => run.done = spec.steps * f64::from(luck % 10) / 10.0,
        // That of the size it likes best is what its duration is stated for.
        Speeds => {
            let other = |(at, speed): (usize, &f64)| {
                if at == 0 { *speed } else { speed * (1.0 + f64::from((luck >> at) % 7)) }
            };
            spec.speeds = spec.speeds.iter().enumerate().map(other).collect();
        }
        // Some fall fast and some slowly; one in three says nothing.
        Losses if luck.is_multiple_of(3) => {}
        Losses => {
            let loss = |epoch: f64| 1.0 / (f64::from(1 + luck % 40) / 20.0 * epoch + 1.0);
            let epochs = (0..30).map(f64::from);
            epochs.for_each(|epoch| assert!(run.losses.hear(epoch * spec.steps / 100.0, loss(epoch))));
        }
        Regimes => {
            let regime = |seconds: f64| Regime { batch: 32, seconds };
            spec.regimes = Some(Arc::from([regime(1.0), regime(0.1 + f64::from(luck % 20))]));
            run.seen = Box::from([0.0, 0.0]);
        }
    }
}

/// The kinds of knowledge by which answers changed in any of so many lives.
fn read(name: &str) -> BTreeSet<Knowledge> {
    let answer = |view: &View| {
        let Allocation { mode, shares, .. } = policy(name).allocate(view).expect("an answer");
        let (Shares::All(mut shares) | Shares::Changed(mut shares)) = shares;
        // Who may use what nobody wants is not what a policy says it does.
        shares.retain(|share| share.fraction > Share::LEFTOVER);
        (mode, shares)
    };
    let differs = |of: Knowledge| {
        (0..150).any(|seed| {
            let mut view = lives(seed).view;
            view.changed.all = true;
            answer(&view) != answer(&told_otherwise(&view, of, seed))
        })
    };
    [Durations, Progress, Speeds, Losses, Regimes].into_iter().filter(|of| differs(*of)).collect()
}

#[test]
fn every_policy_needs_what_it_says() {
    let mut wrong = Vec::new();
    for entry in ALL {
        let needs: BTreeSet<Knowledge> = entry.needs.iter().copied().collect();
        let mut read = read(entry.name);
        // Whoever goes by lengths counts what is done from the time that jobs ran; reports only make it sharper.
        if needs.contains(&Durations) && !needs.contains(&Progress) {
            read.remove(&Progress);
        }
        if read != needs {
            wrong.push(format!("{} reads {read:?} and says {needs:?}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
