//! Nodes join, drain, come back, leave and fail.

use super::Engine;
use crate::cluster::{NODE_DEVICES_MAX, NodeState, Placement};
use crate::ids::NodeId;
use crate::leases::LeaseState;
use crate::message::{Effect, Event, NodeChange, NodeNews, Why};

impl Engine {
    pub(super) fn node(&mut self, change: NodeChange, out: &mut Vec<Effect>) {
        if matches!(&change, NodeChange::Join(spec) if spec.devices > NODE_DEVICES_MAX) {
            return;
        }
        let (node, news) = match change {
            NodeChange::Join(spec) => (self.state.nodes_mut().add(spec), NodeNews::Joined),
            NodeChange::Drain(node) => (node, NodeNews::Draining),
            NodeChange::Resume(node) => (node, NodeNews::Resumed),
            NodeChange::Leave(node) => (node, NodeNews::Left),
            NodeChange::Fail(node) => (node, NodeNews::Failed),
        };
        if node.index() >= self.state.nodes.len() {
            return; // Nobody of that number ever joined.
        }
        match news {
            NodeNews::Joined => {}
            NodeNews::Resumed => self.state.nodes_mut().set_state(node, NodeState::Up),
            NodeNews::Draining => self.state.nodes_mut().set_state(node, NodeState::Draining),
            NodeNews::Left => self.clear_node(node, Why::Drained, out),
            NodeNews::Failed => self.clear_node(node, Why::Lost, out),
        }
        (self.state.changed.nodes, self.state.hopeless) = (true, None);
        (self.state.dirty, self.state.loose) = (true, true);
        out.push(Effect::Publish(Event::Node { node, change: news }));
    }

    fn clear_node(&mut self, node: NodeId, why: Why, out: &mut Vec<Effect>) {
        self.state.nodes_mut().set_state(node, NodeState::Down);
        let on_it = |placement: &Placement| placement.0.iter().any(|slice| slice.node == node);
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
