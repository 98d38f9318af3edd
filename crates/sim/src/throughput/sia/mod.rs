//! Profiles of training runs as Sia's and Pollux' artifacts have them: a folder for each application, with how long
//! a step takes on which devices (`placements-KIND.csv`, `scalability-KIND.csv`) and how a run went at each batch
//! size (`validation-BATCH.csv`: progress and gradient noise at the end of each epoch).

mod read;
mod timings;

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::Span;
use yard_core::training::{Batch, Noise};

pub(super) use read::{is_folder, open_folder};
pub(crate) use timings::Timings;

/// What the artifact says of its applications beside their files: epochs to train, how much slower real steps are
/// than profiled ones, seconds that a start takes in its simulator, and those that its policies assume.
const KNOWN: [(&str, usize, f64, u64, u64); 6] = [
    ("bert", 2, 1.2, 120, 120),
    ("cifar10", 100, 1.8, 50, 30),
    ("deepspeech2", 80, 1.2, 25, 25),
    ("imagenet", 90, 1.2, 250, 250),
    ("ncf", 10, 1.5, 15, 30),
    ("yolov3", 50, 1.2, 80, 45),
];

/// A start of an application that the artifact does not name.
const START_S: u64 = 30;

/// The files of a kind of device are named after where they were measured.
const MEASURED_ON: [(&str, &str); 2] = [("t4", "aws"), ("a100", "dgx-ext")];

/// An application: how its runs go.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Its name.
    pub name: Arc<str>,
    /// Steps at the smallest batch size by the end of each epoch.
    epochs: Vec<f64>,
    /// Gradient noise by batch size, ascending, and epoch.
    noise: Vec<(u32, Vec<Noise>)>,
    /// How long steps take, by the suffix of the files.
    kinds: BTreeMap<Box<str>, Arc<Timings>>,
    /// How much slower real steps are than profiled ones.
    slowdown: f64,
    /// What a start takes, and what policies are told.
    starts: [Span; 2],
}

impl App {
    /// The smallest batch size that was run, in which steps are counted; then the largest.
    pub fn batches(&self) -> [u32; 2] {
        let sizes = || self.noise.iter().map(|(size, _)| *size);
        [sizes().next().unwrap_or(1), sizes().next_back().unwrap_or(1)]
    }

    /// What a start really takes.
    pub fn start(&self) -> Span {
        self.starts[0]
    }

    /// What policies take a start for.
    pub fn believed_start(&self) -> Span {
        self.starts[1]
    }

    pub(crate) fn epochs(&self) -> &[f64] {
        &self.epochs
    }

    pub(crate) fn slowdown(&self) -> f64 {
        self.slowdown
    }

    /// How long steps take on devices of this kind, where that is known.
    pub(crate) fn timings(&self, kind: &str) -> Option<&Arc<Timings>> {
        let lower = kind.to_ascii_lowercase();
        let suffix = MEASURED_ON.iter().find(|(name, _)| *name == lower).map_or(&*lower, |(_, file)| file);
        self.kinds.get(suffix)
    }

    /// Gradient noise at a batch size during an epoch: linear between the sizes that were run.
    pub(crate) fn noise(&self, batch: f64, epoch: usize) -> Noise {
        let at = |size: usize| {
            let (_, epochs) = &self.noise[size];
            epochs[epoch.min(epochs.len() - 1)]
        };
        let above = self.noise.partition_point(|(size, _)| f64::from(*size) < batch);
        let (low, high) = (above.saturating_sub(1), above.min(self.noise.len() - 1));
        let (from, to) = (f64::from(self.noise[low].0), f64::from(self.noise[high].0));
        let part = if to > from { ((batch - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
        let between = |a: f64, b: f64| a + (b - a) * part;
        Noise { sqr: between(at(low).sqr, at(high).sqr), var: between(at(low).var, at(high).var) }
    }

    /// Steps at the smallest batch size that one of `batch` examples is worth during an epoch.
    pub(crate) fn gain(&self, batch: f64, epoch: usize) -> f64 {
        let Noise { sqr, var } = self.noise(batch, epoch);
        let scale = (batch / f64::from(self.batches()[0])).max(f64::MIN_POSITIVE);
        let gain = (var + sqr) / (var / scale + sqr);
        if gain.is_finite() && gain > 0.0 { gain } else { 1.0 }
    }

    /// Steps of `batch` examples that the whole run takes.
    pub(crate) fn steps_of(&self, batch: u32) -> f64 {
        let parts = (0..self.epochs.len()).map(|epoch| {
            let before = epoch.checked_sub(1).map_or(0.0, |before| self.epochs[before]);
            (self.epochs[epoch] - before) / self.gain(f64::from(batch), epoch)
        });
        parts.sum()
    }
}

/// A batch of at least `global` examples on so many devices that take at most `most` each at once.
pub(crate) fn split(global: u32, devices: u32, most: u32) -> Batch {
    let local = global.div_ceil(devices.max(1)).max(1);
    let extra = local.div_ceil(most.max(1)) - 1;
    Batch { local: local.div_ceil(extra + 1), extra }
}

#[cfg(test)]
mod tests;
