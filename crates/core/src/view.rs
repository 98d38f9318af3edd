//! What a policy sees: columns of jobs and nodes, shared with the engine rather than copied, and what
//! changed since the last plan that was applied. Serialisable, so that any decision can become a test.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::belief::Belief;
use crate::cluster::{Kinds, NodeState, Nodes};
use crate::ids::{JobId, JobIdx, KindId};
use crate::job::{JobRun, JobSpec, JobState, Length, Usage};
use crate::lengths::{self, Told};
use crate::units::{Span, Time};

/// The state of the cluster at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The instant.
    pub now: Time,
    /// Length of a round; zero where decisions follow events.
    pub round: Span,
    /// What was submitted, by row. Rows of ended jobs may still be filled: see `runs`.
    pub specs: Arc<Vec<Arc<JobSpec>>>,
    /// How it is going, by row; a row whose state is final is vacant, and one that is held back asks for nothing.
    /// Neither is `JobRun::is_active`.
    pub runs: Arc<Vec<JobRun>>,
    /// The nodes.
    pub nodes: Arc<Nodes>,
    /// The kinds' names.
    pub kinds: Arc<Kinds>,
    /// What is believed of jobs that share devices.
    pub belief: Arc<Belief>,
    /// What devices cost in the allocation in force, by `KindId`; empty where it has no prices.
    pub prices: Arc<Vec<f64>>,
    /// How long jobs were that are over, where lengths are learned; none: what is stated is true.
    #[serde(default)]
    pub lengths: Option<Arc<Told>>,
    /// What changed.
    pub changed: Changed,
}

/// The part by which a job goes on before its length is believed to be another, and the seconds that this takes at
/// least.
const DOUBT: f64 = 0.1;
const DOUBT_LEAST_S: f64 = 60.0;

/// What changed since the last plan that was applied. Answering it again must be harmless: it is
/// repeated when a plan is late or lost. Read `ended` first: a row may be used again at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// Everything may have: answer in full.
    pub all: bool,
    /// Jobs that ended, or are held back from now on.
    pub ended: Vec<JobIdx>,
    /// Jobs that arrived, or are held back no longer.
    pub added: Vec<JobIdx>,
    /// Jobs that started, stopped or reported.
    pub touched: Vec<JobIdx>,
    /// Whether nodes or kinds changed.
    pub nodes: bool,
}

impl View {
    /// All jobs that ask for devices or hold some, in the order of their rows.
    pub fn active(&self) -> impl Iterator<Item = JobIdx> + '_ {
        (0..self.runs.len() as u32).map(JobIdx).filter(|job| self.run(*job).is_active())
    }

    /// The jobs that the policy should answer for: those that changed, or all.
    pub fn dirty(&self) -> Vec<JobIdx> {
        if self.changed.all {
            return self.active().collect();
        }
        let changed = self.changed.added.iter().chain(&self.changed.touched).copied();
        let mut jobs: Vec<_> = changed.filter(|job| self.run(*job).is_active()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    /// How a job is doing.
    pub fn run(&self, job: JobIdx) -> &JobRun {
        &self.runs[job.index()]
    }

    /// What was submitted.
    pub fn spec(&self, job: JobIdx) -> &JobSpec {
        &self.specs[job.index()]
    }

    /// The living jobs that this one comes after. While there are any it is held back.
    pub fn awaits(&self, job: JobIdx) -> Vec<JobId> {
        let after = &self.spec(job).after;
        if after.is_empty() || self.run(job).held_until.is_none() {
            return Vec::new();
        }
        let lives = |other: &JobId| self.runs.iter().any(|run| run.id == *other && !run.state.is_final());
        after.iter().copied().filter(lives).collect()
    }

    /// Whether it has devices, or was promised some, and was not told to stop.
    pub fn is_running(&self, job: JobIdx) -> bool {
        matches!(self.run(job).state, JobState::Starting | JobState::Running)
    }

    /// The devices it holds, or would in the shape it likes best.
    pub fn devices(&self, job: JobIdx) -> u32 {
        let run = self.run(job);
        let shape = if run.lease.is_some() { run.shape as usize } else { 0 };
        self.spec(job).shapes[shape].devices()
    }

    /// Steps left, as believed; never negative. Where lengths are learned, a job that is over its stated length has
    /// something left, and one without has what jobs like it have left in the middle (`lengths`).
    pub fn steps_left(&self, job: JobIdx) -> f64 {
        let (spec, done) = (self.spec(job), self.run(job).done_at(self.now));
        match &self.lengths {
            Some(told) if spec.length != Length::Stated => match spec.slowest() {
                Some((speed, _)) => told.of_job(spec).0.left(done / speed, 0.5) * speed,
                None => spec.steps,
            },
            Some(_) if done > spec.steps => lengths::overrun(spec.steps, done),
            _ => (spec.steps - done).max(0.0),
        }
    }

    /// Steps of a job from start to end, as believed now.
    pub fn steps_in_all(&self, job: JobIdx) -> f64 {
        let (spec, done) = (self.spec(job), self.run(job).done_at(self.now));
        let open = self.lengths.is_some() && (spec.length != Length::Stated || done > spec.steps);
        if open { done + self.steps_left(job) } else { spec.steps }
    }

    /// When what is believed of the lengths of jobs that run will have changed by about a tenth, though nothing else
    /// happens; none where that cannot be.
    pub fn doubts_at(&self, running: impl Iterator<Item = JobIdx>) -> Option<Time> {
        self.lengths.as_ref()?;
        let doubt = |job: JobIdx| {
            let (spec, run) = (self.spec(job), self.run(job));
            let done = run.done_at(self.now);
            let until = if spec.length == Length::Stated { (spec.steps - done).max(0.0) } else { 0.0 };
            (run.speed > 0.0).then(|| (until + DOUBT * (done + until)) / run.speed)
        };
        let first = running.filter_map(doubt).fold(f64::INFINITY, f64::min);
        first.is_finite().then(|| self.now + Span::from_secs(first.max(DOUBT_LEAST_S)))
    }

    /// Seconds left in the shape it holds, or in the one it likes best; infinite if it cannot run so.
    pub fn seconds_left(&self, job: JobIdx) -> f64 {
        let run = self.run(job);
        let speed = if run.speed > 0.0 { run.speed } else { self.spec(job).speeds[run.shape as usize] };
        self.steps_left(job) / speed
    }

    /// Believed steps per second of a job in one of its shapes, alone on its devices.
    pub fn speed(&self, job: JobIdx, shape: u16) -> f64 {
        self.spec(job).speeds[shape as usize]
    }

    /// Believed steps per second of two jobs on the same devices, in a shape of the first that the second has
    /// too; none where that is not known, or either cannot run so.
    pub fn packed(&self, a: JobIdx, b: JobIdx, shape_of_a: u16) -> Option<[f64; 2]> {
        let shape = self.spec(a).shapes.get(shape_of_a as usize)?;
        let shape_of_b = self.spec(b).way(shape)?;
        let mut speeds = [self.speed(a, shape_of_a), self.speed(b, shape_of_b)];
        let mut kept = [f64::INFINITY; 2];
        for need in &shape.needs {
            let here = self.belief.pair(self.spec(a).profile, self.spec(b).profile, need.kind)?;
            kept = [kept[0].min(here[0]), kept[1].min(here[1])];
        }
        speeds.iter_mut().zip(kept).for_each(|(speed, kept)| *speed *= kept);
        speeds.iter().all(|speed| *speed > 0.0 && speed.is_finite()).then_some(speeds)
    }

    /// Devices of a kind that jobs may be given.
    pub fn capacity(&self, kind: KindId) -> u32 {
        self.nodes.up(kind)
    }

    /// What a job does to each of its devices: as measured, else as others like it were, else as it was said to.
    pub fn usage(&self, job: JobIdx) -> Option<Usage> {
        let spec = self.spec(job);
        self.run(job).usage.or_else(|| self.belief.usage(spec.profile)).or(spec.sharing().usage)
    }

    /// Memory of each device of a kind, the least of the nodes that take jobs; none where it is not known.
    pub fn memory_mib(&self, kind: KindId) -> Option<u32> {
        let nodes = self.nodes.iter().map(|(_, node)| node);
        let up = nodes.filter(|node| node.state == NodeState::Up);
        up.filter_map(|node| node.spec.pool(kind)).map(|(pool, _)| pool.memory_mib).min().flatten()
    }

    /// Device-seconds received.
    pub fn attained(&self, job: JobIdx) -> f64 {
        self.run(job).attained_at(self.now)
    }
}
