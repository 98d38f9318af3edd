//! First in, first out on mixed devices (`fifo_perf` of Gavel: Narayanan et al., "Heterogeneity-Aware Cluster
//! Scheduling Policies for Deep Learning Workloads", OSDI 2020).
//!
//! Objective: in order of submission, each job gets the kind on which it is fastest among those with enough
//! devices left; the first for which there are not enough anywhere blocks all behind it. Everything is
//! decided anew each time, so a job moves up to a faster kind when one falls free.
//! Reads: submission, speeds, devices of each kind. Cost: O(jobs that fit · kinds), after sorting.
//! Not to be used where gangs differ in size: devices idle while the head waits.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::JobIdx;
use yard_core::policy::{Policy, PolicyError};
use yard_core::view::View;

use crate::Entry;
use crate::counts::Counts;
use crate::ranked::in_shape;

pub(crate) const ENTRY: Entry = Entry {
    name: "fifo-het",
    family: "queue",
    paper: "fifo_perf of Gavel, Narayanan et al., OSDI 2020",
    about: "In order of submission, each job on the fastest kind that has room; the first without room blocks",
    params: &[],
    rounds: true,
    make: |_| Ok(Box::new(FifoHet)),
};

struct FifoHet;

impl Policy for FifoHet {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut jobs: Vec<JobIdx> = view.active().collect();
        jobs.sort_by_key(|job| view.run(*job).id);
        let mut left = Counts::up(view);
        let placed = jobs.into_iter().map_while(|job| place(view, job, &mut left));
        Ok(Allocation::preemptive(Shares::All(placed.collect())))
    }

    fn blocking(&self) -> bool {
        true
    }
}

/// The fastest shape for which there are devices left; equal speeds go to the one the job likes better.
fn place(view: &View, job: JobIdx, left: &mut Counts) -> Option<Share> {
    let spec = view.spec(job);
    let fits = spec.usable().filter(|shape| left.fits(&spec.shapes[*shape as usize]));
    let best =
        fits.reduce(|best, next| if view.speed(job, next) > view.speed(job, best) { next } else { best })?;
    left.take(&spec.shapes[best as usize]);
    Some(in_shape(view, job, best))
}

#[cfg(test)]
mod tests {
    use crate::testing::{World, cases, run};

    #[test]
    fn jobs_go_where_the_artifact_puts_them() {
        cases("fifo_perf", "fifo-het", 0.0);
    }

    #[test]
    fn the_head_blocks_a_smaller_job() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0), (1, 1.0)]);
        assert_eq!(run("fifo-het", &mut world), [10.0, 20.0, 21.0]);
    }
}
