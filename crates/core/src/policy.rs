//! The one interface of all policies, and of all placers.

use thiserror::Error;

use crate::allocation::Allocation;
use crate::cluster::{Nodes, Placement};
use crate::job::{Close, Shape};
use crate::view::View;

/// Decides who should hold what.
pub trait Policy: Send {
    /// Answers for what changed, or for everything. Reads nothing but the view; may keep an index of
    /// its own for speed, and must answer the same without it.
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError>;

    /// When it wants to be asked.
    fn cadence(&self) -> Cadence {
        Cadence::OnChange
    }

    /// Whether it takes all kinds of devices for equal. Gavel's rounds then serve them in no fixed order.
    fn agnostic(&self) -> bool {
        false
    }

    /// Whether at most one gang that spans nodes may lie on a node, so that they do not slow each other down.
    fn keeps_apart(&self) -> bool {
        false
    }

    /// Whether jobs without a share wait, even where Gavel's rounds leave devices idle.
    fn blocking(&self) -> bool {
        false
    }
}

/// When a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// When jobs or nodes come or go, and when it asked to be.
    OnChange,
    /// Every round in which somebody waits, because its order changes as time passes.
    EveryRound,
}

/// What a policy makes of the priorities of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// A job of larger priority comes before any of smaller; among equals the policy's own order holds.
    Classes,
    /// A job of larger priority is worth more to the policy.
    Worth,
    /// It cannot honour them: whoever hands it jobs refuses those with a priority. Says what to use instead.
    Refused(&'static str),
}

impl Priorities {
    /// In a word, as tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Priorities::Classes => "classes",
            Priorities::Worth => "worth",
            Priorities::Refused(_) => "refused",
        }
    }

    /// Why a job with a priority cannot be handed to this policy, and what to do; nothing where it can.
    pub fn refusal(self, policy: &str) -> Option<String> {
        let Priorities::Refused(instead) = self else { return None };
        Some(format!(
            "policy {policy} does not honour priorities: leave the job's priority at 0, or {instead}"
        ))
    }
}

/// What a policy must be told of jobs to do what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knowledge {
    /// How long they take.
    Durations,
    /// How far they are, from their own reports.
    Progress,
    /// How fast they are in each size and on each kind.
    Speeds,
    /// How their losses fall, from their own reports.
    Losses,
    /// How their speed changes as they train.
    Regimes,
}

impl Knowledge {
    /// In a word, as tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Durations => "durations",
            Knowledge::Progress => "progress",
            Knowledge::Speeds => "speeds",
            Knowledge::Losses => "losses",
            Knowledge::Regimes => "regimes",
        }
    }
}

/// Why a policy has no answer. The last allocation then stays in force.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{0}")]
pub struct PolicyError(pub String);

/// Chooses exact devices.
pub trait Placer: Send {
    /// Free devices for the whole shape, or `None` where they cannot be had now.
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement>;

    /// The same with their part of the hosts, and as close as the shape should lie, where that can be had.
    fn lay(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let place = |shape: &Shape| {
            let placement = self.place(nodes, shape)?;
            assert!(
                nodes.lies(&placement, shape),
                "a placer put {shape:?} where it must not lie: {placement:?}"
            );
            nodes.furnish(placement, shape)
        };
        let Close { required, preferred } = shape.close;
        if preferred == required {
            return place(shape);
        }
        shape.close.levels().find_map(|level| place(&shape.clone().within(level)))
    }
}
