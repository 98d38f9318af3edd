//! The search for prices. Each pass asks all buyers at one set of prices: their answer is recorded for the
//! master, which mixes what fits, and proves a bound, because no allocation can do better than buyers who are
//! free to take what they like best at these prices. The two sides meet; their distance is the certificate.
//!
//! The master's own prices jump about (they know little at first), so the next prices lie between those and
//! the ones that proved the best bound so far.

use super::hull::HullAsk;
use super::master::MasterProblem;
use super::pass::{PassPart, PassTally, pass, take};
use super::problem::Market;

/// How far the next prices stay with the best ones so far.
const CALM: f64 = 0.6;

/// Parts of a mix below this are dropped.
const PART_MIN: f64 = 1e-13;

/// When to stop, counted in work: the same run gives the same answer anywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarketWork {
    /// Passes over all rows at most.
    pub passes: u32,
    /// The relative distance from the bound that is good enough.
    pub gap: f64,
}

impl Default for MarketWork {
    fn default() -> MarketWork {
        MarketWork { passes: 400, gap: 1e-7 }
    }
}

/// What is wanted: how buyers answer to prices, and what their answer proves.
pub(crate) trait Goal: Sync {
    type Ask: HullAsk;

    /// Whether only the prices' ratios count: they are kept so that everything together costs 1.
    const RELATIVE: bool;

    /// What to ask the buyers, with the level that is aimed at.
    fn ask(&self, level: f64) -> Self::Ask;

    /// What all of each kind costs buyers beside its price.
    fn fee(&self) -> Option<&[f64]> {
        None
    }

    /// What gaps are relative to.
    fn scale(&self, bound: f64) -> f64 {
        bound.abs()
    }

    /// What the answer is worth to the master, and the bound it proves.
    fn judge(&self, tally: &PassTally, spend: &[f64], level: f64) -> (f64, f64);
}

/// An answer that fits, to begin with.
pub(crate) struct MarketStart {
    pub(crate) shares: Option<Vec<f64>>,
    pub(crate) load: Vec<f64>,
    pub(crate) worth: f64,
}

impl MarketStart {
    /// Nobody takes anything.
    pub(crate) fn nothing(kinds: usize, worth: f64) -> MarketStart {
        MarketStart { shares: None, load: vec![0.0; kinds], worth }
    }
}

/// Prices at which buyers were asked, and the level that was aimed at.
#[derive(Clone, Debug)]
struct MarketQuestion {
    spend: Vec<f64>,
    level: f64,
}

/// An answer in the mix: where it was asked for, what it takes of each kind, and its part.
pub(crate) struct Mixed {
    pub(crate) prices: Vec<f64>,
    pub(crate) level: f64,
    pub(crate) load: Vec<f64>,
    pub(crate) part: f64,
}

/// A search under way.
pub(crate) struct Search<'a, G> {
    market: &'a Market,
    goal: &'a G,
    master: MasterProblem,
    start: MarketStart,
    asked: Vec<MarketQuestion>,
    /// The best bound, and what all of each kind cost where it was proved.
    pub(crate) bound: f64,
    pub(crate) spend: Vec<f64>,
    /// The level that was aimed at there.
    pub(crate) proved_at: f64,
    pub(crate) passes: u32,
    helped: bool,
}

impl<'a, G: Goal> Search<'a, G> {
    /// `cap` is a bound known beforehand.
    pub(crate) fn new(market: &'a Market, goal: &'a G, start: MarketStart, cap: f64) -> Search<'a, G> {
        let master = MasterProblem::new(&start.load, start.worth);
        let even = 1.0 / market.kinds().max(1) as f64;
        Search {
            market,
            goal,
            master,
            start,
            asked: Vec::new(),
            bound: cap,
            spend: vec![even; market.kinds()],
            proved_at: cap,
            passes: 0,
            helped: true,
        }
    }

    /// What the best mix so far is worth.
    pub(crate) fn value(&self) -> f64 {
        self.master.value()
    }

    fn is_done(&self, limits: &MarketWork) -> bool {
        let distance = self.bound - self.value();
        self.passes >= limits.passes || distance <= limits.gap * self.goal.scale(self.bound)
    }

    /// Asks at these prices, aiming at `level`; returns the bound that this proves.
    pub(crate) fn ask(&mut self, spend: &[f64], level: f64) -> f64 {
        let prices = self.prices(spend);
        let tally = pass(self.market, &prices, &self.goal.ask(level));
        let (worth, bound) = self.goal.judge(&tally, spend, level);
        self.passes += 1;
        self.helped = self.master.gain(&tally.load, worth) > 1e-9 * worth.abs();
        self.master.add(&tally.load, worth);
        self.asked.push(MarketQuestion { spend: spend.to_vec(), level });
        if bound < self.bound || self.passes == 1 {
            self.bound = self.bound.min(bound);
            (self.spend, self.proved_at) = (spend.to_vec(), level);
        }
        bound
    }

    /// Goes on until both sides meet or the work is done.
    pub(crate) fn run(&mut self, limits: &MarketWork) {
        self.master.solve();
        while !self.is_done(limits) {
            let Some(spend) = self.next() else { return };
            self.ask(&spend, self.bound);
            self.master.solve();
        }
    }

    /// The next prices to try; `None` where the master knows of nothing scarce.
    fn next(&self) -> Option<Vec<f64>> {
        let mut spend: Vec<f64> = self.master.prices().iter().map(|price| price.max(0.0)).collect();
        if G::RELATIVE && !normalise(&mut spend) {
            return None;
        }
        let calm = if self.helped { CALM } else { 0.0 };
        for (next, best) in spend.iter_mut().zip(&self.spend) {
            *next = calm * best + (1.0 - calm) * *next;
        }
        Some(spend)
    }

    /// The prices whose answers are in the mix, for a search on a like market to begin with.
    pub(crate) fn support(&self) -> Vec<Vec<f64>> {
        let asked = self.master.mix().filter(|(answer, part)| *answer > 0 && *part > PART_MIN);
        asked.map(|(answer, _)| self.asked[answer - 1].spend.clone()).collect()
    }

    /// The mix itself, by option and for whole rows; scaled down by what rounding put above a capacity.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let mix: Vec<_> = self.master.mix().filter(|(_, part)| *part > PART_MIN).collect();
        let total: f64 = mix.iter().map(|(_, part)| part).sum();
        let begun: f64 = mix.iter().filter(|(answer, _)| *answer == 0).map(|(_, part)| part / total).sum();
        let mut shares = match &self.start.shares {
            Some(start) if begun > 0.0 => start.iter().map(|share| begun * share).collect(),
            _ => vec![0.0; self.market.options()],
        };
        let asked = mix.iter().filter(|(answer, _)| *answer > 0);
        let asked: Vec<_> = asked.map(|(answer, part)| self.part(answer - 1, part / total)).collect();
        take(self.market, &asked, &mut shares);
        let most = self.market.load(&shares).into_iter().fold(1.0, f64::max);
        if most > 1.0 {
            shares.iter_mut().for_each(|share| *share /= most);
        }
        shares
    }

    /// The answers in the mix; starting shares are not among them.
    pub(crate) fn mix(&self) -> Vec<Mixed> {
        let asked = self.master.mix().filter(|(answer, part)| *answer > 0 && *part > PART_MIN);
        let mixed = |(answer, part): (usize, f64)| {
            let MarketQuestion { spend, level } = &self.asked[answer - 1];
            let (prices, load) = (self.prices(spend), self.master.load(answer).to_vec());
            Mixed { prices, level: *level, load, part }
        };
        asked.map(mixed).collect()
    }

    fn part(&self, asked: usize, part: f64) -> PassPart<G::Ask> {
        let MarketQuestion { spend, level } = &self.asked[asked];
        (self.prices(spend), self.goal.ask(*level), part)
    }

    /// What buyers pay for one device of each kind.
    fn prices(&self, spend: &[f64]) -> Vec<f64> {
        let fee = self.goal.fee();
        let all = |kind: usize| spend[kind] + fee.map_or(0.0, |fee| fee[kind]);
        (0..spend.len()).map(|kind| all(kind) / self.market.capacity[kind]).collect()
    }
}

/// What all of each kind costs at these prices, everything together costing 1; even without prices that tell.
pub(crate) fn relative(market: &Market, prices: Option<&[f64]>) -> Vec<f64> {
    known(market, prices).unwrap_or_else(|| vec![1.0 / market.kinds().max(1) as f64; market.kinds()])
}

/// The same, where there are prices that tell.
pub(crate) fn known(market: &Market, prices: Option<&[f64]>) -> Option<Vec<f64>> {
    let prices = prices.filter(|prices| prices.len() == market.kinds())?;
    let mut spend: Vec<f64> =
        prices.iter().zip(&market.capacity).map(|(price, n)| price.max(0.0) * n).collect();
    normalise(&mut spend).then_some(spend)
}

/// Scales to a sum of 1; false where there is nothing to scale.
pub(crate) fn normalise(spend: &mut [f64]) -> bool {
    let sum: f64 = spend.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return false;
    }
    spend.iter_mut().for_each(|price| *price /= sum);
    true
}
