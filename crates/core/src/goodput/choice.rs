//! Which batch size is best on given devices: fifty sizes, evenly apart by ratio, from the submitted one to the
//! largest; each split over the devices, and by accumulation where memory does not hold it. The rule is Pollux's.

use smallvec::SmallVec;

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
        let way = |batch: Batch| {
            let (size, grad_s) = (batch.global(devices) as f64, model.grad_s(batch.local));
            let counting = size * noise.efficiency(size / f64::from(self.batch));
            Way { batch, counting, grad_s, accumulating: f64::from(batch.extra) * grad_s }
        };
        let ways: SmallVec<[Way; 64]> = self.batches(devices).map(way).collect();
        let best = Search { ways: &ways, model, sync_s }.best()?;
        Some(best).filter(|best| best.goodput > 0.0 && best.goodput.is_finite())
    }
}

/// A batch with all that is known of it before the time of a step, which is dear to work out.
struct Way {
    batch: Batch,
    /// Examples of a step that count.
    counting: f64,
    grad_s: f64,
    accumulating: f64,
}

impl Way {
    fn goodput(&self, step_s: f64) -> f64 {
        self.counting / (self.accumulating + step_s)
    }
}

/// The search for the best way. The time of a step is convex in that of its gradient, so one that was worked out bounds
/// all others from below by its tangent: from a good guess on hardly any must be worked out.
struct Search<'a> {
    ways: &'a [Way],
    model: &'a Model,
    sync_s: f64,
}

impl Search<'_> {
    fn best(&self) -> Option<Choice> {
        let guess = self.guess()?;
        let first = &self.ways[guess];
        let step_s = self.step_s(first);
        let (mut best, mut at) = (first.goodput(step_s), guess);
        let slope = self.slope(first.grad_s, step_s);
        for (other, way) in self.ways.iter().enumerate().filter(|(other, _)| *other != guess) {
            let least_s = step_s + slope * (way.grad_s - first.grad_s);
            if way.counting < best * (way.accumulating + least_s * (1.0 - ROUNDING)) {
                continue;
            }
            let goodput = way.goodput(self.step_s(way));
            if goodput > best || (goodput == best && other < at) {
                (best, at) = (goodput, other);
            }
        }
        Some(Choice { goodput: best, batch: self.ways[at].batch })
    }

    /// The best if the longer and the shorter part overlapped as much as equal ones do.
    fn guess(&self) -> Option<usize> {
        let part = libm::exp2(1.0 / self.model.overlap) - 1.0;
        let rate = |way: &Way| way.goodput(way.grad_s.max(self.sync_s) + part * way.grad_s.min(self.sync_s));
        let rates = self.ways.iter().map(rate).enumerate();
        let better = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
        rates.reduce(better).map(|(at, _)| at)
    }

    fn step_s(&self, way: &Way) -> f64 {
        self.model.step_s(way.grad_s, self.sync_s)
    }

    /// How much longer a step takes for each second that the gradient does.
    fn slope(&self, grad_s: f64, step_s: f64) -> f64 {
        libm::exp((self.model.overlap - 1.0) * libm::log(grad_s / step_s))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::goodput::model::Line;

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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_size_is_better_than_the_best(
            grad in (1e-8..0.5f64, 1e-8..0.02f64), sync in (1e-8..2.0f64, 1e-8..0.5f64), overlap in 1.0..10.0f64,
            noise in (0.0..2.0f64, 0.0..500.0f64), devices in 1u32..20, accumulates: bool,
        ) {
            let line = |(base, each)| Line { base, each };
            let model = Model { grad: line(grad), across: line(sync), within: line(sync), overlap };
            let noise = Noise { sqr: noise.0, var: noise.1 + 1e-3 };
            let limits = Limits { accumulates, ..LIMITS };
            let rate = |batch: Batch| limits.goodput(&model, &noise, 1, devices, batch);
            let most = limits.batches(devices).map(rate).fold(0.0, f64::max);
            let first = limits.batches(devices).find(|batch| rate(*batch) >= most * (1.0 - 1e-12));
            let best = limits.best(&model, &noise, 1, devices);
            prop_assert_eq!(best.is_some(), first.is_some());
            let (Some(best), Some(first)) = (best, first) else { return Ok(()) };
            prop_assert!((best.goodput / most - 1.0).abs() < 1e-12, "{best:?} {first:?} {most}");
            prop_assert!(best.batch.global(devices) >= first.global(devices), "{best:?} {first:?}");
        }
    }
}
