//! How shares of time become turns (`Mode::Fractions` and `Mode::Capped`): the order in which a round serves them. Shares
//! are put in order from the front, as far as they are asked for: a round takes only as many as there are devices.

use crate::allocation::Mode;
use crate::book::{Book, Entry};
use crate::ids::{JobId, KindId, ShareId};
use crate::turns::{GavelTurns, Turns, ordered};
use crate::units::{Span, Time};

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
    /// Who could only change them for others is served as if it had received more.
    fn owed(&self, book: &Book, wanted: Wanted<'_>) -> Order {
        let round = self.round.secs().max(1.0);
        let (served, mut inertia) = (book.served(), Inertia::new(*self, book));
        let mut group = Group::new(None, book.n_shares());
        for (share, entry) in book.iter().filter(|(_, entry)| wanted(entry)) {
            let bias = match entry.lease {
                Some(_) => -grace(entry.restart, round),
                None if served.has_any(&entry.jobs) => inertia.of(entry),
                None => 0.0,
            };
            let due = entry.received + bias + round - entry.promised_by(self.now);
            group.add(Place::new([-due / entry.fraction, entry.fraction, 0.0], entry, share));
        }
        Order { groups: vec![group] }
    }

    /// Kind after kind; in each by share over time received, then by deficit, then by share.
    fn gavel(&self, book: &Book, wanted: Wanted<'_>, gavel: GavelTurns) -> Order {
        let mut groups: Vec<Group> = Vec::new();
        for (share, entry) in book.iter().filter(|(_, entry)| wanted(entry)) {
            let class = book.class(entry.class);
            let kind = class.shapes[class.options[0] as usize].needs[0].kind;
            let known = groups.len();
            groups.extend(
                (known..=kind.index()).map(|at| Group::new(Some(KindId(at as u16)), book.n_shares())),
            );
            let fraction = if entry.is_leftover() { 0.0 } else { entry.fraction };
            // Gavel divides by the part of the kind's time; the kind's time is the same for all.
            let priority = fraction / (entry.received + self.credit());
            let group = &mut groups[kind.index()];
            group.add(Place::new([priority, entry.deficit, fraction], entry, share));
            if class.options.len() > 1 {
                group.kind = None;
            }
        }
        if let Some(seed) = gavel.shuffle {
            shuffle(&mut groups, seed ^ self.now.0.checked_div(self.round.0).unwrap_or(self.now.0));
        }
        // The last group is served first.
        groups.reverse();
        Order { groups }
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

/// The part of its time so far that a job may have one kind too long, and at most so many rounds. Measured with `max-min`
/// on Gavel's 9 000 jobs and on eight traces of 96: fewer than half as many moves, shorter completion times, lower `max_rho`.
const INERTIA: f64 = 0.03;
const INERTIA_ROUNDS: f64 = 12.0;

/// Seconds that a share must be further behind before its job leaves other devices for it. The longer a job is there, the
/// less it matters in which order it has its kinds. It is passed over only for jobs that run as well: one that waits finds
/// it no more than half of this behind.
struct Inertia<'a> {
    turning: Turning,
    book: &'a Book,
    /// That of shares of one job alone, which all of them have; not a number where nobody asked yet.
    of_job: Vec<f64>,
}

impl<'a> Inertia<'a> {
    fn new(turning: Turning, book: &'a Book) -> Inertia<'a> {
        Inertia { turning, book, of_job: vec![f64::NAN; book.n_jobs()] }
    }

    fn of(&mut self, entry: &Entry) -> f64 {
        let [job] = entry.jobs[..] else { return self.work_out(entry) };
        if self.of_job[job.index()].is_nan() {
            self.of_job[job.index()] = self.work_out(entry);
        }
        self.of_job[job.index()]
    }

    fn work_out(&self, entry: &Entry) -> f64 {
        let Turning { now, round, .. } = self.turning;
        let shares = entry.jobs.iter().flat_map(|job| self.book.shares_of(*job));
        let promised: f64 = shares.map(|share| self.book.entry(*share).promised_by(now)).sum();
        (promised * INERTIA).min(INERTIA_ROUNDS * round.secs())
    }
}

/// Shares, first in order first.
pub(crate) struct Order {
    /// Served from the last to the first.
    groups: Vec<Group>,
}

/// Shares in no order yet but for those at the end, which come first: no more are put in order than are asked for.
struct Group {
    /// The kind that all of these need some of.
    kind: Option<KindId>,
    places: Vec<Place>,
    /// The first two numbers of each place that is still to come, which decide nearly always, and which place it is.
    tickets: Vec<(u128, u32)>,
    sorted: usize,
    /// How many are put in order next.
    chunk: usize,
}

/// Shares that are put in order at first, then twice as many each time.
const CHUNK: usize = 64;

impl Group {
    fn new(kind: Option<KindId>, most: usize) -> Group {
        let (places, tickets) = (Vec::with_capacity(most), Vec::with_capacity(most));
        Group { kind, places, tickets, sorted: 0, chunk: CHUNK }
    }

    fn add(&mut self, place: Place) {
        let [first, second, _] = place.numbers.map(u128::from);
        self.tickets.push((first << 64 | second, self.places.len() as u32));
        self.places.push(place);
    }

    /// The first that is still to come.
    fn peek(&mut self) -> Option<ShareId> {
        if self.sorted == 0 {
            self.sort_more();
        }
        self.tickets.last().map(|(_, at)| self.places[*at as usize].share)
    }

    fn pop(&mut self, is_out: impl Fn(ShareId) -> bool) -> Option<ShareId> {
        if self.sorted == 0 && self.chunk > CHUNK {
            let Group { places, tickets, .. } = self;
            tickets.retain(|(_, at)| !is_out(places[*at as usize].share));
        }
        let first = self.peek()?;
        self.tickets.pop();
        self.sorted -= 1;
        Some(first)
    }

    fn sort_more(&mut self) {
        let Group { places, tickets, .. } = self;
        let order = |a: &(u128, u32), b: &(u128, u32)| {
            a.0.cmp(&b.0).then_with(|| places[a.1 as usize].cmp(&places[b.1 as usize]))
        };
        let rest = tickets.len().saturating_sub(self.chunk);
        if rest > 0 {
            tickets.select_nth_unstable_by(rest, order);
        }
        tickets[rest..].sort_unstable_by(order);
        (self.sorted, self.chunk) = (tickets.len() - rest, 2 * self.chunk);
    }
}

impl Order {
    /// The first of all.
    pub(crate) fn first(&mut self) -> Option<ShareId> {
        self.groups.iter_mut().rev().find_map(Group::peek)
    }

    /// The next share. Leaves out those of kinds that are full, and what is found in time to be out for good.
    pub(crate) fn next(
        &mut self,
        is_full: impl Fn(KindId) -> bool,
        is_out: impl Fn(ShareId) -> bool,
    ) -> Option<ShareId> {
        while let Some(group) = self.groups.last_mut() {
            let open = group.kind.is_none_or(|kind| !is_full(kind));
            if let Some(share) = open.then(|| group.pop(&is_out)).flatten() {
                return Some(share);
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is put in order bit by bit comes as if all had been sorted at once.
        #[test]
        fn the_order_is_that_of_all(numbers in prop::collection::vec((0u64..40, 0u64..3), 0..900)) {
            let place = |(at, (first, second)): (usize, &(u64, u64))| Place {
                numbers: [*first, *second, 0],
                job: JobId(at as u64 / 2),
                share: ShareId(at as u32),
            };
            let mut all: Vec<Place> = numbers.iter().enumerate().map(place).collect();
            let mut group = Group::new(None, 0);
            all.iter().for_each(|place| group.add(*place));
            all.sort_unstable_by(|a, b| b.cmp(a));
            let mut order = Order { groups: vec![group] };
            prop_assert_eq!(order.first(), all.first().map(|place| place.share));
            let out = |share: ShareId| share.0 % 3 == 1;
            let found: Vec<ShareId> = std::iter::from_fn(|| order.next(|_| false, out)).collect();
            prop_assert!(found.iter().skip(CHUNK).all(|share| !out(*share)));
            let stays = |share: &ShareId| !out(*share);
            let wanted: Vec<ShareId> = all.iter().map(|place| place.share).filter(stays).collect();
            prop_assert_eq!(found.into_iter().filter(stays).collect::<Vec<_>>(), wanted);
        }
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
