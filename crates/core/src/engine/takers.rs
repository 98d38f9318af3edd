//! For whom jobs are stopped: who was promised the devices that others give back.

use smallvec::SmallVec;

use crate::cluster::Slice;
use crate::ids::{JobId, LeaseId};
use crate::leases::Lease;
use crate::state::State;

/// The promises of a round, by the number of the first: all that come after it are of the same round.
pub(super) struct Takers(Option<LeaseId>);

impl Takers {
    /// Of these promises.
    pub(super) fn of(promised: &[LeaseId]) -> Takers {
        Takers(promised.first().copied())
    }

    /// The jobs that get devices of a lease that ends, others than its own.
    pub(super) fn after(&self, state: &State, lease: &Lease) -> SmallVec<[JobId; 1]> {
        let mut found = SmallVec::new();
        let Some(first) = self.0 else { return found };
        for slice in &lease.placement.0 {
            for id in state.leases.promised_on_node(slice.node).iter().filter(|id| **id >= first) {
                let taker = state.leases.get(*id).expect("a promised lease is on record");
                let meets = |own: &Slice| own.node == slice.node && own.mask & slice.mask != 0;
                let takes = taker.placement.0.iter().any(meets);
                let others = taker.jobs.iter().filter(|job| takes && !lease.jobs.contains(job));
                found.extend(others.map(|job| state.run(*job).id));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
