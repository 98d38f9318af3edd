//! What stages take: a rhythm of computing and handing over, where it fits in memory.

use super::placement::StageSeats;
use super::rhythm::{Rhythm, RhythmBeats};
use super::{Chain, ChainLayer, ChainMachine};

/// Stages: where each begins, and where it lies.
pub(super) struct Stages<'a> {
    pub(super) chain: &'a Chain,
    pub(super) machine: &'a ChainMachine,
    /// The first layer of each stage.
    pub(super) begins: &'a [usize],
    pub(super) seats: &'a StageSeats,
    pub(super) micro_batches: u32,
}

impl Stages<'_> {
    /// The rhythm, and the largest memory that a device has filled over what it may; none where it does not fit.
    pub(super) fn rhythm(&self) -> Option<Rhythm> {
        let count = self.begins.len();
        let mut beats = Vec::with_capacity(2 * count - 1);
        for stage in 0..count {
            beats.push(self.compute(stage)?);
            if stage + 1 < count {
                beats.push(self.hand_over(stage));
            }
        }
        let all = beats.len() as u32;
        for (at, beats) in beats.iter_mut().enumerate() {
            beats.ahead = beats.ahead.min(all - at as u32);
        }
        Some(Rhythm::new(beats, self.micro_batches))
    }

    fn layers(&self, stage: usize) -> &[ChainLayer] {
        let end = self.begins.get(stage + 1).copied().unwrap_or(self.chain.layers.len());
        &self.chain.layers[self.begins[stage]..end]
    }

    fn replicas(&self, stage: usize) -> f64 {
        f64::from(self.seats[stage].iter().sum::<u32>())
    }

    /// The profiled batch is to a micro-batch as 1 to this.
    fn scale(&self) -> f64 {
        f64::from(self.chain.batch) / f64::from(self.micro_batches) / f64::from(self.chain.profiled)
    }

    /// The kinds of a stage's devices.
    fn kinds(&self, stage: usize) -> impl Iterator<Item = usize> {
        let seats = self.seats[stage].iter().zip(&self.machine.nodes);
        seats.filter(|(seats, _)| **seats > 0).map(|(_, node)| node.kind)
    }

    /// A stage is as fast as its slowest kind, and as deep as its smallest memory allows.
    fn compute(&self, stage: usize) -> Option<RhythmBeats> {
        let (layers, replicas) = (self.layers(stage), self.replicas(stage));
        let share = self.scale() / replicas;
        let (mut forward, mut backward, mut room) = (0.0f64, 0.0f64, f64::INFINITY);
        for kind in self.kinds(stage) {
            forward = forward.max(layers.iter().map(|layer| layer.seconds[kind].0).sum::<f64>());
            backward = backward.max(layers.iter().map(|layer| layer.seconds[kind].1).sum::<f64>());
            room = room.min(self.machine.memory[kind]);
        }
        let state: f64 = layers.iter().map(|layer| layer.state_bytes).sum();
        let kept: f64 = layers.iter().map(|layer| layer.kept_bytes).sum::<f64>() * share;
        let ahead = depth(room - state, kept)?;
        Some(RhythmBeats {
            forward: forward * share,
            backward: backward * share,
            reduce: self.reduce(stage),
            ahead,
        })
    }

    fn reduce(&self, stage: usize) -> f64 {
        let (replicas, nodes) =
            (self.replicas(stage), self.seats[stage].iter().filter(|seats| **seats > 0).count());
        let rate = if nodes == 1 { self.machine.link } else { self.machine.nic };
        let bytes: f64 = self.layers(stage).iter().map(|layer| layer.parameter_bytes).sum();
        2.0 * (replicas - 1.0) / replicas * bytes / rate
    }

    /// Limited by the node that has most to send or receive; within nodes by the side with fewer devices.
    fn hand_over(&self, stage: usize) -> RhythmBeats {
        let bytes = self.layers(stage).last().map_or(0.0, |layer| layer.cut_bytes) * self.scale();
        let (from, to) = (self.replicas(stage), self.replicas(stage + 1));
        let busiest = self.seats[stage].iter().zip(&self.seats[stage + 1]).map(|(a, b)| {
            let (a, b) = (f64::from(*a) / from, f64::from(*b) / to);
            (a * (1.0 - b)).max(b * (1.0 - a))
        });
        let outside = busiest.fold(0.0, f64::max);
        let seconds = match outside > 1e-12 {
            true => bytes * outside / self.machine.nic,
            false => bytes / self.machine.link / from.min(to),
        };
        RhythmBeats { forward: seconds, backward: seconds, reduce: 0.0, ahead: u32::MAX }
    }
}

/// How many micro-batches fit into what the state leaves; at least one has to.
fn depth(room: f64, kept: f64) -> Option<u32> {
    if room < 0.0 {
        return None;
    }
    let fit = if kept > 0.0 { (room / kept).floor() } else { f64::INFINITY };
    (fit >= 1.0).then_some(fit.min(f64::from(u32::MAX)) as u32)
}
