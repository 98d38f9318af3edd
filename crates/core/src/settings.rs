//! How the engine is run.

use serde::{Deserialize, Serialize};

use crate::policy::{Cadence, Policy};
use crate::turns::Turns;
use crate::units::Span;

/// How the engine is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Length of a round; zero decides at each event.
    pub round: Span,
    /// Whether the policy's order changes as time passes (`Cadence::EveryRound`).
    pub every_round: bool,
    /// Whether each round places everybody anew, as some papers' simulators do.
    pub repack: bool,
    /// Whether free devices are given out between rounds as well, without stopping anybody.
    pub fill: bool,
    /// How shares of time become turns.
    pub turns: Turns,
    /// Least time from one plan to the next; zero: a plan whenever something changed.
    pub plan_gap: Span,
    /// How long a lease lasts unless renewed.
    pub lease: Span,
    /// How long a job is held back after its first failure, twice as long after each further one; see
    /// `Settings::hold_after`.
    pub backoff: Span,
    /// Whether deadlines are promised: what was promised is kept before anybody's order, and a deadline that cannot
    /// be is not.
    pub promises: bool,
    /// Whether at most one gang that spans nodes lies on a node (`Policy::keeps_apart`).
    #[serde(default)]
    pub apart: bool,
    /// Whether lengths may be wrong or missing, so that how long jobs were is remembered for those that come.
    #[serde(default)]
    pub learns_lengths: bool,
}

/// Doublings of the back-off after which it grows no longer.
const BACKOFF_DOUBLINGS_MAX: u32 = 6;

impl Settings {
    pub(crate) fn assert_sound(&self) {
        assert!(self.lease > Span::ZERO, "a lease lasts longer than no time");
    }

    /// What follows from the policy that is asked.
    pub fn follow(&mut self, policy: &dyn Policy) {
        self.every_round = policy.cadence() == Cadence::EveryRound;
        self.apart = policy.keeps_apart();
    }

    /// How long a job is held back after so many failures.
    pub fn hold_after(&self, failures: u32) -> Span {
        let doublings = failures.saturating_sub(1).min(BACKOFF_DOUBLINGS_MAX);
        Span(if failures == 0 { 0 } else { self.backoff.0.saturating_mul(1 << doublings) })
    }
}

impl Default for Settings {
    fn default() -> Settings {
        let lease = Span::from_whole_secs(86_400);
        Settings {
            round: Span::ZERO,
            every_round: false,
            repack: false,
            fill: false,
            turns: Turns::Owed,
            plan_gap: Span::ZERO,
            lease,
            backoff: Span::ZERO,
            promises: false,
            apart: false,
            learns_lengths: false,
        }
    }
}
