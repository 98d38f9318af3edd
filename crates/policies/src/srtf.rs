//! Shortest remaining time first (Schrage, "A proof of the optimality of the shortest remaining
//! processing time discipline", Operations Research 1968), with the durations believed.
//!
//! Objective: min Σ_j (end_j − submitted_j); optimal on one device, a strong yardstick on many.
//! Reads: seconds left, in the shape a job holds or likes best.
//! Cost: O(changed + running) per plan. Asking on change is enough: while nothing happens only running
//! jobs move, and they move forward, past waiting jobs. A waiting job that did not fit behind fewer
//! running ones does not fit behind more, so the same jobs are chosen until something happens.
//! Not to be used where durations are not known, or where long jobs must not starve.

use yard_core::job::Rank;
use yard_core::policy::{Cadence, Knowledge, Priorities};
use yard_core::view::View;

use crate::PolicyEntry;
use crate::ranked::{Moving, finite};
use crate::stable::with_ties;

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "srtf",
    live: "same::what_was_stopped_live_is_stopped_in_simulation",
    family: "size",
    paper: "Schrage, Operations Research 1968",
    there: "all of it, by believed seconds left",
    missing: "nothing; with wrong durations its proof does not hold",
    about: "Shortest remaining time first, preemptive; needs durations",
    params: &[("artifact", "ties as in Tiresias' simulator, see `stable`: true or false [false]")],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Durations],
    make: |params| {
        let rank = |view: &View, job| Rank(finite(view.seconds_left(job)), 0.0);
        Ok(with_ties(Moving::new(Cadence::OnChange, rank), params.flag("artifact")?))
    },
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{World, permutations, policy, run};

    #[test]
    fn a_shorter_arrival_stops_a_longer_job() {
        let mut world = World::new(&[1]);
        world.submit_at(0.0, 1, 10.0);
        world.submit_at(4.0, 1, 5.0);
        assert_eq!(run("srtf", &mut world), [15.0, 9.0]);
    }

    #[test]
    fn what_is_left_counts_and_not_what_there_was() {
        let mut world = World::new(&[1]);
        world.submit_at(0.0, 1, 10.0);
        world.submit_at(6.0, 1, 5.0);
        assert_eq!(run("srtf", &mut world), [10.0, 15.0]);
    }

    #[test]
    fn who_is_over_its_stated_length_does_not_stay_first() {
        let mut world = World::new(&[1]);
        world.learn_lengths();
        world.submit_all(&[(1, 100.0)]);
        let mut srtf = policy("srtf");
        world.plan(&mut *srtf);
        world.overrun(0, 150.0);
        world.submit_all(&[(1, 120.0)]);
        world.plan(&mut *srtf);
        assert_eq!(
            (world.running(), world.ranks()),
            (vec![1], vec![150.0, 120.0]),
            "as much again is left of it"
        );
    }

    #[test]
    fn what_is_believed_of_a_length_is_asked_again_before_long() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 1_000.0)]);
        assert_eq!(world.plan(&mut *policy("srtf")).replan_at, None, "what is stated is true");
        world.settle();
        world.learn_lengths();
        let asked = world.plan(&mut *policy("srtf")).replan_at;
        assert_eq!(asked.map(|time| time.secs()), Some(1_100.0), "once it is a tenth over");
    }

    /// The sum of the ends of jobs that run one after the other, as soon as they are there.
    fn total(order: &[usize], jobs: &[(f64, f64)]) -> f64 {
        let mut now = 0.0;
        let mut end = |at: &usize| {
            now = f64::max(now, jobs[*at].0) + jobs[*at].1;
            now
        };
        order.iter().map(&mut end).sum()
    }

    proptest! {
        #[test]
        fn no_order_ends_sooner_on_average(jobs in prop::collection::vec((0u32..10, 1u32..9), 1..6)) {
            let exact = |(at, long): &(u32, u32)| (f64::from(*at), f64::from(*long));
            let jobs: Vec<(f64, f64)> = jobs.iter().map(exact).collect();
            let mut world = World::new(&[1]);
            jobs.iter().for_each(|(at, long)| world.submit_at(*at, 1, *long));
            let ours: f64 = run("srtf", &mut world).iter().sum();
            let orders = permutations(jobs.len());
            let best = orders.iter().map(|order| total(order, &jobs)).fold(f64::MAX, f64::min);
            prop_assert!(ours <= best + 1e-3, "{ours} but {best}");
        }
    }
}
