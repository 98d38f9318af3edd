//! What is for sale and who may buy it, in columns: rows of like buyers, their options, the capacities.

use thiserror::Error;

/// The most rows or options that fit the columns' offsets.
const ROWS_MAX: usize = u32::MAX as usize - 1;

/// Buyers, their options and what there is. A row stands for `count` buyers that are alike; each may
/// spread at most all of its time over its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Market {
    pub(crate) capacity: Vec<f64>,
    pub(crate) count: Vec<f64>,
    /// Where a row's options begin; one more entry than rows.
    pub(crate) first: Vec<u32>,
    pub(crate) speed: Vec<f64>,
    /// The kind an option takes, and how much of it for one unit of speed.
    pub(crate) kind: Vec<u16>,
    pub(crate) effort: Vec<f64>,
    /// What options on several kinds take beside the first, in the order of options.
    pub(crate) more: Vec<More>,
}

/// A further kind that an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct More {
    pub(crate) option: u32,
    pub(crate) kind: u16,
    pub(crate) effort: f64,
}

/// What no market can hold.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum MarketError {
    /// A number that must be above zero and finite.
    #[error("{what} {at}: {value} is not a number above 0")]
    Number {
        /// Which column.
        what: &'static str,
        /// Its place there.
        at: usize,
        /// What stands there.
        value: f64,
    },
    /// An option on a kind that does not exist, on none, or before any row.
    #[error("option {at}: {reason}")]
    Option {
        /// Its place.
        at: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A column whose length does not fit.
    #[error("{what}: {found} numbers for {wanted} rows")]
    Length {
        /// Which column.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What it should be.
        wanted: usize,
    },
    /// A row that cannot have what it must, even alone.
    #[error("row {row} needs {needs}, and the most it can reach is {most}")]
    Floor {
        /// The row.
        row: usize,
        /// What it must have.
        needs: f64,
        /// Its best speed.
        most: f64,
    },
    /// More than the columns can hold.
    #[error("{0} rows or options are more than a market holds")]
    Size(usize),
}

pub(crate) fn positive(what: &'static str, at: usize, value: f64) -> Result<f64, MarketError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(MarketError::Number { what, at, value }) }
}

impl Market {
    /// A market without buyers.
    pub fn new(capacity: Vec<f64>) -> Result<Market, MarketError> {
        for (at, devices) in capacity.iter().enumerate() {
            positive("capacity", at, *devices)?;
        }
        if capacity.len() > u16::MAX as usize {
            return Err(MarketError::Size(capacity.len()));
        }
        Ok(Market { capacity, first: vec![0], ..Market::default() })
    }

    /// Makes room for so many rows and options, where their number is known: large columns then never move.
    pub fn reserve(&mut self, rows: usize, options: usize) {
        self.count.reserve_exact(rows);
        self.first.reserve_exact(rows);
        self.speed.reserve_exact(options);
        self.kind.reserve_exact(options);
        self.effort.reserve_exact(options);
    }

    /// Adds a row of `count` like buyers; the options that follow are theirs.
    pub fn row(&mut self, count: f64) -> Result<(), MarketError> {
        self.count.push(positive("count", self.rows(), count)?);
        self.first.push(self.speed.len() as u32);
        if self.rows() > ROWS_MAX { Err(MarketError::Size(self.rows())) } else { Ok(()) }
    }

    /// Adds an option to the last row: a speed, and the devices it takes of each kind.
    pub fn option(&mut self, speed: f64, uses: &[(u16, f64)]) -> Result<(), MarketError> {
        let at = self.speed.len();
        let wrong = |reason| Err(MarketError::Option { at, reason });
        if self.count.is_empty() {
            return wrong("there is no row yet");
        }
        if at >= ROWS_MAX {
            return Err(MarketError::Size(at));
        }
        positive("speed", at, speed)?;
        if uses.iter().any(|(kind, _)| *kind as usize >= self.capacity.len()) {
            return wrong("it is on a kind that does not exist");
        }
        for (_, devices) in uses {
            positive("devices", at, *devices)?;
        }
        let [(kind, devices), more @ ..] = uses else { return wrong("it takes no devices") };
        self.speed.push(speed);
        self.kind.push(*kind);
        self.effort.push(devices / speed);
        let further = more.iter().map(|(kind, devices)| More {
            option: at as u32,
            kind: *kind,
            effort: devices / speed,
        });
        self.more.extend(further);
        *self.first.last_mut().expect("it begins with 0") = self.speed.len() as u32;
        Ok(())
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.count.len()
    }

    /// How many options all rows have.
    pub fn options(&self) -> usize {
        self.speed.len()
    }

    /// How many kinds there are.
    pub fn kinds(&self) -> usize {
        self.capacity.len()
    }

    /// Devices of each kind.
    pub fn capacity(&self) -> &[f64] {
        &self.capacity
    }

    /// How many buyers a row stands for.
    pub fn count(&self, row: usize) -> f64 {
        self.count[row]
    }

    /// A row's options.
    pub fn options_of(&self, row: usize) -> std::ops::Range<usize> {
        self.first[row] as usize..self.first[row + 1] as usize
    }

    /// An option's speed.
    pub fn speed(&self, option: usize) -> f64 {
        self.speed[option]
    }

    /// The best speed of one buyer of a row; zero where it has no option.
    pub fn best(&self, row: usize) -> f64 {
        self.speed[self.options_of(row)].iter().fold(0.0, |best, speed| best.max(*speed))
    }

    /// What of each kind an option takes.
    pub fn uses(&self, option: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let first = (self.kind[option] as usize, self.effort[option] * self.speed[option]);
        let more = self.more_of(option).iter();
        let speed = self.speed[option];
        std::iter::once(first).chain(more.map(move |more| (more.kind as usize, more.effort * speed)))
    }

    pub(crate) fn more_of(&self, option: usize) -> &[More] {
        if self.more.is_empty() {
            return &[];
        }
        let from = self.more.partition_point(|more| (more.option as usize) < option);
        let to = self.more.partition_point(|more| more.option as usize <= option);
        &self.more[from..to]
    }

    /// Speed that one buyer of a row reaches with `shares`, which are by option and for the whole row.
    pub fn reached(&self, row: usize, shares: &[f64]) -> f64 {
        let sum: f64 = self.options_of(row).map(|option| self.speed[option] * shares[option]).sum();
        sum / self.count[row]
    }

    /// What `shares` take of each kind, over its capacity.
    pub fn load(&self, shares: &[f64]) -> Vec<f64> {
        super::pass::load(self, shares)
    }

    pub(crate) fn check_column(&self, what: &'static str, column: &[f64]) -> Result<(), MarketError> {
        if column.len() != self.rows() {
            return Err(MarketError::Length { what, found: column.len(), wanted: self.rows() });
        }
        match column.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
            Some(at) => Err(MarketError::Number { what, at, value: column[at] }),
            None => Ok(()),
        }
    }
}
