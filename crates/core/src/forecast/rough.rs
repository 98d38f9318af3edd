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
/// The same where many runs make an interval: it is what they have in common that counts.
const PART_OF_MANY: u64 = 4;

/// How rounds grow.
pub(super) struct Rough {
    /// Their length at first.
    round: Span,
    from: Option<Time>,
    part: u64,
    /// Since when they are longer than at first.
    grown: Option<Time>,
}

impl Rough {
    /// `many`: it is one run of many.
    pub(super) fn new(round: Span, from: Option<Time>, many: bool) -> Rough {
        Rough { round, from, part: if many { PART_OF_MANY } else { PART }, grown: None }
    }

    /// Since when they grow.
    pub(super) fn from(&self) -> Option<Time> {
        self.from
    }

    /// Since when they are longer than at first.
    pub(super) fn grown(&self) -> Option<Time> {
        self.grown
    }

    /// How long a round is from now on; `tired`: they should grow from now on, if they do not yet.
    pub(super) fn round(&mut self, engine: &Engine, now: Time, tired: bool) -> Span {
        self.from = self.from.or(tired.then_some(now));
        let since = self.from.map_or(Span::ZERO, |from| now - from);
        let times = since.0.checked_div(self.round.0).unwrap_or_default() / self.part;
        let free = engine.state().promises.kept.is_empty();
        let doublings = if free { times.checked_ilog2().unwrap_or_default() } else { 0 };
        self.grown = self.grown.or((doublings > 0).then_some(now));
        Span(self.round.0 << doublings)
    }
}
