//! Gavel's generator (OSDI'20; stanford-futuredata/gavel, `scheduler/utils.py`), its distributions
//! drawn from our own random numbers.
//!
//! Gangs of 1, 2, 4, 8 with 70, 10, 15, 5 %. Durations log-uniform: 80 % from 10^1.5 to 10^3
//! minutes, 20 % from 10^3 to 10^4. The template is one of the 26, drawn among those that can
//! be distributed where the gang is larger than 1. Gavel turns a duration into steps at the speed of
//! a V100; no table is at hand here, so the duration itself is the work.

use yard_core::Time;

use super::super::Work;
use super::super::jobs::TraceJobs;
use super::draw::{TraceDraw, Weighted};

/// Models, their batch sizes, and whether a gang can train them: the keys of Gavel's
/// `simulation_throughputs.json`, where only those with entries for gangs can be distributed.
const TEMPLATES: [(&str, &[u32], bool); 7] = [
    ("ResNet-18", &[16, 32, 64, 128, 256], true),
    ("ResNet-50", &[16, 32, 64, 128], true),
    ("Transformer", &[16, 32, 64, 128, 256], true),
    ("LM", &[5, 10, 20, 40, 80], true),
    ("Recommendation", &[512, 1024, 2048, 4096, 8192], false),
    ("CycleGAN", &[], false),
    ("A3C", &[], false),
];

const GANGS: [(u32, f64); 4] = [(1, 0.70), (2, 0.10), (4, 0.15), (8, 0.05)];

pub(super) fn add(jobs: &mut TraceJobs, submits: impl Iterator<Item = Time>, mut draw: TraceDraw) {
    let gangs = Weighted::new(GANGS.map(|(_, share)| share));
    // Those that can be distributed stand first, so that a gang draws from the front.
    let (distributed, single): (Vec<_>, Vec<_>) = templates().partition(|&(_, _, gang)| gang);
    let front = distributed.len();
    let all: Vec<_> = distributed.into_iter().chain(single).collect();
    for (number, submit) in submits.enumerate() {
        let gpus = GANGS[gangs.draw(&mut draw)].0;
        let seconds = duration(&mut draw);
        let (model, batch_size, _) = all[draw.index(if gpus > 1 { front } else { all.len() })];
        let model = jobs.word(model);
        let job = jobs.add(itoa::Buffer::new().format(number), submit, gpus, Work::Seconds(seconds), 0);
        (job.model, job.batch_size) = (model, batch_size);
    }
}

fn templates() -> impl Iterator<Item = (&'static str, Option<u32>, bool)> {
    TEMPLATES.into_iter().flat_map(|(model, batch_sizes, gang)| {
        let alone = batch_sizes.is_empty().then_some((model, None, gang));
        batch_sizes.iter().map(move |&size| (model, Some(size), gang)).chain(alone)
    })
}

/// Seconds, to the millisecond.
fn duration(draw: &mut TraceDraw) -> f64 {
    let long = draw.unit() >= 0.8;
    let exponent = if long { draw.between(3.0, 4.0) } else { draw.between(1.5, 3.0) };
    (60_000.0 * libm::exp10(exponent)).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_26_templates() {
        assert_eq!(templates().count(), 26);
        assert_eq!(templates().filter(|&(_, _, gang)| gang).count(), 19);
    }
}
