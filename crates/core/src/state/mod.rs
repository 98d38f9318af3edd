//! Everything the engine knows, in one value that serialises with a version.

mod after;
mod learning;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use self::after::After;
pub(crate) use self::learning::{FirstFits, Stint, Trainee};
use crate::belief::Belief;
use crate::book::Book;
use crate::cluster::{Kinds, Nodes, Resources};
use crate::ids::{JobId, JobIdx, LeaseId, PlanId, ProfileId};
use crate::job::{JobRun, JobSpec};
use crate::leases::Leases;
use crate::lengths::Lengths;
use crate::promise::Plan;
use crate::rising::Rising;
pub use crate::settings::Settings;
use crate::units::{Span, Time};
use crate::view::Changed;

/// The version of the serialised form. A change to any type below means the next number.
pub const STATE_VERSION: u32 = 10;

/// The versions that can be read: this one and two before it.
pub const STATE_VERSIONS: RangeInclusive<u32> = STATE_VERSION - 2..=STATE_VERSION;

/// The first version in which a node may have devices of several kinds.
const SEVERAL_KINDS: u32 = 9;

/// Sums that must agree, see `invariants`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Jobs submitted.
    pub submitted: u64,
    /// Jobs that are over.
    pub ended: u64,
    /// Device-microseconds by the leases' account, one for each job on the devices.
    pub leased: u64,
    /// Device-microseconds by the account of jobs that are over.
    pub ended_attained: u64,
    /// Rounds in which who-runs was decided.
    pub rounds: u64,
    /// Plans asked for.
    pub plans: u64,
}

/// What was promised, and how it is kept; see `engine/promises`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Promises {
    pub(crate) kept: BTreeMap<JobIdx, Promise>,
    /// Who must have devices now, and in which shape.
    pub(crate) due: BTreeMap<JobIdx, u16>,
    /// When that changes next.
    pub(crate) next: Option<Time>,
    /// The first time that was promised to a job which is not said to be at risk, or before that.
    pub(crate) first: Option<Time>,
    /// The longest that a job which is told to stop may hold its devices.
    pub(crate) settle: Span,
    /// Leases whose devices cannot be had back before this time, whatever was promised to others.
    pub(crate) bound: BTreeMap<LeaseId, Time>,
    /// Whether something happened that plans did not reckon with.
    pub(crate) stale: bool,
}

/// One promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Promise {
    /// When the job will have devices, at the latest, and of which nodes.
    pub(crate) plan: Plan,
    /// Whether it may not be kept.
    pub(crate) at_risk: bool,
}

/// Everything the engine knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(crate) version: u32,
    pub(crate) settings: Settings,
    pub(crate) now: Time,
    pub(crate) kinds: Arc<Kinds>,
    /// What is counted of hosts.
    #[serde(default)]
    pub(crate) resources: Resources,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) belief: Arc<Belief>,
    /// Stretches of work that are being measured, where the belief learns.
    pub(crate) stints: BTreeMap<JobIdx, Stint>,
    /// Profiles of which something was learned since the last plan.
    pub(crate) learned_of: BTreeSet<ProfileId>,
    /// What jobs that train are known by.
    pub(crate) trainees: BTreeMap<JobIdx, Trainee>,
    #[serde(skip)]
    pub(crate) first_fits: FirstFits,
    /// How long jobs were.
    #[serde(default)]
    pub(crate) lengths: Lengths,
    /// What devices cost in the allocation in force.
    pub(crate) prices: Arc<Vec<f64>>,
    pub(crate) specs: Arc<Vec<Arc<JobSpec>>>,
    pub(crate) runs: Arc<Vec<JobRun>>,
    pub(crate) rows: Rising<JobId, JobIdx>,
    /// Rows that may be used again; `cooling` ones only once no plan in flight can name them.
    pub(crate) vacant: Vec<JobIdx>,
    pub(crate) cooling: Vec<JobIdx>,
    pub(crate) leases: Leases,
    pub(crate) book: Book,
    pub(crate) ledger: Ledger,
    /// What changed since the last view was handed out, and what that view said.
    pub(crate) changed: Changed,
    pub(crate) asked: Changed,
    /// The plan being made.
    pub(crate) plan: Option<PlanId>,
    /// Whether who-runs must be decided anew.
    pub(crate) dirty: bool,
    /// Whether devices or jobs became free since somebody last looked, and jobs no policy has ranked yet.
    pub(crate) loose: bool,
    pub(crate) newcomers: Vec<JobIdx>,
    /// Jobs that are held back, by when they come in.
    pub(crate) delayed: BTreeSet<(Time, JobIdx)>,
    /// Jobs that wait for others.
    pub(crate) after: After,
    /// Jobs that lie frozen somewhere.
    pub(crate) resting: BTreeSet<JobIdx>,
    pub(crate) promises: Promises,
    pub(crate) replan_at: Option<Time>,
    /// When a plan was last asked for.
    pub(crate) last_plan: Option<Time>,
    pub(crate) last_round: Option<Time>,
    /// Rounds for which the first share could not be placed for want of adjacent devices.
    pub(crate) blocked_rounds: u32,
    /// The job of a first share that finds no place even on an empty cluster.
    pub(crate) hopeless: Option<JobId>,
}

/// Why a saved state cannot be used.
#[derive(Debug, Error, PartialEq)]
pub enum RestoreError {
    /// It was written by another version.
    #[error(
        "the saved state has version {found}, this program reads versions {} to {}",
        STATE_VERSIONS.start(),
        STATE_VERSIONS.end()
    )]
    Version {
        /// Its version.
        found: u32,
    },
}

impl State {
    pub(crate) fn new(settings: Settings, kinds: Kinds) -> State {
        State {
            version: STATE_VERSION,
            settings,
            now: Time::ZERO,
            kinds: Arc::new(kinds),
            resources: Resources::default(),
            nodes: Arc::default(),
            belief: Arc::default(),
            stints: BTreeMap::new(),
            learned_of: BTreeSet::new(),
            trainees: BTreeMap::new(),
            first_fits: FirstFits::default(),
            lengths: Lengths::default(),
            prices: Arc::default(),
            specs: Arc::default(),
            runs: Arc::default(),
            rows: Rising::new(),
            vacant: Vec::new(),
            cooling: Vec::new(),
            leases: Leases::default(),
            book: Book::default(),
            ledger: Ledger::default(),
            changed: Changed { all: true, ..Changed::default() },
            asked: Changed::default(),
            plan: None,
            dirty: false,
            loose: false,
            newcomers: Vec::new(),
            delayed: BTreeSet::new(),
            after: After::default(),
            resting: BTreeSet::new(),
            promises: Promises::default(),
            replan_at: None,
            last_plan: None,
            last_round: None,
            blocked_rounds: 0,
            hopeless: None,
        }
    }

    /// A state that an earlier version saved, as this one has it. When nodes had devices of one kind, plans did not say
    /// which.
    pub(crate) fn upgraded(mut self) -> Result<State, RestoreError> {
        if !STATE_VERSIONS.contains(&self.version) {
            return Err(RestoreError::Version { found: self.version });
        }
        let nodes = self.nodes.clone();
        let spots = self.promises.kept.values_mut().flat_map(|promise| &mut promise.plan.spots);
        for piece in spots.flatten().filter(|_| self.version < SEVERAL_KINDS) {
            piece.kind = nodes.get(piece.node).spec.pools[0].kind;
        }
        self.version = STATE_VERSION;
        Ok(self)
    }

    /// The instant it is of.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The nodes.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The kinds.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// How many jobs are there that are not forgotten.
    pub fn jobs_len(&self) -> usize {
        self.rows.len()
    }

    /// A row for a new job. In place while no view is alive; else the columns are copied once.
    pub(crate) fn add_row(&mut self, spec: JobSpec, run: JobRun) -> JobIdx {
        let (specs, runs) = (Arc::make_mut(&mut self.specs), Arc::make_mut(&mut self.runs));
        let (id, spec) = (run.id, Arc::new(spec));
        let row = match self.vacant.pop() {
            Some(row) => {
                (specs[row.index()], runs[row.index()]) = (spec, run);
                row
            }
            None => {
                specs.push(spec);
                runs.push(run);
                JobIdx(runs.len() as u32 - 1)
            }
        };
        self.rows.insert(id, row);
        row
    }

    pub(crate) fn run(&self, job: JobIdx) -> &JobRun {
        &self.runs[job.index()]
    }

    pub(crate) fn run_mut(&mut self, job: JobIdx) -> &mut JobRun {
        &mut Arc::make_mut(&mut self.runs)[job.index()]
    }

    pub(crate) fn nodes_mut(&mut self) -> &mut Nodes {
        Arc::make_mut(&mut self.nodes)
    }
}
