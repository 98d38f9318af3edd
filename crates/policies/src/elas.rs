//! E-LAS (reconstruction). Sultana et al., "E-LAS: Design and Analysis of Completion-Time Agnostic
//! Scheduling for Distributed Deep Learning Cluster", ICPP 2020, rank jobs by the real-time progress
//! of their epochs together with attained service. The exact formula is in no artifact; this reading
//! has the properties that the abstract names.
//!
//! Objective: min Σ_j (end_j − submitted_j) with R̂_j = A_j (1 − ρ_j) / ρ_j, the service still to come if
//! progress goes on as it went, ρ_j = done / steps. With equal ρ it is LAS, with true ρ it is SRSF. Jobs
//! without progress yet come first, least attained first: their ρ is learned by running them.
//! Reads: attained service, steps done (the last report carried on to now), steps in all.
//! Cost: O(changed + running) per plan; its order changes as time passes.
//! Not to be used where progress is not reported, or not in proportion to work.

use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{Moving, finite};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "elas",
    live: "",
    family: "attained",
    paper: "E-LAS (reconstruction), Sultana et al., ICPP 2020",
    there: "an order by attained service over progress, with the properties that the abstract names",
    missing: "the paper's formula, which is in no artifact, and its placement",
    about: "Least device time still to come, as progress so far tells, preemptive; needs no durations",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Progress],
    make: |_| Ok(Box::new(Moving::new(Cadence::EveryRound, rank))),
};

fn rank(view: &View, job: JobIdx) -> Rank {
    let attained = view.attained(job);
    let progress = view.run(job).done_at(view.now) / view.spec(job).steps;
    if progress > 0.0 {
        Rank(1.0, finite((attained * (1.0 - progress) / progress).max(0.0)))
    } else {
        Rank(0.0, finite(attained))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, policy};

    #[test]
    fn jobs_without_progress_come_first() {
        let mut world = World::new(&[1]);
        let mut elas = policy("elas");
        world.submit_all(&[(1, 100.0)]);
        world.plan(&mut *elas);
        world.advance(90.0);
        world.submit_all(&[(1, 1000.0)]);
        world.plan(&mut *elas);
        assert_eq!(world.running(), [1]);
    }

    #[test]
    fn progress_tells_what_is_left() {
        let mut world = World::new(&[2]);
        let mut elas = policy("elas");
        world.submit_all(&[(1, 100.0), (1, 40.0)]);
        world.plan(&mut *elas);
        world.advance(20.0);
        world.plan(&mut *elas);
        assert_eq!(world.view.runs.iter().map(|run| run.rank.1.round()).collect::<Vec<_>>(), [80.0, 20.0]);
    }
}
