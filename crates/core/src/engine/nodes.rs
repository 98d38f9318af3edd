//! Nodes join, drain, come back, leave and fail; and devices go out of service and come back.

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use crate::cluster::{Level, Mask, NodeSpec, NodeState, Placement, Slice};
use crate::ids::{JobIdx, NodeId};
use crate::job::{Need, Shape};
use crate::leases::LeaseState;
use crate::message::{Effect, Event, NodeChange, NodeNews, Why};
use crate::reclaim::{self, Servers};

/// How many jobs are stopped rather than one that may not be.
const BOUND: f64 = 1000.0;

/// The part of a stop that a job costs which goes on in a smaller size on nodes that are not lent: those go first.
const SCALED_IN: f64 = 1e-3;

impl Engine {
    pub(super) fn node(&mut self, change: NodeChange, out: &mut Vec<Effect>) {
        if !self.means_something(&change) {
            return;
        }
        let (node, news) = match change {
            NodeChange::Lent { among, nodes } => return self.lend(&among, nodes as usize, out),
            NodeChange::Join(spec) => (self.add_node(spec), NodeNews::Joined),
            NodeChange::Drain(node) => (node, NodeNews::Draining),
            NodeChange::Resume(node) => (node, NodeNews::Resumed),
            NodeChange::Leave(node) => (node, NodeNews::Left),
            NodeChange::Fail(node) => (node, NodeNews::Failed),
            NodeChange::Health { node, bad } => {
                self.set_health(node, bad, out);
                (node, NodeNews::Health)
            }
            NodeChange::Counted { node, host, parts } => {
                self.state.nodes_mut().set_host(node, host, &parts);
                (node, NodeNews::Counted)
            }
            NodeChange::Moved { node, domains } => {
                self.state.nodes_mut().set_domains(node, domains);
                (node, NodeNews::Moved)
            }
        };
        match news {
            NodeNews::Joined | NodeNews::Health | NodeNews::Counted | NodeNews::Moved => {}
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
            NodeChange::Join(spec) => {
                spec.is_sound() && spec.pools.iter().all(|pool| self.state.kinds.get(pool.kind).is_some())
            }
            NodeChange::Drain(node)
            | NodeChange::Resume(node)
            | NodeChange::Leave(node)
            | NodeChange::Fail(node) => node.index() < nodes.len(),
            NodeChange::Lent { among, .. } => among.iter().all(|node| node.index() < nodes.len()),
            NodeChange::Counted { node, host, parts } => {
                let known = (node.index() < nodes.len()).then(|| &nodes.get(*node).spec);
                known.is_some_and(|spec| {
                    let same = spec.host == *host
                        && spec.pools.iter().map(|pool| pool.part).eq(parts.iter().copied());
                    spec.pools.len() == parts.len() && !same
                })
            }
            NodeChange::Moved { node, domains } => {
                node.index() < nodes.len() && nodes.get(*node).spec.domains != *domains
            }
            NodeChange::Health { node, bad } => {
                node.index() < nodes.len() && nodes.get(*node).bad != bad & nodes.get(*node).all()
            }
        }
    }

    /// So many of these nodes are there from now on. One that drains is neither.
    fn lend(&mut self, among: &[NodeId], wanted: usize, out: &mut Vec<Effect>) {
        let among: BTreeSet<NodeId> = among.iter().copied().collect();
        let nodes = &self.state.nodes;
        let in_state = |state| -> Vec<NodeId> {
            among.iter().copied().filter(|node| nodes.get(*node).state == state).collect()
        };
        let (there, gone) = (in_state(NodeState::Up), in_state(NodeState::Down));
        let back = gone.into_iter().take(wanted.saturating_sub(there.len())).map(NodeChange::Resume);
        let leaving = self.cheapest(&there, there.len().saturating_sub(wanted));
        let changes: Vec<_> = back.chain(leaving.into_iter().map(NodeChange::Leave)).collect();
        changes.into_iter().for_each(|change| self.node(change, out));
    }

    /// So many of these nodes, those whose jobs cost least to stop.
    pub fn cheapest(&self, among: &[NodeId], count: usize) -> Vec<NodeId> {
        let mut rows: BTreeMap<JobIdx, usize> = BTreeMap::new();
        let mut servers = Servers { jobs: vec![Vec::new(); among.len()], weights: Vec::new() };
        let held = self.state.leases.iter().filter(|(_, lease)| lease.state != LeaseState::Ending);
        for (_, lease) in held {
            let on = |node: &NodeId| lease.placement.0.iter().any(|slice| slice.node == *node);
            for job in &lease.jobs {
                let row = *rows.entry(*job).or_insert(servers.weights.len());
                if row == servers.weights.len() {
                    servers.weights.push(self.stop_weight(*job, &lease.placement, among));
                }
                let hit = among.iter().zip(&mut servers.jobs).filter(|(node, _)| on(node));
                hit.for_each(|(_, jobs)| jobs.push(row));
            }
        }
        reclaim::cheapest(&servers, count).into_iter().map(|at| among[at]).collect()
    }

    /// What it costs to stop a job: as much as any other, and a little for what it loses. One that may not be stopped, or
    /// was promised a time, is worth many; one that can do with less, hardly anything.
    fn stop_weight(&self, job: JobIdx, placement: &Placement, lent: &[NodeId]) -> f64 {
        let (spec, run) = (&self.state.specs[job.index()], self.state.run(job));
        let lost = spec.costs.restart().secs() * f64::from(run.devices);
        let bound = !spec.pausable || run.stuck || run.promise.is_some();
        let weight = 1.0 + 1e-3 * lost / (1.0 + lost);
        match bound {
            true => BOUND,
            false if self.scales_in(job, placement, lent) => SCALED_IN * weight,
            false => weight,
        }
    }

    /// Whether one of a job's sizes fits into those of its devices that are not lent.
    fn scales_in(&self, job: JobIdx, placement: &Placement, lent: &[NodeId]) -> bool {
        let own: Vec<&Slice> = placement.0.iter().filter(|slice| !lent.contains(&slice.node)).collect();
        let spec = &self.state.specs[job.index()];
        let of_kind = |slice: &Slice, need: &Need| {
            (slice.mask & self.state.nodes.get(slice.node).of_kind(need.kind)).count_ones()
        };
        let enough = |shape: &Shape, need: &Need| {
            let devices = own.iter().map(|slice| of_kind(slice, need)).filter(|devices| *devices > 0);
            let most = if shape.level() == Level::Node { devices.max() } else { Some(devices.sum()) };
            most.is_some_and(|most| most >= need.devices)
        };
        let mut shapes = spec.usable().map(|shape| &spec.shapes[shape as usize]);
        shapes.any(|shape| shape.needs.iter().all(|need| enough(shape, need)))
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
