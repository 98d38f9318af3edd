//! What there is to share, what a shape takes of it, and how fast a job is on a fair share.

use smallvec::SmallVec;
use yard_core::cluster::{Level, NodeState};
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::Shape;
use yard_core::view::View;

use crate::sizes::ladders;

/// What there is: devices and nodes of each kind, and how many share them.
pub(super) struct FairCluster {
    /// Devices of each kind.
    pub(super) devices: Vec<u32>,
    /// Nodes of each kind.
    pub(super) nodes: Vec<u32>,
    /// Devices of the largest node of each kind.
    largest: Vec<u32>,
    /// Devices of a fair share.
    fair: u32,
}

impl FairCluster {
    pub(super) fn new(view: &View) -> FairCluster {
        let n_kinds = view.kinds.len();
        let (mut nodes, mut largest) = (vec![0; n_kinds], vec![1; n_kinds]);
        for (_, node) in view.nodes.iter().filter(|(_, node)| node.state == NodeState::Up) {
            for pool in &node.spec.pools {
                let kind = pool.kind.index();
                nodes[kind] += 1;
                largest[kind] = pool.devices.max(largest[kind]);
            }
        }
        let devices: Vec<u32> = view.kinds.ids().map(|kind| view.capacity(kind)).collect();
        let fair = devices.iter().sum::<u32>().div_ceil(view.active().count().max(1) as u32);
        FairCluster { devices, nodes, largest, fair }
    }

    /// Devices of each kind, and the nodes where it spans several: counted behind all kinds.
    pub(super) fn uses(&self, shape: &Shape) -> SmallVec<[(u16, u32); 2]> {
        let mut uses: SmallVec<[(u16, u32); 2]> = SmallVec::new();
        for need in &shape.needs {
            match uses.iter_mut().find(|(kind, _)| *kind == need.kind.0) {
                Some((_, devices)) => *devices += need.devices,
                None => uses.push((need.kind.0, need.devices)),
            }
        }
        let spans = |(kind, devices): &(u16, u32)| *devices > self.largest[*kind as usize];
        let offset = self.devices.len() as u16;
        let nodes = uses.iter().filter(|own| shape.level() != Level::Node && spans(own));
        let nodes: Vec<_> = nodes
            .map(|(kind, devices)| (offset + kind, devices.div_ceil(self.largest[*kind as usize])))
            .collect();
        uses.extend(nodes);
        uses
    }

    /// The speed of a job on a fair share: on each kind that of the best size within it, or of the smallest for a
    /// part of the time; of several kinds the mean by their devices.
    pub(super) fn fair_speed(&self, view: &View, job: JobIdx) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for ladder in ladders(view, job) {
            let kind = view.spec(job).shapes[ladder[0].shape as usize]
                .needs
                .first()
                .map_or(KindId(0), |need| need.kind);
            let here = f64::from(self.devices[kind.index()]);
            let within = ladder.iter().rev().find(|size| size.devices <= self.fair);
            let part = || ladder[0].speed * f64::from(self.fair) / f64::from(ladder[0].devices.max(1));
            sum += here * within.map_or_else(part, |size| size.speed);
            weight += here;
        }
        sum / weight
    }
}
