//! Which batch size is best on given devices: fifty sizes, evenly apart by ratio, from the submitted one to the
//! largest; each split over the devices, and by accumulation where memory does not hold it. The rule is Pollux's.

use super::model::Model;
use crate::training::{Batch, Noise};

/// Sizes that are tried.
const SIZES: u32 = 50;

/// Sizes that are whole but for rounding are whole.
const ROUNDING: f64 = 1e-8;

/// What limits the choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Examples in one step, as submitted: none smaller.
    pub batch: u32,
    /// Examples in one step at most; equal to `batch` where it may not change.
    pub batch_max: u32,
    /// Examples on one device at once, least and most.
    pub local: (u32, u32),
    /// Whether gradients may be accumulated.
    pub accumulates: bool,
}

/// The best batch size somewhere, and how good it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Examples a second that count, each for one at the submitted batch size.
    pub goodput: f64,
    /// What a step is made of.
    pub batch: Batch,
}

impl Limits {
    /// How a step of so many examples is split over devices; none where a device would have too few or too many.
    pub fn split(&self, examples: f64, devices: u32) -> Option<Batch> {
        let (least, most) = self.local;
        let own = examples / f64::from(devices);
        let extra = if self.accumulates { self.extra(own, devices) } else { 0.0 };
        let local = (own / (extra + 1.0) - ROUNDING).ceil();
        let fits = local >= f64::from(least.max(1)) && local <= f64::from(most);
        fits.then_some(Batch { local: local as u32, extra: extra as u32 })
    }

    /// Times of accumulation for so many examples on each device. One device alone accumulates once at least where
    /// its batch is larger than submitted: the noise shows only between two gradients.
    fn extra(&self, own: f64, devices: u32) -> f64 {
        let needed = (own / f64::from(self.local.1.max(1)) - ROUNDING).ceil() - 1.0;
        let alone = devices == 1 && own > f64::from(self.batch) + ROUNDING;
        needed.max(if alone { 1.0 } else { 0.0 })
    }

    /// The sizes that are tried, smallest first.
    fn sizes(&self, devices: u32) -> impl Iterator<Item = f64> + use<> {
        let most = f64::from(self.batch_max);
        let fixed = self.batch_max <= self.batch;
        let room = f64::from(self.local.0) * f64::from(devices);
        let least = if fixed { f64::from(self.batch) } else { f64::from(self.batch).max(room) };
        let count = if fixed { 1 } else { SIZES };
        let ratio = libm::exp(libm::log(most / least) / f64::from(SIZES - 1));
        let next = move |size: &f64| Some(size * ratio);
        let sizes = std::iter::successors(Some(least), next).take(count as usize - 1);
        sizes.chain([if fixed { least } else { most }]).filter(move |_| fixed || least <= most)
    }

    /// The ways to split each size over the devices that memory allows.
    pub(crate) fn batches(&self, devices: u32) -> impl Iterator<Item = Batch> + use<'_> {
        let mut last = None;
        let splits = self.sizes(devices).filter_map(move |size| self.split(size, devices));
        splits.filter(move |batch| last.replace(*batch) != Some(*batch))
    }

    /// Whether there is any batch size for so many devices.
    pub fn allow(&self, devices: u32) -> bool {
        self.batches(devices).next().is_some()
    }

    /// The goodput of a batch.
    pub fn goodput(&self, model: &Model, noise: &Noise, nodes: u32, devices: u32, batch: Batch) -> f64 {
        let scale = batch.global(devices) as f64 / f64::from(self.batch);
        model.throughput(nodes, devices, batch) * noise.efficiency(scale)
    }

    /// The best batch on so many devices; the smaller of equals; none where no size fits.
    pub fn best(&self, model: &Model, noise: &Noise, nodes: u32, devices: u32) -> Option<Choice> {
        let sync_s = model.sync_s(nodes, devices);
        let mut best: Option<Choice> = None;
        for batch in self.batches(devices) {
            let (size, grad_s) = (batch.global(devices) as f64, model.grad_s(batch.local));
            let counting = size * noise.efficiency(size / f64::from(self.batch));
            let accumulating = f64::from(batch.extra) * grad_s;
            let beaten =
                |step_s: f64| best.is_some_and(|best| counting <= best.goodput * (accumulating + step_s));
            // No overlap is better than the longer part alone: most sizes are beaten by that already.
            if beaten(grad_s.max(sync_s)) {
                continue;
            }
            let step_s = model.step_s(grad_s, sync_s);
            if !beaten(step_s) {
                best = Some(Choice { goodput: counting / (accumulating + step_s), batch });
            }
        }
        best.filter(|best| best.goodput > 0.0 && best.goodput.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { batch: 128, batch_max: 4096, local: (32, 256), accumulates: true };

    #[test]
    fn sizes_run_from_the_submitted_one_to_the_largest() {
        let sizes: Vec<f64> = LIMITS.sizes(1).collect();
        assert_eq!((sizes.len(), sizes[0], sizes[49]), (50, 128.0, 4096.0));
        assert!(sizes.windows(2).all(|pair| (pair[1] / pair[0] - libm::pow(32.0, 1.0 / 49.0)).abs() < 1e-12));
        assert_eq!(LIMITS.sizes(8).next(), Some(256.0), "each device has the least at least");
        assert_eq!(LIMITS.sizes(129).count(), 0, "so many devices would have too little each");
        let fixed = Limits { batch_max: 128, ..LIMITS };
        assert_eq!(fixed.sizes(2).collect::<Vec<_>>(), [128.0]);
    }

    #[test]
    fn memory_decides_how_often_gradients_are_accumulated() {
        let split =
            |examples, devices| LIMITS.split(examples, devices).map(|batch| (batch.local, batch.extra));
        assert_eq!(split(1024.0, 4), Some((256, 0)));
        assert_eq!(split(1025.0, 4), Some((129, 1)));
        assert_eq!(split(128.0, 1), Some((128, 0)));
        assert_eq!(split(200.0, 1), Some((100, 1)), "one device alone needs two gradients");
        assert_eq!(split(128.0, 8), None, "sixteen on each are too few");
        let plain = Limits { accumulates: false, ..LIMITS };
        assert_eq!(plain.split(1025.0, 4), None, "memory does not hold it");
    }
}
