//! Time slicing with equal shares, the suspend–resume half of Gandiva (Xiao et al., "Gandiva:
//! Introspective Cluster Scheduling for Deep Learning", OSDI 2018). Only the time slicing: no packing,
//! no migration, no growing and shrinking, no affinity of servers.
//!
//! Objective: x_j = min(1, N_k / Σ_i g_ik) for each job of kind k: all jobs make progress at once, each
//! for the same part of the time; over several kinds a job gets the least of its parts.
//! Reads: the shape each job likes best, the devices of each kind. Cost: O(jobs) per plan in which jobs
//! or nodes came or went, else O(1).
//! Not to be used where mean completion time matters: equal jobs all end late. It is for early feedback.

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::ids::{JobIdx, KindId};
use yard_core::job::Need;
use yard_core::policy::{Cadence, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::{OTHER, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "round-robin",
    live: "freezing::on_several_cards_each_goes_on_where_it_lies",
    family: "sharing",
    paper: "time slicing of Gandiva, Xiao et al., OSDI 2018",
    there: "time slices of equal length for all",
    missing: "packing, migration, growing and shrinking, affinity of servers: see `gandiva`",
    about: "Equal parts of the time for all jobs, in turns",
    params: &[],
    rounds: true,
    priority: Priorities::Refused(OTHER),
    needs: &[],
    make: |_| Ok(Box::new(RoundRobin)),
};

struct RoundRobin;

impl Policy for RoundRobin {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let changed = &view.changed;
        let still = !changed.all && !changed.nodes && changed.added.is_empty() && changed.ended.is_empty();
        if still {
            return Ok(Allocation {
                mode: Mode::Fractions,
                shares: Shares::Changed(Vec::new()),
                replan_at: None,
                certificate: None,
            });
        }
        let parts = parts(view);
        let share = |job| {
            let part = needs(view, job).map(|need| parts[need.kind.index()]).fold(1.0, f64::min);
            // A kind without devices leaves nothing to share out.
            (part > 0.0).then(|| Share::part(job, part))
        };
        Ok(Allocation::fractions(view.active().filter_map(share).collect()))
    }

    fn cadence(&self) -> Cadence {
        Cadence::EveryRound
    }
}

/// The needs of the shape a job likes best.
fn needs(view: &View, job: JobIdx) -> impl Iterator<Item = &Need> {
    view.spec(job).shapes.first().into_iter().flat_map(|shape| &shape.needs)
}

/// The part of the time for which each kind can serve all that want it at once.
fn parts(view: &View) -> Vec<f64> {
    let mut demand: Vec<f64> = view.kinds.ids().map(|_| 0.0).collect();
    for need in view.active().flat_map(|job| needs(view, job)) {
        if demand.len() <= need.kind.index() {
            demand.resize(need.kind.index() + 1, 0.0);
        }
        demand[need.kind.index()] += f64::from(need.devices);
    }
    let capacity = |at: usize| f64::from(view.nodes.total(KindId(at as u16)));
    let part =
        |(at, demand): (usize, &f64)| if *demand > 0.0 { (capacity(at) / demand).min(1.0) } else { 1.0 };
    demand.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, policy};

    #[test]
    fn parts_are_equal_and_add_up_to_the_cluster() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(4, 10.0), (2, 10.0), (2, 10.0)]);
        world.plan(&mut *policy("round-robin"));
        assert_eq!(world.fractions(), [0.5, 0.5, 0.5]);
    }

    #[test]
    fn everybody_gets_all_the_time_when_there_is_room() {
        let mut world = World::new(&[4, 4]);
        world.submit_all(&[(4, 10.0), (2, 10.0)]);
        world.plan(&mut *policy("round-robin"));
        assert_eq!(world.fractions(), [1.0, 1.0]);
    }

    #[test]
    fn jobs_take_turns() {
        let mut world = World::new(&[1]);
        let mut policy = policy("round-robin");
        world.submit_all(&[(1, 100.0), (1, 100.0), (1, 100.0)]);
        let mut turns = Vec::new();
        for _ in 0..6 {
            world.plan(&mut *policy);
            turns.extend(world.running());
            world.advance(10.0);
        }
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    }
}
