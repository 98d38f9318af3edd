//! Rounds that grow. What happens in a minute cannot be told to the second weeks ahead, and need not be: from some time
//! on, a round is as long as may be while it is at most a part of the time since then. A day is then some sixty rounds,
//! where it were fourteen hundred of a minute. Each length is twice the one before, so that the beats of the longer are
//! beats of the shorter too; devices that fall free between beats are given out as ever.
//!
//! Where deadlines are promised rounds stay as they are: plans that keep promises go by their beats.

use crate::engine::Engine;
use crate::units::{Span, Time};

/// A round is at most this part of the time since rounds began to grow.
const PART: u64 = 8;

/// How rounds grow.
pub(super) struct Rough {
    /// Their length at first.
    round: Span,
    from: Option<Time>,
}

impl Rough {
    pub(super) fn new(round: Span, from: Option<Time>) -> Rough {
        Rough { round, from }
    }

    /// Since when they grow.
    pub(super) fn from(&self) -> Option<Time> {
        self.from
    }

    /// How long a round is from now on; `tired`: they should grow from now on, if they do not yet.
    pub(super) fn round(&mut self, engine: &Engine, now: Time, tired: bool) -> Span {
        self.from = self.from.or(tired.then_some(now));
        let since = self.from.map_or(Span::ZERO, |from| now - from);
        let times = since.0.checked_div(self.round.0).unwrap_or_default() / PART;
        let free = engine.state().promises.kept.is_empty();
        let doublings = if free { times.checked_ilog2().unwrap_or_default() } else { 0 };
        Span(self.round.0 << doublings)
    }
}
