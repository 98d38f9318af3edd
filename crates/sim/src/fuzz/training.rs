//! How some jobs of a scenario train, in every second scenario: their speeds are then what the engine makes of it, and
//! some of their shapes are not to be used yet.

use std::sync::Arc;

use yard_core::Time;
use yard_core::ids::{JobId, KindId, LeaseId};
use yard_core::job::JobSpec;
use yard_core::message::{Input, News, Report};
use yard_core::training::{Fits, Noise, Profiled, Timing, Training};

use crate::cluster::ClusterSpec;
use crate::random::Random;

/// Reports that come to nowhere, or to whoever has that lease by chance.
const REPORTS: u64 = 100;

/// Lets jobs train; returns what is said of that besides. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, cluster: &ClusterSpec, jobs: &mut [(Time, JobSpec)]) -> Vec<(Time, Input)> {
    let mut random = Random::new(seed ^ 0x7a11_0bad);
    if random.chance(0.5) {
        return Vec::new();
    }
    let sorts: Vec<_> = (0..1 + random.below(4)).map(|_| Arc::new(training(&mut random, cluster))).collect();
    for (_, spec) in jobs.iter_mut() {
        spec.training = random.chance(0.6).then(|| random.pick(&sorts).clone());
    }
    let mut word = || {
        let at = Time::from_secs((random.unit() * 4_000.0).floor());
        let (timing, noise) = (random.chance(0.8).then(|| timing(&mut random)), noise(&mut random));
        let news = News::Trained { steps: random.unit() * 100.0, timing, noise };
        let (job, lease) = (random.below(jobs.len() as u64), random.below(2 * jobs.len() as u64));
        (at, Input::Report(Report { lease: LeaseId(lease), job: JobId(job), news }))
    };
    (0..REPORTS).map(|_| word()).collect()
}

/// Any batch can be held: one device accumulates as often as need be.
fn training(random: &mut Random, cluster: &ClusterSpec) -> Training {
    let kinds: Vec<KindId> = cluster.kinds.ids().collect();
    let batch = 1 + random.below(200) as u32;
    let most = |random: &mut Random| 1 + random.below(100) as u32;
    let fits = kinds.iter().map(|kind| Fits { kind: *kind, least: 1, most: most(random) }).collect();
    let profiled: Vec<_> = (0..random.below(6))
        .map(|_| Profiled { kind: *random.pick(&kinds), timing: timing(random) })
        .filter(|point| point.timing.is_sound())
        .collect();
    Training {
        batch,
        batch_max: batch + random.below(2_000) as u32,
        adapts: random.chance(0.6),
        accumulates: true,
        fits,
        profiled,
        noise: noise(random),
    }
}

/// Some are no times at all.
fn timing(random: &mut Random) -> Timing {
    let devices = 1 + random.below(4) as u32;
    let grad_s = random.unit() * 2.0 - if random.chance(0.1) { 2.0 } else { 0.0 };
    let nodes = 1 + random.below(u64::from(devices)) as u32;
    Timing { nodes, devices, local: 1 + random.below(99) as u32, grad_s, step_s: grad_s + random.unit() }
}

fn noise(random: &mut Random) -> Option<Noise> {
    let noise = Noise { sqr: random.unit(), var: 0.1 + random.unit() * 50.0 };
    random.chance(0.7).then_some(noise)
}
