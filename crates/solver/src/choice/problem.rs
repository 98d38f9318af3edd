//! The problem: capacities, rows, and their options in flat columns, because there may be millions.

use std::ops::Range;

use crate::error::SolveError;

/// In the place of an option: none is taken.
pub(super) const NONE: u32 = u32::MAX;

/// Rows of options over kinds with capacities.
#[derive(Clone, Debug, PartialEq)]
pub struct BuyerChoice {
    pub(super) capacity: Vec<u32>,
    /// What pinned rows are worth.
    pub(super) pinned: f64,
    /// The end of each row's options.
    ends: Vec<u32>,
    /// What each option is worth; one that can never fit is worth less than anything.
    value: Vec<f64>,
    kind: Vec<u16>,
    amount: Vec<u32>,
    /// Further uses of options that take several kinds, in the order of options.
    more: Vec<MoreOptions>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct MoreOptions {
    option: u32,
    kind: u16,
    amount: u32,
}

impl BuyerChoice {
    /// No row yet. So many devices of each kind.
    pub fn new(capacity: Vec<u32>) -> BuyerChoice {
        BuyerChoice {
            capacity,
            pinned: 0.0,
            ends: Vec::new(),
            value: Vec::new(),
            kind: Vec::new(),
            amount: Vec::new(),
            more: Vec::new(),
        }
    }

    /// A row that has no choice: its devices are taken off the capacities before all others, as far as they reach.
    /// Rows that come before it do not know of it.
    pub fn pin(&mut self, value: f64, uses: &[(u16, u32)]) -> Result<(), SolveError> {
        self.check(value, uses)?;
        self.pinned += value;
        for (kind, amount) in uses {
            let left = &mut self.capacity[*kind as usize];
            *left = left.saturating_sub(*amount);
        }
        Ok(())
    }

    /// Begins a row; options that follow are its own. Returns its place.
    pub fn row(&mut self) -> usize {
        self.ends.push(self.value.len() as u32);
        self.ends.len() - 1
    }

    /// An option of the last row: its value, and so many devices of each kind. Kinds must not repeat.
    pub fn option(&mut self, value: f64, uses: &[(u16, u32)]) -> Result<(), SolveError> {
        self.check(value, uses)?;
        let Some(end) = self.ends.last_mut() else { return Err(SolveError::NoSuchVariable { row: 0 }) };
        *end += 1;
        let option = self.value.len() as u32;
        let fits = uses.iter().all(|(kind, amount)| *amount <= self.capacity[*kind as usize]);
        let (kind, amount) = uses.first().copied().unwrap_or_default();
        self.value.push(if fits { value } else { f64::NEG_INFINITY });
        self.kind.push(kind);
        self.amount.push(amount);
        let more =
            uses.iter().skip(1).map(|(kind, amount)| MoreOptions { option, kind: *kind, amount: *amount });
        self.more.extend(more);
        Ok(())
    }

    fn check(&self, value: f64, uses: &[(u16, u32)]) -> Result<(), SolveError> {
        if !value.is_finite() {
            return Err(SolveError::NotANumber { what: "value of option", at: self.value.len() });
        }
        match uses.iter().all(|(kind, _)| (*kind as usize) < self.capacity.len()) {
            true => Ok(()),
            false => Err(SolveError::NoSuchVariable { row: self.ends.len() }),
        }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// How many kinds.
    pub fn kinds(&self) -> usize {
        self.capacity.len()
    }

    /// The number of a row's first option.
    pub(super) fn first(&self, row: usize) -> u32 {
        if row == 0 { 0 } else { self.ends[row - 1] }
    }

    pub(super) fn options_of(&self, row: usize) -> Range<u32> {
        self.first(row)..self.ends[row]
    }

    /// What an option is worth; none, nothing.
    pub(super) fn value(&self, option: u32) -> f64 {
        if option == NONE { 0.0 } else { self.value[option as usize] }
    }

    /// What an option is worth net of its cost.
    #[inline]
    pub(super) fn net(&self, option: u32, prices: &[f64]) -> f64 {
        let at = option as usize;
        let net = self.value[at] - prices[self.kind[at] as usize] * f64::from(self.amount[at]);
        let more = self.more_of(option).iter();
        net - more.map(|more| prices[more.kind as usize] * f64::from(more.amount)).sum::<f64>()
    }

    #[inline]
    fn more_of(&self, option: u32) -> &[MoreOptions] {
        if self.more.is_empty() {
            return &[];
        }
        let from = self.more.partition_point(|more| more.option < option);
        let to = from + self.more[from..].partition_point(|more| more.option == option);
        &self.more[from..to]
    }

    /// The devices that an option takes, kind by kind; none, no devices.
    pub(super) fn uses(&self, option: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let at = option as usize;
        let first = (option != NONE).then(|| (self.kind[at] as usize, self.amount[at]));
        let more = if option == NONE { &[] } else { self.more_of(option) };
        first.into_iter().chain(more.iter().map(|more| (more.kind as usize, more.amount)))
    }

    /// What of a kind an option takes.
    pub(super) fn use_of(&self, option: u32, kind: usize) -> u32 {
        self.uses(option).filter(|(own, _)| *own == kind).map(|(_, amount)| amount).sum()
    }

    /// The option worth most to a row at these prices and its net worth; none where nothing is worth its cost.
    #[inline]
    pub(super) fn best(&self, row: usize, prices: &[f64]) -> (u32, f64) {
        let mut best = (NONE, 0.0);
        for option in self.options_of(row) {
            let net = self.net(option, prices);
            if net > best.1 {
                best = (option, net);
            }
        }
        best
    }
}
