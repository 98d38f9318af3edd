//! The ways in which a job may run, beside the one in which it does: why it has the size and the kind it has.

use serde::{Deserialize, Serialize};

use super::case::Case;
use crate::ids::KindId;

/// One of a job's shapes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// The kind; where it mixes kinds, the first.
    pub kind: KindId,
    /// Devices in all.
    pub devices: u32,
    /// Steps per second, as far as is believed.
    pub speed: f64,
    /// What its devices cost at the prices in force, where there are prices.
    pub price: Option<f64>,
    /// Whether this is how it runs now.
    pub held: bool,
}

impl Case<'_> {
    /// All ways in which it makes progress, the fastest first.
    pub(super) fn ways(&self) -> Vec<Way> {
        let (run, spec) = (self.view.run(self.row), self.view.spec(self.row));
        let way = |shape: u16| {
            let own = &spec.shapes[shape as usize];
            let price = |kind: KindId| self.view.prices.get(kind.index());
            let costs = own.needs.iter().map(|need| Some(price(need.kind)? * f64::from(need.devices)));
            Way {
                kind: own.needs[0].kind,
                devices: own.devices(),
                speed: spec.speeds[shape as usize],
                price: costs.sum(),
                held: run.holds() && run.shape == shape,
            }
        };
        let mut ways: Vec<Way> = spec.usable().map(way).collect();
        ways.sort_by(|a, b| b.speed.total_cmp(&a.speed).then(a.devices.cmp(&b.devices)));
        ways
    }
}
