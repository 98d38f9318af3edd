//! Jobs that leave much of their devices unused, for policies that share them. Eight models as measured on an H200.
//!
//! How busy a model keeps the card is reckoned from two of its kind together under MPS: each asks for u, so both do
//! 1/u of one alone on the card without MPS. A job is busy for 0.4 to 1 of that, since most wait for their data.
//! Memory was not recorded with those measurements: it is chosen, from 2 to 20 GiB, and a job holds 0.5 to 1.5 of it.
//! Gangs are Gavel's; durations log-uniform from ten minutes to ten hours. Of the jobs 30 % are guaranteed, 35 %
//! opportunistic, in three teams; half of those on one device ask for the part that they use, in tenths.

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{Claim, Sharing, Usage};

use super::super::Work;
use super::super::jobs::TraceJobs;
use super::draw::{TraceDraw, Weighted};

/// Model, how busy it keeps an H200, and GiB.
const MODELS: [(&str, f64, f64); 8] = [
    ("resnet18-b128", 0.64, 4.0),
    ("resnet50-b64", 0.80, 9.0),
    ("lstm-b80", 0.87, 6.0),
    ("transformer-b64", 0.62, 8.0),
    ("gpt2s-b8", 0.88, 20.0),
    ("recoder-b2048", 0.89, 3.0),
    ("a3c-b32", 0.76, 2.0),
    ("cyclegan-b4", 0.92, 6.0),
];

const GANGS: [(u32, f64); 4] = [(1, 0.70), (2, 0.10), (4, 0.15), (8, 0.05)];
const CLAIMS: [(Claim, f64); 3] =
    [(Claim::Guaranteed, 0.30), (Claim::Opportunistic, 0.35), (Claim::Ordinary, 0.35)];
const TEAMS: [&str; 3] = ["team01", "team02", "team03"];

pub(super) fn add(jobs: &mut TraceJobs, submits: impl Iterator<Item = Time>, mut draw: TraceDraw) {
    let gangs = Weighted::new(GANGS.map(|(_, share)| share));
    let claims = Weighted::new(CLAIMS.map(|(_, share)| share));
    for (number, submit) in submits.enumerate() {
        let gpus = GANGS[gangs.draw(&mut draw)].0;
        let seconds = (600.0 * libm::pow(60.0, draw.unit())).round();
        let model = draw.index(MODELS.len());
        let sharing = Some(Arc::new(sharing(model, gpus, CLAIMS[claims.draw(&mut draw)].0, &mut draw)));
        let tenant = jobs.word(TEAMS[draw.index(TEAMS.len())]);
        let model = jobs.word(MODELS[model].0);
        let job = jobs.add(itoa::Buffer::new().format(number), submit, gpus, Work::Seconds(seconds), 0);
        (job.model, job.tenant, job.sharing) = (model, tenant, sharing);
    }
}

fn sharing(model: usize, gpus: u32, claim: Claim, draw: &mut TraceDraw) -> Sharing {
    let (_, busy, gib) = MODELS[model];
    // Two decimals: more would only make the file longer.
    let busy = (busy * draw.between(0.4, 1.0) * 100.0).round() / 100.0;
    let memory_mib = (gib * draw.between(0.5, 1.5) * 1024.0).round() as u32;
    let part = draw.unit() < 0.5 && gpus == 1;
    let request = if part { (busy * 10.0).ceil() / 10.0 } else { 1.0 };
    let usage = Some(Usage { busy, memory_mib });
    Sharing { claim, request, memory_mib: Some(memory_mib), usage, ..Sharing::PLAIN }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, GenSpec, Preset, generate};
    use super::*;

    #[test]
    fn a_third_of_the_devices_time_is_left_and_requests_cover_what_is_used() {
        let spec = GenSpec { jobs: 20_000, arrivals: Arrivals::Static, preset: Preset::Sharing, seed: 1 };
        let trace = generate(&spec);
        let said: Vec<_> = trace.jobs.iter().map(|job| job.sharing.as_deref().expect("all say it")).collect();
        let mean =
            |of: &dyn Fn(&Sharing) -> f64| said.iter().map(|said| of(said)).sum::<f64>() / said.len() as f64;
        let busy = mean(&|said| said.usage.map_or(0.0, |usage| usage.busy));
        assert!((0.5..0.6).contains(&busy), "{busy}");
        let guaranteed = mean(&|said| f64::from(u8::from(said.claim == Claim::Guaranteed)));
        assert!((0.28..0.32).contains(&guaranteed), "{guaranteed}");
        assert!(said.iter().all(|said| said.usage.is_some_and(|usage| usage.busy <= said.request)));
    }
}
