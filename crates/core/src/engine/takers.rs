//! For whom jobs are stopped: who was promised the devices that others give back.

use smallvec::SmallVec;

use crate::cluster::Mask;
use crate::ids::{JobId, LeaseId, NodeId};
use crate::leases::Leases;
use crate::state::State;

/// New promises, by node.
pub(super) struct Takers(Vec<(NodeId, Mask, LeaseId)>);

impl Takers {
    /// Of these promises.
    pub(super) fn of(leases: &Leases, promised: &[LeaseId]) -> Takers {
        let mut all = Vec::with_capacity(promised.len());
        for id in promised {
            let slices = leases.get(*id).into_iter().flat_map(|lease| &lease.placement.0);
            all.extend(slices.map(|slice| (slice.node, slice.mask, *id)));
        }
        all.sort_unstable_by_key(|(node, _, id)| (*node, *id));
        Takers(all)
    }

    /// Those that take devices of a node.
    fn on(&self, node: NodeId) -> impl Iterator<Item = &(NodeId, Mask, LeaseId)> {
        let first = self.0.partition_point(|taker| taker.0 < node);
        self.0[first..].iter().take_while(move |taker| taker.0 == node)
    }

    /// The jobs that get devices of a lease that ends, others than its own.
    pub(super) fn after(&self, state: &State, ended: LeaseId) -> SmallVec<[JobId; 1]> {
        let Some(lease) = state.leases.get(ended) else { return SmallVec::new() };
        let mut found = SmallVec::new();
        for slice in &lease.placement.0 {
            let takers = self.on(slice.node).filter(|(_, mask, _)| mask & slice.mask != 0);
            let leases = takers.filter_map(|(.., taker)| state.leases.get(*taker));
            let jobs = leases.flat_map(|taker| &taker.jobs);
            let others = jobs.filter(|job| !lease.jobs.contains(job)).map(|job| state.run(*job).id);
            found.extend(others);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
