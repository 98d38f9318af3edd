//! A market of the size one asks for, the same on every machine: capacity-bound, as real ones are.

use yard_sim::random::Random;

/// Devices a gang asks for, and the part of the jobs that do.
const SIZES: [(f64, f64); 4] = [(1.0, 0.70), (2.0, 0.10), (4.0, 0.15), (8.0, 0.05)];

/// Devices asked for against devices there are.
const DEMAND: f64 = 3.0;

/// The largest capacity against the smallest, at most.
const UNEVEN: f64 = 3.0;

/// One job in so many changes between two solves.
const CHANGE_ONE_IN: usize = 100;

/// A market in plain columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Instance {
    /// Devices of each kind.
    pub(crate) capacity: Vec<f64>,
    /// Devices each job takes on whichever kind.
    pub(crate) sizes: Vec<f64>,
    /// Each job's weight: its mean speed, so that levels compare across jobs.
    pub(crate) weights: Vec<f64>,
    /// Speed of job `j` on kind `t` at `j * kinds + t`.
    pub(crate) speeds: Vec<f64>,
}

impl Instance {
    /// The market of this seed.
    pub(crate) fn new(jobs: usize, kinds: usize, seed: u64) -> Instance {
        let mut random = Random::new(seed);
        let raw: Vec<f64> = (0..kinds).map(|_| 1.0 + (UNEVEN - 1.0) * random.unit()).collect();
        let sizes: Vec<f64> = (0..jobs).map(|_| size(random.unit())).collect();
        let scale = sizes.iter().sum::<f64>() / DEMAND / raw.iter().sum::<f64>();
        let mut instance = Instance {
            capacity: raw.into_iter().map(|part| part * scale).collect(),
            sizes,
            weights: vec![0.0; jobs],
            speeds: vec![0.0; jobs * kinds],
        };
        (0..jobs).for_each(|job| instance.draw(job, &mut random));
        instance
    }

    /// The same market after one job in a hundred gave way to another.
    pub(crate) fn changed(mut self, seed: u64) -> Instance {
        let mut random = Random::new(seed ^ u64::MAX);
        (0..self.jobs()).step_by(CHANGE_ONE_IN).for_each(|job| self.draw(job, &mut random));
        self
    }

    pub(crate) fn jobs(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn kinds(&self) -> usize {
        self.capacity.len()
    }

    /// New speeds for a job, uniform in [0.1, 1).
    fn draw(&mut self, job: usize, random: &mut Random) {
        let kinds = self.kinds();
        let row = &mut self.speeds[job * kinds..(job + 1) * kinds];
        row.iter_mut().for_each(|speed| *speed = 0.1 + 0.9 * random.unit());
        self.weights[job] = row.iter().sum::<f64>() / kinds as f64;
    }
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
        let market = Instance::new(20_000, 4, 7);
        let demand: f64 = market.sizes.iter().sum();
        let capacity: f64 = market.capacity.iter().sum();
        assert!((demand / capacity - 3.0).abs() < 1e-9, "{demand} of {capacity}");
        let extreme = |pick: fn(f64, f64) -> f64| market.capacity.iter().copied().reduce(pick).unwrap();
        assert!(extreme(f64::max) <= 3.0 * extreme(f64::min));
        assert!(market.speeds.iter().all(|speed| (0.1..=1.0).contains(speed)));
        for (size, part) in SIZES {
            let share = market.sizes.iter().filter(|one| **one == size).count() as f64 / 20_000.0;
            assert!((share - part).abs() < 0.01, "{size}: {share}");
        }
        let mean = market.speeds[4..8].iter().sum::<f64>() / 4.0;
        assert_eq!(market.weights[1], mean);
    }

    #[test]
    fn a_seed_gives_one_market_and_a_change_changes_one_in_a_hundred() {
        let market = Instance::new(1000, 3, 1);
        assert_eq!(market, Instance::new(1000, 3, 1));
        assert_ne!(market, Instance::new(1000, 3, 2));
        let other = market.clone().changed(1);
        let rows = |market: &Instance| market.speeds.chunks(3).map(<[f64]>::to_vec).collect::<Vec<_>>();
        let differ = rows(&market).into_iter().zip(rows(&other)).filter(|(a, b)| a != b).count();
        assert_eq!((differ, &market.sizes, &market.capacity), (10, &other.sizes, &other.capacity));
    }
}
