//! How often estimates hold: at random instants of a run all jobs are foretold from the state of the scheduler, and the
//! share of starts and ends inside the 90 % intervals is compared with 0.9, and those before the upper limit with 0.95.
//! Who comes later is not known to the forecast, and in a second pass neither is how long jobs take: they say up to
//! three times too much or too little. The first half of the instants teaches, the second is judged.

use std::fmt::Write as _;
use std::path::Path;

use yard_sim::random::Random;
use yard_sim::trace::{self, Arrivals, GenSpec, Preset};

use super::{Check, plan};
use crate::runner::Plan;

/// Instants in each run.
const INSTANTS: usize = 40;

const POLICIES: [&str; 4] = ["fifo", "las", "srtf", "max-min"];

/// What should hold nine times in ten, and how far from that is good enough; and 19 times in 20.
const HELD: (f64, f64) = (0.9, 0.05);
const IN_TIME: (f64, f64) = (0.95, 0.05);

pub(super) fn estimates(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = Vec::new();
    for (name, plan) in traces(data)? {
        for choice in &plan.choices {
            for (off, figures) in [(None, EXACT), (Some(3.0), WRONG)] {
                let told = plan.calibrate(choice, INSTANTS, off, true)?;
                let held = [told.starts_held(), told.ends_held(), told.in_time()];
                let run = format!("{}, {name}", choice.name);
                let figures = figures.into_iter().zip([HELD, HELD, IN_TIME]).zip(held);
                checks.extend(
                    figures.filter_map(|((figure, goal), held)| Some(check(&run, figure, goal, held?))),
                );
            }
        }
    }
    Ok(Some(checks))
}

/// A steady one that keeps its cluster busy; one with long tails; one that comes in bursts; and Tiresias' 60 jobs,
/// after which nobody comes.
fn traces(data: &Path) -> anyhow::Result<Vec<(&'static str, Plan)>> {
    let policies = POLICIES.join(",");
    let generated = |spec: GenSpec, cluster: &str| {
        let mut text = Vec::new();
        trace::write(&trace::generate(&spec), &mut text)?;
        planned(&text, cluster, &policies)
    };
    let steady = GenSpec { jobs: 400, arrivals: Arrivals::Rate(5.8), preset: Preset::Uniform, seed: 1 };
    let tails = GenSpec { jobs: 400, arrivals: Arrivals::Rate(20.0), preset: Preset::Philly, seed: 1 };
    let mut traces = vec![
        ("steady", generated(steady, "gpu:8x8")?),
        ("long tails", generated(tails, "gpu:16x8")?),
        ("bursts", planned(bursts(20).as_bytes(), "gpu:4x8", &policies)?),
    ];
    let tiresias = data.join("traces/tiresias/60_job.csv");
    if tiresias.is_file() {
        traces.push(("60 jobs", plan(&tiresias, "gpu:2x4", &policies, &[])?.0));
    }
    Ok(traces)
}

/// Twenty jobs within minutes, then nobody for hours.
fn bursts(times: u64) -> String {
    let mut random = Random::new(7);
    let mut text = String::from("job_id,submit_s,gpus,duration_s\n");
    for burst in 0..times {
        let at = burst * 20_000 + random.below(10_000);
        let mut comes: Vec<u64> = (0..10 + random.below(20)).map(|_| at + random.below(600)).collect();
        comes.sort_unstable();
        for (job, comes) in comes.into_iter().enumerate() {
            let seconds = libm::exp(5.0 + 4.0 * random.unit());
            let _ = writeln!(text, "{burst}-{job},{comes},{},{seconds:.0}", 1 << random.below(4));
        }
    }
    text
}

/// What `yard sim` would run on a trace that is not in a file.
pub(super) fn planned(text: &[u8], cluster: &str, policies: &str) -> anyhow::Result<Plan> {
    let file = std::env::temp_dir().join(format!("yard-estimates-{}-{}.csv", std::process::id(), text.len()));
    std::fs::write(&file, text)?;
    let planned = plan(&file, cluster, policies, &[]);
    std::fs::remove_file(&file)?;
    Ok(planned?.0)
}

const EXACT: [&str; 3] = ["starts inside", "ends inside", "before the upper limit"];
const WRONG: [&str; 3] = [
    "starts inside, durations ×⅓–3",
    "ends inside, durations ×⅓–3",
    "before the upper limit, durations ×⅓–3",
];

/// Too often is no fault: where the future does not matter, the interval is a point that is always right.
fn check(run: &str, figure: &'static str, (wanted, slack): (f64, f64), held: f64) -> Check {
    Check::new("estimates", run, figure, wanted, held, slack / wanted).or_higher()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody comes later and all is as believed: the forecast is the run itself, to the second.
    #[test]
    fn a_forecast_is_exact_where_nothing_is_unknown() {
        let mut text = String::from("job_id,submit_s,gpus,duration_s,after\n");
        for job in 0..40u32 {
            let after = if job % 7 == 6 { (job - 3).to_string() } else { String::new() };
            writeln!(text, "{job},0,{},{},{after}", 1 << (job % 4), 100 + job * 7919 % 5_000).unwrap();
        }
        let policies = "fifo,fifo-fit,backfill,srtf,las,tiresias,round-robin,max-min,perotin";
        let plan = planned(text.as_bytes(), "gpu:2x8", policies).unwrap();
        for choice in &plan.choices {
            let told = plan.calibrate(choice, 1, None, false).unwrap();
            assert!(told.ends > 35 && told.ends == told.ends_inside, "{}: {told:?}", choice.name);
            assert_eq!(told.starts, told.starts_inside, "{}: {told:?}", choice.name);
            assert!(told.width == 0.0 && told.error < 1e-3, "{}: {told:?}", choice.name);
        }
    }
}
