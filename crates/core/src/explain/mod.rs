//! Why a job does not run: one reason, the numbers behind it, who is in front, and what would let it start. All of
//! it follows from what is free now, who waits in front, and the placer that will be asked; nothing is guessed.

mod case;
mod ways;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use self::case::Case;
pub use self::ways::Way;
use crate::allocation::Mode;
use crate::cluster::{Level, Placement, Shortage};
use crate::engine::Engine;
use crate::ids::{JobId, JobIdx, KindId, LeaseId, NodeId};
use crate::leases::{Lease, LeaseState};
use crate::policy::Placer;
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
    /// It is larger than all that is up.
    Gang,
    /// Enough devices are free, and they do not lie together as it must have them.
    Topology,
    /// Enough devices are free, and their hosts are short of something that it needs with them.
    Host,
    /// Devices that it could use are held by jobs in front of it, or go to those first.
    Priority,
    /// Time is shared, and it is another's turn.
    Share,
    /// No node with devices that it may use is up.
    Nodes,
    /// Devices that it could use are free and kept for jobs with deadlines, which were promised them.
    Deadline,
    /// The devices that it could use do more for others: at their prices the plan gives it none.
    Price,
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
    /// What hosts are short of, where that is the reason.
    pub short: Option<Shortage>,
    /// How close together it must lie and what is free there, where that is the reason.
    pub apart: Option<Apart>,
    /// The part of the time that it should have devices; 0: no plan names it.
    pub share: f64,
    /// The kinds that it may use.
    pub kinds: Vec<KindCount>,
    /// Who is in front of it and holds or wants devices that it could use, first `AHEAD_MAX` in order.
    pub ahead: Vec<Ahead>,
    /// How many those are in all.
    pub n_ahead: usize,
    /// How many of those are in front by their priority.
    pub n_urgent: usize,
    /// What would let it start now, each by itself.
    pub remedies: Vec<Remedy>,
    /// The ways in which it may run, the fastest first.
    pub ways: Vec<Way>,
}

/// A gang for which enough is free, and nowhere close enough together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apart {
    /// In one domain of this level it must lie, or each of its segments.
    pub level: Level,
    /// So many nodes it must have, where it names a number, and so many devices on each, or in all.
    pub nodes: Option<u32>,
    /// Devices.
    pub devices: u32,
    /// The most that are free so: nodes where it names a number of them, else devices.
    pub most: u32,
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
    /// Whether it has a larger priority.
    pub urgent: bool,
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

/// Devices in the hands of a group.
pub struct Held {
    /// The jobs.
    pub jobs: SmallVec<[JobIdx; 1]>,
    /// The devices.
    pub placement: Placement,
    /// Whether they may not be taken from it for another.
    pub fixed: bool,
}

/// What the allocation in force makes of the jobs of a view, and who will place them.
pub struct Standing<'a> {
    /// How shares become who runs.
    pub mode: Mode,
    /// The part of the time that a job should have devices.
    pub share: &'a dyn Fn(JobIdx) -> f64,
    /// Whether devices are promised to the job that is asked about.
    pub promised: bool,
    /// Whether it may not start now, because others were promised its devices before it could give them back.
    pub barred: bool,
    /// Whether a plan that knew of it, and of all that is new, gives it nothing.
    pub passed_over: bool,
    /// Who holds or was promised which devices.
    pub held: Vec<Held>,
    /// Who chooses devices.
    pub placer: &'a dyn Placer,
}

impl Engine {
    /// Why a living job does not run, or that it does.
    pub fn explain(&self, job: JobId) -> Option<Explained> {
        let (state, book) = (&self.state, &self.state.book);
        let row = *state.rows.get(&job)?;
        let entries = |row| book.shares_of(row).iter().map(|share| book.entry(*share));
        let planned = |row| entries(row).filter(|entry| !entry.is_newcomer());
        let share = |row| planned(row).fold(0.0, |sum, entry| sum + entry.fraction);
        let standing = Standing {
            mode: book.mode,
            share: &share,
            promised: entries(row).any(|entry| entry.lease.is_some()),
            barred: self.is_barred(row),
            passed_over: state.plan.is_none() && !state.dirty && book.shares_of(row).is_empty(),
            held: self.in_hands(),
            placer: self.placer(),
        };
        explain(&self.view(), standing, job)
    }

    /// Who has devices that were not promised on already.
    fn in_hands(&self) -> Vec<Held> {
        let state = &self.state;
        let stays = state.leases.iter().filter(|(_, lease)| lease.state != LeaseState::Ending);
        let held = |(id, lease): (LeaseId, &Lease)| Held {
            jobs: lease.jobs.clone(),
            placement: lease.placement.clone(),
            fixed: state.is_kept(id, lease),
        };
        stays.map(held).collect()
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
    let n_urgent = ahead.iter().filter(|other| other.urgent).count();
    ahead.truncate(AHEAD_MAX);
    let until = view.run(case.row).held_until.filter(|time| *time < Time::NEVER);
    let (awaits, share) = (view.awaits(case.row), case.share(case.row));
    Some(Explained {
        job,
        reason,
        until,
        awaits,
        share,
        kinds: case.kinds(),
        short: case.short().filter(|_| reason == Reason::Host),
        apart: case.apart().filter(|_| reason == Reason::Topology),
        ahead,
        n_ahead,
        n_urgent,
        remedies,
        ways: case.ways(),
    })
}
