//! What holds for every policy in the table, over random lives of small clusters: an index changes
//! nothing, answering twice is harmless, and the numbers are fit to be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use yard_core::allocation::{Allocation, Share};
use yard_core::belief::Belief;
use yard_core::ids::{JobIdx, KindId, ProfileId};
use yard_core::job::{Claim, Length, Sharing, Usage};
use yard_core::policy::Policy;
use yard_core::training::{Fits, Training};
use yard_core::units::Span;

use crate::ALL;
use crate::params::PACKED;
use crate::testing::{World, policy};

/// What happens between two plans.
#[derive(Clone, Debug)]
enum ViewHappening {
    Submit {
        devices: u32,
        seconds: u32,
        deadline: Option<u32>,
    },
    /// One that may run in several sizes: a bit for each of 1, 2, 4 and 8 devices, the last more than there are.
    Elastic {
        sizes: u32,
        seconds: u32,
        deadline: Option<u32>,
    },
    Pass {
        seconds: u32,
    },
    /// Promises are granted and stops are over.
    Settle,
    /// The next plan is lost: it is answered, and the answer never applied.
    Lose,
}

fn happening() -> impl Strategy<Value = ViewHappening> {
    prop_oneof![
        3 => (1u32..5, 1u32..60, prop::option::of(1u32..200))
            .prop_map(|(devices, seconds, deadline)| ViewHappening::Submit { devices, seconds, deadline }),
        2 => (1u32..16, 1u32..60, prop::option::of(1u32..200))
            .prop_map(|(sizes, seconds, deadline)| ViewHappening::Elastic { sizes, seconds, deadline }),
        3 => (1u32..20).prop_map(|seconds| ViewHappening::Pass { seconds }),
        3 => Just(ViewHappening::Settle),
        1 => Just(ViewHappening::Lose),
    ]
}

fn happen(world: &mut World, happening: &ViewHappening) {
    match happening {
        ViewHappening::Submit { devices, seconds, deadline } => {
            world.submit_all(&[(*devices, f64::from(*seconds))]);
            let row = world.view.changed.added.last().map_or(0, |job| job.index());
            // Four profiles, one of them unknown.
            let spec = &mut Arc::make_mut(&mut world.view.specs)[row];
            Arc::make_mut(spec).profile = ProfileId(seconds % 4);
            Arc::make_mut(spec).sharing = sharing(*seconds);
            Arc::make_mut(spec).length =
                [Length::Stated, Length::Predicted, Length::Unknown][(seconds / 4) as usize % 3];
            Arc::make_mut(spec).priority = [0, 0, 5, -3][*seconds as usize % 4];
            deadline.iter().for_each(|deadline| world.set_deadline(row, f64::from(*deadline)));
        }
        ViewHappening::Elastic { sizes, seconds, deadline } => {
            let row = world.submit_sizes(&elastic(*sizes, *seconds), f64::from(*seconds));
            let spec = Arc::make_mut(&mut Arc::make_mut(&mut world.view.specs)[row]);
            spec.training = seconds.is_multiple_of(2).then(|| Arc::new(training()));
            spec.costs.start = Span::from_secs(f64::from(seconds % 3));
            spec.pausable = !seconds.is_multiple_of(7);
            deadline.iter().for_each(|deadline| world.set_deadline(row, f64::from(*deadline)));
        }
        ViewHappening::Pass { seconds } => world.advance(f64::from(*seconds)),
        ViewHappening::Settle => world.settle(),
        ViewHappening::Lose => {}
    }
}

/// The sizes of these bits, smallest first, or, for some, last: which is liked best is no matter of size. Larger ones are
/// faster, for some only up to a point.
pub(crate) fn elastic(sizes: u32, seconds: u32) -> Vec<(u32, f64)> {
    let power = [0.3, 0.7, 1.0][seconds as usize % 3];
    let speed = |devices: u32| {
        libm::pow(f64::from(devices.min(if seconds.is_multiple_of(5) { 2 } else { 8 })), power)
    };
    let chosen = (0..4u32).filter(|bit| sizes >> bit & 1 == 1).map(|bit| (1 << bit, speed(1 << bit)));
    let mut all: Vec<(u32, f64)> = chosen.collect();
    if seconds.is_multiple_of(4) {
        all.reverse();
    }
    all
}

/// As little as a job can say of how it trains.
fn training() -> Training {
    Training {
        batch: 32,
        batch_max: 128,
        adapts: true,
        accumulates: false,
        fits: vec![Fits { kind: KindId(0), least: 1, most: 64 }],
        profiled: Vec::new(),
        noise: None,
    }
}

/// Two jobs of five say nothing, one is guaranteed, one opportunistic, and one asks for a part.
fn sharing(seconds: u32) -> Option<Arc<Sharing>> {
    let usage = Some(Usage { busy: f64::from(seconds % 11) / 10.0, memory_mib: 10 + seconds % 50 });
    let said = match seconds % 5 {
        0 => Sharing { claim: Claim::Guaranteed, usage, ..Sharing::PLAIN },
        1 => Sharing { claim: Claim::Opportunistic, usage, ..Sharing::PLAIN },
        2 => Sharing { request: 0.4, usage, affinity: Some("a".into()), ..Sharing::PLAIN },
        _ => return None,
    };
    Some(Arc::new(said))
}

/// Some pairs do well together, some do not, and of one nothing is known.
fn pairs() -> Belief {
    let mut belief = Belief::default();
    for (a, b, kept) in [(1, 1, 0.8), (1, 2, 0.9), (2, 1, 0.7), (2, 2, 0.4), (2, 3, 1.0), (3, 2, 0.6)] {
        belief.set_beside(ProfileId(a), ProfileId(b), KindId(0), kept);
    }
    belief
}

/// Every policy as it is, and with what else changes much in it.
pub(crate) fn variants() -> impl Iterator<Item = String> {
    let packed = ALL.iter().filter(|entry| entry.params.contains(&PACKED));
    let packed = packed.map(|entry| format!("{}:packed=true", entry.name));
    let plain = ALL.iter().map(|entry| entry.name.to_owned());
    let special = [
        "tiresias:thresholds=20/60/100",
        "edf:size=largest",
        "chronus:lease=5:exact=true",
        "elasticflow:artifact=true",
        "optimus:loss=ignored",
        "antman:quota=a*0.5:patience=5",
        "salus:order=pack",
        "salus:order=srtf",
        "salus:order=fair",
    ];
    plain.chain(packed).chain(special.map(str::to_owned))
}

/// The answer of a policy that has never seen this cluster.
fn fresh(world: &World, spec: &str) -> Allocation {
    let mut view = world.view.clone();
    view.changed.all = true;
    policy(spec).allocate(&view).expect("an answer")
}

fn well_formed(shares: &BTreeMap<JobIdx, Share>) -> bool {
    shares.values().all(|share| {
        let ranked = share.rank.0.is_finite() && share.rank.1.is_finite();
        ranked && share.fraction > 0.0 && share.fraction <= 1.0
    })
}

/// Lives through `life`, comparing the policy with a fresh one at every step.
fn check(spec: &str, life: &[ViewHappening], learns: bool) -> Result<(), TestCaseError> {
    let mut world = World::with_memory(&[4, 2], 100);
    world.reuse = true;
    if learns {
        world.learn_lengths();
    }
    world.view.belief = Arc::new(pairs());
    let mut indexed: Box<dyn Policy> = policy(spec);
    for happening in life {
        happen(&mut world, happening);
        let answer = indexed.allocate(&world.view).expect("an answer");
        let full = fresh(&world, spec);
        let shares = world.after(&answer);
        prop_assert_eq!(&shares, &world.after(&full), "{}: {:?}", spec, happening);
        prop_assert_eq!(answer.mode, full.mode, "{}: {:?}", spec, happening);
        let again = indexed.allocate(&world.view).expect("an answer");
        prop_assert_eq!(&shares, &world.after(&again), "{}: asked twice, {:?}", spec, happening);
        prop_assert!(well_formed(&shares), "{}: {:?}", spec, shares);
        prop_assert!(answer.replan_at.is_none_or(|at| at > world.view.now), "{}: asks for the past", spec);
        if !matches!(happening, ViewHappening::Lose) {
            world.apply(&answer);
            world.pass();
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_index_changes_nothing(life in prop::collection::vec(happening(), 1..40), learns: bool) {
        for spec in variants() {
            check(&spec, &life, learns)?;
        }
    }
}

#[test]
fn every_policy_brings_every_job_to_its_end() {
    for spec in variants() {
        let mut world = World::new(&[4, 2]);
        world.view.belief = Arc::new(pairs());
        for at in 0..30u32 {
            world.submit_at(f64::from(at * 7 % 40), 1 + at * 5 % 6, f64::from(5 + at * 11 % 50));
        }
        assert_eq!(crate::testing::run(&spec, &mut world).len(), 30, "{spec}");
    }
}

#[test]
fn every_policy_brings_jobs_of_several_sizes_to_their_end() {
    for spec in variants() {
        let mut world = World::new(&[4, 2]);
        world.view.belief = Arc::new(pairs());
        for at in 0..20u32 {
            // All sizes fit: this world gives who names none its first.
            world.submit_sizes(&elastic((1 + at % 15) & 7 | 1, at), f64::from(5 + at * 11 % 50));
        }
        assert_eq!(crate::testing::run(&spec, &mut world).len(), 20, "{spec}");
    }
}
