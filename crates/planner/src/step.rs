//! The time of a whole step: the pipeline, then reducing the gradients, then the update.

use crate::accelerator::Accelerator;
use crate::layer::LayerTime;
use crate::memory::Footprint;
use crate::plan::{Offload, ParallelPlan, Sharding};
use crate::transformer::Transformer;

/// The part of the host link's rate that copies reach.
const HOST_LINK: f64 = 0.8;

/// Bytes that an update reads and writes for each parameter.
const UPDATE_BYTES: f64 = 28.0;

/// The part of the shorter of computing and gathering that does not overlap, under full sharding.
const NOT_OVERLAPPED: f64 = 0.7;

/// What a split is predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds of a step.
    pub step_s: f64,
    /// Bytes of weights, gradients and optimizer on each device.
    pub state: f64,
    /// Bytes of what is kept for the backward pass on each device.
    pub activations: f64,
}

impl Prediction {
    /// Bytes on each device.
    pub fn memory(&self) -> f64 {
        self.state + self.activations
    }
}

/// Predicts one split. The plan's parts must divide the model's: [`crate::search()`] makes only such.
pub fn evaluate(model: &Transformer, device: &Accelerator, plan: &ParallelPlan) -> Prediction {
    let layer = LayerTime::new(model, device, plan.tensor, plan.micro_batch, plan.sequence_parallel);
    let memory = Footprint::new(model, plan);
    Prediction {
        step_s: seconds(model, device, plan, &layer, &memory),
        state: memory.state,
        activations: memory.activations,
    }
}

/// The seconds of a step, from its parts.
pub(crate) fn seconds(
    model: &Transformer,
    device: &Accelerator,
    plan: &ParallelPlan,
    layer: &LayerTime,
    memory: &Footprint,
) -> f64 {
    let per = f64::from(model.layers / plan.pipeline) * layer.both_ways(plan.recompute);
    let replicas = f64::from(plan.data);
    let pipe = match plan.sharding {
        Sharding::Everything => sharded(model, device, plan, per + layer.head, memory.parameters),
        _ => pipeline(model, device, plan, per, layer.head, memory),
    };
    let sync = if plan.sharding == Sharding::Everything { 0.0 } else { reduce(model, device, plan, memory) };
    let parts = if plan.sharding == Sharding::Nothing { 1.0 } else { replicas };
    pipe + sync + update(device, plan, memory.parameters, parts)
}

/// Micro-batches through the stages, with the bubble at either end.
fn pipeline(
    model: &Transformer,
    device: &Accelerator,
    plan: &ParallelPlan,
    per: f64,
    head: f64,
    memory: &Footprint,
) -> f64 {
    let micro_batches = f64::from(plan.micro_batches(model.batch));
    let slowed = |seconds: f64| match plan.offload {
        Offload::Activations => seconds.max(2.0 * memory.kept / (device.host_link * HOST_LINK)),
        _ => seconds,
    };
    if plan.pipeline == 1 {
        return micro_batches * slowed(per + head);
    }
    let over = hand_over(model, device, plan);
    let bubble = f64::from(plan.pipeline - 1) / f64::from(plan.interleave) * slowed(per + over);
    micro_batches * slowed(per + head + over) + bubble
}

/// What a stage hands to the next for each micro-batch, both ways.
fn hand_over(model: &Transformer, device: &Accelerator, plan: &ParallelPlan) -> f64 {
    let width = f64::from(plan.micro_batch) * f64::from(model.seq) * f64::from(model.hidden);
    let channel = device.channel(2 * plan.tensor * plan.data <= device.per_node);
    2.0 * f64::from(plan.interleave)
        * (2.0 * width / (f64::from(plan.tensor) * channel.rate) + channel.latency)
}

/// Micro-batches where weights are gathered for each, beside computing.
fn sharded(
    model: &Transformer,
    device: &Accelerator,
    plan: &ParallelPlan,
    compute: f64,
    parameters: f64,
) -> f64 {
    let d = f64::from(plan.data);
    let gather = 6.0 * parameters * (d - 1.0) / d / device.group(plan.data, plan.tensor).rate;
    let micro_batches = f64::from(plan.micro_batches(model.batch));
    micro_batches * (compute.max(gather) + NOT_OVERLAPPED * compute.min(gather))
}

/// Gradients among replicas, and of the table of words between the first stage and the last.
fn reduce(model: &Transformer, device: &Accelerator, plan: &ParallelPlan, memory: &Footprint) -> f64 {
    let among = device.all_reduce(model.grad_bytes * memory.parameters, plan.data, plan.tensor);
    if plan.pipeline == 1 {
        return among;
    }
    let table = model.grad_bytes * model.table_parameters() / f64::from(plan.tensor);
    among + device.all_reduce(table, 2, plan.tensor * plan.data)
}

fn update(device: &Accelerator, plan: &ParallelPlan, parameters: f64, parts: f64) -> f64 {
    if plan.offload == Offload::Nothing {
        return UPDATE_BYTES * parameters / device.memory_rate() / parts;
    }
    let share = device.host_memory / f64::from(device.per_node);
    (4.0 * parameters / (device.host_link * HOST_LINK) + UPDATE_BYTES * parameters / share) / parts
}
