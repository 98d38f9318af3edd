//! Closing the distance to the bound. At the best prices a selection falls short of the bound by what its rows
//! forgo and by what idle devices cost, so a row whose other options each forgo more than the whole distance has
//! its option for good. Over the others: dynamic programming, whose states are the devices taken so far and hold
//! the least that was forgone to take them. States that cannot beat what is known are dropped; where too many are
//! left, the worst are dropped as well, and the best of those is the bound that remains proven.

use super::ChoiceWork;
use super::fit::Picked;
use super::problem::BuyerChoice;

/// Searches one after the other: each begins with the distance that the one before left.
const SEARCHES: u32 = 3;

/// Rows of a search that looks at few: those with the least to forgo.
const ROWS_FEW: usize = 48;

/// Differences below this part of the bound are rounding.
const TINY: f64 = 1e-10;

/// What was proven, and the work it took.
pub(super) struct Closed {
    pub(super) bound: f64,
    pub(super) states: u64,
}

/// Brings a selection within the limits of its bound, or as near as the work allows.
pub(super) fn close(picked: &mut Picked<'_>, limits: &ChoiceWork) -> Closed {
    let mut closed = Closed { bound: picked.bound, states: 0 };
    for search in 0..SEARCHES {
        let value = picked.value();
        let distance = closed.bound - value;
        let left = limits.states.saturating_sub(closed.states);
        if distance <= (limits.gap * value.abs()).max(TINY * closed.bound.abs()) || left == 0 {
            break;
        }
        // The first search is a quick one, because what it finds makes the next one small.
        let (rows, work) = if search == 0 { (ROWS_FEW, left / 4) } else { (usize::MAX, left) };
        let Some(mut search) = CloseSearch::new(picked, rows, work) else { break };
        let least = search.run();
        closed.states += search.states;
        let found = search.found();
        if search.is_complete {
            closed.bound = closed.bound.min(picked.bound - least).max(value);
        }
        found.into_iter().flatten().for_each(|(row, option)| picked.take(row, option));
    }
    closed
}

/// A row that may yet change: its options with what each forgoes and takes, in the key's unit.
struct CloseRow {
    row: usize,
    ways: Vec<CloseWay>,
}

struct CloseWay {
    option: u32,
    forgone: f64,
    key: u64,
}

/// Devices taken so far in one number, the least forgone to take them, and the way that led here.
#[derive(Clone, Copy)]
struct CloseState {
    key: u64,
    forgone: f64,
    way: u16,
}

/// What one kind has for the rows of the search.
struct Digit {
    /// The key's unit for one device.
    unit: u64,
    /// Devices left once each row has the least it may take.
    room: u64,
    price: f64,
    /// Devices beyond the least that rows may still take, from each row on.
    most: Vec<u64>,
}

struct CloseSearch {
    rows: Vec<CloseRow>,
    digits: Vec<Digit>,
    layers: Vec<Vec<CloseState>>,
    /// What is lost anyway, and what must not be reached.
    begun: f64,
    cap: f64,
    /// States in one layer, at most.
    width: usize,
    /// The least that dropped states could have come to.
    dropped: f64,
    states: u64,
    /// Whether all rows that could matter take part.
    is_complete: bool,
}

impl CloseSearch {
    /// None where no row could change for the better, or the devices do not fit into one number.
    fn new(picked: &Picked<'_>, rows_max: usize, work: u64) -> Option<CloseSearch> {
        let distance = picked.bound - picked.value();
        let (mut rows, is_complete) = flexible(picked, distance, rows_max);
        let begun = fixed(picked, &rows);
        let digits = digits(picked, &mut rows)?;
        let ways: usize = rows.iter().map(|row| row.ways.len()).sum();
        let width = (work as usize / ways.max(1)).max(1);
        let cap = distance - TINY * picked.bound.abs();
        let worth = !rows.is_empty();
        worth.then_some(CloseSearch {
            rows,
            digits,
            layers: Vec::new(),
            begun,
            cap,
            width,
            dropped: f64::INFINITY,
            states: 0,
            is_complete,
        })
    }

    /// Goes through all rows; the least that any selection falls short of the bound, as far as was looked.
    fn run(&mut self) -> f64 {
        let mut layer = vec![CloseState { key: 0, forgone: self.begun, way: 0 }];
        for at in 0..self.rows.len() {
            let next = self.step(at, &layer);
            let before = std::mem::replace(&mut layer, next);
            // The first is where every selection begins.
            if at > 0 {
                self.layers.push(before);
            }
        }
        self.layers.push(layer);
        self.end().map_or(self.cap, |(_, least)| least.min(self.cap)).min(self.dropped)
    }

    fn step(&mut self, at: usize, from: &[CloseState]) -> Vec<CloseState> {
        let mut to: Vec<CloseState> = Vec::with_capacity(from.len() * self.rows[at].ways.len());
        for (way, CloseWay { forgone, key, .. }) in self.rows[at].ways.iter().enumerate() {
            let moved = from.iter().map(|state| CloseState {
                key: state.key + key,
                forgone: state.forgone + forgone,
                way: way as u16,
            });
            to.extend(moved.filter(|state| self.comes_to(state, at + 1) < self.cap));
        }
        self.states += (from.len() * self.rows[at].ways.len()) as u64;
        // Each way's states are in order already: the sort merges them.
        to.sort_by(|a, b| a.key.cmp(&b.key).then(a.forgone.total_cmp(&b.forgone)));
        to.dedup_by_key(|state| state.key);
        self.trim(to, at + 1)
    }

    /// What a state comes to at least: what it has forgone, and what devices cost that nobody is left to take.
    /// Infinite where it has taken too many.
    fn comes_to(&self, state: &CloseState, at: usize) -> f64 {
        let mut rest = state.key;
        let mut sum = state.forgone;
        for digit in &self.digits {
            let taken = rest / digit.unit;
            rest %= digit.unit;
            if taken > digit.room {
                return f64::INFINITY;
            }
            sum += digit.price * (digit.room - taken).saturating_sub(digit.most[at]) as f64;
        }
        sum
    }

    /// Keeps as many states as are allowed, the most promising.
    fn trim(&mut self, states: Vec<CloseState>, at: usize) -> Vec<CloseState> {
        if states.len() <= self.width {
            return states;
        }
        let order = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let each: Vec<(f64, u64)> =
            states.iter().map(|state| (self.comes_to(state, at), state.key)).collect();
        let mut mixed = each.clone();
        let first_out = *mixed.select_nth_unstable_by(self.width, order).1;
        self.dropped = self.dropped.min(first_out.0);
        // No two have the same key, so that exactly as many as may stay come before the first that may not.
        let stays = states.into_iter().zip(each).filter(|(_, one)| order(one, &first_out).is_lt());
        stays.map(|(state, _)| state).collect()
    }

    /// The best state after all rows, and what it comes to.
    fn end(&self) -> Option<(CloseState, f64)> {
        let all = self.layers.last()?.iter();
        let ends = all.map(|state| (*state, self.comes_to(state, self.rows.len())));
        ends.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The options of the best selection found, if it is better than what there was.
    fn found(&self) -> Option<Vec<(usize, u32)>> {
        let (mut state, _) = self.end()?;
        let mut options = Vec::with_capacity(self.rows.len());
        for at in (0..self.rows.len()).rev() {
            let way = &self.rows[at].ways[state.way as usize];
            options.push((self.rows[at].row, way.option));
            let key = state.key - way.key;
            if let Some(before) = at.checked_sub(1) {
                let layer = &self.layers[before];
                let place = layer.binary_search_by_key(&key, |state| state.key).ok()?;
                state = layer[place];
            }
        }
        Some(options)
    }
}

/// The rows that could help to close the distance, at most so many: those that forgo least by changing; and whether
/// these are all.
fn flexible(picked: &Picked<'_>, distance: f64, rows_max: usize) -> (Vec<CloseRow>, bool) {
    let mut rows: Vec<(f64, CloseRow)> = Vec::new();
    for row in 0..picked.at.len() {
        let way = |option: u32| CloseWay { option, forgone: picked.forgone(row, option), key: 0 };
        let ways: Vec<CloseWay> = picked
            .ways(row)
            .map(way)
            .filter(|way| way.forgone < distance || way.option == picked.at[row])
            .collect();
        let changed = ways.iter().filter(|way| way.option != picked.at[row]);
        let least = changed.map(|way| way.forgone).fold(f64::INFINITY, f64::min);
        if least < f64::INFINITY {
            rows.push((least, CloseRow { row, ways }));
        }
    }
    let is_complete = rows.len() <= rows_max;
    rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.row.cmp(&b.1.row)));
    rows.truncate(rows_max);
    let mut rows: Vec<CloseRow> = rows.into_iter().map(|(_, row)| row).collect();
    // Rows that take much go first, and those that take little fill what they leave.
    let largest = |row: &CloseRow| row.ways.iter().map(|way| devices(picked.choice, way.option)).max();
    rows.sort_by_key(|row| (std::cmp::Reverse(largest(row)), row.row));
    (rows, is_complete)
}

fn devices(choice: &BuyerChoice, option: u32) -> u32 {
    choice.uses(option).map(|(_, amount)| amount).sum()
}

/// What rows that take no part have forgone.
fn fixed(picked: &Picked<'_>, rows: &[CloseRow]) -> f64 {
    let all = (0..picked.at.len()).map(|row| picked.forgone(row, picked.at[row])).sum::<f64>();
    all - rows.iter().map(|row| picked.forgone(row.row, picked.at[row.row])).sum::<f64>()
}

/// Numbers the devices of each kind, and writes down what each way takes beyond the least of its row. None where
/// there are too many.
fn digits(picked: &Picked<'_>, rows: &mut [CloseRow]) -> Option<Vec<Digit>> {
    let (mut digits, mut unit) = (Vec::new(), 1u64);
    for kind in (0..picked.free.len()).rev() {
        let mut room = picked.free[kind];
        let mut most = vec![0; rows.len() + 1];
        for at in (0..rows.len()).rev() {
            let takes = |option: u32| u64::from(picked.choice.use_of(option, kind));
            let least = rows[at].ways.iter().map(|way| takes(way.option)).min()?;
            let highest = rows[at].ways.iter().map(|way| takes(way.option)).max()?;
            most[at] = most[at + 1] + highest - least;
            room += takes(picked.at[rows[at].row]) as i64 - least as i64;
            for way in &mut rows[at].ways {
                way.key = way.key.checked_add(unit.checked_mul(takes(way.option) - least)?)?;
            }
        }
        let room = u64::try_from(room).ok()?;
        digits.push(Digit { unit, room, price: picked.prices[kind], most });
        // A digit may run over by what one row takes before the state is dropped.
        let highest = u64::from(picked.choice.capacity[kind]);
        unit = unit.checked_mul(room.checked_add(highest)?.checked_add(1)?)?;
    }
    digits.reverse();
    Some(digits)
}
