//! Jobs like those of Microsoft's clusters: durations from Philly (2017), gang sizes from ITP
//! (2021), drawn independently; users and teams by a Zipf law.

use std::sync::Arc;

use yard_core::Time;

use super::super::Work;
use super::super::jobs::TraceJobs;
use super::draw::{TraceDraw, Weighted};

/// Durations in seconds by quantile.
///
/// Source: alibaba/clusterdata, `cluster-trace-gpu-v2020/analysis/philly_runtime.csv` (CC BY 4.0):
/// the 83 152 of its 83 154 run times that are above 0, sorted; the value at q is number ⌈q·n⌉.
/// Between two points the logarithm is linear. The mean is then 15 285 s; the data have 14 614 s.
const DURATIONS: [(f64, f64); 30] = [
    (0.0, 1.0),
    (0.01, 17.0),
    (0.02, 25.0),
    (0.05, 48.0),
    (0.1, 61.0),
    (0.15, 68.0),
    (0.2, 76.0),
    (0.25, 131.0),
    (0.3, 229.0),
    (0.35, 428.0),
    (0.4, 630.0),
    (0.45, 889.0),
    (0.5, 1_186.0),
    (0.55, 1_500.0),
    (0.6, 1_871.0),
    (0.65, 2_242.0),
    (0.7, 2_590.0),
    (0.75, 3_342.0),
    (0.8, 4_700.0),
    (0.85, 6_302.0),
    (0.9, 12_860.0),
    (0.925, 21_053.0),
    (0.95, 49_969.0),
    (0.97, 101_884.0),
    (0.98, 167_785.0),
    (0.99, 287_333.0),
    (0.995, 484_829.0),
    (0.999, 1_361_908.0),
    (0.9999, 2_751_796.0),
    (1.0, 4_628_239.0),
];

/// Gang sizes and how many of the 69 351 jobs have them.
///
/// Source: microsoft/elasticflow-traces, `raw-traces.tar.gz` (MIT), `num_gpu` over all ten clusters.
const GANGS: [(u32, f64); 7] =
    [(1, 57_682.0), (2, 1_483.0), (4, 2_371.0), (8, 7_009.0), (16, 381.0), (32, 354.0), (64, 71.0)];

const USERS: usize = 20;
const TENANTS: usize = 5;

pub(super) fn add(jobs: &mut TraceJobs, submits: impl Iterator<Item = Time>, mut draw: TraceDraw) {
    let gangs = Weighted::new(GANGS.map(|(_, jobs)| jobs));
    let logs = DURATIONS.map(|(quantile, seconds)| (quantile, libm::log(seconds)));
    let by_rank = Weighted::new((1..=USERS).map(|rank| 1.0 / rank as f64));
    let users = numbered("user", USERS, jobs);
    let tenants = numbered("team", TENANTS, jobs);
    for (number, submit) in submits.enumerate() {
        let gpus = GANGS[gangs.draw(&mut draw)].0;
        let work = Work::Seconds(duration(&logs, draw.unit()));
        let user = by_rank.draw(&mut draw);
        let job = jobs.add(itoa::Buffer::new().format(number), submit, gpus, work, 0);
        job.user = users[user].clone();
        job.tenant = tenants[user % TENANTS].clone();
    }
}

fn numbered(word: &str, count: usize, jobs: &mut TraceJobs) -> Vec<Option<Arc<str>>> {
    (1..=count).map(|number| jobs.word(&format!("{word}{number:02}"))).collect()
}

/// The duration at this quantile, in whole seconds as the source has them.
fn duration(logs: &[(f64, f64)], quantile: f64) -> f64 {
    let above = logs.partition_point(|&(q, _)| q <= quantile).clamp(1, logs.len() - 1);
    let ((q0, low), (q1, high)) = (logs[above - 1], logs[above]);
    libm::exp(low + (high - low) * (quantile - q0) / (q1 - q0)).round().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, GenSpec, Preset, generate};
    use super::*;

    const N: usize = 200_000;

    fn sample() -> crate::trace::Trace {
        generate(&GenSpec { jobs: N, arrivals: Arrivals::Rate(100.0), preset: Preset::Philly, seed: 7 })
    }

    /// Under each quantile's value lies its share of the jobs, within five standard errors (and half
    /// a second, by which the table's whole seconds blur the shortest).
    #[test]
    fn durations_follow_the_table() {
        let trace = sample();
        let seconds: Vec<f64> = trace.jobs.iter().map(|job| seconds(job.work)).collect();
        for (quantile, value) in DURATIONS {
            let error = 5.0 * (quantile * (1.0 - quantile) / N as f64).sqrt();
            let share = |bound: f64| seconds.iter().filter(|&&s| s < bound).count() as f64 / N as f64;
            assert!(share(value - 0.5) <= quantile + error, "{quantile}");
            assert!(share(value + 1.0) >= quantile - error, "{quantile}");
        }
    }

    #[test]
    fn gangs_follow_the_table() {
        let trace = sample();
        let total: f64 = GANGS.iter().map(|(_, jobs)| jobs).sum();
        for (gpus, weight) in GANGS {
            let expected = weight / total;
            let share = trace.jobs.iter().filter(|job| job.gpus == gpus).count() as f64 / N as f64;
            assert!((share - expected).abs() < 5.0 * (expected / N as f64).sqrt(), "{gpus}: {share}");
        }
    }

    #[test]
    fn mornings_are_busier_than_evenings() {
        let trace = sample();
        let first_half = trace.jobs.iter().filter(|job| (job.submit.secs() / 86_400.0).fract() < 0.5).count();
        // The mean of 1 + sin/2 over the first half of a day is 1 + 1/π, of two in total.
        let expected = 0.5 + 0.5 / std::f64::consts::PI;
        assert!((first_half as f64 / N as f64 - expected).abs() < 0.01, "{first_half}");
        let hours = trace.jobs[N - 1].submit.secs() / 3600.0;
        assert!((N as f64 / hours - 100.0).abs() < 2.0, "{hours}");
    }

    fn seconds(work: Work) -> f64 {
        match work {
            Work::Seconds(seconds) => seconds,
            Work::Steps(_) | Work::Profile => panic!("generated jobs have durations"),
        }
    }
}
