//! What would become of a job that is not submitted yet, or of all jobs if a node went. The driver hands over a copy of
//! what it knows and goes on; the question is answered on another thread, from the copy alone, and nothing of it is ever
//! kept. Work is bounded (`WORK_MAX`): the job as it was asked for is answered first, then the other ways to ask for it,
//! then the intervals, and what there was no work left for says so.

mod alternatives;
mod answer;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::State;
use yard_core::cluster::Placement;
use yard_core::forecast::past::Past;
use yard_core::forecast::record::Moves;
use yard_core::forecast::what_if::{Asker, Told};
use yard_core::forecast::{Forecast, Limits};
use yard_core::job::JobSpec;
use yard_core::message::NodeChange;
use yard_core::state::RestoreError;
use yard_core::units::Time;

pub(crate) use alternatives::ways;
pub(crate) use answer::view;

use crate::driver::clock::{Stopwatch, Worked};
use crate::driver::machines::{kind_of, named};
use crate::forecaster::{Draws, Estimating};
use crate::handle::Refusal;
use crate::planner::MakePolicy;
use crate::request::JobRequest;

/// Work for all runs of one question together, as `Limits` counts it: counted, so that the same question to the same
/// state has the same answer on every machine.
const WORK_MAX: u64 = 2_000_000;

/// The longest that its thread may work all the same, as a policy may be dearer than it looks; and the longest that who
/// asks waits, where others have the processors.
const WORKS_MAX: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(20);

/// The same for a first answer, so that it is there within a second however many jobs there are.
const FIRST_WORKS_MAX: Duration = Duration::from_millis(500);
const FIRST_PATIENCE: Duration = Duration::from_millis(800);

/// Where more jobs are than this, even the job as it was asked for may take more work than there is: a run in a hurry
/// comes before the exact one, and stays where that does not come as far.
const MANY_JOBS: usize = 1_000;

/// What somebody asks: about a job, or about a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIf {
    /// The job, as it would be submitted.
    pub job: Option<JobRequest>,
    /// Whether to look at other ways to ask for it too: fewer or more devices, other kinds, no deadline. They are
    /// where nothing is said.
    pub alternatives: Option<bool>,
    /// Whether to say by how much others who come may change it, which takes several times as long. It is said where
    /// nothing is said here.
    pub intervals: Option<bool>,
    /// Whether a first answer is enough, which is there within a second: when the job would start and end, in the way it
    /// was asked for, about right; and if that takes longer to find out, when it starts at the earliest.
    pub quick: bool,
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
pub(crate) struct OtherWay {
    /// How it differs from what was asked for, or what happens.
    pub(crate) label: String,
    /// What is different from how things are.
    pub(crate) change: WhatIfChange,
}

/// What is different from how things are.
#[derive(Clone, Debug)]
pub(crate) enum WhatIfChange {
    /// A job comes.
    Job(Box<JobSpec>),
    /// Nodes change, in order of time.
    Nodes(Vec<(Time, NodeChange)>),
}

impl OtherWay {
    /// The job that it is about.
    pub(crate) fn spec(&self) -> Option<&JobSpec> {
        match &self.change {
            WhatIfChange::Job(spec) => Some(spec),
            WhatIfChange::Nodes(_) => None,
        }
    }
}

/// A question, with a copy of all that is needed to answer it.
pub struct WhatIfQuestion {
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
    pub(crate) ways: Vec<OtherWay>,
    /// Whether a first answer is enough.
    pub(crate) quick: bool,
    /// Whether with intervals, which cost more than all else.
    pub(crate) intervals: bool,
    /// Where draws begin: the same question to the same state has the same answer.
    pub(crate) seed: u64,
}

impl std::fmt::Debug for WhatIfQuestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("at", &self.at).field("ways", &self.ways).finish_non_exhaustive()
    }
}

impl WhatIfQuestion {
    /// The answer for each way, or as much of it as is known when it has to `stop`.
    pub(crate) fn answer(&self, stop: &dyn Fn() -> bool) -> Result<Vec<Told>, Refusal> {
        let (policy, placer) = (|| (self.make)(), || (self.how.placer)());
        let (worked, watch) = (Worked::start(), Stopwatch::start());
        let (works_max, patience) =
            if self.quick { (FIRST_WORKS_MAX, FIRST_PATIENCE) } else { (WORKS_MAX, PATIENCE) };
        let mut asker = Asker {
            state: &self.state,
            at: self.at,
            past: &self.past,
            policy: &policy,
            placer: &placer,
            limits: Limits::QUESTION,
            work_left: WORK_MAX,
            stop: &|| stop() || worked.took() > works_max || watch.took() > patience,
        };
        self.tell(&mut asker)
            .map_err(|error| Refusal::Unavailable(format!("cannot simulate from the current state: {error}")))
    }

    fn tell(&self, asker: &mut Asker<'_>) -> Result<Vec<Told>, RestoreError> {
        let Some((first, others)) = self.ways.split_first() else { return Ok(Vec::new()) };
        if let Some(spec) = first.spec().filter(|_| self.quick) {
            return Ok(vec![asker.alone(spec)?]);
        }
        let (first, without) = match &first.change {
            WhatIfChange::Job(spec) => self.first(spec, asker)?,
            WhatIfChange::Nodes(nodes) => {
                let without = asker.without(None)?;
                (asker.nodes(nodes, &without)?, without)
            }
        };
        let mut told = vec![first];
        for way in others.iter().filter_map(OtherWay::spec) {
            told.push(asker.with(way, &without)?);
        }
        if self.intervals {
            self.estimate(asker, &mut told)?;
        }
        Ok(told)
    }

    /// The job as it was asked for; where many jobs are, at least as much of it as is found out in a hurry.
    fn first(&self, spec: &JobSpec, asker: &mut Asker<'_>) -> Result<(Told, Forecast), RestoreError> {
        if self.state.jobs_len() <= MANY_JOBS {
            return asker.first(spec);
        }
        let hurried = asker.alone(spec)?;
        let (exact, without) = asker.first(spec)?;
        let better = exact.quiet.start.is_none()
            && hurried.not_before.is_none_or(|time| exact.not_before < Some(time));
        if !better || exact.refused.is_some() {
            return Ok((exact, without));
        }
        let Told { quiet, place, grown_from, not_before, .. } = hurried;
        Ok((Told { quiet, place, grown_from, not_before, ..exact }, without))
    }

    /// The intervals, with what work is left.
    fn estimate(&self, asker: &mut Asker<'_>, told: &mut [Told]) -> Result<(), RestoreError> {
        for (at, (way, told)) in self.ways.iter().zip(told).enumerate() {
            let Some(spec) = way.spec().filter(|_| told.refused.is_none()) else { continue };
            // The same draws for each way: what differs is the way.
            let mut draws = Draws(self.seed);
            let among = (self.ways.len() - at) as u64;
            let estimate = asker.estimate(spec, among, &mut |below| draws.below(below))?;
            told.estimate = estimate.map(|estimate| self.moves.moved(self.at, &estimate));
        }
        Ok(())
    }

    /// Where a placement is, as `node[device,…]`, and its kind.
    pub(crate) fn place(&self, placement: &Placement) -> (Vec<String>, Option<String>) {
        let (nodes, kinds) = (self.state.nodes(), self.state.kinds());
        let place = |slice: &yard_core::cluster::Slice| {
            let (name, mask) = named(nodes, kinds, slice);
            let devices = (0..u128::BITS).filter(|device| mask >> device & 1 == 1);
            let devices: Vec<String> = devices.map(|device| device.to_string()).collect();
            format!("{name}[{}]", devices.join(","))
        };
        let kind = kind_of(nodes, kinds, placement).map(str::to_owned);
        (placement.0.iter().map(place).collect(), kind)
    }
}
