//! Earliest deadline first (Liu and Layland, "Scheduling algorithms for multiprogramming in a hard
//! real-time environment", J. ACM 1973).
//!
//! Objective: min max_j (end_j − d_j); on one device it meets all deadlines if any order does. Jobs
//! without a deadline come last, oldest first.
//! Reads: deadlines. Cost: O(1) per arrival.
//! With `size=largest` each job runs on as many devices as it can use, or waits, much as the EDF of ElasticFlow's
//! simulator (Gu et al., ASPLOS 2023) does: it meets far fewer deadlines than one that leaves jobs their own sizes.
//! Not to be used under overload: it works on what is already lost and drags the rest down with it, and
//! gangs make that worse.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::{JobSpec, Rank};
use yard_core::policy::{Policy, PolicyError};
use yard_core::view::View;

use crate::Entry;
use crate::params::bad;
use crate::ranked::{Fixed, LAST, PREEMPTIVE, finite};

pub(crate) const ENTRY: Entry = Entry {
    name: "edf",
    family: "deadline",
    paper: "Liu and Layland, J. ACM 1973",
    about: "Earliest deadline first, preemptive; jobs without a deadline come last",
    params: &[(
        "size",
        "the size a job runs in: liked (its best liked that fits) or largest, as in ElasticFlow's simulator [liked]",
    )],
    rounds: true,
    make: |params| match params.text("size") {
        None | Some("liked") => Ok(Box::new(Fixed { mode: PREEMPTIVE, rank })),
        Some("largest") => Ok(Box::new(Largest)),
        Some(other) => Err(bad("size", other, "liked or largest")),
    },
};

/// All jobs in their largest shapes.
struct Largest;

impl Policy for Largest {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let share = |job: JobIdx| {
            let spec = view.spec(job);
            let most = |shape: &u16| spec.shapes[*shape as usize].devices().min(largest(view, spec, *shape));
            let shape = spec.usable().max_by_key(|shape| (most(shape), std::cmp::Reverse(*shape)))?;
            Some(Share { shape: Some(shape), ..Share::whole(job, rank(view, job)) })
        };
        Ok(Allocation::preemptive(Shares::All(view.active().filter_map(share).collect())))
    }
}

/// Its devices where the cluster has as many, else none: what can never run is not chosen.
fn largest(view: &View, spec: &JobSpec, shape: u16) -> u32 {
    let shape = &spec.shapes[shape as usize];
    let fits = shape.needs.iter().all(|need| view.capacity(need.kind) >= need.devices);
    if fits { shape.devices() } else { 0 }
}

fn rank(view: &View, job: JobIdx) -> Rank {
    Rank(view.spec(job).deadline.map_or(LAST, |deadline| finite(deadline.secs())), 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{World, permutations, run};

    #[test]
    fn no_deadline_comes_last() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 10.0), (1, 10.0)]);
        world.set_deadline(1, 100.0);
        assert_eq!(run("edf", &mut world), [20.0, 10.0]);
    }

    proptest! {
        #[test]
        fn deadlines_are_met_if_any_order_meets_them(
            jobs in prop::collection::vec((1u32..9, 1u32..30), 1..6),
        ) {
            let mut world = World::new(&[1]);
            for (at, (long, deadline)) in jobs.iter().enumerate() {
                world.submit_all(&[(1, f64::from(*long))]);
                world.set_deadline(at, f64::from(*deadline));
            }
            let meets = |order: &Vec<usize>| {
                let mut now = 0;
                order.iter().all(|at| {
                    now += jobs[*at].0;
                    now <= jobs[*at].1
                })
            };
            let ends = run("edf", &mut world);
            let met = ends.iter().zip(&jobs).all(|(end, job)| *end <= f64::from(job.1) + 1e-3);
            prop_assert_eq!(met, permutations(jobs.len()).iter().any(meets));
        }
    }
}
