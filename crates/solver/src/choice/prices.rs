//! The search for prices: what the rows ask for at some prices is one column of a master problem, which mixes
//! columns into one that fits; its duals are the next prices, and each asking proves a bound. As in a market (see
//! `market/search`), the next prices stay near the best so far, because the master knows little at first.

use super::ChoiceWork;
use super::problem::{BuyerChoice, NONE};
use crate::market::MasterProblem;

/// How far the next prices stay with the best ones so far.
const CALM: f64 = 0.6;

/// The part of the distance wanted in the end that prices may leave.
const PART: f64 = 0.05;

/// The least distance, relative to the bound, that numbers can tell.
const TINY: f64 = 1e-9;

/// Prices and the bound they prove.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    pub(super) prices: Vec<f64>,
    pub(super) bound: f64,
    pub(super) passes: u32,
}

/// What all rows together ask for: devices over capacities, what these are worth, and what it is worth net.
struct AskedOption {
    load: Vec<f64>,
    worth: f64,
    net: f64,
}

fn ask(choice: &BuyerChoice, prices: &[f64]) -> AskedOption {
    let (mut uses, mut worth, mut net) = (vec![0u64; choice.kinds()], 0.0, 0.0);
    for row in 0..choice.rows() {
        let (option, own) = choice.best(row, prices);
        if option != NONE {
            choice.uses(option).for_each(|(kind, amount)| uses[kind] += u64::from(amount));
            (worth, net) = (worth + choice.value(option), net + own);
        }
    }
    let load =
        uses.iter().zip(&choice.capacity).map(|(used, there)| *used as f64 / f64::from((*there).max(1)));
    AskedOption { load: load.collect(), worth, net }
}

struct PriceSearch<'a> {
    choice: &'a BuyerChoice,
    master: MasterProblem,
    /// What all of each kind costs where the best bound was proved, and that bound.
    spend: Vec<f64>,
    bound: f64,
    passes: u32,
    helped: bool,
}

impl PriceSearch<'_> {
    fn prices(&self, spend: &[f64]) -> Vec<f64> {
        spend
            .iter()
            .zip(&self.choice.capacity)
            .map(|(spend, there)| spend / f64::from((*there).max(1)))
            .collect()
    }

    /// Asks at these prices; whether what is asked for fits.
    fn ask(&mut self, spend: &[f64]) -> bool {
        let asked = ask(self.choice, &self.prices(spend));
        let bound = spend.iter().sum::<f64>() + asked.net;
        self.passes += 1;
        self.helped = self.master.gain(&asked.load, asked.worth) > 1e-9 * asked.worth.abs();
        self.master.add(&asked.load, asked.worth);
        if bound < self.bound {
            (self.bound, self.spend) = (bound, spend.to_vec());
        }
        asked.load.iter().all(|load| *load <= 1.0)
    }

    fn next(&self) -> Vec<f64> {
        let calm = if self.helped { CALM } else { 0.0 };
        let next = |(price, best): (&f64, &f64)| calm * best + (1.0 - calm) * price.max(0.0);
        self.master.prices().iter().zip(&self.spend).map(next).collect()
    }

    fn is_done(&self, limits: &ChoiceWork) -> bool {
        let distance = self.bound - self.master.value();
        self.passes >= limits.passes || distance <= (PART * limits.gap).max(TINY) * self.bound.abs()
    }
}

/// The prices that prove the best bound.
pub(super) fn search(choice: &BuyerChoice, limits: &ChoiceWork) -> Priced {
    let nothing = vec![0.0; choice.kinds()];
    let master = MasterProblem::new(&nothing, 0.0);
    let (spend, bound) = (nothing.clone(), f64::INFINITY);
    let mut search = PriceSearch { choice, master, spend, bound, passes: 0, helped: true };
    // Where everybody can have what is worth most, devices are worth nothing.
    if !search.ask(&nothing) {
        let each = search.bound / choice.kinds() as f64;
        search.ask(&vec![each; choice.kinds()]);
        search.master.solve();
        while !search.is_done(limits) {
            let next = search.next();
            search.ask(&next);
            search.master.solve();
        }
    }
    Priced { prices: search.prices(&search.spend), bound: search.bound, passes: search.passes }
}
