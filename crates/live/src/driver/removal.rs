//! Nodes lose their connection and their name because an admin says so. What ran on such a node is lost as if the node
//! had fallen silent: they may start elsewhere only once they cannot run there any more. So a node that is removed is
//! forgotten once no job holds its devices.

use yard_core::cluster::NodeState;
use yard_core::ids::NodeId;
use yard_core::message::{Input, NodeChange};
use yard_core::units::Time;

use super::Driver;
use super::hosts::HostStay;
use crate::exec::{Directive, HostId};
use crate::handle::{Refusal, Reply, Who};

impl Driver {
    pub(super) fn take_sever(&mut self, now: Time, node: &str, reply: Reply<()>) {
        if let Some(host) = self.hosts.named(node) {
            self.direct(now, Directive::Sever { host });
        }
        let _ = reply.send(Ok(()));
    }

    pub(super) fn take_remove(&mut self, who: &Who, node: &str, reply: Reply<()>) {
        if !who.admin {
            return drop(reply.send(Err(Refusal::Forbidden("only admins can remove nodes".into()))));
        }
        let Some(host) = self.hosts.named(node) else {
            let message = format!("there is no node {node:?}; to list the nodes: yard nodes");
            return drop(reply.send(Err(Refusal::NotFound(message))));
        };
        self.staged.remove(host, reply);
    }

    /// A node is to be forgotten, as soon as it can be.
    pub(super) fn removed(&mut self, now: Time, host: HostId, reply: Reply<()>) {
        self.hosts.get_mut(host).stay = HostStay::Removing;
        self.direct(now, Directive::Remove { host });
        self.finish_removal(now, host);
        let _ = reply.send(Ok(()));
    }

    /// Forgets a node that is to be removed, if nobody holds its devices any more.
    pub(super) fn finish_removal(&mut self, now: Time, id: HostId) {
        let host = self.hosts.get(id);
        let own = |node: NodeId| host.nodes.contains(&node) || host.retiring.contains(&node);
        let held = || self.engine.leases().flat_map(|held| held.placement.0).any(|slice| own(slice.node));
        if host.stay != HostStay::Removing || held() {
            return;
        }
        let (name, down) = (host.name.clone(), host.state == NodeState::Down);
        let nodes: Vec<NodeId> = host.nodes.iter().copied().filter(|_| !down).collect();
        tracing::info!(node = %name, "a node was removed");
        nodes.into_iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Leave(node))));
        self.direct(now, Directive::Removed { host: id });
        self.hosts.forget(id);
        self.changed_hosts.remove(&id);
        self.staged.forget_node(name.clone());
        self.forgotten.push(name);
    }
}
