//! Chains of unlike layers, cut into stages that work on micro-batches in turn, as in DAPPLE (Fan et al., PPoPP 2021): a
//! stage may have several replicas, and stages may lie on unlike kinds.
//!
//! - `rhythm`: one forward, one backward, simulated exactly; and a bound below which no simulation comes.
//! - `placement`: which devices a stage has.
//! - `stages`: what a candidate takes, as a rhythm.
//! - `search`: all cuts in two, equal groups with the most even cut, and one stage; the bound decides which are simulated.

mod placement;
pub mod rhythm;
mod search;
mod stages;

use crate::flaw::{Flaw, positive};

pub use search::{ChainPlan, plan};

/// A layer of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainLayer {
    /// Seconds forward and backward for the profiled batch, by kind.
    pub seconds: Vec<(f64, f64)>,
    /// Bytes of its parameters, as they are reduced.
    pub parameter_bytes: f64,
    /// Bytes of its weights, gradients and optimizer.
    pub state_bytes: f64,
    /// Bytes that it keeps for the backward pass, for the profiled batch.
    pub kept_bytes: f64,
    /// Bytes that go to later layers where the chain is cut after it, for the profiled batch.
    pub cut_bytes: f64,
}

/// A chain of layers and how it trains.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The layers, in order.
    pub layers: Vec<ChainLayer>,
    /// Samples of the profiled batch.
    pub profiled: u32,
    /// Samples of a step.
    pub batch: u32,
}

/// Devices of one kind in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainNode {
    /// The kind, as a place in the layers' times and the memories.
    pub kind: usize,
    /// How many devices.
    pub devices: u32,
}

/// Where a chain may run: on all of these devices.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainMachine {
    /// The nodes.
    pub nodes: Vec<ChainNode>,
    /// Bytes a second between devices of a node.
    pub link: f64,
    /// Bytes a second between a node and the others.
    pub nic: f64,
    /// Bytes that may be filled on a device, by kind.
    pub memory: Vec<f64>,
}

/// Most micro-batches of a step: each is simulated.
const MICRO_BATCHES_MAX: u32 = 65_536;

impl ChainMachine {
    /// Devices in all.
    pub fn devices(&self) -> u32 {
        self.nodes.iter().map(|node| node.devices).sum()
    }
}

impl Chain {
    /// Fails where there is no layer, or a number that makes no sense.
    pub fn check(&self) -> Result<(), Flaw> {
        positive("batch", f64::from(self.batch), "give the samples of a step, 1 or more")?;
        positive(
            "profile_batch",
            f64::from(self.profiled),
            "give the samples that the times are for, 1 or more",
        )?;
        if self.batch.div_ceil(self.profiled) > MICRO_BATCHES_MAX {
            let problem = format!("{} is more than {MICRO_BATCHES_MAX} profiled batches", self.batch);
            return Err(Flaw::new("batch", problem, "give a larger profile_batch"));
        }
        if self.layers.is_empty() {
            return Err(Flaw::new("layer", "there is none", "give one [[layer]] or more"));
        }
        let numbers = |layer: &ChainLayer| {
            let times = layer.seconds.iter().flat_map(|(forward, backward)| [*forward, *backward]);
            let bytes = [layer.parameter_bytes, layer.state_bytes, layer.kept_bytes, layer.cut_bytes];
            times.chain(bytes).all(|number| number >= 0.0 && number.is_finite())
        };
        match self.layers.iter().position(|layer| !numbers(layer)) {
            Some(at) => {
                Err(Flaw::new(format!("layer {}", at + 1), "has a number below 0", "give numbers from 0 up"))
            }
            None => Ok(()),
        }
    }
}
