//! Who has devices, and who comes first: kept in order where the policy ranks, in none where jobs take turns.

use std::ops::Bound::{Excluded, Unbounded};

use super::{Book, Key};
use crate::allocation::Mode;
use crate::bits::Bits;
use crate::ids::ShareId;

impl Book {
    /// The rows of chosen shares.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = ShareId> + '_ {
        self.holding.iter().map(ShareId)
    }

    /// Chosen shares, last in order first.
    pub(crate) fn chosen_from_last(&self) -> impl Iterator<Item = Key> + '_ {
        let mut sorted: Vec<Key> = Vec::new();
        if self.mode.takes_turns() {
            sorted.extend(self.chosen().map(|share| self.entry(share).key));
            sorted.sort_unstable();
        }
        self.chosen.iter().rev().copied().chain(sorted.into_iter().rev())
    }

    /// The first share of all.
    pub(crate) fn first(&self) -> Option<Key> {
        let heads = self.classes.iter().filter_map(|class| class.waiting.first());
        heads.chain(self.chosen.first()).min().copied()
    }

    /// The first waiting share of a class after `after`.
    pub(crate) fn head(&self, class: usize, after: Option<Key>) -> Option<Key> {
        let waiting = &self.classes[class].waiting;
        match after {
            None => waiting.first().copied(),
            Some(key) => waiting.range((Excluded(key), Unbounded)).next().copied(),
        }
    }

    /// Puts shares in order as the mode wants it, or leaves them without one.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        let takes_turns = self.mode.takes_turns();
        self.mode = mode;
        if mode.takes_turns() != takes_turns {
            self.line_up();
        }
    }

    /// Finds anew who holds devices and, where that is kept, the order of all.
    pub(crate) fn line_up(&mut self) {
        self.classes.iter_mut().for_each(|class| class.waiting.clear());
        self.chosen.clear();
        self.holding = Bits::default();
        let rows = self.entries.iter().enumerate().filter(|(_, entry)| entry.alive);
        for (row, entry) in rows {
            if entry.lease.is_some() {
                self.holding.insert(row as u32);
            }
            match entry.lease {
                _ if self.mode.takes_turns() => {}
                Some(_) => _ = self.chosen.insert(entry.key),
                None => _ = self.classes[entry.class.0 as usize].waiting.insert(entry.key),
            }
        }
    }
}
