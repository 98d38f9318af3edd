//! From what rows ask for at the best prices to what fits. Rows that forgo least for each device they give up are
//! moved first; then whatever still fits is given to those who gain most for what it costs.

use super::prices::Priced;
use super::problem::{BuyerChoice, NONE};

/// Times that what is left is given out; each time something is, so there is an end anyway.
const GIVEN_MAX: usize = 16;

/// A selection under way, beside the prices it is judged by.
#[derive(Clone, Debug)]
pub(super) struct Picked<'a> {
    pub(super) choice: &'a BuyerChoice,
    pub(super) prices: &'a [f64],
    /// What the prices prove.
    pub(super) bound: f64,
    /// The option of each row, or none.
    pub(super) at: Vec<u32>,
    /// Devices left of each kind; below zero: too many are taken.
    pub(super) free: Vec<i64>,
    /// The net worth of each row's best option: what it forgoes is counted from there.
    pub(super) best: Vec<f64>,
}

/// A row that could take another option.
struct Move {
    row: u32,
    to: u32,
    /// The less, the sooner.
    order: f64,
}

impl<'a> Picked<'a> {
    /// What rows like best at these prices, whether it fits or not.
    pub(super) fn at_prices(choice: &'a BuyerChoice, priced: &'a Priced) -> Picked<'a> {
        let capacity = choice.capacity.iter().map(|there| i64::from(*there)).collect();
        let rows = choice.rows();
        let mut picked = Picked {
            choice,
            prices: &priced.prices,
            bound: priced.bound,
            at: vec![NONE; rows],
            free: capacity,
            best: vec![0.0; rows],
        };
        for row in 0..rows {
            let (option, net) = choice.best(row, &priced.prices);
            picked.take(row, option);
            picked.best[row] = net;
        }
        picked
    }

    /// What the options taken are worth.
    pub(super) fn value(&self) -> f64 {
        self.at.iter().map(|option| self.choice.value(*option)).sum()
    }

    /// What a row forgoes with this option.
    pub(super) fn forgone(&self, row: usize, option: u32) -> f64 {
        let net = if option == NONE { 0.0 } else { self.choice.net(option, self.prices) };
        self.best[row] - net
    }

    pub(super) fn take(&mut self, row: usize, option: u32) {
        let was = std::mem::replace(&mut self.at[row], option);
        self.choice.uses(was).for_each(|(kind, amount)| self.free[kind] += i64::from(amount));
        self.choice.uses(option).for_each(|(kind, amount)| self.free[kind] -= i64::from(amount));
    }

    /// Makes it fit, and leaves nothing that fits.
    pub(super) fn fit(&mut self) {
        for kind in 0..self.free.len() {
            self.relieve(kind, true);
            self.relieve(kind, false);
        }
        for _ in 0..GIVEN_MAX {
            if !self.give() {
                return;
            }
        }
    }

    /// Moves rows off a kind of which too much is taken, those first that forgo least for each device; to other
    /// kinds with room, or only to less of what they have.
    fn relieve(&mut self, kind: usize, elsewhere: bool) {
        if self.free[kind] >= 0 {
            return;
        }
        let rows = (0..self.at.len()).filter(|row| self.choice.use_of(self.at[*row], kind) > 0);
        let mut moves: Vec<Move> = rows.filter_map(|row| self.relief(row, kind, elsewhere)).collect();
        sort(&mut moves);
        for Move { row, to, .. } in moves {
            if self.free[kind] >= 0 {
                return;
            }
            if !elsewhere || self.has_room(row as usize, to, Some(kind)) {
                self.take(row as usize, to);
            }
        }
    }

    /// The cheapest way for a row to take less of a kind.
    fn relief(&self, row: usize, kind: usize, elsewhere: bool) -> Option<Move> {
        let (now, over) = (self.at[row], -self.free[kind]);
        let has = self.choice.use_of(now, kind);
        let fits = |to: &u32| match elsewhere {
            true => self.has_room(row, *to, Some(kind)),
            false => self.choice.uses(*to).all(|(own, amount)| amount <= self.choice.use_of(now, own)),
        };
        let order = |to: u32| {
            let less = i64::from(has) - i64::from(self.choice.use_of(to, kind));
            let counts = less.min(over) as f64;
            (less > 0).then(|| Move { row: row as u32, to, order: self.forgone(row, to) / counts })
        };
        let ways = self.ways(row).filter(fits).filter_map(order);
        ways.min_by(|a, b| a.order.total_cmp(&b.order))
    }

    /// A row's options that could ever fit, and none of them.
    pub(super) fn ways(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        let able = |option: &u32| self.choice.value(*option) > f64::NEG_INFINITY;
        self.choice.options_of(row).filter(able).chain([NONE])
    }

    /// Whether a row may take an option without taking too much of any kind; of `already`, no more than it has.
    fn has_room(&self, row: usize, to: u32, already: Option<usize>) -> bool {
        self.choice.uses(to).all(|(kind, amount)| {
            let has = i64::from(self.choice.use_of(self.at[row], kind));
            let room = if already == Some(kind) { has } else { self.free[kind] + has };
            i64::from(amount) <= room
        })
    }

    /// Gives what is left to rows that gain by it, those first that gain most for its price; whether any did.
    fn give(&mut self) -> bool {
        if self.free.iter().all(|free| *free <= 0) {
            return false;
        }
        let mut moves: Vec<Move> = (0..self.at.len()).flat_map(|row| self.gains(row)).collect();
        sort(&mut moves);
        let mut given = false;
        for Move { row, to, .. } in moves {
            let row = row as usize;
            if self.choice.value(to) > self.choice.value(self.at[row]) && self.has_room(row, to, None) {
                self.take(row, to);
                given = true;
            }
        }
        given
    }

    /// What a row would gain by, of what fits.
    fn gains(&self, row: usize) -> impl Iterator<Item = Move> + '_ {
        let now = self.at[row];
        let has = self.choice.value(now);
        let more = move |to: &u32| self.choice.value(*to) > has && self.has_room(row, *to, None);
        let order = move |to: u32| {
            let gain = self.choice.value(to) - has;
            // Forgone is gain less price: what it costs more than it brings counts against what it brings.
            let order = (self.forgone(row, to) - self.forgone(row, now)) / gain;
            Move { row: row as u32, to, order }
        };
        self.choice.options_of(row).filter(more).map(order)
    }
}

fn sort(moves: &mut [Move]) {
    moves.sort_by(|a, b| a.order.total_cmp(&b.order).then(a.row.cmp(&b.row)).then(a.to.cmp(&b.to)));
}
