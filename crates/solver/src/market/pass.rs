//! One pass over all rows at given prices. Rows are taken in chunks of fixed size, on as many threads as there
//! are, and the chunks' sums are added in their order: the same numbers on every machine.

use std::ops::Range;

use rayon::prelude::*;

use super::hull::{Answer, HullAsk, IDLE, answer};
use super::problem::Market;

/// Rows that one thread takes at a time.
const CHUNK: usize = 8192;

/// What all buyers together take and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PassTally {
    /// Use of each kind over its capacity.
    pub(crate) load: Vec<f64>,
    pub(crate) cost: f64,
    pub(crate) worth: f64,
}

impl PassTally {
    fn new(kinds: usize) -> PassTally {
        PassTally { load: vec![0.0; kinds], cost: 0.0, worth: 0.0 }
    }

    fn add(mut self, other: PassTally) -> PassTally {
        self.load.iter_mut().zip(&other.load).for_each(|(sum, load)| *sum += load);
        (self.cost, self.worth) = (self.cost + other.cost, self.worth + other.worth);
        self
    }

    #[inline]
    fn count(&mut self, market: &Market, row: usize, answer: &Answer, worth: f64) {
        let count = market.count[row];
        self.cost += count * answer.cost;
        self.worth += count * worth;
        parts(answer, |option, part| {
            let rate = count * part * market.speed[option];
            self.load[market.kind[option] as usize] += rate * market.effort[option];
            for more in market.more_of(option) {
                self.load[more.kind as usize] += rate * more.effort;
            }
        });
    }
}

/// The options of an answer with the part of the time each has.
#[inline]
pub(crate) fn parts(answer: &Answer, mut each: impl FnMut(usize, f64)) {
    if answer.high != IDLE {
        each(answer.high as usize, answer.part);
    }
    if answer.low != IDLE {
        each(answer.low as usize, 1.0 - answer.part);
    }
}

fn chunks(rows: usize) -> usize {
    rows.div_ceil(CHUNK)
}

fn chunk_rows(chunk: usize, rows: usize) -> Range<usize> {
    chunk * CHUNK..((chunk + 1) * CHUNK).min(rows)
}

/// One answer for each chunk, in order; a single chunk needs no threads.
fn each_chunk<T: Send>(rows: usize, of: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    match chunks(rows) {
        0 => Vec::new(),
        1 => vec![of(0)],
        many => (0..many).into_par_iter().map(of).collect(),
    }
}

/// Asks every row.
pub(crate) fn pass<A: HullAsk>(market: &Market, prices: &[f64], ask: &A) -> PassTally {
    let one = |chunk: usize| {
        let mut tally = PassTally::new(market.kinds());
        for row in chunk_rows(chunk, market.rows()) {
            let answer = answer(market, row, prices, ask);
            tally.count(market, row, &answer, ask.worth(row, &answer));
        }
        tally
    };
    let mut sum =
        each_chunk(market.rows(), one).into_iter().fold(PassTally::new(market.kinds()), PassTally::add);
    sum.load.iter_mut().zip(&market.capacity).for_each(|(load, capacity)| *load /= capacity);
    sum
}

/// Prices, what was asked at them, and the answers' part in a mix.
pub(crate) type PassPart<A> = (Vec<f64>, A, f64);

/// Adds the mix of every row's answers to its shares by option.
pub(crate) fn take<A: HullAsk>(market: &Market, mix: &[PassPart<A>], shares: &mut [f64]) {
    let one = |(rows, from, shares): (Range<usize>, usize, &mut [f64])| {
        for row in rows {
            for (prices, ask, part) in mix {
                let taken = answer(market, row, prices, ask);
                let weight = part * market.count[row];
                parts(&taken, |option, part| shares[option - from] += weight * part);
            }
        }
    };
    match chunks(market.rows()) {
        0 | 1 => split(market, shares).into_iter().for_each(one),
        _ => split(market, shares).into_par_iter().for_each(one),
    }
}

/// The shares of each chunk's rows, with the rows and the number of their first option.
pub(crate) fn split<'s>(market: &Market, shares: &'s mut [f64]) -> Vec<(Range<usize>, usize, &'s mut [f64])> {
    let mut slices = Vec::with_capacity(chunks(market.rows()));
    let mut rest = shares;
    for chunk in 0..chunks(market.rows()) {
        let rows = chunk_rows(chunk, market.rows());
        let (from, to) = (market.first[rows.start] as usize, market.first[rows.end] as usize);
        let (mine, others) = rest.split_at_mut(to - from);
        slices.push((rows, from, mine));
        rest = others;
    }
    slices
}

/// What `shares` take of each kind over its capacity.
pub(crate) fn load(market: &Market, shares: &[f64]) -> Vec<f64> {
    let one = |chunk: usize| {
        let mut load = vec![0.0; market.kinds()];
        let rows = chunk_rows(chunk, market.rows());
        let options = market.first[rows.start] as usize..market.first[rows.end] as usize;
        for option in options.filter(|option| shares[*option] > 0.0) {
            let rate = shares[option] * market.speed[option];
            load[market.kind[option] as usize] += rate * market.effort[option];
            for more in market.more_of(option) {
                load[more.kind as usize] += rate * more.effort;
            }
        }
        load
    };
    let mut sum = vec![0.0; market.kinds()];
    for load in each_chunk(market.rows(), one) {
        sum.iter_mut().zip(load).for_each(|(sum, load)| *sum += load);
    }
    sum.iter_mut().zip(&market.capacity).for_each(|(sum, capacity)| *sum /= capacity);
    sum
}

/// The least of a number of each row.
pub(crate) fn least(rows: usize, of: impl Fn(usize) -> f64 + Sync) -> f64 {
    let one = |chunk: usize| chunk_rows(chunk, rows).map(&of).fold(f64::INFINITY, f64::min);
    each_chunk(rows, one).into_iter().fold(f64::INFINITY, f64::min)
}
