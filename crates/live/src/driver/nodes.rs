//! Hosts offer themselves, are there or not, and go. The backend says so; what the engine may use of them is settled here.

use std::collections::BTreeSet;

use yard_core::cluster::{KINDS_MAX, NodeState, Slice};
use yard_core::ids::NodeId;
use yard_core::message::{Input, NodeChange};
use yard_core::units::Time;

use super::Driver;
use super::hosts::{Host, HostStay};
use super::staging::StagedAfter;
use crate::exec::{Directive, HostAbilities, HostId, HostOffer, HostReach};
use crate::handle::Refusal;

impl Driver {
    /// A host wants to be used: the answer leaves once it is on record.
    pub(super) fn offered(&mut self, now: Time, ticket: u64, offer: HostOffer) {
        if let Err(refusal) = self.may_join(&offer) {
            return self.direct(now, Directive::Decline { ticket, refusal });
        }
        let host = match self.hosts.named(&offer.name) {
            Some(host) => {
                self.rejoin(host, &offer);
                host
            }
            None => {
                let nodes = self.join_machine(&offer);
                self.hosts.add(Host::of(&offer, nodes))
            }
        };
        self.hosts.get_mut(host).audience = Some(offer.audience);
        self.tell_health(host);
        self.staged.keep_node(self.hosts.get(host).row());
        self.staged.keep_after(StagedAfter::Admitted(host, ticket, offer.abilities));
    }

    fn may_join(&self, offer: &HostOffer) -> Result<(), Refusal> {
        let name = &offer.name;
        if self.hosts.named(name).is_some_and(|host| self.hosts.get(host).stay == HostStay::Removing) {
            return Err(Refusal::Conflict(format!(
                "node {name} is being removed; join again once `yard nodes` no longer lists it"
            )));
        }
        let wrong = |message| Refusal::Invalid { field: None, message };
        self.check_kinds(offer).and_then(|()| self.check_resources(offer)).map_err(wrong)
    }

    /// Refuses kinds that the engine would not take, counting those that are about to be known.
    fn check_kinds(&self, offer: &HostOffer) -> Result<(), String> {
        let kinds = self.kinds();
        let new = offer.groups.iter().filter(|group| kinds.find(&group.kind).is_none()).count();
        if new == 0 || kinds.len() + new <= KINDS_MAX {
            return Ok(());
        }
        let (name, known) = (&offer.name, kinds.len());
        Err(format!(
            "node {name} has {new} new kinds of devices, and {known} of at most {KINDS_MAX} are known already; \
             use the names of kinds in `yard nodes`"
        ))
    }

    fn rejoin(&mut self, host: HostId, offer: &HostOffer) {
        if !self.hosts.get(host).offers(&offer.groups) || self.may_become_one(host) {
            let old = self.hosts.retire_all(host);
            old.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Leave(*node))));
            let nodes = self.join_machine(offer);
            // Nothing new where jobs of the former devices still run.
            nodes.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Drain(*node))));
            let changed = self.hosts.get_mut(host);
            changed.become_nodes(nodes, &offer.groups);
            changed.state = NodeState::Draining;
            self.hosts.index(host);
        }
        let known = self.hosts.get_mut(host);
        (known.address, known.groups) = (offer.address.clone(), offer.groups.clone());
        let nodes = known.nodes.clone();
        self.tell_resources(&nodes, offer);
        self.tell_domains(&nodes, offer);
    }

    /// Whether a host that joined when nodes had one kind can be one node from now on: nothing runs there.
    fn may_become_one(&self, host: HostId) -> bool {
        let nodes = &self.hosts.get(host).nodes;
        let own = |slice: &Slice| nodes.contains(&slice.node);
        nodes.len() > 1 && !self.engine.leases().any(|held| held.placement.0.iter().any(own))
    }

    /// Tells the engine which devices of a host are out of service.
    fn tell_health(&mut self, host: HostId) {
        let host = self.hosts.get(host);
        for (node, bad) in host.bad() {
            self.staged.keep(Input::Node(NodeChange::Health { node, bad }));
        }
    }

    /// A host is on record: it may be used from now on.
    pub(super) fn admitted(&mut self, now: Time, host: HostId, ticket: u64, abilities: HostAbilities) {
        self.logs.lost(host, "its node reconnected; try again");
        self.hosts.admit(host, abilities);
        self.settle(host);
        self.direct(now, Directive::Admit { ticket, host });
    }

    /// A host can be reached, or cannot.
    pub(super) fn reached(&mut self, host: HostId, reach: HostReach) {
        match reach {
            HostReach::Away => {
                self.hosts.leave(host);
                self.logs.lost(host, "its node cannot be reached");
            }
            HostReach::Here | HostReach::Silent(_) => self.hosts.get_mut(host).reach = reach,
        }
        self.settle(host);
    }

    pub(super) fn health(&mut self, id: HostId, group: u32, device: u32, problem: Option<String>) {
        let host = self.hosts.get_mut(id);
        let before = host.bad();
        let Some(own) = host.groups.get_mut(group as usize) else { return };
        let Some(known) = own.devices.get_mut(device as usize) else { return };
        if known.problem == problem {
            return;
        }
        known.problem = problem;
        let news = host.bad().into_iter().filter(|now| !before.contains(now));
        for (node, bad) in news.collect::<Vec<_>>() {
            self.staged.keep(Input::Node(NodeChange::Health { node, bad }));
        }
        let row = self.hosts.get(id).row();
        self.staged.keep_node(row);
        self.changed_hosts.insert(id);
    }

    /// Has the engine ask everything that runs on a host's nodes to stop.
    pub(super) fn evict(&mut self, id: HostId) {
        let host = self.hosts.get_mut(id);
        host.state = NodeState::Down;
        for node in host.nodes.clone() {
            self.staged.keep(Input::Node(NodeChange::Leave(node)));
        }
    }

    /// Has the engine use a host's nodes if it is there and nothing speaks against it.
    pub(super) fn settle(&mut self, id: HostId) {
        self.changed_hosts.insert(id);
        let host = self.hosts.get(id);
        let leaves = host.stay == HostStay::Leaves;
        let free = host.drain.is_none() && !leaves && host.retiring.is_empty();
        let wanted = if host.is_there() && free { NodeState::Up } else { NodeState::Draining };
        // A node that is down stays so until its host is back.
        let stays_down = host.state == NodeState::Down && (leaves || !host.is_there());
        if host.state == wanted || stays_down || host.is_gone() {
            return;
        }
        let nodes = host.nodes.clone();
        self.hosts.get_mut(id).state = wanted;
        for node in nodes {
            let change =
                if wanted == NodeState::Up { NodeChange::Resume(node) } else { NodeChange::Drain(node) };
            self.staged.keep(Input::Node(change));
        }
    }

    /// Looks after hosts that go, and those that changed and are rid of what they were.
    pub(super) fn look_for_gone(&mut self, now: Time) {
        for id in self.hosts.ids() {
            self.finish_removal(now, id);
            self.retire(id);
        }
    }

    /// Whatever ran on a host does not any more.
    pub(super) fn lost(&mut self, id: HostId) {
        self.hosts.leave(id);
        let host = self.hosts.get_mut(id);
        host.state = NodeState::Down;
        let nodes: Vec<_> = host.nodes.iter().chain(&host.retiring).copied().collect();
        host.retiring.clear();
        nodes.iter().for_each(|node| self.staged.keep(Input::Node(NodeChange::Fail(*node))));
        self.logs.lost(id, "its node cannot be reached");
        self.changed_hosts.insert(id);
    }

    /// Nodes that a host was are done with once they have left and nobody holds their devices.
    fn retire(&mut self, id: HostId) {
        if self.hosts.get(id).retiring.is_empty() {
            return;
        }
        let placements = self.engine.leases().flat_map(|held| held.placement.0);
        let held: BTreeSet<NodeId> = placements.map(|slice| slice.node).collect();
        let known = self.engine.nodes();
        let left = |node: NodeId| node.index() < known.len() && known.get(node).state == NodeState::Down;
        let host = self.hosts.get_mut(id);
        host.retiring.retain(|node| held.contains(node) || !left(*node));
        if host.retiring.is_empty() {
            self.settle(id);
        }
    }
}
