//! What would become of a job that is not submitted yet, or of all jobs if a node went. The driver hands over a copy of what it knows and goes on; the
//! question is answered on another thread, from the copy alone, and nothing of it is ever kept. Work is bounded
//! (`WORK_MAX`): the job as it was asked for is answered first, then the other ways to ask for it, and what there was
//! no work left for says so.

mod alternatives;
mod answer;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::State;
use yard_core::cluster::Placement;
use yard_core::forecast::Limits;
use yard_core::forecast::past::Past;
use yard_core::forecast::record::Moves;
use yard_core::forecast::what_if::{Asker, Told};
use yard_core::job::JobSpec;
use yard_core::message::NodeChange;
use yard_core::state::RestoreError;
use yard_core::units::{Span, Time};

pub(crate) use alternatives::ways;
pub(crate) use answer::view;

use crate::driver::clock::Stopwatch;
use crate::forecaster::{Draws, Estimating};
use crate::handle::Refusal;
use crate::planner::MakePolicy;
use crate::request::JobRequest;

/// Seconds of work for all runs of one question together. How much work that is, the first of it says: a policy that
/// solves a program at each round is a hundred times as dear as one that sorts jobs.
const WORK_S: f64 = 2.0;
const TRIED: u64 = 2_000;
const WORK_MAX: u64 = 20_000_000;

/// How far one run goes.
const LIMITS: Limits = Limits {
    steps_max: 50_000,
    plans_max: 5_000,
    work_max: TRIED,
    horizon: Span::from_whole_secs(30 * 86_400),
};

/// What somebody asks: about a job, or about a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIf {
    /// The job, as it would be submitted.
    pub job: Option<JobRequest>,
    /// Whether to look at other ways to ask for it too: fewer or more devices, other kinds, no deadline. They are
    /// where nothing is said.
    pub alternatives: Option<bool>,
    /// A node that takes nothing new.
    pub drain: Option<String>,
    /// Whether jobs on it are asked to save and go elsewhere.
    pub evict: bool,
    /// A node that is gone, with what runs there.
    pub fail: Option<String>,
    /// When that happens to the node: seconds since 1970, UTC; now where nothing is said.
    pub at: Option<f64>,
}

/// One row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// How it differs from what was asked for, or what happens.
    pub(crate) label: String,
    /// What is different from how things are.
    pub(crate) change: Change,
}

/// What is different from how things are.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A job comes.
    Job(Box<JobSpec>),
    /// Nodes change, in order of time.
    Nodes(Vec<(Time, NodeChange)>),
}

impl Way {
    /// The job that it is about.
    pub(crate) fn spec(&self) -> Option<&JobSpec> {
        match &self.change {
            Change::Job(spec) => Some(spec),
            Change::Nodes(_) => None,
        }
    }
}

/// A question, with a copy of all that is needed to answer it.
pub struct Question {
    /// What the engine knows.
    pub(crate) state: State,
    /// When it was asked.
    pub(crate) at: Time,
    /// What was, and how far estimates were off.
    pub(crate) past: Past,
    pub(crate) moves: Moves,
    /// Who decides and places.
    pub(crate) how: Estimating,
    pub(crate) make: MakePolicy,
    /// The job as it was asked for, then other ways.
    pub(crate) ways: Vec<Way>,
    /// Where draws begin: the same question to the same state has the same answer.
    pub(crate) seed: u64,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("at", &self.at).field("ways", &self.ways).finish_non_exhaustive()
    }
}

impl Question {
    /// The answer for each way.
    pub(crate) fn answer(&self) -> Result<Vec<Told>, Refusal> {
        let broken = |error| Refusal::Unavailable(format!("the state cannot be run forward: {error}"));
        let (policy, placer) = (|| (self.make)(), || (self.how.placer)());
        let mut asker = Asker {
            state: &self.state,
            at: self.at,
            past: &self.past,
            policy: &policy,
            placer: &placer,
            limits: LIMITS,
            work_left: TRIED,
        };
        pace(&mut asker, self.ways.len() as u64).map_err(broken)?;
        let without = asker.without().map_err(broken)?;
        let told = self.ways.iter().map(|way| match &way.change {
            Change::Job(spec) => asker.with(spec, &without),
            Change::Nodes(nodes) => asker.nodes(nodes, &without),
        });
        let mut told: Vec<Told> = told.collect::<Result<_, _>>().map_err(broken)?;
        for (at, (way, told)) in self.ways.iter().zip(&mut told).enumerate() {
            let Some(spec) = way.spec().filter(|_| told.refused.is_none()) else { continue };
            // The same draws for each way: what differs is the way.
            let mut draws = Draws(self.seed);
            let among = (self.ways.len() - at) as u64;
            let estimate = asker.estimate(spec, among, &mut |below| draws.below(below)).map_err(broken)?;
            told.estimate = estimate.map(|estimate| self.moves.moved(self.at, &estimate));
        }
        Ok(told)
    }

    /// Where a placement is, as `node[device,…]`, and its kind.
    pub(crate) fn place(&self, placement: &Placement) -> (Vec<String>, Option<String>) {
        let (nodes, kinds) = (self.state.nodes(), self.state.kinds());
        let named = |slice: &yard_core::cluster::Slice| {
            let devices = (0..u128::BITS).filter(|device| slice.mask >> device & 1 == 1);
            let devices: Vec<String> = devices.map(|device| device.to_string()).collect();
            format!("{}[{}]", nodes.get(slice.node).spec.name, devices.join(","))
        };
        let kind = placement.0.first().map(|slice| kinds.name(nodes.get(slice.node).spec.kind).to_owned());
        (placement.0.iter().map(named).collect(), kind)
    }
}

/// Sets how far runs go by how long the first steps of one take. Half of the work is for the quiet runs.
fn pace(asker: &mut Asker<'_>, ways: u64) -> Result<(), RestoreError> {
    let watch = Stopwatch::start();
    let tried = asker.without()?;
    let seconds = watch.took().as_secs_f64().max(1e-3);
    asker.work_left = ((tried.work as f64 / seconds * WORK_S) as u64).clamp(TRIED, WORK_MAX);
    asker.limits.work_max = asker.work_left / 2 / (ways + 1);
    Ok(())
}
