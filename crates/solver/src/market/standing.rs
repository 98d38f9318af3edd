//! A max-min market that stays solved while buyers come and go. The answers that were mixed are kept; a newcomer
//! is asked at their prices alone, and sums and bound are brought up to date by what changed. The master then
//! mixes the same answers anew, so that they fit: one light pass. Where the certificate is then not as good as
//! was asked for, the market is solved anew, from the prices in force.

use rayon::prelude::*;

use super::Solution;
use super::hull::{Answer, HullAsk, IDLE, answer};
use super::level::{Affine, AtLevel, Hints, LevelGoal, LevelNeeds, cap, seek};
use super::master::MasterProblem;
use super::pass::{pass, split};
use super::problem::{Market, MarketError, positive};
use super::search::{Goal, MarketWork};

/// Prices, and the level that buyers were asked for there.
#[derive(Clone, Debug)]
struct Question {
    prices: Vec<f64>,
    level: f64,
}

/// An answer, as much of it as a mix needs.
#[derive(Clone, Copy, Debug)]
struct StandingTaken {
    low: u32,
    high: u32,
    part: f64,
}

impl StandingTaken {
    fn new(answer: Answer) -> StandingTaken {
        StandingTaken { low: answer.low, high: answer.high, part: answer.part }
    }

    /// The options with their parts of the time.
    fn parts(self) -> impl Iterator<Item = (usize, f64)> {
        let both = [(self.high, self.part), (self.low, 1.0 - self.part)];
        both.into_iter().filter(|(option, _)| *option != IDLE).map(|(option, part)| (option as usize, part))
    }
}

/// A solved market and what it takes to keep it so.
#[derive(Clone, Debug)]
pub struct Standing {
    market: Market,
    weight: Vec<f64>,
    limits: MarketWork,
    solution: Solution,
    /// What was asked, what all of it uses of each kind, and each row's answers, row by row.
    asked: Vec<Question>,
    used: Vec<Vec<f64>>,
    taken: Vec<StandingTaken>,
    /// Where the bound was proved: what all needs cost there, and how fast that grows with the level.
    proof: Question,
    cost: f64,
    growth: f64,
    /// The level that some row cannot pass for its own best speed.
    cap: f64,
}

impl Standing {
    /// Solves a market.
    pub fn new(market: Market, weight: Vec<f64>, limits: MarketWork) -> Result<Standing, MarketError> {
        market.check_column("weight", &weight)?;
        let (solution, proof) = (Solution::empty(&market), Question { prices: Vec::new(), level: 0.0 });
        let (asked, used, taken) = (Vec::new(), Vec::new(), Vec::new());
        let (cost, growth, cap) = (0.0, 0.0, f64::INFINITY);
        let mut standing =
            Standing { market, weight, limits, solution, asked, used, taken, proof, cost, growth, cap };
        standing.solve();
        Ok(standing)
    }

    /// The market as it stands.
    pub fn market(&self) -> &Market {
        &self.market
    }

    /// Its shares and their certificate.
    pub fn solution(&self) -> &Solution {
        &self.solution
    }

    fn solve(&mut self) {
        let needs = Affine { base: None, slope: &self.weight };
        let goal = LevelGoal { needs: &needs };
        let last = Some(self.solution.prices.as_slice());
        let prices = last.filter(|prices| prices.iter().any(|price| *price > 0.0));
        // Better than asked for, so that small changes find room.
        let limits = MarketWork { gap: self.limits.gap / 2.0, ..self.limits };
        let Some(search) = seek(&self.market, &goal, Hints { prices, start: None }, &limits) else { return };
        let parts = search.mix();
        self.asked =
            parts.iter().map(|part| Question { prices: part.prices.clone(), level: part.level }).collect();
        self.used = parts.iter().map(|part| times(&part.load, &self.market.capacity)).collect();
        let mix: Vec<f64> = parts.iter().map(|part| part.part).collect();
        self.solution.prices = over(&search.spend, &self.market.capacity);
        self.proof = Question { prices: self.solution.prices.clone(), level: search.proved_at };
        let (bound, passes) = (search.bound, search.passes);
        let tally = pass(&self.market, &self.proof.prices, &goal.ask(self.proof.level));
        (self.cost, self.growth) = (tally.cost, tally.worth);
        self.cap = cap(&self.market, &needs);
        self.keep_answers();
        self.remix(&mix);
        self.solution.bound = bound.max(self.solution.objective);
        self.solution.passes = passes;
    }

    /// Asks every row once more at the prices that are mixed, and keeps the answers.
    fn keep_answers(&mut self) {
        let needs = Affine { base: None, slope: &self.weight };
        let (market, asked) = (&self.market, &self.asked);
        let idle = StandingTaken { low: IDLE, high: IDLE, part: 0.0 };
        self.taken.clear();
        self.taken.resize(market.rows() * asked.len(), idle);
        let rows = self.taken.par_chunks_exact_mut(asked.len().max(1)).enumerate().with_min_len(4096);
        rows.for_each(|(row, taken)| {
            for (question, taken) in asked.iter().zip(taken) {
                let ask = AtLevel { needs: &needs, level: question.level };
                *taken = StandingTaken::new(answer(market, row, &question.prices, &ask));
            }
        });
    }

    /// Puts another buyer in a row's place, with as many options as the one before, each on one kind.
    pub fn replace(
        &mut self,
        row: usize,
        weight: f64,
        options: &[(f64, u16, f64)],
    ) -> Result<(), MarketError> {
        self.check(row, weight, options)?;
        self.count(row, -1.0);
        self.weight[row] = weight;
        for (option, (speed, kind, devices)) in self.market.options_of(row).zip(options) {
            self.market.speed[option] = *speed;
            self.market.kind[option] = *kind;
            self.market.effort[option] = devices / speed;
        }
        self.ask_again(row);
        self.count(row, 1.0);
        Ok(())
    }

    fn check(&self, row: usize, weight: f64, options: &[(f64, u16, f64)]) -> Result<(), MarketError> {
        let range = self.market.options_of(row);
        let mixed = range.clone().any(|option| !self.market.more_of(option).is_empty());
        if options.len() != range.len() || mixed {
            let (found, wanted) = (options.len(), range.len());
            return Err(MarketError::Length { what: "options", found, wanted });
        }
        positive("weight", row, weight)?;
        for (speed, kind, devices) in options {
            positive("speed", row, *speed)?;
            positive("devices", row, *devices)?;
            if *kind as usize >= self.market.kinds() {
                return Err(MarketError::Option { at: row, reason: "it is on a kind that does not exist" });
            }
        }
        Ok(())
    }

    /// Adds a row to the sums, or takes it out.
    fn count(&mut self, row: usize, sign: f64) {
        self.count_uses(row, sign);
        let needs = Affine { base: None, slope: &self.weight };
        let ask = AtLevel { needs: &needs, level: self.proof.level };
        let asked = answer(&self.market, row, &self.proof.prices, &ask);
        self.cost += sign * self.market.count[row] * asked.cost;
        self.growth += sign * self.market.count[row] * ask.worth(row, &asked);
    }

    fn count_uses(&mut self, row: usize, sign: f64) {
        let answers = &self.taken[row * self.asked.len()..(row + 1) * self.asked.len()];
        for (used, taken) in self.used.iter_mut().zip(answers) {
            for (option, part) in taken.parts() {
                for (kind, devices) in self.market.uses(option) {
                    used[kind] += sign * self.market.count[row] * part * devices;
                }
            }
        }
    }

    fn ask_again(&mut self, row: usize) {
        let needs = Affine { base: None, slope: &self.weight };
        for (at, question) in self.asked.iter().enumerate() {
            let ask = AtLevel { needs: &needs, level: question.level };
            let taken = answer(&self.market, row, &question.prices, &ask);
            self.taken[row * self.asked.len() + at] = StandingTaken::new(taken);
        }
        self.cap = self.cap.min(needs.cap(row, self.market.best(row)));
    }

    /// Brings shares and certificate up to date after changes; whether that took a solve.
    pub fn settle(&mut self) -> bool {
        let (mix, level) = self.mix();
        let tangent = self.proof.level + (1.0 - self.cost) / self.growth;
        let bound = tangent.min(self.cap);
        if bound - level <= self.limits.gap * bound {
            self.remix(&mix);
            self.solution.bound = bound.max(self.solution.objective);
            if self.solution.gap() <= self.limits.gap {
                return false;
            }
        }
        self.solve();
        true
    }

    /// The best mix of the kept answers that fits, and the level it promises.
    fn mix(&self) -> (Vec<f64>, f64) {
        let mut master = MasterProblem::new(&vec![0.0; self.market.kinds()], 0.0);
        for (question, used) in self.asked.iter().zip(&self.used) {
            let load: Vec<f64> =
                used.iter().zip(&self.market.capacity).map(|(used, all)| used / all).collect();
            master.add(&load, question.level);
        }
        master.solve();
        let mut mix = vec![0.0; self.asked.len()];
        for (answer, part) in master.mix().filter(|(answer, _)| *answer > 0) {
            mix[answer - 1] = part.max(0.0);
        }
        (mix, master.value())
    }

    /// Shares by a mix of the kept answers, scaled down by what rounding puts above a capacity.
    fn remix(&mut self, mix: &[f64]) {
        let load =
            |kind: usize| -> f64 { self.used.iter().zip(mix).map(|(used, part)| used[kind] * part).sum() };
        let most =
            (0..self.market.kinds()).map(|kind| load(kind) / self.market.capacity[kind]).fold(1.0, f64::max);
        let mix: Vec<f64> = mix.iter().map(|part| part / most).collect();
        let (market, taken, weight) = (&self.market, &self.taken, &self.weight);
        let one = |(rows, from, shares): (std::ops::Range<usize>, usize, &mut [f64])| {
            shares.fill(0.0);
            let mut least = f64::INFINITY;
            for row in rows {
                let mut speed = 0.0;
                for (taken, part) in taken[row * mix.len()..(row + 1) * mix.len()].iter().zip(&mix) {
                    for (option, of) in taken.parts() {
                        shares[option - from] += part * of * market.count[row];
                        speed += part * of * market.speed[option];
                    }
                }
                least = least.min(if weight[row] > 0.0 { speed / weight[row] } else { f64::INFINITY });
            }
            least
        };
        let chunks = split(market, &mut self.solution.shares);
        let least: Vec<f64> = chunks.into_par_iter().map(one).collect();
        self.solution.objective = least.into_iter().fold(f64::INFINITY, f64::min);
        self.solution.passes = 0;
    }
}

fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

fn over(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: MarketWork = MarketWork { passes: 400, gap: 1e-3 };

    fn rows(rows: usize) -> impl Strategy<Value = Vec<([f64; 3], u32)>> {
        prop::collection::vec((prop::array::uniform3(0.05..4.0_f64), 0..4_u32), rows)
    }

    fn market(rows: &[([f64; 3], u32)]) -> (Market, Vec<f64>) {
        let devices: f64 = rows.iter().map(|(_, size)| (1 << size) as f64).sum();
        let mut market = Market::new(vec![devices / 4.0, devices / 8.0, devices / 16.0]).unwrap();
        for row in rows {
            market.row(1.0).unwrap();
            options(row)
                .iter()
                .for_each(|(speed, kind, size)| market.option(*speed, &[(*kind, *size)]).unwrap());
        }
        (market, rows.iter().map(weight).collect())
    }

    fn options((speeds, size): &([f64; 3], u32)) -> Vec<(f64, u16, f64)> {
        (0..3).map(|kind| (speeds[kind], kind as u16, (1 << size) as f64)).collect()
    }

    fn weight((speeds, _): &([f64; 3], u32)) -> f64 {
        speeds.iter().sum::<f64>() / 3.0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_certificate_holds_through_changes((mut old, new) in (rows(200), rows(12))) {
            let (market_of_old, weights) = market(&old);
            let mut standing = Standing::new(market_of_old, weights, LIMITS).unwrap();
            for (at, row) in new.iter().enumerate() {
                old[at * 15] = *row;
                standing.replace(at * 15, weight(row), &options(row)).unwrap();
                standing.settle();
            }
            let weights: Vec<f64> = old.iter().map(weight).collect();
            let exact = MarketWork { passes: 2_000, gap: 1e-9 };
            let fresh = standing.market().max_min(&weights, None, &exact).unwrap();
            let kept = standing.solution();
            prop_assert!(kept.gap() <= LIMITS.gap);
            prop_assert!(kept.objective <= fresh.bound * (1.0 + 1e-9) && fresh.objective <= kept.bound * (1.0 + 1e-9));
            let least = (0..old.len()).map(|row| standing.market().reached(row, &kept.shares) / weights[row]);
            prop_assert!((least.fold(f64::INFINITY, f64::min) / kept.objective - 1.0).abs() < 1e-9);
            prop_assert!(standing.market().load(&kept.shares).iter().all(|load| *load <= 1.0 + 1e-9));
            for row in 0..old.len() {
                let time: f64 = kept.shares[standing.market().options_of(row)].iter().sum();
                prop_assert!(time <= 1.0 + 1e-9);
            }
        }
    }

    #[test]
    fn what_does_not_fit_a_row_is_refused_and_changes_nothing() {
        let (market, weights) = market(&[([1.0, 2.0, 3.0], 0), ([3.0, 2.0, 1.0], 0)]);
        let mut standing = Standing::new(market.clone(), weights, LIMITS).unwrap();
        assert!(standing.replace(0, 1.0, &[(1.0, 0, 1.0)]).is_err());
        assert!(standing.replace(0, 1.0, &[(1.0, 0, 1.0), (1.0, 9, 1.0), (1.0, 2, 1.0)]).is_err());
        assert!(standing.replace(0, 0.0, &[(1.0, 0, 1.0), (1.0, 1, 1.0), (1.0, 2, 1.0)]).is_err());
        assert_eq!(*standing.market(), market);
    }
}
