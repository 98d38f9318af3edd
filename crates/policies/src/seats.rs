//! Groups of jobs as policies that share devices build them: who is on which devices now, what is free, and who
//! waits. A seat is a set of devices, held or wished for, with the jobs on it. Devices are counted by kind; where
//! exactly they lie is the placer's matter.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::Time;
use yard_core::allocation::Share;
use yard_core::cluster::Level;
use yard_core::ids::{JobIdx, LeaseId};
use yard_core::job::{Need, Rank, Shape};
use yard_core::reach::Reach;
use yard_core::view::View;

use crate::ranked::class;
use crate::together::{Likeness, Room, likeness};

/// Devices, and the jobs on them.
pub(crate) struct Seat<'v> {
    pub(crate) jobs: Vec<JobIdx>,
    pub(crate) shape: &'v Shape,
    /// Whether the devices are there; else it waits for them.
    pub(crate) placed: bool,
}

/// Where its list of shapes lies, which like jobs share, and what counts of it beside others.
pub(crate) type Sort<'v> = (usize, Likeness<'v>);

/// All seats.
pub(crate) struct Seats<'v> {
    pub(crate) view: &'v View,
    pub(crate) room: Room<'v>,
    /// What the nodes in service could hold if they were empty.
    pub(crate) reach: Reach<'v>,
    pub(crate) list: Vec<Seat<'v>>,
    /// Devices that no seat has, by kind.
    free: Vec<u32>,
    /// Jobs without a seat, by priority, the oldest first.
    pub(crate) waiting: Vec<JobIdx>,
}

impl<'v> Seats<'v> {
    /// As things are: jobs with one lease share their devices.
    pub(crate) fn new(view: &'v View) -> Seats<'v> {
        let (mut leases, mut waiting) = (BTreeMap::<LeaseId, Vec<JobIdx>>::new(), Vec::new());
        for job in view.active() {
            match view.run(job).lease.filter(|_| view.is_running(job)) {
                Some(lease) => leases.entry(lease).or_default().push(job),
                None => waiting.push(job),
            }
        }
        waiting.sort_unstable_by_key(|job| (class(view, *job), view.run(*job).id));
        let free = view.kinds.ids().map(|kind| view.capacity(kind)).collect();
        let (room, reach) = (Room::new(view), Reach::of(&view.nodes));
        let mut seats = Seats { view, room, reach, list: Vec::new(), free, waiting };
        leases.into_values().for_each(|jobs| seats.add_held(jobs));
        seats
    }

    fn add_held(&mut self, mut jobs: Vec<JobIdx>) {
        jobs.sort_unstable_by_key(|job| self.place(*job));
        let lead = self.view.run(jobs[0]);
        let shape = &self.view.spec(jobs[0]).shapes[lead.shape as usize];
        self.take(shape);
        self.list.push(Seat { jobs, shape, placed: true });
    }

    /// Who was there first comes first in a group, so that its name stays the same while others come and go.
    fn place(&self, job: JobIdx) -> (Time, u64) {
        let run = self.view.run(job);
        (if run.holds() { run.held_since } else { Time::NEVER }, run.id.0)
    }

    fn take(&mut self, shape: &Shape) {
        for need in &shape.needs {
            let free = &mut self.free[need.kind.index()];
            *free = free.saturating_sub(need.devices);
        }
    }

    /// Takes those out of their seats whom `stays` does not want there with the ones before them in `order`; they
    /// wait. A seat keeps its devices for who is left.
    pub(crate) fn put_out<K: Ord>(
        &mut self,
        order: impl Fn(JobIdx) -> K,
        stays: impl Fn(&Room<'v>, &[JobIdx], &Shape) -> bool,
    ) {
        for seat in &mut self.list {
            let mut jobs = std::mem::take(&mut seat.jobs);
            jobs.sort_by_key(|job| order(*job));
            for job in jobs {
                seat.jobs.push(job);
                if !stays(&self.room, &seat.jobs, seat.shape) {
                    self.waiting.extend(seat.jobs.pop());
                }
            }
        }
        self.waiting.sort_unstable_by_key(|job| (class(self.view, *job), self.view.run(*job).id));
    }

    /// The best liked shape of a job for which enough devices are free.
    pub(crate) fn free_shape(&self, job: JobIdx) -> Option<&'v Shape> {
        let spec: &'v _ = self.view.spec(job);
        let enough = |need: &Need| self.free.get(need.kind.index()).is_some_and(|free| *free >= need.devices);
        let fits = |shape: &&Shape| self.reach.holds(shape) && shape.needs.iter().all(enough);
        spec.usable().map(|shape| &spec.shapes[shape as usize]).find(fits)
    }

    /// Whether more devices are wanted than are free.
    pub(crate) fn is_crowded(&self, waiting: &[JobIdx]) -> bool {
        let wanted: u64 = waiting.iter().map(|job| u64::from(self.view.devices(*job))).sum();
        wanted > self.free.iter().map(|free| u64::from(*free)).sum()
    }

    /// A seat of its own for a job: on free devices, or in the queue for some.
    pub(crate) fn open(&mut self, job: JobIdx) {
        match self.free_shape(job) {
            Some(shape) => {
                self.take(shape);
                self.list.push(Seat { jobs: vec![job], shape, placed: true });
            }
            None => self.queue(job),
        }
    }

    /// A seat for which there are no devices yet: in the best liked shape that the nodes in service could hold.
    pub(crate) fn queue(&mut self, job: JobIdx) {
        let spec: &'v _ = self.view.spec(job);
        let could = |shape: &&Shape| self.reach.holds(shape);
        let usable = || spec.usable().map(|shape| &spec.shapes[shape as usize]);
        let shape = usable().find(could).or_else(|| usable().next()).or(spec.shapes.first());
        self.list.extend(shape.map(|shape| Seat { jobs: vec![job], shape, placed: false }));
    }

    /// What tells jobs apart that look for a seat. Seats only fill up while a plan is made: where one of a sort finds
    /// neither free devices nor a seat, no later one does.
    pub(crate) fn sort(&self, job: JobIdx) -> Sort<'v> {
        (Arc::as_ptr(&self.view.spec(job).shapes).cast::<()>() as usize, likeness(self.view, job))
    }

    /// Whether a job may be added to a seat.
    pub(crate) fn may_join(&self, seat: &Seat<'_>, job: JobIdx) -> bool {
        let jobs: SmallVec<[JobIdx; 8]> = seat.jobs.iter().copied().chain([job]).collect();
        self.room.fits_together(&jobs, seat.shape)
    }

    /// The part of the time in which the devices of a seat compute: as its jobs do alone, added up. One of which
    /// nothing is known counts as always.
    pub(crate) fn busy(&self, seat: &Seat<'_>) -> f64 {
        seat.jobs.iter().map(|job| busy(self.view, *job)).sum()
    }

    /// The share of a seat. A job alone may have any of its shapes, and keeps the one it holds.
    pub(crate) fn share(&self, seat: &Seat<'_>, rank: Rank) -> Option<Share> {
        let mut jobs: SmallVec<[JobIdx; 1]> = seat.jobs.iter().copied().collect();
        jobs.sort_unstable_by_key(|job| self.place(*job));
        let lead = *jobs.first()?;
        if jobs.len() == 1 {
            return Some(Share::whole(lead, rank));
        }
        let (spec, held) = (self.view.spec(lead), self.view.run(lead).shape);
        let holds = self.view.is_running(lead) && spec.shapes[held as usize].takes_same(seat.shape);
        let shape = if holds { Some(held) } else { spec.way(seat.shape) };
        Some(Share { jobs, shape, fraction: 1.0, rank })
    }

    /// The shares of all seats in their order.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let ranked = self.list.iter().enumerate();
        ranked.filter_map(|(at, seat)| self.share(seat, Rank(at as f64, 0.0))).collect()
    }
}

/// Whether the nodes in service could hold a shape if they were empty.
pub(crate) fn fits_nodes(view: &View, shape: &Shape) -> bool {
    let apart = shape.level() != Level::Node;
    let enough = |need: &Need| need.devices <= view.capacity(need.kind);
    shape.needs.iter().all(|need| enough(need) && (apart || need.devices <= view.nodes.largest(need.kind)))
}

/// The part of the time in which a job computes; always, where nothing is known of it.
pub(crate) fn busy(view: &View, job: JobIdx) -> f64 {
    view.usage(job).map_or(1.0, |usage| usage.busy)
}
