//! The memory that a split takes on each device.

use crate::plan::{Offload, ParallelPlan, Recompute, Sharding};
use crate::transformer::Transformer;

/// Weight and gradient of a parameter; the rest of its state is the optimizer's.
const WEIGHT_AND_GRADIENT: f64 = 6.0;

/// Bytes of the gathered weights and gradients of a layer, for each parameter, under full sharding.
const GATHERED: f64 = 8.0;

/// Layers whose activations are on the device while the others' are in the host's memory.
const LAYERS_MOVING: f64 = 2.0;

/// Bytes and parameters on a device of the fullest stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    /// Parameters of the fullest stage, on each of the devices that share its layers.
    pub(crate) parameters: f64,
    pub(crate) state: f64,
    pub(crate) activations: f64,
    /// Bytes that a stage keeps of one micro-batch.
    pub(crate) kept: f64,
}

impl Footprint {
    pub(crate) fn new(model: &Transformer, plan: &ParallelPlan) -> Footprint {
        let parameters = parameters(model, plan);
        let layer = layer_activations(model, plan, plan.recompute);
        let stage_layers = f64::from(model.layers / plan.pipeline);
        let alive = match plan.offload {
            Offload::Activations => LAYERS_MOVING.min(stage_layers),
            _ => layers_alive(model, plan),
        };
        let again = match plan.recompute {
            Recompute::Full => layer_activations(model, plan, Recompute::None),
            _ => 0.0,
        };
        Footprint {
            parameters,
            state: state(model, plan, parameters),
            activations: layer * alive + again + ends(model, plan),
            kept: layer * stage_layers,
        }
    }
}

fn parameters(model: &Transformer, plan: &ParallelPlan) -> f64 {
    let layers = f64::from(model.layers / plan.pipeline) * model.layer_parameters();
    let ends = if plan.pipeline > 1 { model.table_parameters() } else { model.embedding_parameters() };
    (layers + ends) / f64::from(plan.tensor)
}

/// What one layer keeps of one micro-batch (Korthikanti et al.).
pub fn layer_activations(model: &Transformer, plan: &ParallelPlan, recompute: Recompute) -> f64 {
    let [s, h, a] = [model.seq, model.hidden, model.heads].map(f64::from);
    let (t, unit) = (f64::from(plan.tensor), s * f64::from(plan.micro_batch) * h);
    let split = plan.sequence_parallel;
    if recompute == Recompute::Full {
        return 2.0 * unit / if split { t } else { 1.0 };
    }
    let keeps_scores = !model.is_flash() && recompute == Recompute::None;
    let scores = if keeps_scores { 5.0 * a * s / h } else { 0.0 };
    match split {
        true => unit * (34.0 + scores) / t,
        false => unit * (10.0 + 24.0 / t + scores / t),
    }
}

/// Layers of which the fullest stage keeps activations at once, counted once for each micro-batch.
pub fn layers_alive(model: &Transformer, plan: &ParallelPlan) -> f64 {
    let (l, p) = (f64::from(model.layers), f64::from(plan.pipeline));
    match plan.interleave {
        1 => {
            f64::from(model.layers / plan.pipeline)
                * f64::from(plan.micro_batches(model.batch).min(plan.pipeline))
        }
        v => l * (1.0 + (p - 1.0) / (p * f64::from(v))),
    }
}

/// What lies before the first layer and after the last, where one stage has both.
fn ends(model: &Transformer, plan: &ParallelPlan) -> f64 {
    if plan.pipeline > 1 {
        return 0.0;
    }
    let tokens = f64::from(model.seq) * f64::from(plan.micro_batch);
    tokens * (4.0 * f64::from(model.hidden) + model.logit_bytes * f64::from(model.vocab))
        / f64::from(plan.tensor)
}

fn state(model: &Transformer, plan: &ParallelPlan, parameters: f64) -> f64 {
    let (whole, d) = (model.state_bytes, f64::from(plan.data));
    if plan.offload != Offload::Nothing {
        return WEIGHT_AND_GRADIENT * parameters;
    }
    match plan.sharding {
        Sharding::Nothing => whole * parameters,
        Sharding::Optimizer => {
            WEIGHT_AND_GRADIENT * parameters + (whole - WEIGHT_AND_GRADIENT) * parameters / d
        }
        Sharding::Everything => {
            whole * parameters / d + GATHERED * model.layer_parameters() / f64::from(plan.tensor)
        }
    }
}
