//! Rigid, strongly scaling and adaptive jobs in one trace, some with deadlines: applications of Sia's profiles with the
//! shares, sizes and batch sizes that they have in its workloads. Of the jobs a third is of each mode. A third has a
//! deadline, 1.5 to 4 times as far away as the job is long on what it asks for (reckoned from the profiles of `rtx`
//! cards); half of those are soft, with Chronus' rewards at 1, 1.2, 1.5 and 2 times that, the others are refused
//! where they cannot be made.

use yard_core::job::{Late, Reward};
use yard_core::{Span, Time};

use super::super::jobs::TraceJobs;
use super::super::{Scaling, TraceJob, Work};
use super::draw::{TraceDraw, Weighted};

/// Application, devices, batch size, hours on these, and how often.
const APPS: [(&str, u32, u32, f64, f64); 6] = [
    ("cifar10", 8, 2048, 0.19, 0.35),
    ("cifar10", 12, 4096, 0.16, 0.30),
    ("bert", 8, 384, 0.34, 0.13),
    ("deepspeech2", 8, 320, 0.72, 0.15),
    ("yolov3", 4, 64, 6.3, 0.05),
    ("imagenet", 12, 3200, 10.2, 0.02),
];

const REWARDS: [(f64, f64); 4] = [(1.0, 10.0), (1.2, 8.0), (1.5, 5.0), (2.0, 2.0)];

pub(super) fn add(jobs: &mut TraceJobs, submits: impl Iterator<Item = Time>, mut draw: TraceDraw) {
    let apps = Weighted::new(APPS.map(|(.., share)| share));
    for (number, submit) in submits.enumerate() {
        let (app, gpus, batch_size, hours, _) = APPS[apps.draw(&mut draw)];
        let model = jobs.word(app);
        let job = jobs.add(itoa::Buffer::new().format(number), submit, gpus, Work::Profile, 0);
        (job.model, job.batch_size) = (model, Some(batch_size));
        job.mode = Some(Scaling::ALL[draw.index(Scaling::ALL.len())].1);
        let (hurried, soft, slack) = (draw.unit() < 1.0 / 3.0, draw.unit() < 0.5, draw.between(1.5, 4.0));
        if hurried {
            hurry(job, (hours * 3600.0 * slack).round(), soft);
        }
    }
}

fn hurry(job: &mut TraceJob, seconds: f64, soft: bool) {
    let by = |times: f64| job.submit + Span::from_secs((seconds * times).round());
    let rewards = REWARDS.map(|(times, worth)| Reward { by: by(times), worth });
    job.deadline = Some(by(1.0));
    if soft {
        job.rewards = Some(rewards.into());
    } else {
        job.late = Late::Refuse;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, GenSpec, Preset, generate};
    use super::*;

    #[test]
    fn all_modes_and_deadlines_are_there() {
        let spec = GenSpec { jobs: 3_000, arrivals: Arrivals::Static, preset: Preset::Mixed, seed: 1 };
        let trace = generate(&spec);
        for (_, mode) in Scaling::ALL {
            let many = trace.jobs.iter().filter(|job| job.mode == Some(mode)).count();
            assert!((900..1100).contains(&many), "{mode:?} {many}");
        }
        let many = |is: fn(&TraceJob) -> bool| trace.jobs.iter().filter(|job| is(job)).count();
        assert!((900..1100).contains(&many(|job| job.deadline.is_some())));
        assert!((400..600).contains(&many(|job| job.rewards.is_some())));
        assert!(many(|job| job.late == Late::Refuse && job.rewards.is_some()) == 0);
    }
}
