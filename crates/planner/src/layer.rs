//! The time of one layer for one micro-batch.

use crate::accelerator::Accelerator;
use crate::plan::Recompute;
use crate::transformer::Transformer;

/// The parts of a layer's time that splits are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerTime {
    /// Matrix products and what is done with each of their elements.
    body: f64,
    /// Attention itself.
    core: f64,
    flash: bool,
    /// One all-reduce among the devices that share the layer.
    reduce: f64,
    sequence_parallel: bool,
    /// The last stage's part after its layers.
    pub(crate) head: f64,
}

impl LayerTime {
    /// Of a layer that so many devices share.
    pub(crate) fn new(
        model: &Transformer,
        device: &Accelerator,
        tensor: u32,
        micro_batch: u32,
        sequence_parallel: bool,
    ) -> LayerTime {
        let tokens = f64::from(micro_batch) * f64::from(model.seq);
        let width = tokens * f64::from(model.hidden);
        LayerTime {
            body: body(model, device, tensor, tokens, sequence_parallel),
            core: core(model, device, tensor, micro_batch),
            flash: model.is_flash(),
            reduce: device.all_reduce(2.0 * width, tensor, 1),
            sequence_parallel,
            head: head(model, device, tensor, tokens),
        }
    }

    /// Forward, backward and the exchange among the devices that share the layer.
    pub(crate) fn both_ways(&self, recompute: Recompute) -> f64 {
        let forward = self.body + self.core;
        let again = match recompute {
            Recompute::None => 0.0,
            Recompute::Selective => self.core,
            Recompute::Full => forward,
        };
        // The backward pass of fused attention computes its scores once more.
        let fused = if self.flash { self.core / 2.0 } else { 0.0 };
        forward + 2.0 * forward + fused + again + self.exchange(recompute)
    }

    fn exchange(&self, recompute: Recompute) -> f64 {
        let times = if recompute == Recompute::Full { 6.0 } else { 4.0 };
        times * self.reduce + if self.sequence_parallel { self.reduce } else { 0.0 }
    }
}

fn body(model: &Transformer, device: &Accelerator, tensor: u32, tokens: f64, sequence_parallel: bool) -> f64 {
    let (t, h, f) = (f64::from(tensor), f64::from(model.hidden), f64::from(model.ffn));
    let (q, wide) = (model.qkv(), model.ffn_in());
    let whole = if sequence_parallel { t } else { 1.0 };
    let product = |from: f64, to: f64, shared: f64, split: f64| {
        device.gemm(2.0 * tokens * from * to / t, 2.0 * (shared + split / t))
    };
    let elements = 8.0 * tokens * h / whole + 4.0 * tokens * (wide + q + h) / t;
    product(h, q, tokens * h, h * q + tokens * q)
        + product(h, h, tokens * h, tokens * h + h * h)
        + product(h, wide, tokens * h, (h + tokens) * wide)
        + product(h, f, tokens * h, (h + tokens) * f)
        + 2.0 * elements / device.memory_rate()
}

fn core(model: &Transformer, device: &Accelerator, tensor: u32, micro_batch: u32) -> f64 {
    let (t, b) = (f64::from(tensor), f64::from(micro_batch));
    let [h, s, a] = [model.hidden, model.seq, model.heads].map(f64::from);
    if model.is_flash() {
        return 4.0 * b * s * s * h / (t * device.rate() * device.flash);
    }
    let scores = b * a * s * s;
    let product = device.gemm(2.0 * b * s * s * h / t, 2.0 * (2.0 * b * s * h + scores) / t);
    2.0 * product + 4.0 * 2.0 * scores / (t * device.memory_rate())
}

fn head(model: &Transformer, device: &Accelerator, tensor: u32, tokens: f64) -> f64 {
    let [t, h, v] = [tensor, model.hidden, model.vocab].map(f64::from);
    let product = device.gemm(2.0 * tokens * h * v / t, 2.0 * (tokens * h + (h + tokens) * v / t));
    3.0 * (product + 12.0 * tokens * v / (t * device.memory_rate()))
}
