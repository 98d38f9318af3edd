//! The fastest split on a number of devices that fits in memory. All combinations are tried: there are a few thousand.

use crate::accelerator::Accelerator;
use crate::layer::LayerTime;
use crate::memory::Footprint;
use crate::plan::{Offload, ParallelPlan, Recompute, Sharding};
use crate::step::seconds;
use crate::transformer::Transformer;

/// Largest micro-batch that is tried.
const MICRO_BATCH_MAX: u32 = 16;

/// Most parts of a stage that are tried.
const INTERLEAVE_MAX: u32 = 4;

/// The part of a device's memory that a plan may fill.
pub const MEMORY_FILLED: f64 = 0.94;

/// What to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitSearchLimits {
    /// Only splits of each layer over so many devices.
    pub tensor: Option<u32>,
    /// Only so many stages.
    pub pipeline: Option<u32>,
    /// Whether to use the host's memory where nothing else fits.
    pub offload: bool,
    /// The part of a device's memory that may be filled.
    pub filled: f64,
}

impl Default for SplitSearchLimits {
    fn default() -> SplitSearchLimits {
        SplitSearchLimits { tensor: None, pipeline: None, offload: false, filled: MEMORY_FILLED }
    }
}

/// A split that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitCandidate {
    /// The split.
    pub plan: ParallelPlan,
    /// Seconds of a step.
    pub step_s: f64,
    /// Bytes on each device.
    pub memory: f64,
}

/// What the search found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FoundSplits {
    /// The fastest split that fits.
    pub best: Option<SplitCandidate>,
    /// Memory of a device, in bytes, with which some split would fit; none where none divides the model.
    pub least: Option<f64>,
}

/// The times of layers on one kind, which many splits have in common.
pub struct Layers<'a> {
    model: &'a Transformer,
    device: &'a Accelerator,
    /// By degree of tensor parallelism: the degree, and the times of each micro-batch.
    times: Vec<(u32, Vec<LayerTime>)>,
}

impl<'a> Layers<'a> {
    /// Computes them for all splits of a layer within a node.
    pub fn new(model: &'a Transformer, device: &'a Accelerator) -> Layers<'a> {
        let degrees = divisors(model.heads, device.per_node);
        let of = |tensor| {
            (1..=MICRO_BATCH_MAX)
                .map(move |size| LayerTime::new(model, device, tensor, size, tensor > 1))
                .collect()
        };
        Layers { model, device, times: degrees.map(|tensor| (tensor, of(tensor))).collect() }
    }

    /// The fastest split over so many devices that fits.
    pub fn search(&self, devices: u32, limits: &SplitSearchLimits) -> FoundSplits {
        let mut found = self.search_with(devices, limits, Offload::Nothing);
        for offload in [Offload::Optimizer, Offload::Activations] {
            if found.best.is_none() && limits.offload {
                found.best = self.search_with(devices, limits, offload).best;
            }
        }
        found
    }

    fn search_with(&self, devices: u32, limits: &SplitSearchLimits, offload: Offload) -> FoundSplits {
        let capacity = limits.filled * self.device.memory;
        let mut found = FoundSplits::default();
        self.each(devices, limits, offload, |plan, layer| {
            let memory = Footprint::new(self.model, plan);
            let bytes = memory.state + memory.activations;
            let least = bytes / limits.filled;
            found.least = Some(found.least.map_or(least, |before| before.min(least)));
            if bytes <= capacity {
                let step_s = seconds(self.model, self.device, plan, layer, &memory);
                found.offer(SplitCandidate { plan: *plan, step_s, memory: bytes });
            }
        });
        found
    }

    /// Calls back with each split that divides the model: in order of tensor, pipeline, recomputation.
    fn each(
        &self,
        devices: u32,
        limits: &SplitSearchLimits,
        offload: Offload,
        mut call: impl FnMut(&ParallelPlan, &LayerTime),
    ) {
        let model = self.model;
        let degrees = self.times.iter().filter(|(tensor, _)| devices.is_multiple_of(*tensor));
        for (tensor, times) in degrees.filter(|(tensor, _)| limits.tensor.is_none_or(|only| only == *tensor))
        {
            let rest = devices / tensor;
            let stages = divisors(model.layers, rest).filter(|stages| rest.is_multiple_of(*stages));
            for pipeline in stages.filter(|stages| limits.pipeline.is_none_or(|only| only == *stages)) {
                let data = rest / pipeline;
                if !model.batch.is_multiple_of(data) {
                    continue;
                }
                let base = ParallelPlan {
                    tensor: *tensor,
                    pipeline,
                    data,
                    sequence_parallel: *tensor > 1,
                    offload,
                    ..ParallelPlan::WHOLE
                };
                self.each_of(&base, times, &mut call);
            }
        }
    }

    /// The splits of one (tensor, pipeline, data).
    fn each_of(
        &self,
        base: &ParallelPlan,
        times: &[LayerTime],
        call: &mut impl FnMut(&ParallelPlan, &LayerTime),
    ) {
        let model = self.model;
        for recompute in Recompute::ALL {
            for micro_batch in divisors(model.batch / base.data, MICRO_BATCH_MAX) {
                let plan = ParallelPlan { micro_batch, recompute, ..*base };
                for interleave in interleavings(model, &plan) {
                    for sharding in shardings(&plan) {
                        let plan = ParallelPlan { interleave, sharding, ..plan };
                        call(&plan, &times[micro_batch as usize - 1]);
                    }
                }
            }
        }
    }
}

impl FoundSplits {
    /// The faster one; of equals the one that came first.
    fn offer(&mut self, candidate: SplitCandidate) {
        if self.best.is_none_or(|best| candidate.step_s < best.step_s) {
            self.best = Some(candidate);
        }
    }
}

/// The fastest split of a model over so many devices of one kind that fits.
pub fn search(
    model: &Transformer,
    device: &Accelerator,
    devices: u32,
    limits: &SplitSearchLimits,
) -> FoundSplits {
    Layers::new(model, device).search(devices, limits)
}

/// Parts a stage may have: they divide its layers, and micro-batches come in rounds of the stages.
fn interleavings(model: &Transformer, plan: &ParallelPlan) -> impl Iterator<Item = u32> {
    let (layers, stages) = (model.layers / plan.pipeline, plan.pipeline);
    let rounds = plan.micro_batches(model.batch).is_multiple_of(stages) && stages > 1;
    (1..=INTERLEAVE_MAX).filter(move |parts| *parts == 1 || (rounds && layers.is_multiple_of(*parts)))
}

/// What replicas may share: something only where there are several, all only where nothing else is split.
fn shardings(plan: &ParallelPlan) -> impl Iterator<Item = Sharding> + use<> {
    let (alone, split) = (plan.data == 1, plan.tensor * plan.pipeline > 1);
    let offloaded = plan.offload != Offload::Nothing;
    Sharding::ALL.into_iter().filter(move |sharding| match sharding {
        Sharding::Nothing => true,
        Sharding::Optimizer => !alone,
        Sharding::Everything => !alone && !split && !offloaded,
    })
}

fn divisors(of: u32, most: u32) -> impl Iterator<Item = u32> {
    (1..=most.min(of)).filter(move |one| of.is_multiple_of(*one))
}
