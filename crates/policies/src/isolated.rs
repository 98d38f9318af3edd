//! A cluster of one's own: the share that each of n jobs would have if the cluster were cut into n like
//! pieces (Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
//! OSDI 2020: the baseline, and the denominator of finish-time fairness).
//!
//! Objective: x_jk = (c_k / n) / s_j for a job of s_j devices and a kind of c_k, the row divided by its sum
//! where that is above 1.
//! Reads: devices of each kind, gangs; no speeds. Cost: O(jobs · kinds) per plan.
//! Not to be used but as a yardstick: it knows nothing of which job gains where.

use smallvec::smallvec;
use yard_core::allocation::{Allocation, Share};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::leftovers::with_leftovers;
use crate::{OTHER, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "isolated",
    live: "",
    family: "sharing",
    paper: "baseline of Gavel, Narayanan et al., OSDI 2020",
    there: "all of it: the 1/n share of each kind",
    missing: "nothing",
    about: "To each job an equal part of every kind of device, as if it had its own piece of the cluster",
    params: &[],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[],
    make: |_| Ok(Box::new(Isolated)),
};

struct Isolated;

impl Policy for Isolated {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let jobs: Vec<JobIdx> = view.active().collect();
        let shares = jobs.iter().flat_map(|job| parts(view, *job, jobs.len())).collect();
        Ok(Allocation::fractions(with_leftovers(view, shares)))
    }

    fn agnostic(&self) -> bool {
        true
    }
}

/// A job's part of each kind, where it has a shape there that makes progress.
fn parts(view: &View, job: JobIdx, n_jobs: usize) -> Vec<Share> {
    let spec = view.spec(job);
    let gang = f64::from(spec.shapes[0].devices());
    let part = |kind| f64::from(view.capacity(kind)) / n_jobs as f64 / gang;
    let sum: f64 = view.kinds.ids().map(part).sum();
    let of_kind = |kind| {
        let alone =
            |shape: &u16| matches!(&spec.shapes[*shape as usize].needs[..], [need] if need.kind == kind);
        let shape = spec.usable().find(alone)?;
        let fraction = part(kind) / sum.max(1.0);
        let share = Share { jobs: smallvec![job], shape: Some(shape), fraction, rank: Rank::default() };
        (fraction > 0.0).then_some(share)
    };
    view.kinds.ids().filter_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::cases;

    #[test]
    fn shares_are_those_of_the_artifact() {
        cases("isolated", "isolated", 1e-12);
    }
}
