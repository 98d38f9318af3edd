//! The file that describes a model.

use std::path::Path;

use serde::Deserialize;
use yard_planner::{Attention, Flaw, Transformer};

use super::toml_file;

/// A model file as users write it. Sizes without a default have to be there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    name: Option<String>,
    #[serde(alias = "global_batch")]
    batch: u32,
    hidden: u32,
    layers: u32,
    heads: u32,
    kv_heads: Option<u32>,
    ffn: Option<u32>,
    #[serde(default)]
    gated: bool,
    #[serde(alias = "sequence")]
    seq: u32,
    #[serde(alias = "vocabulary")]
    vocab: u32,
    #[serde(default)]
    attention: Attention,
    #[serde(default = "state_bytes")]
    state_bytes: f64,
    #[serde(default = "grad_bytes")]
    grad_bytes: f64,
    #[serde(default = "logit_bytes")]
    logit_bytes: f64,
}

/// Weight 2, gradient 4, Adam with a master copy 12.
fn state_bytes() -> f64 {
    18.0
}

fn grad_bytes() -> f64 {
    4.0
}

fn logit_bytes() -> f64 {
    4.0
}

/// A model with its name.
pub(super) struct NamedModel {
    pub(super) name: String,
    pub(super) model: Transformer,
}

/// Reads a model; `batch` takes the place of the file's.
pub(super) fn read(path: &Path, batch: Option<u32>) -> anyhow::Result<NamedModel> {
    let file: ModelFile = toml_file::read(path)?;
    let stem = || path.file_stem().map_or("model".into(), |stem| stem.to_string_lossy().into_owned());
    let name = file.name.clone().unwrap_or_else(stem);
    let model = Transformer { batch: batch.unwrap_or(file.batch), ..file.model() };
    check_name(&name).and_then(|()| model.check()).map_err(toml_file::of(path))?;
    Ok(NamedModel { name, model })
}

/// The name goes into a table of comma-separated values.
pub(super) fn check_name(name: &str) -> Result<(), Flaw> {
    if !name.is_empty() && !name.contains([',', '"']) && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(Flaw::new(
        "name",
        format!("{name:?} cannot be a column of a CSV table"),
        "leave out commas and quotes",
    ))
}

impl ModelFile {
    fn model(&self) -> Transformer {
        Transformer {
            hidden: self.hidden,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads.unwrap_or(self.heads),
            ffn: self.ffn.unwrap_or(self.hidden.saturating_mul(4)),
            gated: self.gated,
            seq: self.seq,
            vocab: self.vocab,
            attention: self.attention,
            batch: self.batch,
            state_bytes: self.state_bytes,
            grad_bytes: self.grad_bytes,
            logit_bytes: self.logit_bytes,
        }
    }
}
