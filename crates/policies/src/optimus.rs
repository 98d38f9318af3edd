//! Marginal gains of time (Peng et al., "Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning
//! Clusters", EuroSys 2018).
//!
//! Objective: min Σ_j Q_j / f_j(size_j), greedily: by submission every job gets its smallest size, as far as devices
//! reach; then each step goes to the job with the largest (Q/f(size) − Q/f(next size)) / devices it takes, while
//! that is above zero. Q is what is left, f the speed in a size. A step for which there are no devices is passed, where
//! the paper's artifact stops.
//! The paper learns f from trial runs with parameter servers, and Q from a fit of 1/(β₀k + β₁) + β₂ to the loss. Here
//! both are beliefs like any other policy's: no job reports its loss, so Q is the steps it still has to do.
//! Reads: sizes, speeds, steps left. Cost: O(devices · jobs).
//! Not to be used where restarts are dear, or jobs far from done: the largest Q wins, and long jobs grow first.

use yard_core::allocation::Allocation;
use yard_core::policy::{Policy, PolicyError};
use yard_core::view::View;

use crate::Entry;
use crate::sizes::{Growth, Step};

pub(crate) const ENTRY: Entry = Entry {
    name: "optimus",
    family: "elastic",
    paper: "Optimus, Peng et al., EuroSys 2018",
    about: "The smallest size to each, then devices where they take most off the time left; needs durations",
    params: &[],
    rounds: true,
    make: |_| Ok(Box::new(Optimus)),
};

struct Optimus;

impl Policy for Optimus {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut growth = Growth::new(view);
        for row in 0..growth.rows.len() {
            if let Some(step) = growth.step(row) {
                growth.take(row, step);
            }
        }
        while let Some((row, step)) = best(view, &growth) {
            growth.take(row, step);
        }
        Ok(growth.allocation())
    }
}

/// The job with the largest gain for each device. One that got nothing at first stays without: nothing fits it.
fn best(view: &View, growth: &Growth<'_>) -> Option<(usize, Step)> {
    let gain = |row: usize| {
        let (step, own) = (growth.step(row)?, &growth.rows[row]);
        let now = own.size()?;
        let gain = view.steps_left(own.job) * (1.0 / now.speed - 1.0 / step.size.speed) / step.extra;
        (gain > 0.0).then_some((row, step, gain))
    };
    let all = (0..growth.rows.len()).filter_map(gain);
    all.reduce(|best, next| if next.2 > best.2 { next } else { best }).map(|(row, step, _)| (row, step))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::allocation::Shares;

    use crate::testing::{World, elastic, policy};

    /// The least sum of the times left over all ways to give each job one size of at least one device.
    fn least(jobs: &[(f64, f64)], devices: u32) -> f64 {
        let Some(((power, steps), rest)) = jobs.split_first() else { return 0.0 };
        let others = rest.len() as u32;
        let with = |own: u32| steps / libm::pow(f64::from(own), *power) + least(rest, devices - own);
        (1..=devices - others).map(with).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        /// With sizes one apart and gains that shrink, the greedy way is the best of all.
        #[test]
        fn the_sum_of_the_times_left_is_the_least(
            jobs in prop::collection::vec((0.1..1.0f64, 1.0..100.0f64), 1..4), more in 0u32..5,
        ) {
            let devices = jobs.len() as u32 + more;
            let mut world = World::new(&[devices]);
            for (power, steps) in &jobs {
                let sizes: Vec<_> = (1..=devices).map(|k| (k, libm::pow(f64::from(k), *power))).collect();
                world.submit_sizes(&sizes, *steps);
            }
            world.plan(&mut *policy("optimus"));
            let ours: f64 = (0..jobs.len()).map(|row| world.seconds_left(row)).sum();
            let best = least(&jobs, devices);
            prop_assert!((ours - best).abs() <= 1e-6 * best, "{ours} where {best} can be had");
        }
    }

    #[test]
    fn the_oldest_begin_where_there_are_too_few() {
        let sizes = [(0, 2, 1.0), (0, 4, 2.0)];
        let view = elastic(&[5], &[(&sizes, 10.0), (&sizes, 1.0), (&sizes, 1000.0)]);
        let Shares::All(shares) = policy("optimus").allocate(&view).unwrap().shares else { panic!("all") };
        let chosen: Vec<_> = shares.iter().map(|share| share.rank.0 < 0.0).collect();
        assert_eq!(chosen, [true, true, false]);
    }
}
