//! What there is to see, kept by the driver for whoever looks: reading it never waits for a decision. Views are shared,
//! not copied: a reader takes them under the lock and does its work (JSON, counting) after it has let go, so that a
//! thousand readers do not hold up the driver.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::units::Time;

use crate::changes::Changes;
use crate::pace::{Pace, PacePoint};
use crate::views::{JobView, NodeView, StatusView};

/// The read model.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Jobs that are not over, and those that ended since the start, up to a limit; older ones are in the history.
    pub jobs: BTreeMap<u64, Arc<JobView>>,
    /// How far those of them were when that say so.
    pub paces: BTreeMap<u64, Pace>,
    /// All nodes by name.
    pub nodes: BTreeMap<String, Arc<NodeView>>,
    /// The whole at a glance.
    pub status: Option<StatusView>,
    /// When the driver's loop last went round: microseconds since 1970.
    pub alive: u64,
    /// What of it changed of late.
    pub changes: Changes,
}

/// All jobs and nodes at one moment, to be looked at without the lock.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The jobs, by number.
    pub jobs: Vec<Arc<JobView>>,
    /// The nodes, by name.
    pub nodes: Vec<Arc<NodeView>>,
    /// When the driver's loop last went round: microseconds since 1970.
    pub alive: u64,
    /// Inputs that made the scheduler fail and were set aside.
    pub set_aside: u64,
}

impl Board {
    /// Everything on it, without a copy.
    pub fn glance(&self) -> Glance {
        let (jobs, nodes) = (self.jobs.values().cloned().collect(), self.nodes.values().cloned().collect());
        let set_aside = self.status.as_ref().map_or(0, |status| status.set_aside);
        Glance { jobs, nodes, alive: self.alive, set_aside }
    }

    /// Puts a job on the board. What was submitted stays in the store: it may be large.
    pub fn put_job(&mut self, view: JobView) {
        self.jobs.insert(view.id, Arc::new(JobView { request: None, ..view }));
    }

    /// Puts a node on the board.
    pub fn put_node(&mut self, view: NodeView) {
        self.nodes.insert(view.name.clone(), Arc::new(view));
    }

    /// Keeps how far a job is, where it says so, and the loss that it reported since it last did.
    pub(crate) fn pace(&mut self, now: Time, job: &JobView, loss: Option<f64>) {
        if let Some(step) = job.step.filter(|_| job.starts > 0) {
            let point = PacePoint { time: now.secs(), step, start: job.starts, loss };
            self.paces.entry(job.id).or_default().tell(point);
        }
    }
}
