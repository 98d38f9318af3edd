//! What there is to see, kept by the driver for whoever looks: reading it never waits for a decision.

use std::collections::BTreeMap;

use yard_core::units::Time;

use crate::changes::Changes;
use crate::pace::{Pace, PacePoint};
use crate::views::{JobView, NodeView, StatusView};

/// The read model.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Jobs that are not over, and those that ended since the start, up to a limit; older ones are in the history.
    pub jobs: BTreeMap<u64, JobView>,
    /// How far those of them were when that say so.
    pub paces: BTreeMap<u64, Pace>,
    /// All nodes by name.
    pub nodes: BTreeMap<String, NodeView>,
    /// The whole at a glance.
    pub status: Option<StatusView>,
    /// When the driver's loop last went round: microseconds since 1970.
    pub alive: u64,
    /// What of it changed of late.
    pub changes: Changes,
}

impl Board {
    /// Keeps how far a job is, where it says so.
    pub(crate) fn pace(&mut self, now: Time, job: &JobView) {
        if let Some(step) = job.step.filter(|_| job.starts > 0) {
            let point = PacePoint { time: now.secs(), step, start: job.starts };
            self.paces.entry(job.id).or_default().tell(point);
        }
    }
}
