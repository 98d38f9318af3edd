//! EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson,
//! "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with
//! backfilling", IEEE TPDS 2001): first in, first out, with a reservation for the head.
//!
//! Objective: the head starts at t* = min{t : free(t) ≥ g_head}, as running jobs' believed ends say; any
//! later job starts now if it fits now and does not move t*: now + r_j ≤ t*, or g_j is to spare at t*.
//! Reads: submission times, free devices by kind, seconds left of running and waiting jobs.
//! Cost: O(running · log running + waiting) per plan; the walk ends when no device is left. Asking on
//! change is enough: as time passes, t* stands still and whoever was too long for the gap stays so.
//! Not to be used where durations are guesses far below the truth: the reservation then slides. It
//! counts devices; where the placer wants them close together the head may wait longer, but not for
//! later jobs: the first job that cannot be placed blocks the rest.

use yard_core::allocation::{Allocation, Share, Shares};
use yard_core::ids::{JobId, JobIdx};
use yard_core::job::{JobState, Shape};
use yard_core::policy::{Policy, PolicyError};
use yard_core::units::Time;
use yard_core::view::View;

use crate::Entry;
use crate::counts::Counts;
use crate::index::{Index, running, waiting};
use crate::ranked::in_shape;

pub(crate) const ENTRY: Entry = Entry {
    name: "backfill",
    family: "queue",
    paper: "EASY, Lifka, JSSPP 1995",
    about: "In order of submission; the head has a reservation and shorter jobs fill the gap before it",
    params: &[],
    rounds: false,
    make: |_| Ok(Box::new(Backfill::default())),
};

#[derive(Default)]
struct Backfill {
    running: Index<()>,
    waiting: Index<(Time, JobId)>,
}

impl Policy for Backfill {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        self.running.follow(view, |job| running(view, job));
        self.waiting.follow(view, |job| waiting(view, job));
        let mut plan = Plan::new(view, self.running.rows());
        let mut queue = self.waiting.rows();
        // Whoever fits while nobody waits before it starts; the first who does not is the head.
        if let Some(head) = queue.find(|job| !plan.start(*job)) {
            let mut reservation = plan.reserve(head);
            for job in queue {
                if plan.free.is_empty() {
                    break;
                }
                plan.fill(job, &mut reservation);
            }
        }
        Ok(Allocation::queue(Shares::All(plan.shares), false))
    }
}

/// Who runs and will run after this plan.
struct Plan<'a> {
    view: &'a View,
    free: Counts,
    /// Seconds until each job that holds devices is believed to end, with its shape.
    ends: Vec<(f64, &'a Shape)>,
    shares: Vec<Share>,
}

/// What the head of the queue was promised.
struct Reservation {
    /// Seconds until it can start; infinite if no end of a running job makes room for it.
    wait: f64,
    /// Devices that it will not need then.
    spare: Counts,
}

impl<'a> Plan<'a> {
    fn new(view: &'a View, jobs: impl Iterator<Item = JobIdx>) -> Plan<'a> {
        let mut plan = Plan { view, free: Counts::free(view), ends: Vec::new(), shares: Vec::new() };
        jobs.for_each(|job| plan.keep(job, view.run(job).shape));
        plan
    }

    /// Counts a job among those that hold devices.
    fn keep(&mut self, job: JobIdx, shape: u16) {
        let Some(held) = self.view.spec(job).shapes.get(shape as usize) else { return };
        self.ends.push((seconds(self.view, job, shape), held));
        self.shares.push(in_shape(self.view, job, shape));
    }

    fn take(&mut self, job: JobIdx, shape: u16) {
        self.free.take(&self.view.spec(job).shapes[shape as usize]);
        self.keep(job, shape);
    }

    /// Starts a job if its devices are free.
    fn start(&mut self, job: JobIdx) -> bool {
        let shape = self.free.first_fit(&self.view.spec(job).shapes);
        shape.map(|shape| self.take(job, shape)).is_some()
    }

    /// The earliest start of a job that does not fit now, and what will be left beside it.
    fn reserve(&mut self, head: JobIdx) -> Reservation {
        let shapes = &self.view.spec(head).shapes;
        self.ends.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut spare = self.free.clone();
        for at_once in self.ends.chunk_by(|left, right| left.0 == right.0) {
            at_once.iter().for_each(|(_, shape)| spare.give(shape));
            if let Some(shape) = spare.first_fit(shapes) {
                spare.take(&shapes[shape as usize]);
                return Reservation { wait: at_once[0].0, spare };
            }
        }
        Reservation { wait: f64::INFINITY, spare }
    }

    /// Starts a job behind the head if that does not move the reservation.
    fn fill(&mut self, job: JobIdx, reservation: &mut Reservation) {
        for (at, shape) in self.view.spec(job).shapes.iter().enumerate() {
            let in_time = seconds(self.view, job, at as u16) <= reservation.wait;
            if self.free.fits(shape) && (in_time || reservation.spare.fits(shape)) {
                if !in_time {
                    reservation.spare.take(shape);
                }
                return self.take(job, at as u16);
            }
        }
    }
}

/// Seconds until a job is believed to end in this shape, with its start where that is still to come.
fn seconds(view: &View, job: JobIdx, shape: u16) -> f64 {
    let (run, spec) = (view.run(job), view.spec(job));
    let believed = spec.speeds.get(shape as usize).copied().unwrap_or(0.0);
    let speed = if run.speed > 0.0 { run.speed } else { believed };
    let load = if run.starts > 0 { spec.costs.load.secs() } else { 0.0 };
    let start = if run.state == JobState::Running { 0.0 } else { spec.costs.start.secs() + load };
    let seconds = start + view.steps_left(job) / speed;
    if seconds.is_nan() { f64::INFINITY } else { seconds }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{World, policy, run};

    #[test]
    fn a_short_job_fills_the_gap_and_a_long_one_waits() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (4, 10.0), (1, 11.0), (1, 9.0)]);
        assert_eq!(run("backfill", &mut world), [10.0, 20.0, 31.0, 9.0]);
    }

    #[test]
    fn a_long_job_may_use_what_the_head_leaves() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(3, 10.0), (2, 10.0), (1, 99.0)]);
        assert_eq!(run("backfill", &mut world), [10.0, 20.0, 99.0]);
    }

    #[test]
    fn a_head_that_can_never_start_holds_nobody_back() {
        let mut world = World::new(&[4]);
        world.submit_all(&[(9, 10.0), (4, 10.0)]);
        world.plan(&mut *policy("backfill"));
        assert_eq!(world.running(), [1]);
    }

    /// When the head could start if only the jobs in `held` (seconds left, devices) kept their devices.
    fn earliest(devices: u32, held: &[(f64, u32)], head: u32) -> f64 {
        let free_at = |t: f64| devices - held.iter().filter(|job| job.0 > t).map(|job| job.1).sum::<u32>();
        let times = held.iter().map(|job| job.0).chain([0.0]);
        times.filter(|t| free_at(*t) >= head).fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn the_heads_reservation_is_never_moved(
            jobs in prop::collection::vec((1u32..7, 1u32..30), 1..20),
            more in prop::collection::vec((1u32..7, 1u32..30), 1..20),
            gap in 0u32..30,
        ) {
            let mut world = World::new(&[6]);
            let mut backfill = policy("backfill");
            let submit = |world: &mut World, jobs: &[(u32, u32)]| {
                jobs.iter().for_each(|(size, long)| world.submit_all(&[(*size, f64::from(*long))]));
            };
            submit(&mut world, &jobs);
            world.plan(&mut *backfill);
            world.advance(f64::from(gap));
            submit(&mut world, &more);
            let before = world.running();
            world.plan(&mut *backfill);
            let held = |world: &World, jobs: &[usize]| -> Vec<(f64, u32)> {
                jobs.iter().map(|at| (world.seconds_left(*at), world.devices(*at))).collect()
            };
            let after = world.running();
            // Everybody up to the head started in order; the head is the first who waits.
            if let Some(head) = world.waiting().first() {
                let ahead: Vec<usize> =
                    after.iter().copied().filter(|at| before.contains(at) || at < head).collect();
                let promised = earliest(6, &held(&world, &ahead), world.devices(*head));
                let kept = earliest(6, &held(&world, &after), world.devices(*head));
                prop_assert_eq!(promised, kept);
            }
        }
    }
}
