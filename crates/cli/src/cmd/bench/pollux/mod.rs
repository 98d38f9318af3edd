//! `yard bench pollux`: our sizes against those of the paper's genetic algorithm, on the same random clusters, in the
//! paper's own measure.

mod genetic;
mod instance;

use anyhow::{Context, bail};
use serde_json::json;
use yard_core::allocation::Shares;

use self::instance::{Placed, PolluxInstance};
use super::{BenchFigures, Took, timed};
use crate::output::OutputFormat;

/// The clusters to compare on.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench pollux -o json\n  yard bench pollux --nodes 64 --jobs 128 --instances 3\n\nNodes have four devices. Jobs follow random throughput models and gradient noises; half of them hold devices.\nThe genetic algorithm has a population of 100 over 100 generations, and one objective instead of two; what it starts from\nis what the jobs hold."
)]
pub(crate) struct PolluxArgs {
    /// Number of nodes with four devices each
    #[arg(long, default_value_t = 16)]
    nodes: usize,
    /// Number of jobs
    #[arg(long, default_value_t = 32)]
    jobs: usize,
    /// Number of random clusters
    #[arg(long, default_value_t = 20)]
    instances: u64,
    /// Random seed of the first cluster
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
}

/// Plans made for one figure: one alone is shorter than the clock's step.
const REPEATS: u32 = 50;

/// One cluster, solved both ways.
struct PolluxPair {
    ours: f64,
    bound: f64,
    genetic: f64,
    took: Took,
    took_genetic: Took,
}

pub(super) fn measure(args: &PolluxArgs) -> anyhow::Result<BenchFigures> {
    if args.jobs == 0 || args.nodes == 0 || args.instances == 0 {
        bail!("there must be something to compare: --jobs, --nodes and --instances must be above 0");
    }
    let pairs: Vec<PolluxPair> = (0..args.instances)
        .map(|at| compare(&PolluxInstance::new(args.nodes, args.jobs, args.seed + at), args.seed + at))
        .collect::<anyhow::Result<_>>()?;
    let mean = |of: &dyn Fn(&PolluxPair) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let most = |of: &dyn Fn(&PolluxPair) -> f64| pairs.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let ms = |took: &Took| took.cpu_s.unwrap_or(took.wall_s) * 1e3;
    let mut figures = BenchFigures::default();
    figures.put("devices", json!(args.nodes * instance::NODE as usize));
    figures.put("jobs", json!(args.jobs));
    figures.put("instances", json!(args.instances));
    figures.put("seed", json!(args.seed));
    figures.put("fitness", json!(mean(&|pair| pair.ours)));
    figures.put("fitness_bound", json!(mean(&|pair| pair.bound)));
    figures.put("fitness_genetic", json!(mean(&|pair| pair.genetic)));
    figures.put("least_ratio", json!(-most(&|pair| -pair.ours / pair.genetic)));
    figures.put("no_worse", json!(pairs.iter().filter(|pair| pair.ours >= pair.genetic).count()));
    figures.put("cpu_ms", json!(mean(&|pair| ms(&pair.took) / f64::from(REPEATS))));
    figures.put("cpu_ms_max", json!(most(&|pair| ms(&pair.took) / f64::from(REPEATS))));
    figures.put("cpu_ms_genetic", json!(mean(&|pair| ms(&pair.took_genetic))));
    Ok(figures)
}

fn compare(instance: &PolluxInstance, seed: u64) -> anyhow::Result<PolluxPair> {
    let view = instance.view();
    let (_, mut policy) = yard_policies::make("pollux", [].into())?;
    let (took, answer) = timed(|| {
        for _ in 1..REPEATS {
            policy.allocate(&view)?;
        }
        Ok(policy.allocate(&view)?)
    })?;
    let certificate = answer.certificate.context("pollux says how good its answer is")?;
    let Shares::All(shares) = answer.shares else { bail!("pollux answers for all jobs at once") };
    let mut placed = vec![Placed::default(); instance.jobs.len()];
    for share in shares.iter().filter(|share| share.rank.0 < 0.0) {
        let at = share.jobs[0].index();
        placed[at] = instance.placed(share.shape.unwrap_or(0));
    }
    let ours = instance.fitness(&placed);
    let (took_genetic, found) = timed(|| Ok(genetic::search(instance, seed)))?;
    Ok(PolluxPair { ours, bound: certificate.bound, genetic: instance.fitness(&found), took, took_genetic })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cluster_of_twenty_is_better_served_by_the_genetic_algorithm() {
        for seed in 0..20 {
            let pair = compare(&PolluxInstance::new(16, 32, seed), seed).expect("an answer");
            assert!(pair.ours >= pair.genetic, "{seed}: {} but {}", pair.ours, pair.genetic);
            assert!(pair.ours <= pair.bound * (1.0 + 1e-9), "{seed}: {} above {}", pair.ours, pair.bound);
        }
    }
}
