//! How long a step takes, by seven numbers for each job and kind: computing the gradient (a line in the examples on
//! a device), agreeing on it within a node and across nodes (lines in the devices beyond the second), and how far
//! the two overlap:
//!
//! `grad = a + b m`, `sync = a' + b' (K - 2)`, `step = (grad^γ + sync^γ)^(1/γ)`, and with `s` times of accumulation
//! `s grad + step`. γ = 1: nothing overlaps; the larger γ, the more.

use serde::{Deserialize, Serialize};

use crate::training::Batch;

/// `base + each x`, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What it takes at zero.
    pub base: f64,
    /// What each further one adds.
    pub each: f64,
}

impl Line {
    /// The value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.base + self.each * x
    }
}

/// How long steps of a job take on devices of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Computing the gradient of some examples on a device.
    pub grad: Line,
    /// Agreeing on it across nodes, for each device beyond the second.
    pub across: Line,
    /// Agreeing on it within one node, likewise.
    pub within: Line,
    /// γ, from 1 (one after the other) to 10 (nearly at once).
    pub overlap: f64,
}

impl Model {
    /// From the order in which papers and artifacts list them.
    pub fn of(numbers: [f64; 7]) -> Model {
        let line = |at: usize| Line { base: numbers[at], each: numbers[at + 1] };
        Model { grad: line(0), across: line(2), within: line(4), overlap: numbers[6] }
    }

    /// In the order in which papers and artifacts list them.
    pub fn numbers(&self) -> [f64; 7] {
        let Model { grad, across, within, overlap } = self;
        [grad.base, grad.each, across.base, across.each, within.base, within.each, *overlap]
    }

    /// Seconds to compute the gradient of so many examples on a device.
    pub fn grad_s(&self, local: u32) -> f64 {
        self.grad.at(f64::from(local))
    }

    /// Seconds for the devices to agree on a gradient; none where there is one device.
    pub fn sync_s(&self, nodes: u32, devices: u32) -> f64 {
        let beyond = f64::from(devices.saturating_sub(2));
        match (nodes, devices) {
            (_, 0 | 1) => 0.0,
            (0 | 1, _) => self.within.at(beyond),
            _ => self.across.at(beyond),
        }
    }

    /// Seconds of a step without accumulation.
    pub fn step_s(&self, grad_s: f64, sync_s: f64) -> f64 {
        let (long, short) = if grad_s >= sync_s { (grad_s, sync_s) } else { (sync_s, grad_s) };
        if self.overlap == 1.0 || short <= 0.0 {
            return long + short;
        }
        let part = libm::exp(self.overlap * libm::log(short / long));
        long * libm::exp(libm::log1p(part) / self.overlap)
    }

    /// Seconds of a whole step.
    pub fn whole_s(&self, nodes: u32, devices: u32, batch: Batch) -> f64 {
        let grad_s = self.grad_s(batch.local);
        f64::from(batch.extra) * grad_s + self.step_s(grad_s, self.sync_s(nodes, devices))
    }

    /// Examples a second.
    pub fn throughput(&self, nodes: u32, devices: u32, batch: Batch) -> f64 {
        batch.global(devices) as f64 / self.whole_s(nodes, devices, batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Model = Model {
        grad: Line { base: 0.1, each: 0.01 },
        across: Line { base: 0.4, each: 0.1 },
        within: Line { base: 0.2, each: 0.05 },
        overlap: 1.0,
    };

    #[test]
    fn a_step_is_its_parts_where_nothing_overlaps() {
        let batch = |local, extra| Batch { local, extra };
        let s = |nodes, devices, batch| (MODEL.whole_s(nodes, devices, batch) * 1e9).round() / 1e9;
        assert_eq!(s(1, 1, batch(10, 0)), 0.2, "one device agrees with nobody");
        assert_eq!(s(1, 2, batch(10, 0)), 0.4);
        assert_eq!(s(1, 4, batch(10, 0)), 0.5, "two devices beyond the second");
        assert_eq!(s(2, 4, batch(10, 0)), 0.8, "across nodes");
        assert_eq!(s(2, 4, batch(10, 3)), 1.4, "accumulation computes and does not agree");
    }

    #[test]
    fn overlap_lies_between_the_sum_and_the_longer_part() {
        for overlap in [1.0, 1.2, 2.0, 5.0, 10.0] {
            let model = Model { overlap, ..MODEL };
            for (grad, sync) in [(0.3, 0.4), (0.4, 0.3), (1e-8, 2.0), (7.0, 0.0), (1e200, 1e200)] {
                let step = model.step_s(grad, sync);
                assert!(step <= (grad + sync) * (1.0 + 1e-15) && step >= grad.max(sync), "{overlap}: {step}");
            }
        }
        assert!((Model { overlap: 2.0, ..MODEL }.step_s(3.0, 4.0) - 5.0).abs() < 1e-14);
    }

    #[test]
    fn the_numbers_keep_their_order() {
        let numbers = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 7.0];
        assert_eq!(Model::of(numbers).numbers(), numbers);
        assert_eq!(Model::of(numbers).across, Line { base: 0.3, each: 0.4 });
    }
}
