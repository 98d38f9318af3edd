//! A policy's answer: who should hold what, for how much of the time, in which order.

mod check;

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

pub(crate) use self::check::check;
use crate::ids::JobIdx;
use crate::job::Rank;
use crate::units::Time;
use crate::view::View;

/// The fraction of time for which a group of jobs should hold a shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The jobs on the same devices: usually one, more when packed.
    pub jobs: SmallVec<[JobIdx; 1]>,
    /// Which of the first job's shapes; `None`: any of them, best liked first.
    pub shape: Option<u16>,
    /// Fraction of the time, above 0 and at most 1. The shares of one job add up to at most 1.
    pub fraction: f64,
    /// Place in the order, after priorities; counts in `Mode::Ordered` only.
    pub rank: Rank,
}

impl Share {
    /// The fraction of a share that may have only what nobody else wants: in every order behind all others, and
    /// so small that it counts for nothing in sums.
    pub const LEFTOVER: f64 = 1e-9;

    /// All of the time on any of its shapes, at this place in the order.
    pub fn whole(job: JobIdx, rank: Rank) -> Share {
        Share { jobs: smallvec![job], shape: None, fraction: 1.0, rank }
    }

    /// A part of the time on any of its shapes.
    pub fn part(job: JobIdx, fraction: f64) -> Share {
        Share { jobs: smallvec![job], shape: None, fraction, rank: Rank::default() }
    }

    /// What nobody else wants, in one of its shapes.
    pub fn leftover(job: JobIdx, shape: u16, rank: Rank) -> Share {
        Share { jobs: smallvec![job], shape: Some(shape), fraction: Share::LEFTOVER, rank }
    }
}

/// The shares, all of them or what is new about them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shares {
    /// Everything; a job not in it gets nothing.
    All(Vec<Share>),
    /// These replace the shares of the jobs in them; all others stay as they are.
    Changed(Vec<Share>),
}

/// How shares become who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// By rank.
    Ordered {
        /// Whether a job may be stopped for one that ranks before it.
        preempt: bool,
        /// Whether smaller jobs may go past one that does not fit (else the first such job blocks).
        skip: bool,
        /// Whether a job of larger priority goes before any of smaller, whatever their ranks.
        #[serde(default = "by_default")]
        classes: bool,
    },
    /// By share over time received, every round anew: who is furthest behind goes first.
    Fractions,
    /// The same, and nobody has more than its share: what all shares together leave stays idle.
    Capped,
}

impl Mode {
    /// Whether shares are parts of the time.
    pub fn takes_turns(self) -> bool {
        matches!(self, Mode::Fractions | Mode::Capped)
    }

    /// Whether priorities count before ranks.
    pub fn has_classes(self) -> bool {
        matches!(self, Mode::Ordered { classes: true, .. })
    }
}

/// Priorities count before ranks where a journal of an older program says nothing of it.
fn by_default() -> bool {
    true
}

/// What a policy wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// How shares become who runs.
    pub mode: Mode,
    /// The shares.
    pub shares: Shares,
    /// When the policy wants to be asked again even if nothing happens before.
    pub replan_at: Option<Time>,
    /// How good it is, where the policy solved a problem for it.
    pub certificate: Option<Box<Certificate>>,
}

/// How far an allocation is from the optimum, and what devices cost in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// What the policy reached, in its own measure.
    pub objective: f64,
    /// What no allocation can beat, in the same measure: above the objective where more is better.
    pub bound: f64,
    /// The price of one device of each kind for all of the time, by `KindId`; all devices together cost 1.
    pub prices: Vec<f64>,
    /// Jobs whose guarantee cannot be kept.
    pub unmet: Vec<JobIdx>,
}

impl Certificate {
    /// The proven distance from the optimum, relative to the objective.
    pub fn gap(&self) -> f64 {
        (self.bound - self.objective).abs() / self.objective.abs().max(f64::MIN_POSITIVE)
    }
}

impl Allocation {
    /// Whether it can be an answer to this view, and what is wrong where not. The engine asks the same of every plan.
    pub fn check(&self, view: &View) -> Result<(), String> {
        check(self, &view.specs, &view.runs)
    }

    /// Whole shares by rank, passing what does not fit, stopping jobs for better ones.
    pub fn preemptive(shares: Shares) -> Allocation {
        Allocation {
            mode: Mode::Ordered { preempt: true, skip: true, classes: true },
            shares,
            replan_at: None,
            certificate: None,
        }
    }

    /// Whole shares by rank; what runs, runs on.
    pub fn queue(shares: Shares, skip: bool) -> Allocation {
        Allocation {
            mode: Mode::Ordered { preempt: false, skip, classes: true },
            shares,
            replan_at: None,
            certificate: None,
        }
    }

    /// Parts of the time.
    pub fn fractions(shares: Vec<Share>) -> Allocation {
        Allocation { mode: Mode::Fractions, shares: Shares::All(shares), replan_at: None, certificate: None }
    }

    /// Parts of the time that nobody exceeds.
    pub fn capped(shares: Vec<Share>) -> Allocation {
        Allocation { mode: Mode::Capped, ..Allocation::fractions(shares) }
    }
}
