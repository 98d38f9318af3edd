//! Marginal gains of time (Peng et al., "Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning
//! Clusters", EuroSys 2018).
//!
//! Objective: min Σ_j Q_j / f_j(size_j), greedily: by submission every job gets its smallest size, as far as devices
//! reach; then each step goes to the job with the largest (Q/f(size) − Q/f(next size)) / devices it takes, while
//! that is above zero. Q is what is left, f the speed in a size. A step for which there are no devices is passed, where
//! the paper's artifact stops.
//! Where a job reports its loss, Q ends where a fit of 1/(β₀k + β₁) + β₂ to it hardly falls any more (`converging`), and not
//! after the steps that were stated, which are the most it can be; `loss=ignored` goes by these alone. The paper also
//! learns f from trial runs with parameter servers; here it is a belief like any other policy's.
//! Reads: sizes, speeds, steps left, losses. Cost: O(devices · jobs), and some hundred passes over the losses of each job.
//! Not to be used where restarts are dear, or jobs far from done: the largest Q wins, and long jobs grow first.

mod converging;

use std::ops::Range;

use yard_core::allocation::Allocation;
use yard_core::ids::JobIdx;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use self::converging::steps_to_converge;
use crate::PolicyEntry;
use crate::params::bad;
use crate::sizes::{Growth, Step};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "optimus",
    live: "",
    family: "elastic",
    paper: "Optimus, Peng et al., EuroSys 2018",
    there: "marginal gains of time, the fit of losses to a curve",
    missing: "learning speeds from trial runs with parameter servers, tasks of workers and servers apart, its placement theorem",
    about: "The smallest size to each, then devices where they take most off the time left; needs durations",
    params: &[("loss", "whether reported losses say when a job is done: fitted or ignored [fitted]")],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Speeds, Knowledge::Losses],
    make: |params| match params.text("loss") {
        None | Some("fitted") => Ok(Box::new(Optimus { fitted: true })),
        Some("ignored") => Ok(Box::new(Optimus { fitted: false })),
        Some(other) => Err(bad("loss", other, "fitted or ignored")),
    },
};

struct Optimus {
    fitted: bool,
}

impl Policy for Optimus {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut growth = Growth::new(view);
        let left: Vec<f64> = growth.rows.iter().map(|row| self.left(view, row.job)).collect();
        for class in growth.classes() {
            for row in class.clone() {
                if let Some(step) = growth.step(row) {
                    growth.take(row, step);
                }
            }
            while let Some((row, step)) = best(&left, &growth, class.clone()) {
                growth.take(row, step);
            }
        }
        Ok(growth.allocation())
    }
}

impl Optimus {
    /// Steps until a job has converged, where it reports its loss, else those that it has to do. One that has converged
    /// and goes on has a hundredth of all left.
    fn left(&self, view: &View, job: JobIdx) -> f64 {
        let (spec, run, left) = (view.spec(job), view.run(job), view.steps_left(job));
        let fitted = || steps_to_converge(run.losses.points(), spec.steps);
        let until = if self.fitted { fitted() } else { None };
        until.map_or(left, |until| (until - run.done_at(view.now)).max(spec.steps / 100.0).min(left))
    }
}

/// The job of a class with the largest gain for each device. One that got nothing at first stays without: nothing fits it.
fn best(left: &[f64], growth: &Growth<'_>, class: Range<usize>) -> Option<(usize, Step)> {
    let gain = |row: usize| {
        let (step, own) = (growth.step(row)?, &growth.rows[row]);
        let now = own.size()?;
        let gain = left[row] * (1.0 / now.speed - 1.0 / step.size.speed) / step.extra;
        (gain > 0.0).then_some((row, step, gain))
    };
    let all = class.filter_map(gain);
    all.reduce(|best, next| if next.2 > best.2 { next } else { best }).map(|(row, step, _)| (row, step))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
    fn who_has_nearly_converged_leaves_devices_to_others() {
        let sizes = [(0, 1, 1.0), (0, 2, 1.8), (0, 4, 3.0)];
        let mut view = elastic(&[5], &[(&sizes, 1000.0), (&sizes, 900.0)]);
        let first = &mut Arc::make_mut(&mut view.runs)[0];
        first.done = 90.0;
        (0..10).for_each(|at| assert!(first.losses.hear(f64::from(at) * 10.0, 1.0 / (f64::from(at) + 1.0))));
        let sizes_of = |spec: &str| {
            let Shares::All(shares) = policy(spec).allocate(&view).unwrap().shares else { panic!("all") };
            shares.iter().map(|share| share.shape.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(sizes_of("optimus"), [0, 2], "it is nearly done, whatever was stated");
        assert_eq!(sizes_of("optimus:loss=ignored"), [1, 1], "as stated, both have as much left");
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
