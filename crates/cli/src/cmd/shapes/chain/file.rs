//! The file of a model whose layers are unlike.

use serde::Deserialize;
use yard_planner::chain::{Chain, ChainLayer};
use yard_planner::{Accelerator, Flaw};

use crate::cmd::shapes::kinds::ShapeKinds;

/// A model file with `[[layer]]` tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainFile {
    pub(super) name: Option<String>,
    pub(super) batch: u32,
    #[serde(default = "one")]
    profile_batch: u32,
    /// The kind on which `forward_s` and `backward_s` were measured.
    measured_on: Option<String>,
    #[serde(default = "state_bytes")]
    state_bytes: f64,
    #[serde(default = "grad_bytes")]
    grad_bytes: f64,
    pub(super) layer: Vec<LayerEntry>,
}

/// A layer: measured times for the profiled batch, or operations of a sample. Bytes are of a sample.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayerEntry {
    #[expect(dead_code, reason = "a note for the reader of the file")]
    name: Option<String>,
    forward_s: Option<f64>,
    backward_s: Option<f64>,
    forward_flops: Option<f64>,
    #[serde(default)]
    parameters: f64,
    #[serde(default)]
    kept_bytes: f64,
    #[serde(default)]
    output_bytes: f64,
}

fn one() -> u32 {
    1
}

fn state_bytes() -> f64 {
    18.0
}

fn grad_bytes() -> f64 {
    4.0
}

impl ChainFile {
    /// The chain with its times on these kinds.
    pub(super) fn on(&self, kinds: &[Accelerator], known: &ShapeKinds) -> anyhow::Result<Chain> {
        let measured = self.measured_on.as_deref().map(|name| known.find(name)).transpose()?;
        let samples = f64::from(self.profile_batch);
        let layer = |(at, entry): (usize, &LayerEntry)| {
            let times = kinds.iter().map(|kind| entry.seconds(at, kind, measured.as_ref(), samples));
            Ok(ChainLayer {
                seconds: times.collect::<Result<_, Flaw>>()?,
                parameter_bytes: entry.parameters * self.grad_bytes,
                state_bytes: entry.parameters * self.state_bytes,
                kept_bytes: entry.kept_bytes * samples,
                cut_bytes: entry.output_bytes * samples,
            })
        };
        let layers: Result<Vec<_>, Flaw> = self.layer.iter().enumerate().map(layer).collect();
        Ok(Chain { layers: layers?, profiled: self.profile_batch, batch: self.batch })
    }
}

impl LayerEntry {
    /// Forward and backward on a kind: measured and scaled by its speed, or from operations, backward twice forward.
    fn seconds(
        &self,
        at: usize,
        kind: &Accelerator,
        measured: Option<&Accelerator>,
        samples: f64,
    ) -> Result<(f64, f64), Flaw> {
        match (self.forward_s, self.forward_flops, measured) {
            (Some(forward), None, Some(measured)) => {
                let scale = measured.rate() / kind.rate();
                Ok((forward * scale, self.backward_s.unwrap_or(2.0 * forward) * scale))
            }
            (Some(_), None, None) => Err(Flaw::new(
                "measured_on",
                "it is missing",
                "name the kind on which forward_s was measured",
            )),
            (None, Some(flops), _) if self.backward_s.is_none() => {
                let bytes = 2.0 * self.parameters + (self.kept_bytes + self.output_bytes) * samples;
                let forward = kind.gemm(flops * samples, bytes);
                Ok((forward, 2.0 * forward))
            }
            _ => Err(Flaw::new(
                format!("layer {}", at + 1),
                "its time is not clear",
                "give either forward_s (and backward_s) or forward_flops",
            )),
        }
    }
}
