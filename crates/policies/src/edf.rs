//! Earliest deadline first (Liu and Layland, "Scheduling algorithms for multiprogramming in a hard
//! real-time environment", J. ACM 1973).
//!
//! Objective: min max_j (end_j − d_j); on one device it meets all deadlines if any order does. Jobs
//! without a deadline come last, oldest first.
//! Reads: deadlines. Cost: O(1) per arrival.
//! With `size=largest` each job in turn has the largest of its sizes for which there are devices left, faster or not, as in
//! the simulator of ElasticFlow (Gu et al., ASPLOS 2023), which charges nothing for the changes: on its trace of 195 jobs
//! far fewer deadlines are met so than where jobs keep their own sizes. Then it costs O(jobs · shapes) at each plan.
//! Not to be used under overload: it works on what is already lost and drags the rest down with it, and
//! gangs make that worse.

use std::cmp::Reverse;

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::job::Rank;
use yard_core::policy::{Policy, PolicyError, Priorities};
use yard_core::units::Time;
use yard_core::view::View;

use crate::PolicyEntry;
use crate::counts::KindCounts;
use crate::params::bad;
use crate::ranked::{Fixed, LAST, PREEMPTIVE, class, finite};
use crate::sizes::{behind, chosen, pinned};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "edf",
    live: "",
    family: "deadline",
    paper: "Liu and Layland, J. ACM 1973",
    there: "all of it: the earliest deadline first, preemptive",
    missing: "nothing; deadlines are not admitted here but by `--promises`",
    about: "Earliest deadline first, preemptive; jobs without a deadline come last",
    params: &[(
        "size",
        "the size a job runs in: liked (its best liked that fits) or largest (the most devices left), as in ElasticFlow's simulator [liked]",
    )],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make: |params| match params.text("size") {
        None | Some("liked") => Ok(Box::new(Fixed { mode: PREEMPTIVE, rank })),
        Some("largest") => Ok(Box::new(Largest)),
        Some(other) => Err(bad("size", other, "liked or largest")),
    },
};

/// The largest sizes, the earliest deadline first.
struct Largest;

impl Policy for Largest {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut jobs: Vec<JobIdx> = view.active().collect();
        jobs.sort_by_key(|job| {
            (pinned(view, *job).is_none(), class(view, *job), deadline(view, *job), view.run(*job).id)
        });
        let mut free = KindCounts::up(view);
        let shares = jobs.into_iter().filter_map(|job| largest(view, &mut free, job));
        Ok(Allocation::preemptive(Shares::All(shares.collect())))
    }
}

/// The most devices that are left for a job. One for which there are none may use, in its smallest size, what falls free
/// before the next plan.
fn largest(view: &View, free: &mut KindCounts, job: JobIdx) -> Option<Share> {
    let spec = view.spec(job);
    let devices = |shape: u16| spec.shapes[shape as usize].devices();
    let fits = |shape: &u16| free.fits(&spec.shapes[*shape as usize]);
    let most = spec.usable().filter(fits).max_by_key(|shape| (devices(*shape), Reverse(*shape)));
    let Some(shape) = pinned(view, job).or(most) else {
        let smallest = spec.usable().min_by_key(|shape| devices(*shape))?;
        return Some(behind(view, job, smallest));
    };
    free.take(&spec.shapes[shape as usize]);
    Some(chosen(view, job, shape))
}

fn deadline(view: &View, job: JobIdx) -> Time {
    view.spec(job).deadline.unwrap_or(Time::NEVER)
}

fn rank(view: &View, job: JobIdx) -> Rank {
    Rank(view.spec(job).deadline.map_or(LAST, |deadline| finite(deadline.secs())), 0.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use yard_core::allocation::Shares;
    use yard_core::ids::JobIdx;
    use yard_core::units::Time;

    use crate::testing::{World, elastic, permutations, policy, run};

    #[test]
    fn no_deadline_comes_last() {
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 10.0), (1, 10.0)]);
        world.set_deadline(1, 100.0);
        assert_eq!(run("edf", &mut world), [20.0, 10.0]);
    }

    /// What the rule says, without the policy's words: each job in turn takes the most that is left.
    fn by_the_rule(jobs: &[(Vec<u32>, u32)], devices: u32) -> Vec<Option<u32>> {
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|at| jobs[*at].1);
        let (mut left, mut given) = (devices, vec![None; jobs.len()]);
        for at in order {
            given[at] = jobs[at].0.iter().copied().filter(|size| *size <= left).max();
            left -= given[at].unwrap_or(0);
        }
        given
    }

    proptest! {
        #[test]
        fn each_takes_the_most_that_is_left(
            jobs in prop::collection::vec((prop::collection::vec(1u32..17, 1..4), 1u32..30), 1..6), devices in 1u32..20,
        ) {
            let sizes = |(sizes, _): &(Vec<u32>, u32)| -> Vec<_> {
                sizes.iter().map(|size| (0, *size, 1.0 / f64::from(*size))).collect()
            };
            let told: Vec<_> = jobs.iter().map(sizes).collect();
            let told: Vec<_> = told.iter().map(|sizes| (&sizes[..], 10.0)).collect();
            let mut view = elastic(&[devices], &told);
            for (spec, (_, deadline)) in Arc::make_mut(&mut view.specs).iter_mut().zip(&jobs) {
                Arc::make_mut(spec).deadline = Some(Time::from_secs(f64::from(*deadline)));
            }
            let Shares::All(shares) = policy("edf:size=largest").allocate(&view).unwrap().shares else { panic!("all") };
            let mut ours = vec![None; jobs.len()];
            for share in shares.iter().filter(|share| share.rank.0 < 0.0) {
                let JobIdx(row) = share.jobs[0];
                ours[row as usize] = Some(jobs[row as usize].0[share.shape.unwrap_or(0) as usize]);
            }
            prop_assert_eq!(ours, by_the_rule(&jobs, devices));
        }

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
