//! Ties as in a list that is sorted again at each event and never made anew, which is how Tiresias' simulator keeps its
//! jobs (Gu et al., NSDI 2019): of jobs with the same key the one that was ahead stays ahead, and new ones come last. So
//! one that waits goes before one that runs and has just come as near to its end.
//!
//! The second number of a rank tells since when a job has had its key. All of it is in the view: there is no memory.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::job::Rank;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::view::View;

/// A policy by one key, with such ties where they are wanted.
pub(crate) fn with_ties(policy: impl Policy + 'static, wanted: bool) -> Box<dyn Policy> {
    if wanted { Box::new(Stable(policy)) } else { Box::new(policy) }
}

struct Stable<P>(P);

impl<P: Policy> Policy for Stable<P> {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut allocation = self.0.allocate(view)?;
        match &mut allocation.shares {
            Shares::All(shares) | Shares::Changed(shares) => settle(view, shares),
        }
        Ok(allocation)
    }

    fn cadence(&self) -> Cadence {
        self.0.cadence()
    }
}

/// Who has the key it had stays where it is; the others come behind those who were there, in the order that was.
fn settle(view: &View, shares: &mut [Share]) {
    let before = |share: &Share| view.run(share.jobs[0]).rank;
    let mut arrived: Vec<&mut Share> = Vec::new();
    for share in shares {
        let was = before(share);
        if share.rank.0 == was.0 {
            share.rank.1 = was.1;
        } else {
            share.rank.1 = view.now.secs();
            arrived.push(share);
        }
    }
    arrived.sort_by(|left, right| {
        let place = |share: &Share| (before(share), view.run(share.jobs[0]).id);
        let ((was, id), (other_was, other_id)) = (place(left), place(right));
        let new = |was: Rank| was == Rank::default();
        left.rank.0.total_cmp(&right.rank.0).then(new(was).cmp(&new(other_was))).then_with(|| {
            was.0.total_cmp(&other_was.0).then(was.1.total_cmp(&other_was.1)).then(id.cmp(&other_id))
        })
    });
    for at in 1..arrived.len() {
        let last = arrived[at - 1].rank;
        if arrived[at].rank.0 == last.0 {
            arrived[at].rank.1 = last.1.next_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{World, run};

    #[derive(Clone, Copy)]
    struct RememberedJob {
        number: usize,
        devices: u64,
        left: u64,
        runs: bool,
    }

    /// The simulator's list: whole seconds, sorted at each arrival and end.
    fn listed(jobs: &[(u64, u64, u64)], devices: u64, by_service: bool) -> Vec<f64> {
        let (mut now, mut list, mut ends) = (0, Vec::<RememberedJob>::new(), vec![0.0; jobs.len()]);
        let mut to_come: Vec<usize> = (0..jobs.len()).collect();
        loop {
            let arrivals = to_come.iter().map(|at| jobs[*at].0);
            let running = list.iter().filter(|job| job.runs).map(|job| now + job.left);
            let Some(next) = arrivals.chain(running).min() else { return ends };
            for job in list.iter_mut().filter(|job| job.runs) {
                job.left -= next - now;
            }
            now = next;
            for job in list.iter().filter(|job| job.left == 0) {
                ends[job.number] = now as f64;
            }
            list.retain(|job| job.left > 0);
            let here = |number: &usize| jobs[*number].0 <= now;
            for number in to_come.extract_if(.., |number| here(number)) {
                list.push(RememberedJob {
                    number,
                    devices: jobs[number].1,
                    left: jobs[number].2,
                    runs: false,
                });
            }
            list.sort_by_key(|job| if by_service { job.left * job.devices } else { job.left });
            let mut free = devices;
            for job in &mut list {
                job.runs = job.devices <= free;
                free -= if job.runs { job.devices } else { 0 };
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn ranks_do_what_a_list_does(
            jobs in prop::collection::vec((0u64..30, 1u64..5, 1u64..12), 1..25), by_service in any::<bool>(),
        ) {
            let mut jobs = jobs;
            jobs.sort_by_key(|job| job.0);
            let mut world = World::new(&[4, 2]);
            jobs.iter().for_each(|(at, devices, left)| world.submit_at(*at as f64, *devices as u32, *left as f64));
            let policy = if by_service { "srsf:artifact=true" } else { "srtf:artifact=true" };
            prop_assert_eq!(run(policy, &mut world), listed(&jobs, 6, by_service));
        }
    }
}
