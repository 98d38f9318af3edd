//! What-if on history: the jobs of some days once more, under another policy, round length or cluster. The driver
//! hands over a copy of what there is now, the history what was recorded, and all of it is simulated on another
//! thread. The *baseline* is the same jobs simulated as things are, so that what differs from it is the change's doing
//! and not the simulator's; what was recorded stands beside it, and shows how true the simulation is.
//!
//! This crate knows neither the simulator nor policies: a `Replayer` is handed in.

mod answer;
mod jobs;
mod past;
mod scenes;
#[cfg(test)]
pub(crate) mod testing;
pub mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::Settings;
use yard_core::belief::Belief;
use yard_core::cluster::{Kinds, NodeSpec, Resources};
use yard_core::job::{Costs, JobSpec};
use yard_core::policy::Priorities;
use yard_core::units::{Span, Time};

pub(crate) use answer::ReplayAsked;
pub use past::{PastPart, Recorded};

use crate::forecaster::MakePlacer;
use crate::handle::Refusal;
use crate::offers::Offers;
use crate::planner::MakePolicy;
use crate::translate::Catalog;
use view::{Detail, Figures};

/// Jobs that one question may be about.
pub const JOBS_MAX: usize = 50_000;

/// Changes that one question may compare.
const CHANGES_MAX: usize = 8;

/// Nodes that a change may add or name.
pub const NODES_MAX: usize = 10_000;

/// What somebody asks: which part of the history, and what should have been different.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// Jobs that were submitted in the last so many seconds.
    pub history_s: Option<f64>,
    /// Instead: jobs that were submitted from then on, seconds since 1970, UTC.
    pub from: Option<f64>,
    /// Jobs that were submitted before; now where nothing is said.
    pub to: Option<f64>,
    /// What to compare with how things are; empty: only what was recorded with the same simulated.
    pub alternatives: Vec<ReplayChange>,
    /// Dollars an hour of one device, by kind; without them there is no cost.
    #[schema(value_type = Object)]
    pub prices: BTreeMap<String, f64>,
    /// Whether to tell of each job and of who held which devices when, as reports show it; for admins.
    pub detail: bool,
}

/// What is different from how things are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayChange {
    /// Who decides, as `NAME[:key=value…]`; where nothing is said, who does now.
    pub policy: Option<String>,
    /// Seconds from one decision to the next; as now where nothing is said.
    pub round_s: Option<f64>,
    /// Nodes more, as `kind:NODESxGPUS`.
    pub add: Vec<String>,
    /// Nodes less, by name.
    pub remove: Vec<String>,
}

/// How things are: a copy of all that a replay needs of the driver.
pub struct Present {
    /// The time.
    pub(crate) at: Time,
    pub(crate) kinds: Kinds,
    /// The nodes, each with the name that people know it by and whether it is down.
    pub(crate) nodes: Vec<(String, NodeSpec, bool)>,
    pub(crate) settings: Settings,
    pub(crate) policy: String,
    pub(crate) make: MakePolicy,
    pub(crate) placer: MakePlacer,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) belief: Arc<Belief>,
    pub(crate) offers: Offers,
}

impl std::fmt::Debug for Present {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, nodes, policy) = (&self.at, &self.nodes, &self.policy);
        let mut shown = f.debug_struct("Present");
        shown.field("at", at).field("nodes", nodes).field("policy", policy).finish_non_exhaustive()
    }
}

/// All that a simulation needs. Times count from `base`.
pub struct Scene {
    /// Which instant of the history is the simulation's zero: a multiple of the round.
    pub base: Time,
    /// The kinds.
    pub kinds: Kinds,
    /// What is counted of hosts.
    pub resources: Resources,
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// Dollars an hour of one device, by kind; empty where nobody says.
    pub prices: Vec<f64>,
    /// How the engine is run.
    pub settings: Settings,
    /// Who decides.
    pub make: MakePolicy,
    /// Who places.
    pub placer: MakePlacer,
    /// What is believed of jobs that share devices.
    pub belief: Arc<Belief>,
    /// The jobs, in order of submission.
    pub jobs: Vec<SceneJob>,
}

/// A job of a simulation.
#[derive(Clone, Debug)]
pub struct SceneJob {
    /// Its number in the history.
    pub id: u64,
    /// What people call it.
    pub name: String,
    /// Who it counts for.
    pub team: String,
    /// When it is submitted.
    pub submit: Time,
    /// Devices it asks for.
    pub gpus: u32,
    /// When it should be done.
    pub deadline: Option<Time>,
    /// The job as it really is; none where no node could run it.
    pub spec: Option<JobSpec>,
    /// How many steps it says that it has to do.
    pub said: f64,
}

/// What a simulation gave.
#[derive(Debug, Default)]
pub struct ReplayRan {
    /// Figures of each group of jobs that was asked for.
    pub figures: Vec<Figures>,
    /// Each job and each device, where that was asked for.
    pub detail: Option<Detail>,
    /// What people should know of it, a sentence each.
    pub notes: Vec<String>,
}

/// Which jobs to count together.
pub type Groups = [Vec<usize>];

/// Simulates, and counts.
pub trait Replayer: Send + Sync {
    /// What it costs to stop a job and let it go on.
    fn costs(&self) -> Costs;
    /// Makes a policy from its name and parameters, or says what is wrong with them.
    fn policy(&self, spec: &str) -> Result<MakePolicy, String>;
    /// What the policy of this name makes of priorities.
    fn priorities(&self, spec: &str) -> Priorities;
    /// The nodes of `kind:NODESxGPUS`: the kind and the devices of each, or what is wrong with it.
    fn nodes(&self, spec: &str) -> Result<Vec<(String, u32)>, String>;
    /// What really happened to the jobs of a scene, counted as a simulation's are.
    fn recorded(&self, jobs: &[Recorded], scene: &Scene, groups: &Groups) -> Vec<Figures>;
    /// Simulates a scene, until it is over or nobody waits for the answer any more.
    fn run(
        &self,
        scene: &Scene,
        groups: &Groups,
        detail: bool,
        watch: &ReplayWatch,
    ) -> Result<ReplayRan, String>;
}

/// How far a simulation is, and whether anybody still wants it.
#[derive(Clone, Debug, Default)]
pub struct ReplayWatch {
    /// Set when nobody does.
    pub stop: Arc<AtomicBool>,
    /// Jobs that are over, of all simulations together.
    pub done: Arc<AtomicU64>,
}

impl ReplayWatch {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Stops a simulation when who waited for it is gone.
pub(crate) struct WaitingReplay(pub(crate) ReplayWatch);

impl Drop for WaitingReplay {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

impl Replay {
    /// From when until when.
    pub(crate) fn window(&self, now: Time) -> Result<(Time, Time), Refusal> {
        let sound = |field: &str, value: Option<f64>| match value {
            Some(value) if !(0.0..=1e12).contains(&value) => {
                Err(invalid(field, format!("{field} is a number of seconds, 0 or more")))
            }
            value => Ok(value),
        };
        let to = sound("to", self.to)?.map_or(now, Time::from_secs).min(now);
        let from = match (sound("history_s", self.history_s)?, sound("from", self.from)?) {
            (Some(length), None) => Time(to.0.saturating_sub(Span::from_secs(length).0)),
            (None, Some(from)) => Time::from_secs(from),
            _ => {
                let message = "give the period: history_s, or from and optionally to";
                return Err(invalid("history_s", message.into()));
            }
        };
        if from >= to {
            let field = if self.from.is_some() { "from" } else { "history_s" };
            return Err(invalid(field, "the period is empty: choose an earlier start".into()));
        }
        Ok((from, to))
    }

    /// Says what is wrong with the question, as far as that can be told from itself.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.alternatives.len() > CHANGES_MAX {
            let message = format!("at most {CHANGES_MAX} alternatives can be compared at once");
            return Err(invalid("alternatives", message));
        }
        let named = |change: &ReplayChange| change.add.len() + change.remove.len();
        if self.alternatives.iter().any(|change| named(change) > NODES_MAX) {
            return Err(invalid("alternatives", format!("a change may name at most {NODES_MAX} nodes")));
        }
        let sound = |price: &f64| (0.0..=1e9).contains(price);
        match self.prices.iter().find(|(_, price)| !sound(price)) {
            Some((kind, price)) => {
                Err(invalid("prices", format!("{kind}: {price} is not a number of dollars from 0 to 1e9")))
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn invalid(field: &str, message: String) -> Refusal {
    Refusal::Invalid { field: Some(field.to_owned()), message }
}
