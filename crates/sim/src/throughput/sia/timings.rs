//! How long a step of an application takes on devices of one kind, by how many lie on each node and by the examples
//! on each at once.

use std::collections::BTreeMap;

/// Seconds of a step, and of the part in which devices agree, by examples on each device, ascending.
pub(super) type TimingCurve = Vec<(f64, [f64; 2])>;

/// How many times were measured, and their sums, by examples on each device.
type Sums = BTreeMap<u32, (f64, [f64; 2])>;

/// The shortest time that a step may take.
const STEP_MIN_S: f64 = 1e-6;

/// Steps on devices of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timings {
    /// Examples on each device that were measured: the least and the most.
    pub(crate) least: u32,
    pub(crate) most: u32,
    /// By devices on each node, in the first order of all that go round the same way.
    placed: BTreeMap<Vec<u32>, TimingCurve>,
    /// By nodes and devices in all: the mean of those above, else as measured for that.
    sized: BTreeMap<(u32, u32), TimingCurve>,
}

impl Timings {
    /// Puts together what was measured: `placed` by devices on each node, `sized` by nodes and devices.
    pub(super) fn new(
        placed: BTreeMap<Vec<u32>, TimingCurve>,
        sized: BTreeMap<(u32, u32), TimingCurve>,
    ) -> Timings {
        let locals = || placed.values().flatten().map(|(local, _)| *local as u32);
        let (least, most) = (locals().min().unwrap_or(1), locals().max().unwrap_or(1));
        let mut means: BTreeMap<(u32, u32), Sums> = BTreeMap::new();
        for (counts, curve) in &placed {
            let size = means.entry((counts.len() as u32, counts.iter().sum())).or_default();
            for (local, [step, sync]) in curve {
                let sum = size.entry(*local as u32).or_default();
                *sum = (sum.0 + 1.0, [sum.1[0] + step, sum.1[1] + sync]);
            }
        }
        let mean = |(local, (n, sum)): (u32, (f64, [f64; 2]))| (f64::from(local), sum.map(|sum| sum / n));
        let mut all = sized;
        all.extend(means.into_iter().map(|(size, sums)| (size, sums.into_iter().map(mean).collect())));
        Timings { least, most, placed, sized: all }
    }

    /// The most nodes on which anything was measured.
    pub(crate) fn nodes_max(&self) -> u32 {
        self.sized.keys().map(|(nodes, _)| *nodes).max().unwrap_or(1)
    }

    /// Seconds of a step without accumulation, and of the part in which devices agree, with so many devices on each
    /// node. Linear in the examples where exactly that was measured; else in nodes at equal devices on each, in
    /// devices, and in examples.
    pub(crate) fn at(&self, counts: &[u32], local: f64) -> [f64; 2] {
        let times = match self.placed.get(&first_rotation(counts)) {
            Some(curve) => line(curve, local),
            None => self.between(counts.len() as u32, counts.iter().sum(), local),
        };
        let step = times[0].max(STEP_MIN_S);
        [step, times[1].clamp(0.0, step)]
    }

    /// All that was measured on this many devices of each node: examples, and the times of a step.
    pub(crate) fn measured(&self, counts: &[u32]) -> impl Iterator<Item = (u32, [f64; 2])> + '_ {
        let size = (counts.len() as u32, counts.iter().sum());
        let curve = self.placed.get(&first_rotation(counts)).or_else(|| self.sized.get(&size));
        curve.into_iter().flatten().map(|(local, times)| (*local as u32, *times))
    }

    fn between(&self, nodes: u32, devices: u32, local: f64) -> [f64; 2] {
        if let Some(curve) = self.sized.get(&(nodes, devices)) {
            return line(curve, local);
        }
        let below = self.sized.keys().map(|(n, _)| *n).filter(|n| *n <= nodes).max();
        let above = self.sized.keys().map(|(n, _)| *n).filter(|n| *n >= nodes).min();
        let on = |known: u32, devices: f64| self.over(known, devices, local);
        let same_density = |known: u32| on(known, f64::from(devices) * f64::from(known) / f64::from(nodes));
        match (below, above) {
            (Some(a), Some(b)) if a < b => {
                line(&[(f64::from(a), same_density(a)), (f64::from(b), same_density(b))], f64::from(nodes))
            }
            // Beyond the largest cluster that was measured, nodes cost no more.
            (Some(known), _) | (None, Some(known)) => on(known, f64::from(devices)),
            (None, None) => [STEP_MIN_S, 0.0],
        }
    }

    /// Times on so many nodes, linear in the devices there.
    fn over(&self, nodes: u32, devices: f64, local: f64) -> [f64; 2] {
        let known = self.sized.range((nodes, 0)..=(nodes, u32::MAX));
        let points: Vec<_> = known.map(|((_, n), curve)| (f64::from(*n), line(curve, local))).collect();
        line(&points, devices)
    }
}

/// The lexicographically first of the orders that go round the same way.
pub(super) fn first_rotation(counts: &[u32]) -> Vec<u32> {
    let turned = |at: usize| [&counts[at..], &counts[..at]].concat();
    (0..counts.len()).map(turned).min().unwrap_or_default()
}

/// The value at `x` of the line through the points, which goes on straight beyond them.
fn line(points: &[(f64, [f64; 2])], x: f64) -> [f64; 2] {
    let [a, b] = match points {
        [] => return [STEP_MIN_S, 0.0],
        [only] => return only.1,
        _ => {
            let at = points.partition_point(|(known, _)| *known < x).clamp(1, points.len() - 1);
            [points[at - 1], points[at]]
        }
    };
    let part = (x - a.0) / (b.0 - a.0);
    [0, 1].map(|i| a.1[i] + (b.1[i] - a.1[i]) * part)
}
