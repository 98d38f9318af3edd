//! A transformer, and how many parameters it has.

use serde::{Deserialize, Serialize};

use crate::flaw::Flaw;

/// How attention is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// All scores go through memory.
    Plain,
    /// One fused pass that keeps no scores.
    #[default]
    Flash,
}

/// A transformer and how it trains.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    /// Hidden size.
    pub hidden: u32,
    /// Layers.
    pub layers: u32,
    /// Attention heads.
    pub heads: u32,
    /// Heads of keys and values; fewer than `heads` where they are shared.
    pub kv_heads: u32,
    /// Width of the feed-forward part.
    pub ffn: u32,
    /// Whether the feed-forward part has a gate, and positions no parameters, as in Llama.
    pub gated: bool,
    /// Tokens of a sample.
    pub seq: u32,
    /// Words, or classes.
    pub vocab: u32,
    /// How attention is computed.
    pub attention: Attention,
    /// Samples of a step, over all devices.
    pub batch: u32,
    /// Bytes of weight, gradient and optimizer for each parameter.
    pub state_bytes: f64,
    /// Bytes of each parameter's gradient as it is reduced.
    pub grad_bytes: f64,
    /// Bytes that are kept for each logit.
    pub logit_bytes: f64,
}

/// Most of anything that is counted, so that products stay exact.
const COUNT_MAX: u32 = 100_000_000;

/// Most layers and heads: all ways to divide them are tried.
const PARTS_MAX: u32 = 16_384;

impl Transformer {
    /// GPT as Megatron trains it: `ffn` is four times the hidden size, 18 bytes a parameter, fused attention.
    pub fn gpt(hidden: u32, layers: u32, heads: u32, batch: u32) -> Transformer {
        Transformer {
            hidden,
            layers,
            heads,
            kv_heads: heads,
            ffn: 4 * hidden,
            gated: false,
            seq: 2048,
            vocab: 51_200,
            attention: Attention::Flash,
            batch,
            state_bytes: 18.0,
            grad_bytes: 4.0,
            logit_bytes: 4.0,
        }
    }

    /// Fails where a size is nothing or does not divide.
    pub fn check(&self) -> Result<(), Flaw> {
        let sizes = [
            ("hidden", self.hidden, COUNT_MAX),
            ("layers", self.layers, PARTS_MAX),
            ("heads", self.heads, PARTS_MAX),
            ("kv_heads", self.kv_heads, PARTS_MAX),
            ("ffn", self.ffn, COUNT_MAX),
            ("seq", self.seq, COUNT_MAX),
            ("vocab", self.vocab, COUNT_MAX),
            ("batch", self.batch, COUNT_MAX),
        ];
        let out = sizes.into_iter().find(|(_, value, most)| !(1..=*most).contains(value));
        if let Some((field, value, most)) = out {
            let remedy = format!("give a whole number from 1 to {most}");
            return Err(Flaw::new(field, format!("{value} is out of range"), remedy));
        }
        divides("hidden", self.hidden, "heads", self.heads)?;
        divides("heads", self.heads, "kv_heads", self.kv_heads)?;
        let bytes = [
            ("state_bytes", self.state_bytes, 6.0),
            ("grad_bytes", self.grad_bytes, 0.0),
            ("logit_bytes", self.logit_bytes, 0.0),
        ];
        match bytes.into_iter().find(|(_, value, least)| !(value >= least && *value <= 1000.0)) {
            Some((field, value, least)) => Err(Flaw::new(
                field,
                format!("{value} is out of range"),
                format!("give a number from {least} to 1000"),
            )),
            None => Ok(()),
        }
    }

    /// Parameters of a layer.
    pub fn layer_parameters(&self) -> f64 {
        let (h, f) = (f64::from(self.hidden), f64::from(self.ffn));
        let (matrices, vectors) = if self.gated { (3.0, 2.0) } else { (2.0, 13.0) };
        h * self.qkv() + h * h + matrices * h * f + vectors * h
    }

    /// Parameters of the table of words.
    pub fn table_parameters(&self) -> f64 {
        f64::from(self.vocab) * f64::from(self.hidden)
    }

    /// Parameters in all.
    pub fn parameters(&self) -> f64 {
        f64::from(self.layers) * self.layer_parameters() + self.embedding_parameters()
    }

    /// Parameters before the first layer and after the last.
    pub(crate) fn embedding_parameters(&self) -> f64 {
        let h = f64::from(self.hidden);
        let positions = if self.gated { 0.0 } else { f64::from(self.seq) * h };
        self.table_parameters() + positions + 2.0 * h
    }

    /// Width of queries, keys and values together.
    pub(crate) fn qkv(&self) -> f64 {
        let h = f64::from(self.hidden);
        h + 2.0 * h * f64::from(self.kv_heads) / f64::from(self.heads)
    }

    /// Width of what goes into the last product of the feed-forward part, with the gate.
    pub(crate) fn ffn_in(&self) -> f64 {
        f64::from(self.ffn) * if self.gated { 2.0 } else { 1.0 }
    }

    /// Whether attention is fused.
    pub(crate) fn is_flash(&self) -> bool {
        self.attention == Attention::Flash
    }

    /// Operations of a step with full recomputation, as PTD-P counts them.
    pub fn step_flops(&self) -> f64 {
        let [h, l, s, v] = [self.hidden, self.layers, self.seq, self.vocab].map(f64::from);
        96.0 * f64::from(self.batch) * s * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h))
    }
}

fn divides(whole: &str, value: u32, part: &str, by: u32) -> Result<(), Flaw> {
    if value.is_multiple_of(by) {
        return Ok(());
    }
    Err(Flaw::new(
        whole,
        format!("{value} does not divide by {part} = {by}"),
        format!("make {whole} a multiple of {part}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_follow_the_known_formula() {
        let gpt = Transformer::gpt(12_288, 96, 96, 1536);
        let (h, l, vs) = (12_288.0, 96.0, 51_200.0 + 2048.0);
        let known = 12.0 * l * h * h * (1.0 + 13.0 / (12.0 * h) + vs / (12.0 * l * h));
        assert!((gpt.parameters() / known - 1.0).abs() < 1e-6);
        assert_eq!(Transformer { seq: 1024, ..Transformer::gpt(768, 12, 12, 8) }.parameters(), 125_164_032.0);
    }

    #[test]
    fn sizes_that_make_no_sense_are_named() {
        let gpt = Transformer::gpt(4096, 32, 32, 64);
        let says = |model: Transformer| model.check().unwrap_err().to_string();
        assert_eq!(gpt.check(), Ok(()));
        assert_eq!(
            says(Transformer { batch: 0, ..gpt.clone() }),
            "batch: 0 is out of range; give a whole number from 1 to 100000000"
        );
        assert_eq!(
            says(Transformer { heads: 30, kv_heads: 30, ..gpt.clone() }),
            "hidden: 4096 does not divide by heads = 30; make hidden a multiple of heads"
        );
        assert!(says(Transformer { state_bytes: 0.0, ..gpt }).starts_with("state_bytes: 0 is out of range"));
    }
}
