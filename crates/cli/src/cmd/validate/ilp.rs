//! Sia's integer program against the optima that its artifact stored (`sia/golden/ilp_*.json`).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use yard_solver::choice::{BuyerChoice, ChoiceWork, Selection};

use super::Check;

const SUITE: &str = "sia";

const FILES: [&str; 3] = ["ilp_64gpu_32jobs.json", "ilp_64gpu_96jobs.json", "ilp_256gpu_128jobs.json"];

/// No configuration costs more than this.
const COST_MAX: f64 = 3000.0;

/// No distance from the bound is good enough.
const EXACT: ChoiceWork = ChoiceWork { passes: 400, gap: 0.0, states: 20_000_000 };

/// An instance with its optimum.
#[derive(Deserialize)]
struct IlpInstance {
    p: f64,
    lam: f64,
    /// Kind, nodes and devices of each configuration.
    configs: Vec<(String, u32, u32)>,
    gpus: BTreeMap<String, u32>,
    goodput: Vec<Vec<f64>>,
    restart: Vec<f64>,
    prev: Vec<Option<usize>>,
    objective: f64,
}

impl IlpInstance {
    /// What a configuration costs a job, to two decimals as in the artifact.
    fn cost(&self, job: usize, config: usize) -> f64 {
        let kept = if self.prev[job].is_none_or(|prev| prev == config) { 1.0 } else { self.restart[job] };
        let cost = libm::pow(kept * self.goodput[job][config], self.p).min(COST_MAX);
        libm::round(cost * 100.0) / 100.0
    }

    /// The kind of a configuration, by its place among all.
    fn kind(&self, config: usize) -> anyhow::Result<u16> {
        let name = &self.configs[config].0;
        let place = self.gpus.keys().position(|kind| kind == name);
        Ok(place.with_context(|| format!("there are no devices of the kind {name}"))? as u16)
    }

    fn solve(&self) -> anyhow::Result<Selection> {
        let mut choice = BuyerChoice::new(self.gpus.values().copied().collect());
        for job in 0..self.goodput.len() {
            choice.row();
            for config in 0..self.configs.len() {
                let uses = [(self.kind(config)?, self.configs[config].2)];
                choice.option(self.lam - self.cost(job, config), &uses)?;
            }
        }
        Ok(choice.solve(&EXACT))
    }

    /// The cost reached against the stored one, and how far the optimum is from it at most.
    fn checks(&self) -> anyhow::Result<[Check; 2]> {
        let solved = self.solve()?;
        let queued = self.lam * self.goodput.len() as f64;
        let (cost, bound) = (queued - solved.objective, queued - solved.bound);
        Ok([
            Check::new(SUITE, "sia", "cost of the assignment", self.objective, cost, 1e-6).or_lower(),
            Check::new(SUITE, "sia", "what no assignment beats", cost, bound, 0.005),
        ])
    }
}

/// All stored instances.
pub(super) fn suite(data: &Path) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = Vec::new();
    for file in FILES {
        let path = data.join("sia/golden").join(file);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let context = || format!("{}: not a list of instances", path.display());
        let instances: Vec<IlpInstance> = serde_json::from_str(&text).with_context(context)?;
        for instance in instances {
            checks.extend(instance.checks().with_context(context)?);
        }
    }
    Ok((!checks.is_empty()).then_some(checks))
}
