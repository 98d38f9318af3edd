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

/// Losses kept of one job.
const LOSSES_MAX: usize = 64;

/// What a job has said of its loss: steps done and the loss there, in order. As they grow many, neighbours become one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Losses(Vec<(f64, f64)>);

impl Losses {
    /// All of them.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.0
    }

    /// Takes one more. Whether it is a loss at all: a number, and not below zero. A job that had to begin anew from a
    /// checkpoint says the same steps again, and what it said before of them is forgotten.
    pub fn hear(&mut self, steps: f64, loss: f64) -> bool {
        if !(steps >= 0.0 && steps.is_finite() && loss >= 0.0 && loss.is_finite()) {
            return false;
        }
        self.0.retain(|(at, _)| *at < steps);
        if self.0.len() >= LOSSES_MAX {
            let mean = |a: f64, b: f64| a + (b - a) / 2.0;
            let pairs = self.0.chunks(2).map(|pair| {
                (mean(pair[0].0, pair[pair.len() - 1].0), mean(pair[0].1, pair[pair.len() - 1].1))
            });
            self.0 = pairs.collect();
        }
        self.0.push((steps, loss));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_stay_few_and_in_order() {
        let mut losses = Losses::default();
        (0..1000).for_each(|at| assert!(losses.hear(f64::from(at), 1.0 / f64::from(at + 1))));
        assert!(losses.points().len() <= LOSSES_MAX && losses.points().len() > LOSSES_MAX / 4);
        assert!(losses.points().is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
        assert_eq!(losses.points().last(), Some(&(999.0, 1e-3)));
    }

    #[test]
    fn nonsense_is_no_loss_and_steps_done_again_count_once() {
        let mut losses = Losses::default();
        for (steps, loss) in [(f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0), (1.0, -1.0)] {
            assert!(!losses.hear(steps, loss));
        }
        [(1.0, 9.0), (2.0, 8.0), (3.0, 7.0), (2.0, 5.0)]
            .iter()
            .for_each(|(at, loss)| assert!(losses.hear(*at, *loss)));
        assert_eq!(losses.points(), [(1.0, 9.0), (2.0, 5.0)]);
    }
}
