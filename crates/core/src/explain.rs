//! Why a job does not run: one reason, the numbers behind it, who is in front, and what would let it start. All of
//! it follows from what is free now, who waits in front, and the placer that will be asked; nothing is guessed.

use serde::{Deserialize, Serialize};

use crate::allocation::Mode;
use crate::cluster::{Node, NodeState, Nodes};
use crate::engine::Engine;
use crate::ids::{JobId, JobIdx, KindId, NodeId};
use crate::job::{JobState, Need, Shape};
use crate::policy::Placer;
use crate::turns::ordered;
use crate::units::Time;
use crate::view::View;

/// Why a job is where it is. The names are those of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// It works.
    Running,
    /// It is held back until a time.
    Held,
    /// Jobs that it comes after have not succeeded yet.
    Dependency,
    /// It has devices, or was promised some that others are giving back.
    Starting,
    /// It was told to stop and still holds its devices.
    Stopping,
    /// No kind that it may use has enough free devices, and nobody in front of it has them.
    Capacity,
    /// It is larger than all that is up, or there are enough free devices that do not lie together.
    Gang,
    /// Devices that it could use are held by jobs in front of it, or go to those first.
    Priority,
    /// Time is shared, and it is another's turn.
    Share,
    /// No node with devices that it may use is up.
    Nodes,
    /// It lies frozen, and others have the devices on which alone it can go on.
    Frozen,
    /// No plan names it yet, or the next round will start it.
    Policy,
}

/// An explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The job.
    pub job: JobId,
    /// The reason that counts most.
    pub reason: Reason,
    /// Until when it is held back, where that is known.
    pub until: Option<Time>,
    /// The jobs that it waits for to succeed.
    pub awaits: Vec<JobId>,
    /// The part of the time that it should have devices; 0: no plan names it.
    pub share: f64,
    /// The kinds that it may use.
    pub kinds: Vec<KindCount>,
    /// Who is in front of it and holds or wants devices that it could use, first `AHEAD_MAX` in order.
    pub ahead: Vec<Ahead>,
    /// How many those are in all.
    pub n_ahead: usize,
    /// What would let it start now, each by itself.
    pub remedies: Vec<Remedy>,
}

/// Most jobs that an explanation names.
pub const AHEAD_MAX: usize = 20;

/// Most nodes that an explanation tries to bring back: each is a round on paper.
const NODES_TRIED_MAX: usize = 8;

/// Devices of a kind that a job may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindCount {
    /// The kind.
    pub kind: KindId,
    /// The fewest of them that will do.
    pub needed: u32,
    /// How many are free.
    pub free: u32,
    /// How many are free on that node that has most.
    pub together: u32,
    /// How many are in service, free or not.
    pub up: u32,
    /// How many there are, in whatever state.
    pub total: u32,
    /// What one costs in the allocation in force, where that has prices.
    pub price: Option<f64>,
}

/// A job in front of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// The job.
    pub job: JobId,
    /// Devices that it holds and the other could use; none while it waits.
    pub devices: u32,
}

/// What would let a job start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// So many devices of this kind would start now.
    Fewer {
        /// The kind.
        kind: KindId,
        /// How many.
        devices: u32,
    },
    /// As many devices of this kind, which it may not use, would start now.
    Kind {
        /// The kind.
        kind: KindId,
        /// How many are free.
        free: u32,
    },
    /// This node takes nothing new; if it did, the job would start.
    Resume {
        /// The node.
        node: NodeId,
    },
    /// This node has devices out of service; with them the job would start.
    Repair {
        /// The node.
        node: NodeId,
    },
}

/// What the allocation in force makes of the jobs of a view, and who will place them.
pub struct Standing<'a> {
    /// How shares become who runs.
    pub mode: Mode,
    /// The part of the time that a job should have devices.
    pub share: &'a dyn Fn(JobIdx) -> f64,
    /// Whether devices are promised to the job that is asked about.
    pub promised: bool,
    /// Who chooses devices.
    pub placer: &'a dyn Placer,
}

impl Engine {
    /// Why a living job does not run, or that it does.
    pub fn explain(&self, job: JobId) -> Option<Explained> {
        let (book, row) = (&self.state.book, *self.state.rows.get(&job)?);
        let entries = |row| book.shares_of(row).iter().map(|share| book.entry(*share));
        let planned = |row| entries(row).filter(|entry| !entry.is_newcomer());
        let share = |row| planned(row).fold(0.0, |sum, entry| sum + entry.fraction);
        let promised = entries(row).any(|entry| entry.lease.is_some());
        explain(
            &self.view(),
            Standing { mode: book.mode, share: &share, promised, placer: self.placer() },
            job,
        )
    }
}

/// Why a job of a view does not run, or that it does; nothing where it is over.
pub fn explain(view: &View, standing: Standing<'_>, job: JobId) -> Option<Explained> {
    let row = (0..).zip(&*view.runs).find(|(_, run)| run.id == job && !run.state.is_final())?.0;
    let case = Case::new(view, standing, JobIdx(row));
    let reason = case.reason();
    let (mut ahead, remedies) = match reason {
        Reason::Running | Reason::Starting | Reason::Stopping | Reason::Held | Reason::Dependency => {
            Default::default()
        }
        Reason::Policy | Reason::Frozen => (case.ahead(), Vec::new()),
        _ => (case.ahead(), case.remedies()),
    };
    let n_ahead = ahead.len();
    ahead.truncate(AHEAD_MAX);
    let until = view.run(case.row).held_until.filter(|time| *time < Time::NEVER);
    let (awaits, share) = (view.awaits(case.row), case.share(case.row));
    Some(Explained { job, reason, until, awaits, share, kinds: case.kinds(), ahead, n_ahead, remedies })
}

/// One job and what surrounds it.
struct Case<'a> {
    view: &'a View,
    standing: Standing<'a>,
    row: JobIdx,
    /// The shapes in which it makes progress.
    shapes: Vec<&'a Shape>,
    /// The jobs that go first when devices fall free, in order.
    line: Vec<JobIdx>,
}

/// A job's place in an order.
type Place = (u64, u64, JobId);

impl<'a> Case<'a> {
    fn new(view: &'a View, standing: Standing<'a>, row: JobIdx) -> Case<'a> {
        let spec = view.spec(row);
        let shapes = spec.usable().map(|shape| &spec.shapes[shape as usize]).collect();
        let mut case = Case { view, standing, row, shapes, line: Vec::new() };
        let waits = |other: &JobIdx| view.run(*other).is_waiting() && case.is_in_front(*other);
        let mut line: Vec<JobIdx> = view.active().filter(waits).collect();
        line.sort_by_key(|other| case.place(*other));
        case.line = line;
        case
    }

    fn share(&self, job: JobIdx) -> f64 {
        (self.standing.share)(job)
    }

    fn place(&self, job: JobIdx) -> Place {
        let run = self.view.run(job);
        (ordered(run.rank.0), ordered(run.rank.1), run.id)
    }

    /// Whether another goes first. Where time is shared that changes by the round, so that anybody may.
    fn is_in_front(&self, other: JobIdx) -> bool {
        let orderly = self.standing.mode != Mode::Fractions;
        other != self.row
            && self.share(other) > 0.0
            && !(orderly && self.place(other) > self.place(self.row) && self.share(self.row) > 0.0)
    }

    fn reason(&self) -> Reason {
        let run = self.view.run(self.row);
        match run.state {
            JobState::Running => Reason::Running,
            JobState::Starting => Reason::Starting,
            JobState::Suspending => Reason::Stopping,
            _ if !self.view.awaits(self.row).is_empty() => Reason::Dependency,
            _ if run.held_until.is_some() => Reason::Held,
            _ if self.standing.promised => Reason::Starting,
            _ if run.home.is_some() => Reason::Frozen,
            _ => self.reason_to_wait(),
        }
    }

    fn reason_to_wait(&self) -> Reason {
        let (nodes, fractions) = (&self.view.nodes, self.standing.mode == Mode::Fractions);
        let has =
            |count: &dyn Fn(&Need) -> bool| self.shapes.iter().any(|shape| shape.needs.iter().all(count));
        if !has(&|need| nodes.up(need.kind) > 0) {
            Reason::Nodes
        } else if !self.fits(&nodes.emptied()) {
            Reason::Gang
        } else if self.share(self.row) == 0.0 {
            Reason::Policy
        } else if self.fits(nodes) {
            match self.standing.mode {
                Mode::Fractions => Reason::Share,
                Mode::Ordered { skip: false, .. } if !self.line.is_empty() => Reason::Priority,
                Mode::Ordered { .. } => Reason::Policy,
            }
        } else if has(&|need| nodes.free(need.kind) >= need.devices) {
            Reason::Gang
        } else if fractions {
            Reason::Share
        } else if self.ahead().is_empty() {
            Reason::Capacity
        } else {
            Reason::Priority
        }
    }

    /// Whether it could be placed on what is free there.
    fn fits(&self, nodes: &Nodes) -> bool {
        self.shapes.iter().any(|shape| self.standing.placer.place(nodes, shape).is_some())
    }

    /// How many devices of this kind will do, at least.
    fn needed(&self, kind: KindId) -> Option<u32> {
        let needs = self.shapes.iter().flat_map(|shape| &shape.needs);
        needs.filter(|need| need.kind == kind).map(|need| need.devices).min()
    }

    fn kinds(&self) -> Vec<KindCount> {
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
    fn ahead(&self) -> Vec<Ahead> {
        let fractions = self.standing.mode == Mode::Fractions;
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
            .map(|(other, devices)| Ahead { job: self.view.run(*other).id, devices: *devices })
            .collect()
    }

    /// Devices in another's hands that it could use; none where the other has no use for such.
    fn devices_of(&self, other: JobIdx) -> Option<u32> {
        let (run, spec) = (self.view.run(other), self.view.spec(other));
        let usable = |need: &&Need| self.needed(need.kind).is_some();
        let wants =
            spec.usable().flat_map(|shape| &spec.shapes[shape as usize].needs).any(|need| usable(&need));
        let held = spec.shapes[run.shape as usize].needs.iter().filter(usable).map(|need| need.devices).sum();
        wants.then_some(if run.holds() { held } else { 0 })
    }

    fn remedies(&self) -> Vec<Remedy> {
        let nodes = &self.view.nodes;
        let remedies = self.nodes_back();
        let Some(left) = self.after_line(nodes, self.skips()) else { return remedies };
        let starts = |shape: &Shape| self.standing.placer.place(&left, shape).is_some();
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
            match shapes.iter().find_map(|shape| self.standing.placer.place(&left, shape)) {
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
        let useful = |(_, node): &(NodeId, &Node)| self.needed(node.spec.kind).is_some();
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
