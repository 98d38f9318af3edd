//! First in, first out on mixed devices (`fifo_perf` of Gavel: Narayanan et al., "Heterogeneity-Aware Cluster
//! Scheduling Policies for Deep Learning Workloads", OSDI 2020).
//!
//! Objective: in order of submission, each job gets the kind on which it is fastest among those with enough
//! devices left; the first for which there are not enough anywhere blocks all behind it. Everything is
//! decided anew each time, so a job moves up to a faster kind when one falls free.
//! Reads: submission, speeds, devices of each kind. Cost: O(jobs that fit · kinds), after sorting.
//! With `packed=true` (Gavel's `fifo_packed`) the jobs that wait are then put, in order, each onto the job placed
//! alone beside which the two keep most of their speeds, if that is more than 1.5 of one; the first that finds no
//! such partner ends it. Cost: O(jobs placed) for each that waits.
//! Not to be used where gangs differ in size: devices idle while the head waits.

use smallvec::smallvec;
use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::{JobIdx, ProfileId};
use yard_core::policy::{Knowledge, Policy, PolicyError, Priorities};
use yard_core::view::View;

use crate::counts::KindCounts;
use crate::params::PACKED;
use crate::ranked::{class, in_shape};
use crate::together::Room;
use crate::{Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo-het",
    live: "",
    family: "queue",
    paper: "fifo_perf of Gavel, Narayanan et al., OSDI 2020",
    there: "all of it, with its pairs (`packed=true`)",
    missing: "nothing",
    about: "In order of submission, each job on the fastest kind that has room; the first without room blocks",
    params: &[PACKED],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[Knowledge::Speeds],
    make: |params: &Params| Ok(Box::new(FifoHet { packed: params.flag("packed")? })),
};

/// What two jobs must keep of their speeds together, 1 = one alone.
const GAIN: f64 = 1.5;

struct FifoHet {
    packed: bool,
}

impl Policy for FifoHet {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        let mut jobs: Vec<JobIdx> = view.active().collect();
        jobs.sort_by_key(|job| (class(view, *job), view.run(*job).id));
        let mut left = KindCounts::up(view);
        let mut placed = Vec::new();
        for job in &jobs {
            let Some(shape) = place(view, *job, &mut left) else { break };
            placed.push((*job, shape));
        }
        let waiting = if self.packed { &jobs[placed.len()..] } else { &[] };
        Ok(Allocation::preemptive(Shares::All(shares(view, &placed, waiting))))
    }

    fn blocking(&self) -> bool {
        true
    }
}

/// The fastest shape for which there are devices left; equal speeds go to the one the job likes better.
fn place(view: &View, job: JobIdx, left: &mut KindCounts) -> Option<u16> {
    let spec = view.spec(job);
    let fits = spec.usable().filter(|shape| left.fits(&spec.shapes[*shape as usize]));
    let best =
        fits.reduce(|best, next| if view.speed(job, next) > view.speed(job, best) { next } else { best })?;
    left.take(&spec.shapes[best as usize]);
    Some(best)
}

/// Whole shares of those that are placed, and of those that wait with them as far as they find partners.
fn shares(view: &View, placed: &[(JobIdx, u16)], waiting: &[JobIdx]) -> Vec<Share> {
    let mut shares: Vec<Share> = placed.iter().map(|(job, shape)| in_shape(view, *job, *shape)).collect();
    let room = Room::new(view);
    for job in waiting {
        let alone = (0..placed.len()).filter(|at| shares[*at].jobs.len() == 1);
        let gains = alone.filter_map(|at| Some((at, gain(&room, placed[at], *job)?)));
        let best = gains.reduce(|best, next| if next.1 > best.1 { next } else { best });
        let Some((at, _)) = best.filter(|(_, gain)| *gain > GAIN) else { break };
        shares[at].jobs = smallvec![placed[at].0, *job];
        shares[at].shape = Some(placed[at].1);
    }
    shares
}

/// What two jobs keep of their speeds on the devices of the first, added up.
fn gain(room: &Room<'_>, (lead, shape): (JobIdx, u16), job: JobIdx) -> Option<f64> {
    let view = room.view;
    let known = |job| view.spec(job).profile != ProfileId::default();
    let speeds = room.packed(lead, job, shape).filter(|_| known(lead) && known(job))?;
    let own = view.spec(job).way(&view.spec(lead).shapes[shape as usize])?;
    Some(speeds[0] / view.speed(lead, shape) + speeds[1] / view.speed(job, own))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use yard_core::allocation::Shares;
    use yard_core::belief::Belief;
    use yard_core::ids::{KindId, ProfileId};

    use crate::testing::{World, cases, mixed, policy, run};

    #[test]
    fn jobs_go_where_the_artifact_puts_them() {
        cases("fifo_perf", "fifo-het", 0.0);
    }

    /// Two devices, five jobs; the third does well beside the second only, the fourth beside nobody.
    #[test]
    fn who_waits_goes_onto_the_best_partner_until_one_finds_none() {
        let mut view = mixed(&[1, 1], &[(1, &[2.0, 1.0][..]); 5], &[10.0; 5]);
        for (at, spec) in Arc::make_mut(&mut view.specs).iter_mut().enumerate() {
            Arc::make_mut(spec).profile = ProfileId(at as u32 + 1);
        }
        let mut belief = Belief::default();
        for (a, b, kept) in [(1, 3, 0.76), (2, 3, 0.9), (1, 4, 0.75), (2, 4, 0.9), (1, 5, 0.9)] {
            for kind in [KindId(0), KindId(1)] {
                belief.set_beside(ProfileId(a), ProfileId(b), kind, kept);
                belief.set_beside(ProfileId(b), ProfileId(a), kind, kept);
            }
        }
        view.belief = Arc::new(belief);
        let told = |spec: &str| {
            let Shares::All(shares) = policy(spec).allocate(&view).unwrap().shares else { panic!("all") };
            shares.iter().map(|share| share.jobs.iter().map(|job| job.0).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(told("fifo-het"), [[0], [1]]);
        // Job 3 would need the second device's place, which is taken, or more than 1.5 beside the first.
        assert_eq!(told("fifo-het:packed=true"), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn the_head_blocks_a_smaller_job() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0), (1, 1.0)]);
        assert_eq!(run("fifo-het", &mut world), [10.0, 20.0, 21.0]);
    }
}
