//! `yard bench fit`: how long it takes to fit a model to what a job measured, and to choose its batch size. Beside it
//! the same pass over the points that any search makes for one trial, so that figures compare across machines.

use std::hint::black_box;

use anyhow::bail;
use serde_json::json;
use yard_core::goodput::{Limits, Line, Model, fit};
use yard_core::training::{Batch, Noise, Timing};
use yard_sim::random::Random;

use super::BenchFigures;
use crate::clock::CommandStopwatch;
use crate::output::OutputFormat;

/// What to fit.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard bench fit\n  yard bench fit --points 200 -o json\n\nThe points are those of a job on up to four nodes of eight devices, each a tenth off at most. Times are the minimum of\nmany runs, in microseconds."
)]
pub(crate) struct FitArgs {
    /// Number of points
    #[arg(long, default_value_t = 50)]
    points: usize,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl FitArgs {
    pub(crate) fn output(&self) -> OutputFormat {
        self.output
    }
}

/// What the points are made from.
const TRUTH: Model = Model {
    grad: Line { base: 0.02, each: 0.0007 },
    across: Line { base: 0.03, each: 0.01 },
    within: Line { base: 0.01, each: 0.0014 },
    overlap: 1.2,
};

const NOISE: Noise = Noise { sqr: 0.01, var: 0.3 };

/// Each time is the least of so many.
const RUNS: usize = 200;

pub(crate) fn measure(args: &FitArgs) -> anyhow::Result<BenchFigures> {
    if args.points == 0 {
        bail!("--points must be above 0");
    }
    let mut points = points(args.points, args.seed);
    let model = fit(&points, None);
    let pass = quickest(|| fit::misfit(&points, &model));
    let cold = quickest(|| fit(&points, None));
    let misfit = fit::misfit(&points, &model);
    points[args.points / 2].step_s *= 1.05;
    let warm = quickest(|| fit(&points, Some(&model)));
    let limits = Limits { batch: 128, batch_max: 4096, local: (32, 1024), accumulates: true };
    let choice = quickest(|| limits.best(&model, &NOISE, 2, 16));
    let one = quickest(|| limits.goodput(&model, &NOISE, 2, 16, Batch { local: 64, extra: 0 }));
    let mut figures = BenchFigures::default();
    figures.put("points", json!(args.points));
    figures.put("misfit", json!(misfit));
    figures.put("pass_us", json!(pass));
    figures.put("fit_us", json!(cold));
    figures.put("fit_passes", json!(cold / pass));
    figures.put("refit_us", json!(warm));
    figures.put("refit_passes", json!(warm / pass));
    figures.put("choice_us", json!(choice));
    figures.put("choice_goodputs", json!(choice / one));
    Ok(figures)
}

fn points(count: usize, seed: u64) -> Vec<Timing> {
    let mut random = Random::new(seed);
    let mut point = || {
        let devices = *random.pick(&[1, 2, 4, 8, 16, 32]);
        let nodes = u32::div_ceil(devices, 8);
        let local = 8 + random.below(500) as u32;
        let mut off = |seconds: f64| seconds * (0.9 + 0.2 * random.unit());
        let grad_s = off(TRUTH.grad_s(local));
        let step_s = off(TRUTH.step_s(grad_s, TRUTH.sync_s(nodes, devices))).max(grad_s);
        Timing { nodes, devices, local, grad_s, step_s }
    };
    (0..count).map(|_| point()).collect()
}

/// Microseconds of the quickest of many runs; a single run is too short for a clock that others share.
fn quickest<T>(work: impl Fn() -> T) -> f64 {
    let once = || {
        let watch = CommandStopwatch::start();
        black_box(work());
        watch.seconds() * 1e6
    };
    (0..RUNS).map(|_| once()).fold(f64::MAX, f64::min)
}
