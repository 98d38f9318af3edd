//! Prices from a part of the rows. Prices of a large market are nearly those of a sample of it; finding them
//! there costs next to nothing, and few passes over all rows are left.

use super::level::{LevelGoal, LevelNeeds, by_speed, cap, open};
use super::problem::Market;
use super::search::{MarketStart, MarketWork, Search};

/// Rows in a sample; markets of less than four times as many are solved directly.
const SAMPLE: usize = 8_192;

/// The gap to which a sample is solved: its prices are off by more than that anyway.
const GAP: f64 = 1e-3;

/// The needs of the sampled rows.
struct Sampled<'a, N> {
    needs: &'a N,
    rows: Vec<u32>,
}

impl<N: LevelNeeds> LevelNeeds for Sampled<'_, N> {
    fn at(&self, row: usize, level: f64) -> f64 {
        self.needs.at(self.rows[row] as usize, level)
    }

    fn rate(&self, row: usize, level: f64) -> f64 {
        self.needs.rate(self.rows[row] as usize, level)
    }

    fn cap(&self, row: usize, best: f64) -> f64 {
        self.needs.cap(self.rows[row] as usize, best)
    }

    fn level(&self, row: usize, speed: f64) -> f64 {
        self.needs.level(self.rows[row] as usize, speed)
    }
}

/// Prices whose answers make up the best mix of a sample; none where the market is small.
pub(crate) fn prices<N: LevelNeeds>(
    market: &Market,
    needs: &N,
    limits: &MarketWork,
) -> Option<Vec<Vec<f64>>> {
    if market.rows() < 4 * SAMPLE {
        return None;
    }
    let rows = rows(market.rows());
    let part = part(market, &rows);
    let needs = Sampled { needs, rows };
    let cap = cap(&part, &needs);
    let goal = LevelGoal { needs: &needs };
    // Whoever has nothing is at level 0, or far below any where levels are negative.
    let nothing = MarketStart::nothing(part.kinds(), if cap < 0.0 { 1e6 * cap } else { 0.0 });
    let mut search = Search::new(&part, &goal, nothing, cap);
    let limits = MarketWork { gap: limits.gap.max(GAP), ..*limits };
    open(&mut search, &[by_speed(&part)], cap);
    search.run(&limits);
    let mut found = vec![search.spend.clone()];
    found.extend(search.support().into_iter().filter(|spend| *spend != search.spend));
    Some(found)
}

/// One row of each stretch, at a place that no pattern in the rows can follow.
fn rows(all: usize) -> Vec<u32> {
    let stretch = all / SAMPLE;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    (0..SAMPLE).map(|at| (at * stretch + next() % stretch) as u32).collect()
}

/// The sampled rows as a market of their own, with their part of the capacities.
fn part(market: &Market, rows: &[u32]) -> Market {
    let buyers: f64 = market.count.iter().sum();
    let sampled: f64 = rows.iter().map(|row| market.count[*row as usize]).sum();
    let mut part = Market {
        capacity: market.capacity.iter().map(|devices| devices * sampled / buyers).collect(),
        first: vec![0],
        ..Market::default()
    };
    for row in rows {
        part.count.push(market.count[*row as usize]);
        for option in market.options_of(*row as usize) {
            let at = part.speed.len() as u32;
            part.speed.push(market.speed[option]);
            part.kind.push(market.kind[option]);
            part.effort.push(market.effort[option]);
            let more = market.more_of(option).iter().map(|more| super::problem::More { option: at, ..*more });
            part.more.extend(more);
        }
        part.first.push(part.speed.len() as u32);
    }
    part
}
