//! Planning to deadlines: which devices each job with a deadline needs, and when, so that all of them are done in
//! time (Gu et al., "ElasticFlow", ASPLOS 2023: the minimum satisfactory share; Gao et al., "Chronus", SoCC 2021: the
//! sizes that never lie scattered). Pure numbers: a `Timeline` of free devices, an `Ask` for each job, and stretches
//! of time in one of its shapes as the answer. Who plans may begin with any timeline; the engine promises by it
//! (`engine/promises`), policies allocate by it.
//!
//! Work is bounded: stretches begin on a grid that is coarser the further away it lies (`Grid`), so that a timeline
//! has a few hundred steps whatever the number of jobs; a job costs O(shapes² · steps).

mod earliest;
mod grid;
mod ground;
mod room;
mod satisfy;
mod timeline;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub use earliest::earliest;
pub use grid::Grid;
pub(crate) use ground::host_on;
pub use ground::{Ground, Plan, Spot, spot_of};
pub use room::Room;
pub use satisfy::{hold_on, satisfy};
pub use timeline::Timeline;

use crate::units::{Span, Time};

/// A way to run: one of a job's shapes, and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Which of the job's shapes.
    pub shape: u16,
    /// Steps per second.
    pub speed: f64,
    /// Devices.
    pub devices: u32,
    /// What it takes of each column of the timeline.
    pub takes: SmallVec<[(u16, u32); 4]>,
    /// Ways of the same kinds; a job that grows stays within them.
    pub family: u64,
}

/// What a job needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// By when it must be done.
    pub by: Time,
    /// When it may first start.
    pub from: Time,
    /// Steps left.
    pub left: f64,
    /// The ways in which it makes progress.
    pub ways: Vec<Way>,
    /// What each stretch loses before the first step: others give the devices back, it starts and loads.
    pub overhead: Span,
    /// Whether it runs in one stretch or not at all, because it may not be stopped.
    pub whole: bool,
}

/// A stretch of time in one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// In which of the job's shapes.
    pub shape: u16,
}

impl Ask {
    /// The way of this shape, if it makes progress.
    pub fn way(&self, shape: u16) -> Option<&Way> {
        self.ways.iter().find(|way| way.shape == shape)
    }

    /// When it must begin at the latest, in its fastest way, with all the devices that it then wants.
    pub fn latest_start(&self) -> Time {
        let fastest = self.ways.iter().map(|way| way.speed).fold(0.0, f64::max);
        let needed = if fastest > 0.0 { Span::from_secs(self.left / fastest) } else { Span(u64::MAX) };
        Time(self.by.0.saturating_sub(needed.0))
    }

    /// Steps that a stretch makes.
    pub fn work(&self, stretch: &Stretch) -> f64 {
        let seconds = (stretch.until - stretch.from).secs() - self.overhead.secs();
        self.way(stretch.shape).map_or(0.0, |way| way.speed * seconds.max(0.0))
    }

    /// Device-seconds of a plan.
    pub fn cost(&self, plan: &[Stretch]) -> f64 {
        let devices = |stretch: &Stretch| self.way(stretch.shape).map_or(0, |way| way.devices);
        plan.iter().map(|stretch| f64::from(devices(stretch)) * (stretch.until - stretch.from).secs()).sum()
    }

    /// The least of a plan that is still enough, from its end: what comes before is not needed. `None` where even
    /// all of it is too little.
    pub fn trim(&self, plan: &[Stretch], grid: &Grid) -> Option<Vec<Stretch>> {
        let mut left = self.left;
        for (at, stretch) in plan.iter().enumerate().rev() {
            let work = self.work(stretch);
            // Instants are whole microseconds, so that a start loses a part of one.
            if work + SLIP_S * self.way(stretch.shape).map_or(0.0, |way| way.speed) < left {
                left -= work;
                continue;
            }
            let start = satisfy::start(stretch.until, self, stretch.shape, left);
            // Between two beats the grid begins later than now, and perhaps later than it must.
            let late = start.map(|start| grid.before(start)).filter(|from| Some(*from) <= start);
            let from = late.map_or(stretch.from, |from| from.max(stretch.from));
            let first = Stretch { from, ..*stretch };
            return Some([&[first], &plan[at + 1..]].concat());
        }
        None
    }
}

/// Seconds that starts and stops may lose to rounding.
const SLIP_S: f64 = 1e-3;

/// Plans for jobs in the order given, each against what those before it leave: usually the earliest deadline first.
/// Who finds no plan has none, and takes nothing.
pub fn plan(asks: &[Ask], timeline: &mut Timeline, grid: &Grid) -> Vec<Option<Vec<Stretch>>> {
    let one = |ask: &Ask| {
        let plan = satisfy(ask, timeline, grid)?;
        timeline.take_plan(ask, &plan, grid);
        Some(plan)
    };
    asks.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn between_two_beats_a_plan_is_not_put_off_to_the_next_where_that_is_too_late() {
        let secs = Time::from_secs;
        let way = Way { shape: 0, speed: 1.0, devices: 1, takes: smallvec![(0, 1)], family: 0 };
        let (by, from, overhead) = (secs(200.0), Time::ZERO, Span::ZERO);
        let ask = Ask { by, from, left: 10.0, ways: vec![way], overhead, whole: false };
        let grid = Grid::new(secs(90.0), Span::from_secs(60.0));
        let trimmed = |until: f64| {
            let plan = ask.trim(&[Stretch { from: secs(90.0), until: secs(until), shape: 0 }], &grid);
            plan.map(|plan| plan[0].from)
        };
        assert_eq!(trimmed(110.0), Some(secs(90.0)), "at the beat at 120 s it would be over");
        assert_eq!(trimmed(125.0), Some(secs(90.0)), "at the beat too little would be left of it");
        assert_eq!(trimmed(131.0), Some(secs(120.0)));
        assert_eq!(trimmed(99.0), None);
    }
}
