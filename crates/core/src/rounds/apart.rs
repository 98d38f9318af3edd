//! Gangs that span nodes, kept off each other's nodes where the policy wants that: they would share the network there.

use std::collections::BTreeSet;

use super::Round;
use crate::cluster::{Placement, Slice};
use crate::ids::{NodeId, ShareId};
use crate::job::Shape;

impl Round<'_> {
    /// Devices for a shape.
    pub(super) fn lay(&mut self, shape: &Shape) -> Option<Placement> {
        let first = self.placer.lay(self.nodes, shape)?;
        if !self.crosses(&first) {
            return Some(first);
        }
        let closed = self.closed();
        self.nodes.promise(&closed);
        let found = self.placer.lay(self.nodes, shape);
        self.nodes.release(&closed);
        found
    }

    /// Whether a placement spans nodes and meets another that does.
    pub(super) fn crosses(&self, placement: &Placement) -> bool {
        let spans = self.apart && placement.spans_nodes();
        let crossed = if spans { self.crossed() } else { BTreeSet::new() };
        placement.0.iter().any(|slice| crossed.contains(&slice.node))
    }

    /// The same for what a share had before it was stopped in this round.
    pub(super) fn crosses_at_home(&self, share: ShareId) -> bool {
        let stopped = self.book.entry(share).stopped.filter(|_| self.apart);
        stopped.and_then(|lease| self.leases.get(lease)).is_some_and(|lease| self.crosses(&lease.placement))
    }

    /// Nodes with a gang that spans several.
    fn crossed(&self) -> BTreeSet<NodeId> {
        let gangs = self.book.chosen().map(|share| self.placement_of(share));
        gangs.filter(|gang| gang.spans_nodes()).flat_map(|gang| &gang.0).map(|slice| slice.node).collect()
    }

    /// All that is free on those.
    fn closed(&self) -> Placement {
        let slice = |id: NodeId| {
            let free = self.nodes.get(id).take_all();
            (free != 0).then(|| Slice::of(id, free))
        };
        Placement(self.crossed().into_iter().filter_map(slice).collect())
    }
}
