//! Base sizes by the shortest job, what is left by a knapsack (Li et al., "Lyra: Elastic Scheduling for Deep Learning
//! Clusters", EuroSys 2023).
//!
//! Objective: first the smallest size of each job, the shortest there first; then, with the devices left over,
//! max Σ_j (T_j(base) − T_j(size)) with one size for each job that has its base: a multiple-choice knapsack, solved in
//! prices with a bound rather than by the paper's table of devices × sizes.
//! Of several kinds a job has its base on the one whose devices do most for it among those that are left; it may go over
//! to another for more.
//! The paper's other half, servers lent by an inference cluster and given back where that stops least, is the engine's for
//! every policy (`yard_core::reclaim`; `yard sim --lend`), because a policy does not see who lies where: first idle nodes
//! go, then those whose jobs can go on smaller elsewhere, then those that stop the fewest. Missing: flexible workers are
//! not steered to lent nodes when they are placed, and who scales in is restarted in the smaller size.
//! Reads: sizes, speeds, steps left. Cost: O(jobs log jobs), and a few hundred passes over the sizes.
//! Not to be used where restarts are dear: sizes change with every arrival and end.

use std::ops::Range;

use yard_core::allocation::Allocation;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;
use yard_solver::SolveError;
use yard_solver::choice::{BuyerChoice, ChoiceWork};

use crate::PolicyEntry;
use crate::sizes::{Growth, Size};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "lyra",
    live: "",
    family: "elastic",
    paper: "Lyra, Li et al., EuroSys 2023",
    there: "base sizes by the shortest, the knapsack of larger ones; lent nodes go back where that costs least (`--lend`)",
    missing: "steering flexible workers to lent nodes; a job that gives up a node is restarted at a smaller size, not shrunk while it runs",
    about: "The smallest sizes to the shortest jobs, then a knapsack of sizes by time saved; needs durations",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |_| Ok(Box::new(Lyra)),
};

struct Lyra;

impl Policy for Lyra {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut growth = Growth::new(view);
        for class in growth.classes() {
            for row in shortest_first(view, &growth, class.clone()) {
                if let Some(step) = growth.step(row) {
                    growth.take(row, step);
                }
            }
            let sizes = extra(view, &growth, class).map_err(|error| PolicyError(error.to_string()))?;
            for (row, size) in sizes {
                growth.set(row, size.shape);
            }
        }
        Ok(growth.allocation())
    }
}

/// The rows of a class by the time they take in their smallest size, on the kind that suits them.
fn shortest_first(view: &View, growth: &Growth<'_>, class: Range<usize>) -> Vec<usize> {
    let seconds = |row: usize| {
        let speed = growth.rows[row].base().map_or(0.0, |size| size.speed);
        view.steps_left(growth.rows[row].job) / speed
    };
    let mut rows: Vec<usize> = class.collect();
    rows.sort_by(|a, b| seconds(*a).total_cmp(&seconds(*b)));
    rows
}

/// The larger sizes that save most time together, by row of a class.
fn extra(view: &View, growth: &Growth<'_>, class: Range<usize>) -> Result<Vec<(usize, Size)>, SolveError> {
    let free: Vec<u32> = view.kinds.ids().map(|kind| growth.free().of(kind)).collect();
    let mut choice = BuyerChoice::new(free);
    let mut larger: Vec<Vec<Size>> = Vec::new();
    for (at, row) in class.clone().zip(&growth.rows[class.clone()]) {
        choice.row();
        let Some(base) = row.size() else {
            larger.push(Vec::new());
            continue;
        };
        let left = view.steps_left(row.job);
        for size in row.faster() {
            choice.option(left / base.speed - left / size.speed, &growth.needs(at, size))?;
        }
        larger.push(row.faster().collect());
    }
    let chosen = choice.solve(&ChoiceWork { gap: 1e-4, ..ChoiceWork::default() }).chosen;
    let named = class.zip(larger).zip(chosen);
    Ok(named.filter_map(|((row, sizes), at)| Some((row, sizes[at? as usize]))).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yard_core::allocation::Shares;

    use crate::testing::{elastic, policy};

    type Sizes = Vec<(u16, u32, f64)>;

    /// The least sum of times over all ways to give each job one of its sizes.
    fn least(jobs: &[(Sizes, f64)], devices: u32) -> f64 {
        let Some(((sizes, steps), rest)) = jobs.split_first() else { return 0.0 };
        let fits = sizes.iter().filter(|size| size.1 <= devices);
        fits.map(|size| steps / size.2 + least(rest, devices - size.1)).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn what_is_left_saves_the_most_time(
            jobs in prop::collection::vec((0.1..1.0f64, 1.0..100.0f64), 1..5), more in 0u32..7,
        ) {
            let sized = |(power, steps): &(f64, f64)| {
                let sizes = [1u32, 2, 4].map(|k| (0, k, libm::pow(f64::from(k), *power))).to_vec();
                (sizes, *steps)
            };
            let jobs: Vec<(Sizes, f64)> = jobs.iter().map(sized).collect();
            let devices = jobs.len() as u32 + more;
            let told: Vec<_> = jobs.iter().map(|(sizes, steps)| (&sizes[..], *steps)).collect();
            let view = elastic(&[devices], &told);
            let Shares::All(shares) = policy("lyra").allocate(&view).unwrap().shares else { panic!("all") };
            let time = |share: &yard_core::allocation::Share| {
                let job = share.jobs[0];
                view.steps_left(job) / view.speed(job, share.shape.unwrap())
            };
            let ours: f64 = shares.iter().map(time).sum();
            let best = least(&jobs, devices);
            prop_assert!(ours <= best * 1.001 && ours >= best * 0.999999, "{ours} where {best} can be had");
        }
    }

    #[test]
    fn the_shortest_have_their_base_first() {
        let sizes = [(0, 2, 1.0), (0, 4, 2.0)];
        let view = elastic(&[5], &[(&sizes, 100.0), (&sizes, 10.0), (&sizes, 1.0)]);
        let Shares::All(shares) = policy("lyra").allocate(&view).unwrap().shares else { panic!("all") };
        let chosen: Vec<bool> = shares.iter().map(|share| share.rank.0 < 0.0).collect();
        assert_eq!(chosen, [false, true, true]);
    }
}
