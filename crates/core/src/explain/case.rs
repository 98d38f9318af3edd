//! One job and what surrounds it: which reason holds, who is in front, and what would let it start.

use std::cmp::Reverse;

use super::{Ahead, Apart, Held, KindCount, NODES_TRIED_MAX, Reason, Remedy, Standing};
use crate::allocation::Mode;
use crate::cluster::{Node, NodeState, Nodes, Placement, Shortage};
use crate::ids::{JobId, JobIdx, KindId, NodeId};
use crate::job::{JobState, Need, Shape};
use crate::turns::ordered;
use crate::view::View;

/// One job and what surrounds it.
pub(super) struct Case<'a> {
    pub(super) view: &'a View,
    standing: Standing<'a>,
    pub(super) row: JobIdx,
    /// The shapes in which it makes progress.
    shapes: Vec<&'a Shape>,
    /// The jobs that go first when devices fall free, in order.
    line: Vec<JobIdx>,
}

/// A job's place in an order: priority, rank, number.
type Place = (Reverse<i32>, u64, u64, JobId);

impl<'a> Case<'a> {
    pub(super) fn new(view: &'a View, standing: Standing<'a>, row: JobIdx) -> Case<'a> {
        let spec = view.spec(row);
        let shapes = spec.usable().map(|shape| &spec.shapes[shape as usize]).collect();
        let mut case = Case { view, standing, row, shapes, line: Vec::new() };
        let waits = |other: &JobIdx| view.run(*other).is_waiting() && case.is_in_front(*other);
        let mut line: Vec<JobIdx> = view.active().filter(waits).collect();
        line.sort_by_key(|other| case.place(*other));
        case.line = line;
        case
    }

    pub(super) fn share(&self, job: JobIdx) -> f64 {
        (self.standing.share)(job)
    }

    fn place(&self, job: JobIdx) -> Place {
        let run = self.view.run(job);
        (Reverse(self.priority(job)), ordered(run.rank.0), ordered(run.rank.1), run.id)
    }

    /// Whether another goes first. Where time is shared that changes by the round, so that anybody may; a job that no plan
    /// names comes behind all who have devices.
    fn is_in_front(&self, other: JobIdx) -> bool {
        let orderly = !self.standing.mode.takes_turns();
        let has = || self.share(self.row) == 0.0 && self.view.run(other).holds();
        other != self.row
            && (self.share(other) > 0.0 || has())
            && !(orderly && self.place(other) > self.place(self.row) && self.share(self.row) > 0.0)
    }

    pub(super) fn reason(&self) -> Reason {
        let run = self.view.run(self.row);
        match run.state {
            JobState::Running => Reason::Running,
            JobState::Starting => Reason::Starting,
            JobState::Suspending => Reason::Stopping,
            _ if run.held => Reason::Held,
            _ if !self.view.awaits(self.row).is_empty() => Reason::Dependency,
            _ if run.held_until.is_some() => Reason::Held,
            _ if self.standing.promised => Reason::Starting,
            _ if run.home.is_some() => Reason::Frozen,
            _ => self.reason_to_wait(),
        }
    }

    fn reason_to_wait(&self) -> Reason {
        let (nodes, fractions) = (&self.view.nodes, self.standing.mode.takes_turns());
        let has =
            |count: &dyn Fn(&Need) -> bool| self.shapes.iter().any(|shape| shape.needs.iter().all(count));
        if !has(&|need| nodes.up(need.kind) > 0) {
            Reason::Nodes
        } else if !self.fits(&nodes.emptied()) {
            Reason::Gang
        } else if self.is_priced_out() {
            Reason::Price
        } else if self.share(self.row) == 0.0 && !self.is_crowded_out() {
            Reason::Policy
        } else if self.fits(nodes) && self.standing.barred {
            Reason::Deadline
        } else if self.fits(nodes) {
            match self.standing.mode {
                Mode::Fractions | Mode::Capped => Reason::Share,
                Mode::Ordered { skip: false, .. } if !self.line.is_empty() => Reason::Priority,
                Mode::Ordered { .. } => Reason::Policy,
            }
        } else if has(&|need| nodes.free(need.kind) >= need.devices) {
            if self.fits(&nodes.without_hosts()) { Reason::Host } else { Reason::Topology }
        } else if fractions {
            Reason::Share
        } else if self.fits(&self.without_those_in_front()) {
            Reason::Priority
        } else {
            Reason::Capacity
        }
    }

    /// What would be free if all in front gave their devices back, and all behind who may be stopped for it.
    fn without_those_in_front(&self) -> Nodes {
        let mut nodes = Nodes::clone(&self.view.nodes);
        let stops = matches!(self.standing.mode, Mode::Ordered { preempt: true, .. });
        let goes = |job: &JobIdx| self.is_in_front(*job);
        let gives = |held: &&Held| held.jobs.iter().all(goes) || (stops && !held.fixed);
        self.standing.held.iter().filter(gives).for_each(|held| nodes.release(&held.placement));
        nodes
    }

    /// Whether no plan names it and too few devices are free: the last plan left it out for that, or the next one could not
    /// start it because nobody is stopped for another.
    fn is_crowded_out(&self) -> bool {
        let (passed_over, mode) = (self.standing.passed_over, self.standing.mode);
        let stops = !matches!(mode, Mode::Ordered { preempt: false, .. });
        (passed_over || !stops) && !mode.takes_turns() && !self.fits(&self.view.nodes)
    }

    /// What hosts are short of for the first of its shapes that would fit without.
    pub(super) fn short(&self) -> Option<Shortage> {
        self.shapes.iter().find_map(|shape| self.view.nodes.short_of(shape))
    }

    /// What is free close enough together for the first of its shapes that would fit if it could lie anywhere.
    pub(super) fn apart(&self) -> Option<Apart> {
        let nodes = &self.view.nodes;
        let free =
            |shape: &&&Shape| shape.needs.len() == 1 && nodes.free(shape.needs[0].kind) >= shape.devices();
        let shape = self.shapes.iter().find(free)?;
        let devices = shape.each_node().unwrap_or(shape.devices());
        Some(Apart { level: shape.level(), nodes: shape.nodes, devices, most: nodes.most_free(shape) })
    }

    /// Whether a plan that has prices left it out.
    fn is_priced_out(&self) -> bool {
        self.share(self.row) == 0.0
            && self.standing.passed_over
            && self.kinds().iter().any(|kind| kind.price.is_some_and(|price| price > 0.0))
    }

    /// Where a shape could lie on what is free there.
    fn lay(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        self.standing.placer.lay(nodes, shape)
    }

    /// Whether it could be placed on what is free there.
    fn fits(&self, nodes: &Nodes) -> bool {
        self.shapes.iter().any(|shape| self.lay(nodes, shape).is_some())
    }

    /// How many devices of this kind will do, at least.
    fn needed(&self, kind: KindId) -> Option<u32> {
        let needs = self.shapes.iter().flat_map(|shape| &shape.needs);
        needs.filter(|need| need.kind == kind).map(|need| need.devices).min()
    }

    pub(super) fn kinds(&self) -> Vec<KindCount> {
        let nodes = &self.view.nodes;
        let count = |kind: KindId| {
            let most =
                (1..=nodes.largest(kind)).rev().find(|free| nodes.with_free(kind, *free).next().is_some());
            Some(KindCount {
                kind,
                needed: self.needed(kind)?,
                free: nodes.free(kind),
                together: most.unwrap_or(0),
                up: nodes.up(kind),
                total: nodes.total(kind),
                price: self.view.prices.get(kind.index()).copied(),
            })
        };
        self.view.kinds.ids().filter_map(count).collect()
    }

    /// Who holds devices that it could use, or will have them first.
    pub(super) fn ahead(&self) -> Vec<Ahead> {
        let fractions = self.standing.mode.takes_turns();
        let mut rows: Vec<(JobIdx, u32)> = self
            .view
            .active()
            .filter(|other| self.is_in_front(*other))
            .filter_map(|other| Some((other, self.devices_of(other)?)))
            // Where time is shared, who holds devices has its turn; of those who wait nobody is in front.
            .filter(|(_, devices)| *devices > 0 || !fractions)
            .collect();
        rows.sort_by_key(|(other, _)| self.place(*other));
        rows.iter()
            .map(|(other, devices)| Ahead {
                job: self.view.run(*other).id,
                devices: *devices,
                urgent: self.is_urgent(*other),
            })
            .collect()
    }

    /// Whether another is in front by its priority.
    fn is_urgent(&self, other: JobIdx) -> bool {
        self.priority(other) > self.priority(self.row)
    }

    /// What counts before its rank; nothing where priorities do not.
    fn priority(&self, job: JobIdx) -> i32 {
        if self.standing.mode.has_classes() { self.view.spec(job).priority } else { 0 }
    }

    /// Devices in another's hands that it could use; none where the other has no use for such.
    fn devices_of(&self, other: JobIdx) -> Option<u32> {
        let (run, spec) = (self.view.run(other), self.view.spec(other));
        let usable = |need: &&Need| self.needed(need.kind).is_some();
        let wants =
            spec.usable().flat_map(|shape| &spec.shapes[shape as usize].needs).any(|need| usable(&need));
        let held = spec.shapes[run.shape as usize].needs.iter().filter(usable).map(|need| need.devices).sum();
        // In a strict queue whoever waits in front holds up all others.
        (wants || !self.skips() && run.is_waiting()).then_some(if run.holds() { held } else { 0 })
    }

    pub(super) fn remedies(&self) -> Vec<Remedy> {
        let nodes = &self.view.nodes;
        let remedies = self.nodes_back();
        let Some(left) = self.after_line(nodes, self.skips()) else { return remedies };
        let starts = |shape: &Shape| self.lay(&left, shape).is_some();
        let others = self.other_kinds(&starts);
        self.fewer(&starts).into_iter().chain(others).chain(remedies).collect()
    }

    /// Whether who fits goes past who does not.
    fn skips(&self) -> bool {
        !matches!(self.standing.mode, Mode::Ordered { skip: false, .. })
    }

    /// What is left once those in line took what they can of it; nothing where one that finds no place holds up
    /// the others.
    fn after_line(&self, nodes: &Nodes, skip: bool) -> Option<Nodes> {
        let (mut left, mut closed) = (nodes.clone(), Vec::new());
        for other in &self.line {
            let shapes = &self.view.spec(*other).shapes;
            // What did not fit for one fits for no later one like it: less is left.
            if closed.contains(&shapes) {
                continue;
            }
            match shapes.iter().find_map(|shape| self.lay(&left, shape)) {
                Some(placement) => left.promise(&placement),
                None if skip => closed.push(shapes),
                None => return None,
            }
        }
        Some(left)
    }

    /// The most devices of each of its kinds that would do now, where it asks for more.
    fn fewer(&self, starts: &dyn Fn(&Shape) -> bool) -> Vec<Remedy> {
        let most = |kind: KindId| {
            let shape = self.smallest(|shape| shape.needs[0].kind == kind)?;
            let starts = |devices: &u32| {
                starts(&Shape { needs: vec![Need { kind, devices: *devices }], ..shape.clone() })
            };
            let devices = (1..shape.needs[0].devices).rev().find(starts)?;
            Some(Remedy::Fewer { kind, devices })
        };
        self.view.kinds.ids().filter_map(most).collect()
    }

    /// The kinds that it may not use and on which it would start.
    fn other_kinds(&self, starts: &dyn Fn(&Shape) -> bool) -> Vec<Remedy> {
        let Some(shape) = self.smallest(|_| true) else { return Vec::new() };
        let starts = |kind: &KindId| {
            let needs = vec![Need { kind: *kind, ..shape.needs[0] }];
            self.needed(*kind).is_none() && starts(&Shape { needs, ..shape.clone() })
        };
        let remedy = |kind| Remedy::Kind { kind, free: self.view.nodes.free(kind) };
        self.view.kinds.ids().filter(starts).map(remedy).collect()
    }

    /// The smallest of its shapes of one kind that will do.
    fn smallest(&self, will_do: impl Fn(&Shape) -> bool) -> Option<&'a Shape> {
        let shapes = self.shapes.iter().copied().filter(|shape| shape.needs.len() == 1 && will_do(shape));
        shapes.min_by_key(|shape| shape.devices())
    }

    /// The nodes with which it would start, if they took jobs again or had all their devices.
    fn nodes_back(&self) -> Vec<Remedy> {
        let useful =
            |(_, node): &(NodeId, &Node)| node.spec.pools.iter().any(|pool| self.needed(pool.kind).is_some());
        let remedy = |(node, is): (NodeId, &Node)| match is.state {
            NodeState::Draining => Some(Remedy::Resume { node }),
            NodeState::Up if is.bad != 0 => Some(Remedy::Repair { node }),
            _ => None,
        };
        let tried = self.view.nodes.iter().filter(useful).filter_map(remedy).take(NODES_TRIED_MAX);
        tried.filter(|remedy| self.starts_after(*remedy)).collect()
    }

    fn starts_after(&self, remedy: Remedy) -> bool {
        let mut nodes = Nodes::clone(&self.view.nodes);
        match remedy {
            Remedy::Resume { node } => nodes.set_state(node, NodeState::Up),
            Remedy::Repair { node } => nodes.set_bad(node, 0),
            Remedy::Fewer { .. } | Remedy::Kind { .. } => {}
        }
        // Who may stop others could take the new devices together with theirs, so that nobody may be left in line.
        let stops = matches!(self.standing.mode, Mode::Ordered { preempt: true, .. });
        self.after_line(&nodes, self.skips() && !stops).is_some_and(|left| self.fits(&left))
    }
}
