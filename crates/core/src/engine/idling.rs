//! Liveness: while nobody holds a device, a job that may run does not wait for long, whatever was learned, reported or
//! believed. Who drives the engine sees to that: it has the clock.

use super::Engine;
use crate::allocation::Mode;
use crate::cluster::{NodeState, Nodes};
use crate::ids::{JobId, JobIdx};
use crate::job::Shape;
use crate::units::Span;

/// Rounds that may pass: one for the plan, one for the round, and some for jobs that start again.
const ROUNDS_MAX: u64 = 8;

/// What stands for a round where there is none, or a short one: after a failed plan the next comes soon, but not at once.
const ROUND_MIN: Span = Span::from_whole_secs(15);

impl Engine {
    /// How long a job may be left so: some rounds, and until the next plan where that comes only now and then.
    pub fn idles_at_most(&self) -> Span {
        let settings = &self.state.settings;
        Span(settings.round.max(ROUND_MIN).0.saturating_mul(ROUNDS_MAX)) + settings.plan_gap
    }

    /// The oldest job that waits though nobody holds a device and nothing keeps it from running. In a queue in which
    /// nobody passes the first, it is that one or none. A promise keeps a job from running: it need not start before it
    /// must. So does a policy that has jobs wait by naming them in no share, where only `named` ones count.
    pub fn idles_for(&self, named: bool) -> Option<JobId> {
        let state = &self.state;
        if !state.leases.is_empty() || self.waits_for_a_promise() {
            return None;
        }
        let strict = matches!(state.book.mode, Mode::Ordered { skip: false, .. });
        let first = state.book.first().filter(|_| strict).map(|key| &state.book.entry(key.share).jobs);
        let barred = |row: &JobIdx| {
            let behind = first.is_some_and(|first| !first.contains(row));
            let unnamed = named && state.book.shares_of(*row).is_empty();
            behind || unnamed || state.run(*row).promise.is_some()
        };
        let may_run = |row: &JobIdx| state.run(*row).is_waiting() && !barred(row) && self.has_room(*row);
        state.rows.iter().find(|(_, row)| may_run(row)).map(|(id, _)| *id)
    }

    fn could_place(&self, nodes: &Nodes, shape: &Shape) -> bool {
        self.placer.lay(nodes, shape).is_some()
    }

    /// Whether somebody waits who could not be stopped in time for a promise. No policy knows of that, so others may
    /// have to wait behind it.
    fn waits_for_a_promise(&self) -> bool {
        let gate = self.state.gate();
        self.state.rows.values().any(|row| self.state.run(*row).is_waiting() && gate.concerns(&[*row]))
    }

    /// Whether a job could be placed now; one that lies frozen, where it lies. A shape in which it makes no progress
    /// counts only where it makes none in any: then that is what it was wrongly taught.
    fn has_room(&self, row: JobIdx) -> bool {
        let (nodes, spec) = (&*self.state.nodes, &self.state.specs[row.index()]);
        if let Some(home) = &self.state.run(row).home {
            return home.0.iter().all(|slice| nodes.get(slice.node).state == NodeState::Up);
        }
        let stranded = spec.usable().next().is_none();
        let mut ways = spec.shapes.iter().zip(&*spec.speeds).filter(|(_, speed)| stranded || **speed > 0.0);
        ways.any(|(shape, _)| self.could_place(nodes, shape))
    }
}
