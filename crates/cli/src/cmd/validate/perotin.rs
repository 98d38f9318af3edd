//! Perotin's ratio in simulation, within its conditions (seven devices of a kind or more, all jobs known, starts that cost
//! nothing) but for planning anew at each event, for which it is not proven: workflows of random shape, drawn anew for each seed, run to their end on one and on
//! two kinds of devices; the time until the last job is done against what no schedule can beat.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use yard_sim::random::Random;

use super::{Check, plan};
use crate::output;
use crate::results;
use crate::runner;

/// Workflows on each cluster.
const WORKFLOWS: u64 = 10;

/// The clusters, and φd + 2√(φd) + 1 for their number of kinds.
const CLUSTERS: [(&str, &str, f64); 2] =
    [("one kind of 16", "a:16", 5.162_0), ("two kinds of 8", "a:8,b:8", 7.833_9)];

/// Needs no data.
pub(super) fn perotin(_: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = Vec::new();
    for (kinds, cluster, ratio) in CLUSTERS {
        let ratios =
            (0..WORKFLOWS).map(|seed| measured(cluster, seed)).collect::<anyhow::Result<Vec<f64>>>()?;
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let check = Check::new("perotin", kinds, "worst of 10: last end ÷ lower bound", ratio, worst, 0.0);
        checks.push(Check { ok: worst <= ratio, ..check.or_lower() });
    }
    Ok(Some(checks))
}

/// How many times the lower bound one workflow takes.
fn measured(cluster: &str, seed: u64) -> anyhow::Result<f64> {
    let (trace, bound) = workflow(cluster, &mut Random::new(seed));
    let file = std::env::temp_dir().join(format!("yard-perotin-{}-{seed}.csv", std::process::id()));
    output::write_whole(&file, trace.as_bytes())?;
    let planned = plan(&file, cluster, "perotin", &["--overheads", "none"]);
    let runs = planned.and_then(|(plan, args)| Ok((runner::run_all(&plan, &args)?, plan)));
    std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    let (runs, plan) = runs?;
    let makespan = results::summary(&plan, &runs[0]).makespan_s.context("all jobs end")?;
    Ok(makespan / bound)
}

/// Jobs in layers, each after up to three of those before it; and the larger of the longest path and the work over all
/// devices of the kinds on average.
fn workflow(cluster: &str, random: &mut Random) -> (String, f64) {
    let kinds = cluster.split(',').count() as f64;
    let most = 16.0 / kinds;
    let mut trace = String::from("job_id,submit_s,gpus,duration_s,after\n");
    let (mut paths, mut work): (Vec<f64>, f64) = (Vec::new(), 0.0);
    for job in 0..60u64 {
        let (gpus, seconds) = (1u64 << random.below(3), 10 + random.below(500));
        let mut after: Vec<u64> = (0..random.below(4).min(job)).map(|_| random.below(job)).collect();
        after.sort_unstable();
        after.dedup();
        let before = after.iter().map(|other| paths[*other as usize]).fold(0.0, f64::max);
        paths.push(before + seconds as f64);
        work += (gpus * seconds) as f64 / most / kinds;
        let names: Vec<String> = after.iter().map(u64::to_string).collect();
        let _ = writeln!(trace, "{job},0,{gpus},{seconds},{}", names.join("|"));
    }
    (trace, paths.into_iter().fold(work, f64::max))
}
