//! Which devices are in whose hands, for a driver that begins again and has to find out what became of them.

use smallvec::SmallVec;

use super::Engine;
use crate::cluster::Placement;
use crate::ids::{JobId, JobIdx, LeaseId};
use crate::leases::{Lease, LeaseState};
use crate::message::Why;

/// A lease whose devices are in its jobs' hands.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The lease.
    pub lease: LeaseId,
    /// The devices.
    pub placement: Placement,
    /// Its jobs that have not given them back.
    pub jobs: SmallVec<[HeldJob; 1]>,
}

/// A job that holds devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldJob {
    /// The job.
    pub job: JobId,
    /// Which of its own shapes it holds.
    pub shape: u16,
    /// Which start of the job this is.
    pub start: u32,
    /// What it was told to stop for, if it was.
    pub stopping: Option<Why>,
}

impl Engine {
    /// All leases whose devices were handed over and are not back, oldest first.
    pub fn leases(&self) -> impl Iterator<Item = Held> + '_ {
        let handed = self.state.leases.iter().filter(|(_, lease)| lease.state != LeaseState::Promised);
        handed.map(|(id, lease)| self.held(id, lease))
    }

    fn held(&self, id: LeaseId, lease: &Lease) -> Held {
        let job = |row: &JobIdx| {
            let run = self.state.run(*row);
            HeldJob { job: run.id, shape: run.shape, start: run.starts, stopping: run.stopping }
        };
        Held { lease: id, placement: lease.placement.clone(), jobs: lease.jobs.iter().map(job).collect() }
    }
}
