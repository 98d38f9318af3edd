//! What one job is known by: its times on each kind it was measured on, and its noise; and what follows for all its
//! shapes. A job is measured on few devices first and tries more as it goes:
//!
//! - It is given at most twice as many devices as it ever had on any kind, or the fewest that it can run on.
//! - On a kind where it never had several devices, it is taken to gain from them as it does elsewhere:
//!   `goodput there (K) = goodput elsewhere (K) × speed of one device there / of one elsewhere`.
//! - On a kind of which nothing is known, it has the speed that was guessed, and its fewest devices only.

use serde::{Deserialize, Serialize};

use super::choice::{Choice, Limits};
use super::model::Model;
use super::points::Points;
use crate::cluster::{Level, Nodes};
use crate::ids::KindId;
use crate::job::{Need, Shape};
use crate::training::{Batch, Noise, Timing, Training};

/// A change of efficiency that is not worth new speeds.
const NOISE_DRIFT_MAX: f64 = 0.02;

/// What one job is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    noise: Noise,
    /// By kind, each once.
    seen: Vec<(KindId, Points)>,
}

/// How good a job is on a kind, by a model of this or another one.
struct Basis<'a> {
    model: &'a Model,
    /// The kind that the model is of.
    kind: KindId,
    /// How much faster one device is here than there.
    ratio: f64,
}

impl Goodput {
    /// What is known of a job before it runs.
    pub fn new(training: &Training) -> Goodput {
        let mut kinds: Vec<KindId> = training.profiled.iter().map(|point| point.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of = |kind: KindId| {
            let here = training.profiled.iter().filter(move |point| point.kind == kind);
            Some((kind, Points::of(here.map(|point| point.timing).filter(Timing::is_sound))?))
        };
        let seen = kinds.into_iter().filter_map(of).collect();
        Goodput { noise: training.noise.unwrap_or(Noise::NONE), seen }
    }

    /// Takes a measurement on a kind. Whether it changes what is believed; nonsense does not.
    pub fn see(&mut self, kind: KindId, timing: &Timing) -> bool {
        if !timing.is_sound() {
            return false;
        }
        match self.seen.iter_mut().find(|(seen, _)| *seen == kind) {
            Some((_, points)) => points.see(timing),
            None => {
                let points = Points::of([*timing].into_iter());
                self.seen.extend(points.map(|points| (kind, points)));
                true
            }
        }
    }

    /// Takes its noise as last estimated. Whether it changes what is believed; nonsense does not.
    pub fn hear(&mut self, noise: Noise) -> bool {
        let news = noise.is_sound() && self.noise.apart(&noise) > NOISE_DRIFT_MAX;
        if news {
            self.noise = noise;
        }
        news
    }

    /// Steps a second in each shape, at the submitted batch size; 0 where it should not go yet, or cannot. `guesses`
    /// are the speeds it was submitted with.
    pub fn speeds(
        &self,
        training: &Training,
        shapes: &[Shape],
        guesses: &[f64],
        cluster: &Nodes,
    ) -> Vec<f64> {
        let most = self.seen.iter().map(|(_, points)| points.most()).max().unwrap_or(0);
        let fewest = fewest(training, shapes, cluster);
        let trust = || self.trust(training, shapes, &fewest, guesses, cluster);
        let speed = |at: usize| {
            let (shape, devices) = (&shapes[at], shapes[at].devices());
            if devices > fewest[at].max(most.saturating_mul(2)) || devices < fewest[at] {
                return 0.0;
            }
            match self.choose(training, shape, nodes_of(shape, cluster), cluster) {
                Some(choice) => choice.goodput / f64::from(training.batch),
                None if devices == fewest[at] && !self.knows(shape) => guesses[at] * trust(),
                None => 0.0,
            }
        };
        (0..shapes.len()).map(speed).collect()
    }

    /// The best batch in a shape on so many nodes, and how good it is as far as is known. None where memory holds no
    /// batch there, or nothing is known of its kinds.
    pub fn choose(&self, training: &Training, shape: &Shape, nodes: u32, cluster: &Nodes) -> Option<Choice> {
        let (limits, devices) = (limits(training, &shape.needs)?, shape.devices());
        let on = |need: &Need| {
            let basis = self.basis(training, need.kind, devices)?;
            let nodes = if basis.kind == need.kind { nodes } else { nodes_for(devices, basis.kind, cluster) };
            let choice = limits.best(basis.model, &self.noise, nodes, devices)?;
            Some(Choice { goodput: choice.goodput * basis.ratio, ..choice })
        };
        let choices: Option<Vec<Choice>> = shape.needs.iter().map(on).collect();
        // All devices of a gang wait for the slowest.
        choices?.into_iter().min_by(|a, b| a.goodput.total_cmp(&b.goodput))
    }

    /// How good a batch is in a shape on so many nodes, by the same measure as `choose`.
    pub fn rate(
        &self,
        training: &Training,
        shape: &Shape,
        nodes: u32,
        batch: Batch,
        cluster: &Nodes,
    ) -> Option<f64> {
        let (limits, devices) = (limits(training, &shape.needs)?, shape.devices());
        let on = |need: &Need| {
            let basis = self.basis(training, need.kind, devices)?;
            let nodes = if basis.kind == need.kind { nodes } else { nodes_for(devices, basis.kind, cluster) };
            Some(limits.goodput(basis.model, &self.noise, nodes, devices, batch) * basis.ratio)
        };
        let rates: Option<Vec<f64>> = shape.needs.iter().map(on).collect();
        rates?.into_iter().min_by(f64::total_cmp)
    }

    /// Whether anything is known of all the kinds of a shape.
    fn knows(&self, shape: &Shape) -> bool {
        shape.needs.iter().all(|need| self.points(need.kind).is_some())
    }

    fn points(&self, kind: KindId) -> Option<&Points> {
        self.seen.iter().find(|(seen, _)| *seen == kind).map(|(_, points)| points)
    }

    /// By what to judge so many devices of a kind: its own model, unless that never saw several at once and another
    /// kind's did; of those the one that saw most.
    fn basis(&self, training: &Training, kind: KindId, devices: u32) -> Option<Basis<'_>> {
        let own = self.points(kind)?;
        let plain = Basis { model: own.model(), kind, ratio: 1.0 };
        if devices == 1 || own.most() > 1 {
            return Some(plain);
        }
        let several = self.seen.iter().filter(|(_, points)| points.most() > 1);
        let Some((other, points)) =
            several.max_by_key(|(kind, points)| (points.most(), std::cmp::Reverse(*kind)))
        else {
            return Some(plain);
        };
        let [here, there] = [kind, *other].map(|kind| fits(training, kind).1);
        let local = here.min(there);
        let ratio = points.model().grad_s(local) / own.model().grad_s(local);
        Some(Basis { model: points.model(), kind: *other, ratio })
    }

    /// What guesses are worth: how much faster the job is than guessed, where both are known.
    fn trust(
        &self,
        training: &Training,
        shapes: &[Shape],
        fewest: &[u32],
        guesses: &[f64],
        cluster: &Nodes,
    ) -> f64 {
        let known = (0..shapes.len()).filter(|at| shapes[*at].devices() == fewest[*at] && guesses[*at] > 0.0);
        let ratio = |at: usize| {
            let choice = self.choose(training, &shapes[at], nodes_of(&shapes[at], cluster), cluster)?;
            let ratio = choice.goodput / f64::from(training.batch) / guesses[at];
            Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        };
        known.filter_map(ratio).next().unwrap_or(1.0)
    }
}

/// Examples on one device of a kind at once, least and most.
fn fits(training: &Training, kind: KindId) -> (u32, u32) {
    let fits = training.fits.iter().find(|fits| fits.kind == kind);
    fits.map_or((1, training.batch_max), |fits| (fits.least.max(1), fits.most))
}

/// What limits a batch on devices of all these kinds; none where the kinds have nothing in common.
pub(crate) fn limits(training: &Training, needs: &[Need]) -> Option<Limits> {
    let both = |a: (u32, u32), b: (u32, u32)| (a.0.max(b.0), a.1.min(b.1));
    let local = needs.iter().map(|need| fits(training, need.kind)).reduce(both)?;
    let batch_max = if training.adapts { training.batch_max } else { training.batch };
    let limits = Limits { batch: training.batch, batch_max, local, accumulates: training.accumulates };
    (local.0 <= local.1).then_some(limits)
}

/// Whether memory holds any batch in a shape.
pub(crate) fn holds(training: &Training, shape: &Shape) -> bool {
    limits(training, &shape.needs).is_some_and(|limits| limits.allow(shape.devices()))
}

/// For each shape, the fewest devices of its kinds on which the job can run at all.
fn fewest(training: &Training, shapes: &[Shape], cluster: &Nodes) -> Vec<u32> {
    let able = |shape: &&Shape| holds(training, shape) && (cluster.is_empty() || cluster.could_hold(shape));
    let able: Vec<&Shape> = shapes.iter().filter(able).collect();
    let alike =
        |a: &Shape, b: &Shape| a.needs.iter().map(|need| need.kind).eq(b.needs.iter().map(|need| need.kind));
    let fewest = |shape| able.iter().filter(|other| alike(other, shape)).map(|other| other.devices()).min();
    shapes.iter().map(|shape| fewest(shape).unwrap_or(u32::MAX)).collect()
}

/// The nodes that a shape takes where it lies well.
fn nodes_of(shape: &Shape, cluster: &Nodes) -> u32 {
    let nodes = |need: &Need| nodes_for(need.devices, need.kind, cluster);
    match shape.nodes {
        Some(nodes) => nodes,
        None if shape.level() == Level::Node => 1,
        None => shape.needs.iter().map(nodes).sum(),
    }
}

fn nodes_for(devices: u32, kind: KindId, cluster: &Nodes) -> u32 {
    match cluster.largest(kind) {
        0 => 1,
        largest => devices.div_ceil(largest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeSpec;
    use crate::training::{Fits, Profiled};

    const A: KindId = KindId(0);
    const B: KindId = KindId(1);
    const C: KindId = KindId(2);

    /// Two nodes of eight of each kind.
    fn eights() -> Nodes {
        let mut nodes = Nodes::default();
        for kind in [A, A, B, B, C, C] {
            nodes.add(NodeSpec::of("node", kind, 8));
        }
        nodes
    }

    fn timing(nodes: u32, devices: u32, local: u32, per_example_s: f64) -> Timing {
        let grad_s = 0.1 + per_example_s * f64::from(local);
        let sync_s = if devices > 1 { 0.05 * f64::from(nodes) } else { 0.0 };
        Timing { nodes, devices, local, grad_s, step_s: grad_s + sync_s }
    }

    /// Measured on one device of A and of B, which is half as fast.
    fn training() -> Training {
        let at = |kind, local, per_example_s| Profiled { kind, timing: timing(1, 1, local, per_example_s) };
        Training {
            batch: 64,
            batch_max: 1024,
            adapts: true,
            accumulates: true,
            fits: [A, B, C].map(|kind| Fits { kind, least: 8, most: 128 }).to_vec(),
            profiled: vec![at(A, 32, 0.01), at(A, 128, 0.01), at(B, 32, 0.02), at(B, 128, 0.02)],
            noise: Some(Noise { sqr: 1.0, var: 20.0 }),
        }
    }

    /// 1, 2, 4, 8 on one node, 16 on two, of each kind.
    fn shapes() -> Vec<Shape> {
        let of = |kind| {
            [1, 2, 4, 8, 16].map(|devices| {
                Shape::of(kind, devices).within(if devices <= 8 { Level::Node } else { Level::Any })
            })
        };
        [A, B, C].into_iter().flat_map(of).collect()
    }

    fn speeds(goodput: &Goodput, training: &Training) -> [Vec<f64>; 3] {
        let speeds = goodput.speeds(training, &shapes(), &[3.0; 15], &eights());
        [0, 5, 10].map(|from| speeds[from..from + 5].to_vec())
    }

    fn open(speeds: &[f64]) -> usize {
        speeds.iter().take_while(|speed| **speed > 0.0).count()
    }

    #[test]
    fn devices_at_most_double() {
        let training = training();
        let mut goodput = Goodput::new(&training);
        let [a, b, c] = speeds(&goodput, &training);
        assert_eq!([&a, &b, &c].map(|speeds| open(speeds)), [2, 2, 1], "profiled on one, tries two");
        assert!(b[0] < a[0] && b[0] > a[0] / 2.0, "{a:?} {b:?}");
        assert!((a[1] / a[0] - 2.0).abs() < 0.3, "what was never seen costs nothing: {a:?}");
        goodput.see(A, &timing(1, 2, 32, 0.01));
        let [a, b, _] = speeds(&goodput, &training);
        assert_eq!([open(&a), open(&b)], [3, 3], "what was tried on one kind opens all");
        goodput.see(A, &timing(1, 8, 32, 0.01));
        assert_eq!(open(&speeds(&goodput, &training)[1]), 5);
    }

    #[test]
    fn a_kind_never_tried_with_several_is_judged_by_another() {
        let training = training();
        let mut goodput = Goodput::new(&training);
        for devices in [2, 4] {
            goodput.see(A, &timing(1, devices, 32, 0.01));
        }
        let [a, b, _] = speeds(&goodput, &training);
        let ratio = timing(1, 1, 128, 0.01).grad_s / timing(1, 1, 128, 0.02).grad_s;
        for at in 1..4 {
            assert!(
                (b[at] / a[at] / ratio - 1.0).abs() < 0.02,
                "{at}: {} is not {ratio} of {}",
                b[at],
                a[at]
            );
        }
        // Several there turn out to be slow: its own model counts from now on.
        goodput.see(B, &Timing { step_s: 9.0, ..timing(1, 4, 32, 0.02) });
        let slow = &speeds(&goodput, &training)[1];
        assert!(slow[2] < 0.5 * b[2], "{slow:?} after {b:?}");
    }

    #[test]
    fn a_guess_stands_until_something_is_known() {
        let training = Training { profiled: Vec::new(), ..training() };
        let mut goodput = Goodput::new(&training);
        assert_eq!(speeds(&goodput, &training), [0; 3].map(|_| vec![3.0, 0.0, 0.0, 0.0, 0.0]));
        goodput.see(A, &timing(1, 1, 64, 0.01));
        let [a, b, _] = speeds(&goodput, &training);
        assert!(open(&a) == 2 && open(&b) == 1 && b[0] == a[0], "guessed to be equal: {a:?} {b:?}");
    }

    #[test]
    fn few_devices_do_where_memory_asks_for_more() {
        let training = Training { batch: 512, accumulates: false, ..training() };
        let [a, ..] = speeds(&Goodput::new(&training), &training);
        assert_eq!(
            a.iter().map(|speed| *speed > 0.0).collect::<Vec<_>>(),
            [false, false, true, false, false]
        );
        let fixed = Training { adapts: false, ..training.clone() };
        let shape = &shapes()[3];
        let choice = Goodput::new(&fixed).choose(&fixed, shape, 1, &eights()).expect("eight hold it");
        assert_eq!(choice.batch, Batch { local: 64, extra: 0 });
        let accumulating = Training { accumulates: true, ..fixed };
        let choice = Goodput::new(&accumulating).choose(&accumulating, &shapes()[0], 1, &eights());
        assert_eq!(choice.expect("it accumulates").batch, Batch { local: 128, extra: 3 });
    }

    #[test]
    fn what_the_cluster_has_no_room_for_is_not_waited_for() {
        let training = training();
        let shapes = [Shape::of(A, 9).within(Level::Node), Shape::of(A, 12), Shape::of(A, 16)];
        let speeds = Goodput::new(&training).speeds(&training, &shapes, &[1.0; 3], &eights());
        assert!(speeds[1] > 0.0 && speeds[0] == 0.0 && speeds[2] == 0.0, "{speeds:?}");
    }

    #[test]
    fn a_gang_of_two_kinds_goes_at_the_slower_pace() {
        let training = training();
        let goodput = Goodput::new(&training);
        let needs = [A, B].map(|kind| Need { kind, devices: 1 });
        let mixed = Shape { needs: needs.to_vec(), ..Shape::of(A, 1) };
        let on = |shape: &Shape| goodput.choose(&training, shape, 1, &eights()).expect("it fits").goodput;
        assert_eq!(on(&mixed), on(&Shape::of(B, 2)).min(on(&Shape::of(A, 2))));
    }

    #[test]
    fn noise_makes_large_batches_worth_it() {
        let training = training();
        let mut goodput = Goodput::new(&training);
        let batch = |goodput: &Goodput| {
            let choice = goodput.choose(&training, &shapes()[1], 1, &eights()).expect("it fits");
            let again = goodput.rate(&training, &shapes()[1], 1, choice.batch, &eights()).expect("it fits");
            assert!((again / choice.goodput - 1.0).abs() < 1e-12);
            choice.batch.global(2)
        };
        let before = batch(&goodput);
        assert!(
            !goodput.hear(Noise { sqr: f64::NAN, var: 1.0 }) && !goodput.hear(Noise { sqr: 0.0, var: 0.0 })
        );
        assert!(!goodput.hear(Noise { sqr: 1.0, var: 20.1 }), "hardly any news");
        assert!(goodput.hear(Noise { sqr: 1.0, var: 500.0 }));
        assert!(batch(&goodput) > before);
        assert!(
            !goodput.see(A, &Timing { grad_s: -1.0, ..timing(1, 2, 32, 0.01) }),
            "nonsense is not believed"
        );
    }
}
