//! How shares of time become turns (`Mode::Fractions`, `Mode::Rotation`): the order in which a round serves them. An order is
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
    /// Who is furthest behind its share goes first, whatever its kind, measured by its age; what one plan promised
    /// and did not deliver, the next one still owes. Against deadlines by share (Srinivasan and Anderson, "Fair
    /// Scheduling of Dynamic Task Systems on Multiprocessors", 2005), which hold every share to within a round: that
    /// exactness costs a change of hands a round, and no job gains from it. A policy may want it all the same
    /// (`Mode::Rotation`).
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

impl Turning {
    /// Gavel takes half of a round for "just began", so that nobody divides by zero.
    fn credit(&self) -> f64 {
        self.round.secs().max(1.0) / 2.0
    }

    /// All shares in force, in order.
    pub(crate) fn order(&self, book: &Book) -> Order {
        match self.turns {
            Turns::Owed => self.owed(book),
            Turns::Gavel(gavel) => self.gavel(book, gavel),
        }
    }

    /// Who is furthest behind for its age goes first: a day's job may wait hours for its turn, one that just came
    /// may not. Who holds devices is served as if it were owed more, the more so the older it is and the more a stop
    /// costs: turns grow with age, and a job changes hands a few times in its life, not once a round.
    fn owed(&self, book: &Book) -> Order {
        let (mut meant, mut left) = (Vec::new(), Vec::new());
        for (share, entry) in book.iter() {
            let last = entry.fraction < SLIVER;
            let by_deadline = last || book.mode == Mode::Rotation;
            let claim = if by_deadline { self.sooner(entry) } else { self.claim(book, entry) };
            let group = if last { &mut left } else { &mut meant };
            group.push(Place::new([claim, entry.fraction, 0.0], entry, share));
        }
        Order { groups: vec![Group::new(None, left), Group::new(None, meant)] }
    }

    fn claim(&self, book: &Book, entry: &Entry) -> f64 {
        let (age, youth) = ((self.now - entry.since).secs(), YOUTH * self.round.secs().max(1.0));
        let keeps = if entry.lease.is_some() { TURN * age } else { 0.0 };
        // Who should nearly always run cannot catch up with what it missed, so a little of it counts for much.
        let slack = (2.0 * (1.0 - entry.fraction)).clamp(SLACK_MIN, 1.0);
        (self.seconds_owed(entry) / (book.share_of(entry) * slack) + keeps + youth) / (age + youth)
    }

    /// By deadline: the sooner a share should have received one round more than it has, were it served evenly, the more.
    fn sooner(&self, entry: &Entry) -> f64 {
        (self.seconds_owed(entry) - self.round.secs().max(1.0)) / entry.fraction
    }

    fn seconds_owed(&self, entry: &Entry) -> f64 {
        let round = self.round.secs().max(1.0);
        let grace = if entry.lease.is_some() { grace(entry.restart, round) } else { 0.0 };
        entry.promised_by(self.now) - entry.received + grace
    }

    /// Kind after kind; in each by share over time received, then by deficit, then by share.
    fn gavel(&self, book: &Book, gavel: GavelTurns) -> Order {
        let mut groups: Vec<(Option<KindId>, Vec<Place>)> = Vec::new();
        for (share, entry) in book.iter() {
            let class = book.class(entry.class);
            let kind = class.shapes[class.options[0] as usize].needs[0].kind;
            if groups.len() <= kind.index() {
                groups.resize_with(kind.index() + 1, Default::default);
                (0..).zip(&mut groups).for_each(|(at, group)| group.0 = Some(KindId(at)));
            }
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
        let groups = groups.into_iter().rev().map(|(kind, shares)| Group::new(kind, shares));
        Order { groups: groups.collect() }
    }
}

/// How far a turn may take a job from what it is owed, as a part of its age. Measured with `max-min` on 108 devices of
/// three kinds at 5.6 jobs an hour, with h200 costs: at 0.1 there are 8 times and at 0.2 11 times fewer stops than with
/// turns of a round, and jobs finish 2.5 % sooner on average; at 0.4 the largest `rho` begins to grow.
const TURN: f64 = 0.2;

/// Rounds after which a job is no longer taken for new. The newer, the sooner it is served: with less, `rho` grows on
/// average, since short jobs then wait for as long as long ones.
const YOUTH: f64 = 5.0;

/// What counts for shares of all the time must stay finite. To serve those first whatever else is owed was tried: the
/// largest `rho` of the run above is then 1.93, and 1.84 without.
const SLACK_MIN: f64 = 0.05;

/// Shares below this are not meant to be received: they say who has what is left.
const SLIVER: f64 = 1e-6;

/// The part of a job's time that changing hands may waste.
const WASTE: f64 = 0.02;

/// Seconds that are not held against a share that has devices, so that its turn is worth what stopping it costs.
/// A little is there without costs too, so that nobody is moved for a rounding error.
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
    shares: Shares,
}

/// Brought into order only when they are reached: mostly few are still of interest then.
enum Shares {
    Listed(Vec<Place>),
    Ordered(BinaryHeap<Place>),
}

impl Group {
    fn new(kind: Option<KindId>, shares: Vec<Place>) -> Group {
        Group { kind, shares: Shares::Listed(shares) }
    }

    fn first(&self) -> Option<&Place> {
        match &self.shares {
            Shares::Listed(list) => list.iter().max(),
            Shares::Ordered(heap) => heap.peek(),
        }
    }

    /// The next one, of those that were not `settled` when the group was reached.
    fn pop(&mut self, settled: impl Fn(ShareId) -> bool) -> Option<Place> {
        if let Shares::Listed(list) = &mut self.shares {
            list.retain(|place| !settled(place.share));
            self.shares = Shares::Ordered(std::mem::take(list).into());
        }
        match &mut self.shares {
            Shares::Ordered(heap) => heap.pop(),
            Shares::Listed(_) => None,
        }
    }
}

impl Order {
    /// The first of all.
    pub(crate) fn first(&self) -> Option<ShareId> {
        self.groups.iter().rev().find_map(Group::first).map(|place| place.share)
    }

    /// The next share. Leaves out those of kinds that are full, and may leave out those that are settled: whose jobs
    /// have devices, so that the caller would pass them over.
    pub(crate) fn next(
        &mut self,
        is_full: impl Fn(KindId) -> bool,
        settled: impl Fn(ShareId) -> bool,
    ) -> Option<ShareId> {
        while let Some(group) = self.groups.last_mut() {
            let open = group.kind.is_none_or(|kind| !is_full(kind));
            if let Some(place) = open.then(|| group.pop(&settled)).flatten() {
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
