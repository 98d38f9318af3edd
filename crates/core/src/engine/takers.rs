//! For whom jobs are stopped: who was promised the devices that others give back.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::cluster::Mask;
use crate::ids::{JobId, LeaseId, NodeId};
use crate::leases::Leases;
use crate::state::State;

/// New promises by node.
pub(super) struct Takers(BTreeMap<NodeId, SmallVec<[(Mask, LeaseId); 2]>>);

impl Takers {
    /// Of these promises.
    pub(super) fn of(leases: &Leases, promised: &[LeaseId]) -> Takers {
        let mut by_node = BTreeMap::<NodeId, SmallVec<[(Mask, LeaseId); 2]>>::new();
        for id in promised {
            let slices = leases.get(*id).into_iter().flat_map(|lease| &lease.placement.0);
            slices.for_each(|slice| by_node.entry(slice.node).or_default().push((slice.mask, *id)));
        }
        Takers(by_node)
    }

    /// The jobs that get devices of a lease that ends, others than its own.
    pub(super) fn after(&self, state: &State, ended: LeaseId) -> SmallVec<[JobId; 1]> {
        let Some(lease) = state.leases.get(ended) else { return SmallVec::new() };
        let mut found = SmallVec::new();
        for slice in &lease.placement.0 {
            let takers =
                self.0.get(&slice.node).into_iter().flatten().filter(|(mask, _)| mask & slice.mask != 0);
            let jobs = takers.filter_map(|(_, taker)| state.leases.get(*taker)).flat_map(|taker| &taker.jobs);
            let others = jobs.filter(|job| !lease.jobs.contains(job)).map(|job| state.run(*job).id);
            found.extend(others);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
