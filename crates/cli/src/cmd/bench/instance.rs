//! A market of the size one asks for, the same on every machine: capacity-bound, as real ones are.

use yard_sim::random::Random;
use yard_solver::market::{Market, MarketError};
use yard_solver::reference;

/// Devices a gang asks for, and the part of the jobs that do.
const SIZES: [(f64, f64); 4] = [(1.0, 0.70), (2.0, 0.10), (4.0, 0.15), (8.0, 0.05)];

/// Devices asked for against devices there are.
const DEMAND: f64 = 3.0;

/// The largest capacity against the smallest, at most.
const UNEVEN: f64 = 3.0;

/// One job in so many changes between two solves.
const CHANGE_ONE_IN: usize = 100;

/// A market and the weights of its jobs. The speeds are in the market alone: of a million jobs one copy is
/// enough.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BenchInstance {
    pub(crate) market: Market,
    /// Each job's weight: its mean speed, so that levels compare across jobs.
    pub(crate) weights: Vec<f64>,
}

/// A job that takes another's place: its weight, and speed, kind and devices of its options.
pub(crate) struct Newcomer {
    pub(crate) row: usize,
    pub(crate) weight: f64,
    pub(crate) options: Vec<(f64, u16, f64)>,
}

impl BenchInstance {
    /// The market of this seed.
    pub(crate) fn new(jobs: usize, kinds: usize, seed: u64) -> Result<BenchInstance, MarketError> {
        let mut random = Random::new(seed);
        let raw: Vec<f64> = (0..kinds).map(|_| 1.0 + (UNEVEN - 1.0) * random.unit()).collect();
        let sizes: Vec<f64> = (0..jobs).map(|_| size(random.unit())).collect();
        let scale = sizes.iter().sum::<f64>() / DEMAND / raw.iter().sum::<f64>();
        let mut market = Market::new(raw.into_iter().map(|part| part * scale).collect())?;
        market.reserve(jobs, jobs * kinds);
        let (mut weights, mut speeds) = (Vec::with_capacity(jobs), vec![0.0; kinds]);
        for size in sizes {
            weights.push(draw(&mut speeds, &mut random));
            market.row(1.0)?;
            for (kind, speed) in speeds.iter().enumerate() {
                market.option(*speed, &[(kind as u16, size)])?;
            }
        }
        Ok(BenchInstance { market, weights })
    }

    /// Who replaces one job in a hundred, of the same size.
    pub(crate) fn newcomers(&self, seed: u64) -> Vec<Newcomer> {
        let mut random = Random::new(seed ^ u64::MAX);
        let mut speeds = vec![0.0; self.market.kinds()];
        let one = |row: usize| {
            let weight = draw(&mut speeds, &mut random);
            let uses = self.market.options_of(row).flat_map(|option| self.market.uses(option));
            let options = speeds.iter().zip(uses);
            let options = options.map(|(speed, (kind, size))| (*speed, kind as u16, size)).collect();
            Newcomer { row, weight, options }
        };
        (0..self.market.rows()).step_by(CHANGE_ONE_IN).map(one).collect()
    }

    /// The same as a general program.
    pub(crate) fn program(&self) -> reference::Instance {
        let market = &self.market;
        let uses = |option| market.uses(option).map(|(kind, devices)| (kind as u32, devices)).collect();
        let ends = (0..market.rows()).map(|row| market.options_of(row).end as u32);
        reference::Instance {
            capacity: market.capacity().to_vec(),
            first: std::iter::once(0).chain(ends).collect(),
            speed: (0..market.options()).map(|option| market.speed(option)).collect(),
            uses: (0..market.options()).map(uses).collect(),
        }
    }
}

/// New speeds for a job, uniform in [0.1, 1); returns its weight.
fn draw(speeds: &mut [f64], random: &mut Random) -> f64 {
    speeds.iter_mut().for_each(|speed| *speed = 0.1 + 0.9 * random.unit());
    speeds.iter().sum::<f64>() / speeds.len() as f64
}

fn size(unit: f64) -> f64 {
    let mut below = 0.0;
    let found = SIZES.iter().find(|(_, part)| {
        below += part;
        unit < below
    });
    found.unwrap_or(&SIZES[SIZES.len() - 1]).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_market_is_as_the_contract_says() {
        let BenchInstance { market, weights } = BenchInstance::new(20_000, 4, 7).unwrap();
        let sizes: Vec<f64> = (0..20_000).map(|row| market.uses(4 * row).next().unwrap().1).collect();
        let demand: f64 = sizes.iter().sum();
        let capacity: f64 = market.capacity().iter().sum();
        assert!((demand / capacity - 3.0).abs() < 1e-9, "{demand} of {capacity}");
        let extreme = |pick: fn(f64, f64) -> f64| market.capacity().iter().copied().reduce(pick).unwrap();
        assert!(extreme(f64::max) <= 3.0 * extreme(f64::min));
        assert!((0..market.options()).all(|option| (0.1..=1.0).contains(&market.speed(option))));
        for (size, part) in SIZES {
            let like = sizes.iter().filter(|one| (**one - size).abs() < 1e-9).count();
            let share = like as f64 / 20_000.0;
            assert!((share - part).abs() < 0.01, "{size}: {share}");
        }
        let mean = market.options_of(1).map(|option| market.speed(option)).sum::<f64>() / 4.0;
        assert_eq!(weights[1], mean);
    }

    #[test]
    fn a_seed_gives_one_market_and_one_in_a_hundred_is_replaced() {
        let instance = BenchInstance::new(1000, 3, 1).unwrap();
        assert_eq!(instance, BenchInstance::new(1000, 3, 1).unwrap());
        assert_ne!(instance, BenchInstance::new(1000, 3, 2).unwrap());
        let newcomers = instance.newcomers(1);
        assert_eq!(
            newcomers.iter().map(|one| one.row).collect::<Vec<_>>(),
            (0..10).map(|at| at * 100).collect::<Vec<_>>()
        );
        for one in newcomers {
            let options = instance.market.options_of(one.row);
            assert!(
                one.options
                    .iter()
                    .zip(options)
                    .all(|((speed, _, _), at)| *speed != instance.market.speed(at))
            );
        }
    }

    #[test]
    fn the_general_program_is_the_same_market() {
        let instance = BenchInstance::new(50, 3, 1).unwrap();
        let program = instance.program();
        assert_eq!((program.jobs(), program.speed.len(), program.uses.len()), (50, 150, 150));
        assert_eq!(program.uses[4][0], (1, instance.market.uses(4).next().unwrap().1));
    }
}
