//! How a job trains whose batch size or number of devices may change, and what it says of that while it does.
//! Steps of such a job are counted at the batch size it was submitted with: a step that learns as much as two of
//! those counts for two (Qiao et al., "Pollux", OSDI 2021: scale-invariant iterations).

use serde::{Deserialize, Serialize};

use crate::ids::KindId;

/// What one step is made of on each device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Examples at once.
    pub local: u32,
    /// Times that gradients are kept and added up before the one that all devices agree on; 0: none.
    pub extra: u32,
}

impl Batch {
    /// Examples in one step on so many devices.
    pub fn global(&self, devices: u32) -> u64 {
        self.local as u64 * (self.extra as u64 + 1) * devices as u64
    }
}

/// How long one part of a step took on certain devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Nodes it ran on.
    pub nodes: u32,
    /// Devices in all.
    pub devices: u32,
    /// Examples on each device at once.
    pub local: u32,
    /// Seconds to compute the gradient of those.
    pub grad_s: f64,
    /// Seconds of a step without accumulation: the gradient, and the devices agreeing on it.
    pub step_s: f64,
}

/// How noisy the gradient is: its variance, and the square of its mean, at the batch size of submission.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Square of the mean gradient's norm.
    pub sqr: f64,
    /// Trace of the gradient's covariance.
    pub var: f64,
}

/// How many examples a device can take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fits {
    /// The kind.
    pub kind: KindId,
    /// The least that is worth it.
    pub least: u32,
    /// The most that its memory holds.
    pub most: u32,
}

/// One way in which a job makes its steps for a while. It goes from one to another by itself: which there are is
/// known, when it does is not (Zheng et al., "Shockwave", NSDI 2023).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regime {
    /// Examples in one step.
    pub batch: u32,
    /// Seconds that a step takes, against those of the other regimes of the job on the same devices.
    pub seconds: f64,
}

/// A measurement on devices of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    /// The kind.
    pub kind: KindId,
    /// What was measured.
    pub timing: Timing,
}

/// What a job says of how it trains. Shared between like jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Examples in one step, as submitted; steps are counted by it.
    pub batch: u32,
    /// The most examples in one step that still train well.
    pub batch_max: u32,
    /// Whether the batch size is the scheduler's choice; else it stays as submitted on however many devices.
    pub adapts: bool,
    /// Whether gradients may be accumulated.
    pub accumulates: bool,
    /// Examples on one device at once, for each kind it may run on.
    pub fits: Vec<Fits>,
    /// What was measured before it was submitted.
    pub profiled: Vec<Profiled>,
    /// How noisy its gradients are to begin with, where that is known.
    pub noise: Option<Noise>,
}
