//! How shares of time become turns (`Mode::Fractions` and `Mode::Capped`): the order in which a round serves them. An order is
//! found by a heap, because a round takes only as many from the front as there are devices.

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::allocation::Mode;
use crate::book::{Book, Entry, ShareId};
use crate::ids::{JobId, KindId};
use crate::units::{Span, Time};

/// How shares of time become turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turns {
    /// Who is due first by its share goes first, whatever its kind (earliest pseudo-deadline: Srinivasan and
    /// Anderson, "Fair Scheduling of Dynamic Task Systems on Multiprocessors", 2005); what one plan promised and
    /// did not deliver, the next one still owes.
    #[default]
    Owed,
    /// As Gavel's simulator does it: kind after kind, by share over time received since the last plan.
    Gavel(GavelTurns),
}

/// What differs between policies in Gavel's simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GavelTurns {
    /// Serves the kinds in an order drawn anew each round from this seed, not in the order of their names.
    pub shuffle: Option<u64>,
    /// Whether jobs without a share may have what is left. Newcomers then take their places among those, but
    /// nothing runs there: a job starts only once a plan has named it.
    pub leftovers: bool,
}

impl Turns {
    /// Whether accounts begin anew with each plan, and count whole steps only.
    pub(crate) fn is_gavel(self) -> bool {
        matches!(self, Turns::Gavel(_))
    }
}

/// The round for which an order is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turning {
    pub(crate) turns: Turns,
    pub(crate) now: Time,
    pub(crate) round: Span,
}

/// Which shares to put in order.
pub(crate) type Wanted<'a> = &'a dyn Fn(&Entry) -> bool;

impl Turning {
    /// Gavel takes half of a round for "just began", so that nobody divides by zero.
    fn credit(&self) -> f64 {
        self.round.secs().max(1.0) / 2.0
    }

    /// All shares in force, in order.
    pub(crate) fn order(&self, book: &Book) -> Order {
        self.order_of(book, &|_| true)
    }

    /// Those of all shares in force that are wanted, in order; where they are limits, those that have not reached
    /// them. Without a beat nobody would come back to who has, so that there they are none.
    pub(crate) fn order_of(&self, book: &Book, wanted: Wanted<'_>) -> Order {
        let capped = book.mode == Mode::Capped && self.round > Span::ZERO;
        let open = |entry: &Entry| wanted(entry) && !(capped && self.has_had_enough(entry));
        match self.turns {
            Turns::Owed => self.owed(book, &open),
            Turns::Gavel(gavel) => self.gavel(book, wanted, gavel),
        }
    }

    /// Whether one round more would be more than half a round too much by the end of it, or nothing is its due.
    fn has_had_enough(&self, entry: &Entry) -> bool {
        let due = entry.promised_by(self.now + self.round);
        entry.is_leftover() || entry.received + self.round.secs() / 2.0 > due
    }

    /// By deadline: when a share should have received one round more than it has, were it served evenly, from now.
    /// A share of all the time is so never passed over for one that merely fell behind a little. Who holds
    /// devices is served as if it had received less, the more so the more a stop costs: turns last longer then.
    fn owed(&self, book: &Book, wanted: Wanted<'_>) -> Order {
        let round = self.round.secs().max(1.0);
        let place = |(share, entry): (ShareId, &Entry)| {
            let grace = if entry.lease.is_some() { grace(entry.restart, round) } else { 0.0 };
            let due = entry.received - grace + round - entry.promised_by(self.now);
            Place::new([-due / entry.fraction, entry.fraction, 0.0], entry, share)
        };
        let shares: Vec<Place> = book.iter().filter(|(_, entry)| wanted(entry)).map(place).collect();
        Order { groups: vec![Group { kind: None, shares: shares.into() }] }
    }

    /// Kind after kind; in each by share over time received, then by deficit, then by share.
    fn gavel(&self, book: &Book, wanted: Wanted<'_>, gavel: GavelTurns) -> Order {
        let mut groups: Vec<(Option<KindId>, Vec<Place>)> = Vec::new();
        for (share, entry) in book.iter().filter(|(_, entry)| wanted(entry)) {
            let class = book.class(entry.class);
            let kind = class.shapes[class.options[0] as usize].needs[0].kind;
            let known = groups.len();
            groups.extend((known..=kind.index()).map(|at| (Some(KindId(at as u16)), Vec::new())));
            let fraction = if entry.is_leftover() { 0.0 } else { entry.fraction };
            // Gavel divides by the part of the kind's time; the kind's time is the same for all.
            let priority = fraction / (entry.received + self.credit());
            let group = &mut groups[kind.index()];
            group.1.push(Place::new([priority, entry.deficit, fraction], entry, share));
            if class.options.len() > 1 {
                group.0 = None;
            }
        }
        if let Some(seed) = gavel.shuffle {
            shuffle(&mut groups, seed ^ self.now.0.checked_div(self.round.0).unwrap_or(self.now.0));
        }
        // The last group is served first.
        let groups = groups.into_iter().rev().map(|(kind, shares)| Group { kind, shares: shares.into() });
        Order { groups: groups.collect() }
    }
}

/// The part of a job's time that changing hands may waste.
const WASTE: f64 = 0.02;

/// Seconds that are not held against a share that has devices, so that its turn is worth what stopping it costs.
/// More than a round would cost the others more: measured with `max-min` on two traces, longer turns raise both
/// completion times and `max_rho`. A little is there without costs too, so that nobody is moved for a rounding error.
fn grace(restart: Span, round: f64) -> f64 {
    (restart.secs() / WASTE).clamp(0.1 * round, round)
}

/// Shares, first in order first.
pub(crate) struct Order {
    /// Served from the last to the first.
    groups: Vec<Group>,
}

struct Group {
    /// The kind that all of these need some of.
    kind: Option<KindId>,
    shares: BinaryHeap<Place>,
}

impl Order {
    /// The first of all.
    pub(crate) fn first(&self) -> Option<ShareId> {
        self.groups.iter().rev().find_map(|group| group.shares.peek()).map(|place| place.share)
    }

    /// The next share. Leaves out those of kinds that are full.
    pub(crate) fn next(&mut self, is_full: impl Fn(KindId) -> bool) -> Option<ShareId> {
        while let Some(group) = self.groups.last_mut() {
            let open = group.kind.is_none_or(|kind| !is_full(kind));
            if let Some(place) = group.shares.pop().filter(|_| open) {
                return Some(place.share);
            }
            self.groups.pop();
        }
        None
    }
}

/// A share's place in an order: larger numbers first, then the older job, then the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    numbers: [u64; 3],
    job: JobId,
    share: ShareId,
}

impl Place {
    fn new(numbers: [f64; 3], entry: &Entry, share: ShareId) -> Place {
        Place { numbers: numbers.map(ordered), job: entry.lead(), share }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> std::cmp::Ordering {
        let age = || (other.job, other.share).cmp(&(self.job, self.share));
        self.numbers.cmp(&other.numbers).then_with(age)
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Maps floats to integers of the same order.
pub(crate) fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// An order drawn from a seed, by SplitMix64: the core has no other source of chance.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for at in (1..items.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        items.swap(at, ((word ^ (word >> 31)) % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_their_order_as_integers() {
        let values = [f64::NEG_INFINITY, -1e15, -1.0, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY];
        assert!(values.windows(2).all(|pair| ordered(pair[0]) <= ordered(pair[1])));
    }

    #[test]
    fn every_order_of_three_is_drawn_about_as_often() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..6_000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, seed);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert!(counts.len() == 6 && counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }
}
