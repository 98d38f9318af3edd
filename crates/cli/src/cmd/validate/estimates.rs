//! How often estimates hold: at random instants of a run all jobs are foretold from the state of the scheduler, and the
//! share of starts and ends inside the 90 % intervals is compared with 0.9. Who comes later is not known to the
//! forecast, and in a second pass neither is how long jobs take: they say up to three times too much or too little.

use std::path::Path;

use yard_sim::trace::{self, Arrivals, GenSpec, Preset};

use super::{Check, plan};
use crate::runner::Plan;

/// A generated trace that keeps the cluster four fifths busy and goes on as it began. In one that ends, as those of
/// papers do, the future is not like the past and no forecast could know.
const JOBS: GenSpec = GenSpec { jobs: 600, arrivals: Arrivals::Rate(5.8), preset: Preset::Uniform, seed: 1 };
const CLUSTER: &str = "gpu:8x8";

/// Instants in each run.
const INSTANTS: usize = 30;

const POLICIES: [&str; 3] = ["fifo-fit", "srtf", "las"];

/// What should hold nine times in ten, and how far from that is good enough.
const HELD: (f64, f64) = (0.9, 0.05);

pub(super) fn estimates(_: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut text = Vec::new();
    trace::write(&trace::generate(&JOBS), &mut text)?;
    let plan = planned(&text, CLUSTER, &POLICIES.join(","))?;
    let mut checks = Vec::new();
    for choice in &plan.choices {
        for (off, figures) in [(None, EXACT), (Some(3.0), WRONG)] {
            let told = plan.calibrate(choice, INSTANTS, off, true)?;
            checks.extend(
                figures
                    .iter()
                    .zip([told.starts_held(), told.ends_held()])
                    .filter_map(|(figure, held)| Some(check(&choice.name, figure, held?))),
            );
        }
    }
    Ok(Some(checks))
}

/// What `yard sim` would run on a trace that is not in a file.
fn planned(text: &[u8], cluster: &str, policies: &str) -> anyhow::Result<Plan> {
    let file = std::env::temp_dir().join(format!("yard-estimates-{}-{}.csv", std::process::id(), text.len()));
    std::fs::write(&file, text)?;
    let planned = plan(&file, cluster, policies, &[]);
    std::fs::remove_file(&file)?;
    Ok(planned?.0)
}

const EXACT: [&str; 2] = ["starts inside", "ends inside"];
const WRONG: [&str; 2] = ["starts inside, durations ×⅓–3", "ends inside, durations ×⅓–3"];

/// Too often is no fault: where the future does not matter, the interval is a point that is always right.
fn check(run: &str, figure: &'static str, held: f64) -> Check {
    let (wanted, slack) = HELD;
    let ok = held >= wanted - slack;
    Check { ok, ..Check::new("estimates", run, figure, wanted, held, slack / wanted) }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

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
