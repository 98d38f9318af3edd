//! Perotin, Sun and Raghavan ("Multi-Resource List Scheduling of Moldable Parallel Jobs under Precedence
//! Constraints", ICPP 2021): workflows of jobs that may run at several sizes, done soon as a whole.
//!
//! Objective: min max_j C_j with C_i + t_j(k_j) ≤ C_j for each i before j, where the devices of all that run fit.
//! Two phases. First every job gets its size (`sizes`): a linear program gives each a budget of time, so that neither
//! the longest path nor the work a device has to do is long; the smallest work within 1/ρ times the budget is taken,
//! and no more than a part μ of any kind. Then jobs are started in the order of the path that hangs on them, each as
//! soon as its devices are free (`list`).
//! Within φd + 2√(φd) + 1 times the optimum (φ the golden section, d kinds) ends one plan that is carried through, if all
//! jobs are there and known, each kind has seven devices or more (below, a case 2 % above the ratio is known), times do
//! not grow and work does not shrink with devices, devices need not lie together, starts cost nothing, and there are at
//! most `PLANNED_MAX` jobs. Outside of that, nothing is claimed. Nor is it proven for what we do, which is to plan anew
//! whenever something happens, for what is left: `yard validate` measures that within the same ratio on ten random
//! workflows with one kind and ten with two, all within the other conditions. The spec of the paper's rounding says "the fastest within the budget": that would bound the path and not the
//! work, so it is the one of least work within the budget, for which both follow (`sizes::round`).
//! Certificate: when the last job would end, by counting devices, and what no schedule can beat.
//! Reads: all living jobs with what they come after, also those that still wait for others; steps left, speeds, costs.
//! Cost: one linear program with a column for each job and size, and O(n²) to list them. Of more than `PLANNED_MAX`
//! jobs only the oldest are in the program, the others get the size of least work.
//! Not to be used where jobs keep coming and none comes after another: it minds the end of the last job only, and never
//! stops one that runs.

mod flow;
mod list;
mod sizes;

use smallvec::smallvec;
use yard_core::allocation::{Allocation, Certificate, Share, Shares};
use yard_core::job::Rank;
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::ranked::finite;
use crate::{OTHER, PolicyEntry};
use flow::Flow;

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "perotin",
    live: "",
    family: "workflow",
    paper: "Perotin, Sun and Raghavan, ICPP 2021",
    there: "both phases, planned anew at every event, and the lower bound",
    missing: "the ratio holds only for one plan carried through, all jobs known, seven devices of each kind or more, devices that need not lie together, times that do not grow and work that does not shrink with devices, at most 1000 jobs; the better ratios for trees and independent jobs",
    about: "Workflows of jobs of several sizes: the last one should end soon, under conditions within a proven ratio; never stops a job",
    params: &[],
    rounds: false,
    priority: Priorities::Refused(OTHER),
    needs: &[Knowledge::Durations, Knowledge::Speeds],
    make: |_| Ok(Box::new(Perotin)),
};

/// Most jobs in the linear program.
const PLANNED_MAX: usize = 1_000;

struct Perotin;

impl Policy for Perotin {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let flow = Flow::of(view);
        let sized = sizes::choose(&flow).map_err(|error| PolicyError(error.to_string()))?;
        let listed = list::run(&flow, &sized.ways);
        let share = |task: usize| {
            let (job, shape) = (flow.tasks[task].job, flow.tasks[task].ways[sized.ways[task]].shape);
            let rank = Rank(finite(-listed.tails[task]), 0.0);
            Share { jobs: smallvec![job], shape: Some(shape), fraction: 1.0, rank }
        };
        let active = (0..flow.tasks.len()).filter(|task| view.run(flow.tasks[*task].job).is_active());
        let certificate = (listed.makespan > 0.0).then(|| {
            let (objective, bound) = (listed.makespan, sized.bound);
            Box::new(Certificate { objective, bound, ..Certificate::default() })
        });
        Ok(Allocation { certificate, ..Allocation::queue(Shares::All(active.map(share).collect()), true) })
    }
}

#[cfg(test)]
mod tests;
