//! Batch sizes and throughput fits against the artifact of Sia (`sia/golden`).

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use yard_core::goodput::{Limits, Model, fit};
use yard_core::training::{Batch, Noise, Timing};

use super::Check;

const SUITE: &str = "goodput";

/// How close a goodput is that counts as equal.
const EQUAL: f64 = 1e-6;

/// A batch size that the artifact chose.
#[derive(Deserialize)]
struct Optimum {
    perf: [f64; 7],
    sqr: f64,
    var: f64,
    init: u32,
    max: u32,
    bounds: (u32, u32),
    accum: bool,
    nodes: u32,
    replicas: u32,
    goodput: f64,
    atomic: u32,
    steps: u32,
}

/// A fit of the artifact.
#[derive(Deserialize)]
struct Fitted {
    gpu: String,
    app: String,
    n: usize,
    params: [f64; 7],
}

/// All optima and fits of the golden files.
pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let golden = data.join("sia/golden");
    if !golden.is_dir() {
        return Ok(None);
    }
    let optima: Vec<Optimum> = read(&golden.join("goodput_optimize.json"))?;
    let equal = optima.iter().filter(|optimum| optimum.is_ours()).count();
    let mut checks = vec![Check::decimals(
        SUITE,
        "batch size",
        "optima that are equal",
        optima.len() as f64,
        equal as f64,
    )];
    let fits: Vec<Fitted> = read(&golden.join("fit_perf_params.json"))?;
    for fitted in fits {
        checks.push(fitted.check(&data.join("sia/profiles"))?);
    }
    Ok(Some(checks))
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
}

impl Optimum {
    fn is_ours(&self) -> bool {
        let limits =
            Limits { batch: self.init, batch_max: self.max, local: self.bounds, accumulates: self.accum };
        let noise = Noise { sqr: self.sqr, var: self.var };
        let best = limits.best(&Model::of(self.perf), &noise, self.nodes, self.replicas);
        let batch = Batch { local: self.atomic, extra: self.steps };
        best.is_some_and(|best| best.batch == batch && (best.goodput / self.goodput - 1.0).abs() < EQUAL)
    }
}

impl Fitted {
    /// The misfit of our model against theirs on the same points, in the measure of the fit.
    fn check(&self, profiles: &Path) -> anyhow::Result<Check> {
        let path = profiles.join(&self.app).join(format!("placements-{}.csv", self.gpu));
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let points = points(&text).filter(|points| points.len() == self.n);
        let points = points.with_context(|| format!("{} is not as expected", path.display()))?;
        let misfit = |model: &Model| fit::misfit(&points, model);
        let (theirs, ours) = (misfit(&Model::of(self.params)), misfit(&fit(&points, None)));
        let name = format!("{} on {}", self.app, self.gpu);
        Ok(Check::new(SUITE, &name, "misfit", theirs, ours, 0.01).or_lower())
    }
}

/// What the artifact fits to: placements on up to two nodes and eight devices, the last of equals.
fn points(text: &str) -> Option<Vec<Timing>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name| header.iter().position(|column| *column == name);
    let columns = [column("placement")?, column("local_bsz")?, column("step_time")?, column("sync_time")?];
    let mut points: Vec<Timing> = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |at: usize| cells.get(columns[at]).copied();
        let point = timing(cell(0)?, cell(1)?.parse().ok()?, cell(2)?.parse().ok()?, cell(3)?.parse().ok()?);
        let key = |point: &Timing| (point.nodes, point.devices, point.local);
        points.retain(|other| key(other) != key(&point));
        points.extend((point.nodes <= 2 && point.devices <= 8).then_some(point));
    }
    Some(points)
}

/// A placement has a digit for the devices of each node.
fn timing(placement: &str, local: u32, step_s: f64, sync_s: f64) -> Timing {
    let devices = placement.chars().filter_map(|digit| digit.to_digit(10)).sum();
    Timing { nodes: placement.len() as u32, devices, local, grad_s: step_s - sync_s, step_s }
}
