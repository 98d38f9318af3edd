//! Nodes lose their connection and their name because an admin says so. What ran on such a node is lost as if the node
//! had fallen silent: its agent stops its jobs when the lease lapses, and only then may they start elsewhere. So a node
//! that is removed is forgotten once no job holds its devices.

use yard_core::cluster::NodeState;
use yard_core::gang::ToGang;
use yard_core::ids::{AgentId, NodeId};
use yard_core::message::{Input, NodeChange};
use yard_core::units::Time;

use super::Driver;
use crate::handle::{Refusal, Reply, Who};

impl Driver {
    pub(super) fn take_sever(&mut self, node: &str, reply: Reply<()>) {
        if let Some(agent) = self.agents.named(node) {
            self.sever(agent);
        }
        let _ = reply.send(Ok(()));
    }

    /// Ends a node's connection, if it has one.
    fn sever(&mut self, agent: AgentId) {
        self.agents.disconnect(agent);
        self.logs.lost(agent, "its node cannot be reached");
        self.settle(agent);
    }

    pub(super) fn take_remove(&mut self, who: &Who, node: &str, reply: Reply<()>) {
        if !who.admin {
            return drop(reply.send(Err(Refusal::Forbidden("only admins remove nodes".into()))));
        }
        let Some(agent) = self.agents.named(node) else {
            let message = format!("there is no node {node:?}; `yard nodes` lists them");
            return drop(reply.send(Err(Refusal::NotFound(message))));
        };
        self.staged.remove(agent, reply);
    }

    /// A node is to be forgotten, as soon as it can be.
    pub(super) fn removed(&mut self, now: Time, agent: AgentId, reply: Reply<()>) {
        self.agents.get_mut(agent).removing = true;
        self.sever(agent);
        self.finish_removal(now, agent);
        let _ = reply.send(Ok(()));
    }

    /// Forgets a node that is to be removed, if nobody holds its devices any more.
    pub(super) fn finish_removal(&mut self, now: Time, id: AgentId) {
        let agent = self.agents.get(id);
        let own = |node: NodeId| agent.nodes.contains(&node) || agent.retiring.contains(&node);
        let held = || self.engine.leases().flat_map(|held| held.placement.0).any(|slice| own(slice.node));
        if agent.gone || !agent.removing || held() {
            return;
        }
        let (name, down) = (agent.name.clone(), agent.state == NodeState::Down);
        let nodes: Vec<NodeId> = agent.nodes.iter().copied().filter(|_| !down).collect();
        tracing::info!(node = %name, "a node was removed");
        nodes.into_iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Leave(node))));
        // What lies frozen there is lost with it.
        self.gangs_step(now, ToGang::AgentLost { agent: id });
        self.agents.forget(id);
        self.changed_agents.remove(&id);
        self.staged.forget_node(name.clone());
        self.forgotten.push(name);
    }
}
