//! Nodes join, drain, come back, leave and fail; and devices go out of service and come back.

use super::Engine;
use crate::cluster::{Mask, NODE_DEVICES_MAX, NodeSpec, NodeState, Placement, Slice};
use crate::ids::{JobIdx, NodeId};
use crate::leases::LeaseState;
use crate::message::{Effect, Event, NodeChange, NodeNews, Why};

impl Engine {
    pub(super) fn node(&mut self, change: NodeChange, out: &mut Vec<Effect>) {
        if !self.means_something(&change) {
            return;
        }
        let (node, news) = match change {
            NodeChange::Join(spec) => (self.add_node(spec), NodeNews::Joined),
            NodeChange::Drain(node) => (node, NodeNews::Draining),
            NodeChange::Resume(node) => (node, NodeNews::Resumed),
            NodeChange::Leave(node) => (node, NodeNews::Left),
            NodeChange::Fail(node) => (node, NodeNews::Failed),
            NodeChange::Health { node, bad } => {
                self.set_health(node, bad, out);
                (node, NodeNews::Health)
            }
        };
        match news {
            NodeNews::Joined | NodeNews::Health => {}
            NodeNews::Resumed => self.state.nodes_mut().set_state(node, NodeState::Up),
            NodeNews::Draining => self.state.nodes_mut().set_state(node, NodeState::Draining),
            NodeNews::Left => self.clear_node(node, Why::Drained, out),
            NodeNews::Failed => self.clear_node(node, Why::Lost, out),
        }
        (self.state.changed.nodes, self.state.hopeless) = (true, None);
        (self.state.dirty, self.state.loose) = (true, true);
        self.state.promises.stale = true;
        out.push(Effect::Publish(Event::Node { node, change: news }));
    }

    fn add_node(&mut self, spec: NodeSpec) -> NodeId {
        let node = self.state.nodes_mut().add(spec);
        self.state.respeed_all();
        node
    }

    /// Whether it is a change at all, of a node that joined or can.
    fn means_something(&self, change: &NodeChange) -> bool {
        let nodes = &self.state.nodes;
        match change {
            NodeChange::Join(spec) => spec.devices <= NODE_DEVICES_MAX,
            NodeChange::Drain(node)
            | NodeChange::Resume(node)
            | NodeChange::Leave(node)
            | NodeChange::Fail(node) => node.index() < nodes.len(),
            NodeChange::Health { node, bad } => {
                node.index() < nodes.len() && nodes.get(*node).bad != bad & nodes.get(*node).all()
            }
        }
    }

    /// Some of a node's devices are out of service from now on, and no others: who is on them goes elsewhere.
    fn set_health(&mut self, node: NodeId, bad: Mask, out: &mut Vec<Effect>) {
        let bad = bad & self.state.nodes.get(node).all();
        self.state.nodes_mut().set_bad(node, bad);
        self.clear(node, bad, Why::Drained, out);
    }

    fn clear_node(&mut self, node: NodeId, why: Why, out: &mut Vec<Effect>) {
        self.state.nodes_mut().set_state(node, NodeState::Down);
        self.clear(node, Mask::MAX, why, out);
    }

    /// Ends all leases on these devices of a node; what lies frozen there is lost.
    fn clear(&mut self, node: NodeId, devices: Mask, why: Why, out: &mut Vec<Effect>) {
        let hit = |slice: &Slice| slice.node == node && slice.mask & devices != 0;
        let on_it = |placement: &Placement| placement.0.iter().any(hit);
        let lost = |job: &JobIdx| self.state.run(*job).home.as_ref().is_some_and(|home| on_it(home));
        let homeless: Vec<JobIdx> = self.state.resting.iter().copied().filter(lost).collect();
        homeless.into_iter().for_each(|job| self.state.leave_home(job));
        let hit: Vec<_> =
            self.state.leases.iter().filter(|(_, lease)| on_it(&lease.placement)).map(|(id, _)| id).collect();
        for lease in hit {
            let hit = self.state.leases.get(lease).expect("it was just listed");
            if hit.state != LeaseState::Ending {
                let share = hit.share;
                self.state.release(lease);
                self.state.book.unchoose(share);
                self.end_lease(lease, why, out);
            }
        }
    }
}
