//! What is said of jobs that is not so, in every fourth scenario: how far they are, what they do to their devices, what
//! stopping them costs, that they cannot be paused; and what is believed of pairs, from outside. Whatever it is, a job
//! that may run must run.

use yard_core::belief::Belief;
use yard_core::cluster::Kinds;
use yard_core::ids::{JobId, LeaseId, ProfileId};
use yard_core::job::{Costs, Usage};
use yard_core::message::{Input, News, Report};
use yard_core::{Span, Time};

use super::PROFILES;
use crate::random::Random;

/// Reports that come to nowhere, or to whoever has that lease by chance.
const REPORTS: u64 = 150;

/// More than a device has.
const MEMORY_MIB: u64 = 130;

/// All that is said. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, jobs: u64, kinds: &Kinds, learns: bool) -> Vec<(Time, Input)> {
    let mut random = Random::new(seed ^ 0x90_551b);
    if !random.chance(0.25) {
        return Vec::new();
    }
    let mut said: Vec<_> = (0..REPORTS).map(|_| (instant(&mut random), report(&mut random, jobs))).collect();
    let believed = (0..random.below(3)).map(|_| (instant(&mut random), belief(&mut random, kinds, learns)));
    said.extend(believed);
    said
}

fn instant(random: &mut Random) -> Time {
    Time::from_secs((random.unit() * 4_000.0).floor())
}

fn report(random: &mut Random, jobs: u64) -> Input {
    let (job, lease) = (JobId(random.below(jobs)), LeaseId(random.below(2 * jobs)));
    let news = match random.below(5) {
        0 | 1 => News::Progress { steps: steps(random) },
        2 => News::Usage(usage(random)),
        3 => News::Costs(costs(random)),
        _ => News::Stuck(random.chance(0.7)),
    };
    Input::Report(Report { lease, job, news })
}

/// None at all, some, far too many, and what is no number.
fn steps(random: &mut Random) -> f64 {
    let some = random.unit() * 1_000.0;
    *random.pick(&[0.0, 0.0, some / 1_000.0, some, 1e15, f64::NAN, f64::INFINITY])
}

fn usage(random: &mut Random) -> Usage {
    let some = random.unit();
    let busy = *random.pick(&[0.0, some, 1.0, f64::NAN]);
    Usage { busy, memory_mib: random.below(MEMORY_MIB) as u32 }
}

fn costs(random: &mut Random) -> Costs {
    let cost = |random: &mut Random| {
        let some = random.unit();
        Span::from_secs(*random.pick(&[0.0, some * 60.0, some * 3_600.0]))
    };
    Costs { save: cost(random), load: cost(random), start: cost(random) }
}

/// Some pairs cannot run at all, as is believed then, and some of it is no number.
fn belief(random: &mut Random, kinds: &Kinds, learns: bool) -> Input {
    let mut belief = Belief::default();
    for kind in kinds.ids() {
        for at in 0..PROFILES * PROFILES {
            let some = random.unit();
            let kept = *random.pick(&[0.0, some, 2.0, f64::NAN, -1.0]);
            belief.set_beside(ProfileId(at / PROFILES), ProfileId(at % PROFILES), kind, kept);
        }
    }
    Input::Believe(Box::new(if learns { belief.learning() } else { belief }))
}
