//! Everything that can happen to the engine, and everything it can want. Closed enums: whatever wakes
//! the scheduler is on this page.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::allocation::{Allocation, Certificate};
use crate::belief::Belief;
use crate::cluster::{Amounts, DomainPath, Mask, NodeSpec, Placement};
use crate::ids::{JobId, LeaseId, NodeId, PlanId};
pub use crate::job::Why;
use crate::job::{Costs, JobSpec, JobState, Length, Shape, Usage};
use crate::settings::Settings;
use crate::training::{Batch, Noise, Timing};
use crate::units::Time;
use crate::view::View;

/// What happens to the engine. A journal of these is its whole history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// A driver begins, with these settings from now on. The policy it asks has no memory, and a plan that was
    /// asked for before is not coming.
    Begin(Box<Settings>),
    /// There is a kind of this name; it gets the next number unless it has one.
    Kind(String),
    /// Something of this name is counted of hosts; it gets the next number unless it has one, or there are too many.
    Resource(String),
    /// A user submits a job; it gets the next number.
    Submit(Box<JobSpec>),
    /// A user withdraws a job.
    Cancel(JobId),
    /// A user withdraws a job and does not wait for it to save: it is killed, also where it is already being stopped.
    Kill(JobId),
    /// A job gets no devices until it is released; one that runs is told to stop.
    Hold(JobId),
    /// A job that was held waits for devices again.
    Release(JobId),
    /// A job that runs is told to stop, and goes on from its last checkpoint when it has devices again.
    Requeue(JobId),
    /// What is asked of a job that waits is something else from now on.
    Edit(Box<Edit>),
    /// A job that waits may run in more ways than it said.
    Widen(Box<Widen>),
    /// A node comes, goes or changes.
    Node(NodeChange),
    /// The holder of a lease says how a job is doing.
    Report(Report),
    /// The answer to `Effect::Plan`, or why there is none.
    Planned {
        /// Which request it answers.
        plan: PlanId,
        /// The answer.
        answer: Result<Allocation, String>,
    },
    /// What is to be believed of jobs that share devices, in place of what was.
    Believe(Box<Belief>),
    /// Time has passed; due at `Engine::deadline`.
    Tick,
}

/// What may change of a job while it waits, as it is from then on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: Box<str>,
    /// Its weight in fair shares, above zero.
    pub weight: f64,
    /// Larger is more urgent.
    pub priority: i32,
    /// When it should be done.
    pub deadline: Option<Time>,
    /// Steps to do, and how that is known; none: they stay as they are.
    pub steps: Option<(f64, Length)>,
}

/// More ways in which a job may run, behind those that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Widen {
    /// The job.
    pub job: JobId,
    /// The ways.
    pub shapes: Vec<Shape>,
    /// Believed steps per second, one for each.
    pub speeds: Vec<f64>,
}

/// What happens to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodeChange {
    /// A new one joins.
    Join(NodeSpec),
    /// It takes nothing new.
    Drain(NodeId),
    /// It takes jobs again.
    Resume(NodeId),
    /// It leaves in good order: its jobs are asked to stop.
    Leave(NodeId),
    /// It is gone, with what ran there.
    Fail(NodeId),
    /// Of these nodes so many are there from now on, whichever: more come back, or those leave whose jobs cost least to
    /// stop. Nodes that were lent and are wanted again.
    Lent {
        /// The nodes.
        among: Vec<NodeId>,
        /// How many of them.
        nodes: u32,
    },
    /// What there is of its host now, and what of that belongs to each device of each of its pools. What is given out
    /// stays so.
    Counted {
        /// The node.
        node: NodeId,
        /// What there is.
        host: Amounts,
        /// The parts, pool by pool.
        parts: SmallVec<[Amounts; 1]>,
    },
    /// It is in these domains from now on. What runs there runs on.
    Moved {
        /// The node.
        node: NodeId,
        /// The domains.
        domains: DomainPath,
    },
    /// Which of its devices are out of service now, in place of those that were. They take nothing new, and jobs
    /// on them go elsewhere.
    Health {
        /// The node.
        node: NodeId,
        /// Its devices that are out of service.
        bad: Mask,
    },
}

/// News of one job under one lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The lease; one that is over makes the report stale, and it is ignored.
    pub lease: LeaseId,
    /// The job.
    pub job: JobId,
    /// The news.
    pub news: News,
}

/// How a job is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum News {
    /// It works now.
    Started,
    /// It has done so many steps.
    Progress {
        /// Steps done in all.
        steps: f64,
    },
    /// What it does to its devices.
    Usage(Usage),
    /// What stopping and starting it turned out to cost.
    Costs(Costs),
    /// How long its steps take, and how noisy its gradients are.
    Trained {
        /// Steps done in all.
        steps: f64,
        /// How long the parts of a step took since it last said so.
        timing: Option<Timing>,
        /// Its gradients, as last estimated.
        noise: Option<Noise>,
    },
    /// What its loss is.
    Loss {
        /// Steps done in all.
        steps: f64,
        /// The loss there.
        loss: f64,
    },
    /// It makes its steps in another way from now on.
    Regime {
        /// Steps done in all.
        steps: f64,
        /// Which of its regimes.
        regime: u16,
    },
    /// Whether it cannot be paused where it runs: it then keeps its devices until it is done.
    Stuck(bool),
    /// It gave its devices back.
    Stopped {
        /// Steps that are safe in a checkpoint.
        steps: f64,
        /// Why.
        outcome: Outcome,
    },
}

/// Why a job gave its devices back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is done.
    Finished,
    /// It saved its progress as it was told to.
    Saved,
    /// It lies stopped where it was, as it was told to, and can go on there and nowhere else.
    Frozen,
    /// Its node went away. Not the job's fault.
    Lost,
    /// It ended by itself without being done.
    Crashed,
    /// It used up the time that it was given.
    Expired,
}

/// What the engine wants done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask the policy, and answer with `Input::Planned`.
    Plan {
        /// The request's number.
        plan: PlanId,
        /// What the policy sees.
        view: View,
    },
    /// Have a holder do something. Never fails: a refusal comes back as a report.
    Execute(Command),
    /// A fact for people and metrics.
    Publish(Event),
}

/// An order to whoever runs processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Run these jobs on these devices.
    Grant {
        /// The lease.
        lease: LeaseId,
        /// The group.
        jobs: SmallVec<[JobId; 1]>,
        /// Which of its own shapes each of them holds.
        shapes: SmallVec<[u16; 1]>,
        /// What the steps of each are made of, where that is the scheduler's choice.
        batches: SmallVec<[Option<Batch>; 1]>,
        /// Where.
        placement: Placement,
        /// Until when, unless renewed.
        until: Time,
    },
    /// Go on until then.
    Renew {
        /// The lease.
        lease: LeaseId,
        /// Until when.
        until: Time,
    },
    /// Make steps of another size from now on.
    Tune {
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// What its steps are made of.
        batch: Batch,
    },
    /// Save, stop and report.
    Revoke {
        /// The lease.
        lease: LeaseId,
        /// Which of its jobs.
        jobs: SmallVec<[JobId; 1]>,
        /// What for.
        why: Why,
    },
}

/// What became of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeNews {
    /// It came.
    Joined,
    /// It takes nothing new.
    Draining,
    /// It takes jobs again.
    Resumed,
    /// It left in good order.
    Left,
    /// It is gone.
    Failed,
    /// Other devices of it are out of service than were.
    Health,
    /// What its host has is counted differently now.
    Counted,
    /// It is in other domains than it was.
    Moved,
}

/// A fact, derived from inputs; losing one loses nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A job entered.
    Submitted {
        /// The job.
        job: JobId,
    },
    /// A job with a deadline was promised to be done by then.
    Promised {
        /// The job.
        job: JobId,
        /// By when.
        by: Time,
        /// The most devices it will need at a time.
        devices: u32,
    },
    /// A job with a deadline was accepted without a promise: it runs as well as it can.
    Unpromised {
        /// The job.
        job: JobId,
        /// The earliest deadline that could have been promised, if any.
        earliest: Option<Time>,
    },
    /// What was promised may not be kept: nodes are gone, or a job is slower than it was believed to be.
    AtRisk {
        /// The job.
        job: JobId,
        /// By when it was promised to be done.
        by: Time,
        /// When it is likely to be done now, if ever.
        likely: Option<Time>,
    },
    /// A job was not accepted.
    Rejected {
        /// The job.
        job: JobId,
        /// Why, in a sentence.
        reason: String,
        /// The earliest deadline that would work, where it was the deadline that did not.
        earliest: Option<Time>,
    },
    /// A job gets no devices until it is released. What it was promised is given up.
    Held {
        /// The job.
        job: JobId,
    },
    /// A job that was held waits for devices again.
    Released {
        /// The job.
        job: JobId,
    },
    /// What is asked of a job changed.
    Edited {
        /// The job.
        job: JobId,
    },
    /// A job will never start, because one that it comes after did not succeed; that it ended follows.
    Orphaned {
        /// The job.
        job: JobId,
        /// The one that did not succeed.
        after: JobId,
    },
    /// Devices were handed to a group.
    Granted {
        /// The lease.
        lease: LeaseId,
        /// The jobs.
        jobs: SmallVec<[JobId; 1]>,
        /// The devices.
        placement: Placement,
    },
    /// A job works.
    Started {
        /// The job.
        job: JobId,
    },
    /// A job was told to stop.
    Stopping {
        /// The job.
        job: JobId,
        /// What for.
        why: Why,
        /// The jobs that get its devices, where those were given away already.
        to: SmallVec<[JobId; 1]>,
    },
    /// A job gave its devices back and is not over.
    Stopped {
        /// The job.
        job: JobId,
        /// Steps it keeps.
        steps: f64,
        /// Why.
        outcome: Outcome,
    },
    /// A job is over.
    Ended {
        /// The job.
        job: JobId,
        /// How.
        state: JobState,
    },
    /// A group's devices are all back.
    Freed {
        /// The lease.
        lease: LeaseId,
        /// The devices.
        placement: Placement,
    },
    /// A node changed.
    Node {
        /// The node.
        node: NodeId,
        /// How.
        change: NodeNews,
    },
    /// A policy's answer is in force, with the proof of how good it is.
    Planned {
        /// The request.
        plan: PlanId,
        /// What it reached, what nobody can beat, and what devices cost.
        certificate: Box<Certificate>,
        /// Jobs whose guarantee cannot be kept.
        unmet: Vec<JobId>,
    },
    /// A policy had no usable answer; the last one stays in force.
    PlanFailed {
        /// The request.
        plan: PlanId,
        /// Why, in a sentence.
        reason: String,
    },
    /// A report came for a lease that is over; it was ignored.
    Stale {
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
    },
}
