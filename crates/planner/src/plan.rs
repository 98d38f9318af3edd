//! How a model is split over devices.

use serde::{Deserialize, Serialize};

/// What is computed again in the backward pass instead of being kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recompute {
    /// Nothing.
    #[default]
    None,
    /// The scores of attention.
    Selective,
    /// Each layer.
    Full,
}

impl Recompute {
    /// From least to most.
    pub const ALL: [Recompute; 3] = [Recompute::None, Recompute::Selective, Recompute::Full];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Recompute::None => "none",
            Recompute::Selective => "selective",
            Recompute::Full => "full",
        }
    }
}

/// What data-parallel replicas share instead of each holding all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharding {
    /// Nothing.
    #[default]
    Nothing,
    /// The optimizer's state (ZeRO-1).
    Optimizer,
    /// Weights, gradients and optimizer (ZeRO-3, FSDP).
    Everything,
}

impl Sharding {
    /// From least to most.
    pub const ALL: [Sharding; 3] = [Sharding::Nothing, Sharding::Optimizer, Sharding::Everything];

    /// ZeRO's stage.
    pub fn stage(self) -> u32 {
        match self {
            Sharding::Nothing => 0,
            Sharding::Optimizer => 1,
            Sharding::Everything => 3,
        }
    }

    /// The sharding of ZeRO's stage.
    pub fn of_stage(stage: u32) -> Option<Sharding> {
        Sharding::ALL.into_iter().find(|one| one.stage() == stage)
    }
}

/// What lies in the host's memory instead of the device's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offload {
    /// Nothing.
    #[default]
    Nothing,
    /// The optimizer, which runs there.
    Optimizer,
    /// The optimizer, and kept activations.
    Activations,
}

impl Offload {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Offload::Nothing => "none",
            Offload::Optimizer => "optimizer",
            Offload::Activations => "activations",
        }
    }
}

/// One way to split a model. Ranks are numbered tensor first, then data, then pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelPlan {
    /// Devices that share each layer.
    pub tensor: u32,
    /// Stages.
    pub pipeline: u32,
    /// Replicas.
    pub data: u32,
    /// Samples that a replica computes at once.
    pub micro_batch: u32,
    /// Parts of the model that each stage holds.
    pub interleave: u32,
    /// What is computed again.
    pub recompute: Recompute,
    /// Whether what tensor parallelism leaves whole is split by tokens.
    pub sequence_parallel: bool,
    /// What replicas share.
    pub sharding: Sharding,
    /// What lies in the host's memory.
    pub offload: Offload,
}

impl ParallelPlan {
    /// All of a model on one device, one sample at a time.
    pub const WHOLE: ParallelPlan = ParallelPlan {
        tensor: 1,
        pipeline: 1,
        data: 1,
        micro_batch: 1,
        interleave: 1,
        recompute: Recompute::None,
        sequence_parallel: false,
        sharding: Sharding::Nothing,
        offload: Offload::Nothing,
    };

    /// Devices in all.
    pub fn devices(&self) -> u32 {
        self.tensor * self.pipeline * self.data
    }

    /// Micro-batches that each replica computes in a step of so many samples.
    pub(crate) fn micro_batches(&self, batch: u32) -> u32 {
        batch / (self.data * self.micro_batch)
    }
}
