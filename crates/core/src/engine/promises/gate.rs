//! What the gate has to know, and the leases that it let in.

use std::cell::RefCell;
use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::gate::{Gate, Outlook, SLIP};
use crate::ids::{JobIdx, LeaseId};
use crate::job::JobState;
use crate::leases::{Lease, LeaseState};
use crate::promise::{Spot, spot_of};
use crate::state::State;
use crate::units::Time;

impl State {
    /// Who may begin now.
    pub(in crate::engine) fn gate(&self) -> Gate {
        if !self.settings.promises || self.promises.kept.is_empty() {
            return Gate::default();
        }
        let waits = |job: &JobIdx| {
            let run = self.run(*job);
            let idle = run.lease.is_none() || run.state == JobState::Suspending;
            idle && run.is_active() && self.is_binding(*job)
        };
        let jobs: BTreeSet<JobIdx> = self.rows.values().copied().filter(waits).collect();
        if jobs.is_empty() {
            return Gate::default();
        }
        let planned = |job: &JobIdx| self.promises.kept.contains_key(job) && !self.began_early(*job);
        let planned = jobs.iter().filter(|job| planned(job)).map(|job| (*job, self.done_by(*job))).collect();
        let seats = jobs.iter().filter_map(|job| Some((*job, self.promised_now(*job)?))).collect();
        Gate { jobs, planned, seats, ground: RefCell::new(self.ground()), outlook: Some(self.outlook()) }
    }

    /// What a job must have now, and where.
    fn promised_now(&self, job: JobIdx) -> Option<(u16, Spot)> {
        let (shape, promise) = (self.promises.due.get(&job)?, self.promises.kept.get(&job)?);
        Some((*shape, promise.plan.spots.first()?.clone()))
    }

    /// When a job with a plan must be done: as it was promised, or as it is planned where that cannot be any more.
    fn done_by(&self, job: JobIdx) -> Time {
        let late = self.promises.kept.get(&job).filter(|promise| promise.at_risk);
        let planned = late.and_then(|promise| promise.plan.stretches.last()).map(|last| last.until);
        let promised = self.run(job).promise.filter(|_| late.is_none());
        promised.or(planned).unwrap_or(Time::NEVER)
    }

    fn outlook(&self) -> Outlook {
        let (specs, runs, belief) = (self.specs.clone(), self.runs.clone(), self.belief.clone());
        Outlook { now: self.now, settle: self.promises.settle, specs, runs, belief }
    }

    /// Whether a lease's devices cannot be had before its jobs are done. Those that were planned for are.
    pub(super) fn binds(&self, lease: &Lease) -> bool {
        let binding = lease.jobs.iter().any(|job| self.is_binding(*job));
        binding && lease.state != LeaseState::Ending && !self.is_planned(lease)
    }

    /// Whether a lease is what its job must have now, where it was promised that.
    fn is_planned(&self, lease: &Lease) -> bool {
        let spot = lease.jobs.first().and_then(|job| self.promised_now(*job)).map(|(_, spot)| spot);
        lease.is_due(&self.promises.due)
            && spot.is_some_and(|spot| spot == spot_of(&self.nodes, &lease.placement))
    }

    /// Whether a job is to have the devices of its plan as soon as others gave them back.
    pub(super) fn is_seated(&self, job: JobIdx) -> bool {
        let leases = self.book.shares_of(job).iter().filter_map(|share| self.book.entry(*share).lease);
        let mut leases = leases.filter_map(|id| self.leases.get(id));
        leases.any(|lease| lease.state == LeaseState::Promised && self.is_planned(lease))
    }

    /// Puts new leases on record that cannot be stopped in time for others. Who began early has no plan any more.
    pub(in crate::engine) fn note_bound(&mut self, leases: &[LeaseId]) {
        if !self.settings.promises || self.promises.kept.is_empty() {
            return;
        }
        for id in leases {
            let Some(lease) = self.leases.get(*id).filter(|lease| self.binds(lease)) else { continue };
            let (jobs, until) = (lease.jobs.clone(), self.bound_until(*id, lease));
            self.promises.bound.insert(*id, until);
            for job in jobs.iter().filter(|job| self.is_binding(**job)).collect::<Vec<_>>() {
                if let Some(promise) = self.promises.kept.get_mut(job) {
                    promise.plan = Default::default();
                    self.promises.due.remove(job);
                }
            }
        }
    }

    /// A job turns out to be one that cannot be stopped in time, or can be after all: plans reckoned with something else.
    pub(in crate::engine) fn rebind(&mut self, job: JobIdx) {
        let shares = self.book.shares_of(job).iter();
        let mut leases: SmallVec<[LeaseId; 2]> =
            shares.filter_map(|share| self.book.entry(*share).lease).collect();
        leases.extend(self.run(job).lease);
        self.note_bound(&leases);
        (self.promises.stale, self.dirty) = (true, true);
    }

    /// Puts all leases on record that cannot be stopped in time for a first promise.
    pub(super) fn bind_all(&mut self) {
        let binds = self.leases.iter().filter(|(_, lease)| self.binds(lease));
        self.promises.bound = binds.map(|(id, lease)| (id, self.bound_until(id, lease))).collect();
    }

    /// Leases that plans speak for by now are not bound beside that.
    pub(super) fn unbind_planned(&mut self) {
        let mut bound = std::mem::take(&mut self.promises.bound);
        bound.retain(|id, _| !self.leases.get(*id).is_some_and(|lease| self.is_planned(lease)));
        self.promises.bound = bound;
    }

    /// When a lease's jobs are done, those among them that wait to join.
    fn bound_until(&self, id: LeaseId, lease: &Lease) -> Time {
        let wanted = &self.book.entry(lease.share).jobs;
        let joiners = wanted.iter().filter(|job| !lease.jobs.contains(job));
        let jobs: SmallVec<[JobIdx; 2]> = lease.jobs.iter().chain(joiners).copied().collect();
        let outlook = self.outlook();
        let end =
            |job: &JobIdx| outlook.end(&self.nodes, &jobs, *job, (lease.shape, &lease.placement), Some(id));
        jobs.iter().map(end).max().unwrap_or(self.now)
    }

    /// When one that began early is done: as believed, once it holds its devices; before, it was let in because it will be.
    pub(super) fn early_end(&self, job: JobIdx) -> Time {
        let held = self.run(job).lease;
        match held.and_then(|id| self.leases.get(id)) {
            Some(lease) => {
                let held_on = (lease.shape, &lease.placement);
                self.outlook().end(&self.nodes, &lease.jobs, job, held_on, held)
            }
            None => Time::ZERO,
        }
    }

    /// Forgets leases that are over, and those of jobs that may be stopped in time, because they were left alone by one
    /// that may not be, or because plans reckon with more time now: such jobs have plans like all others.
    pub(super) fn unbind(&mut self) {
        let mut bound = std::mem::take(&mut self.promises.bound);
        bound.retain(|id, _| {
            self.leases.get(*id).is_some_and(|lease| lease.jobs.iter().any(|job| self.is_binding(*job)))
        });
        self.promises.bound = bound;
    }

    /// Brings the record up to date: what is over is forgotten, and who is slower than believed is in the way for longer.
    pub(super) fn watch_bound(&mut self) {
        self.unbind();
        let outlook = self.outlook();
        let mut bound = std::mem::take(&mut self.promises.bound);
        for (id, until) in &mut bound {
            let Some(lease) = self.leases.get(*id) else { continue };
            let works = |job: &&JobIdx| self.run(**job).state != JobState::Suspending;
            let holders = lease.jobs.iter().filter(works);
            let held_on = (lease.shape, &lease.placement);
            let end = |job: &JobIdx| outlook.end(&self.nodes, &lease.jobs, *job, held_on, Some(*id));
            let end = holders.map(end).max().unwrap_or(Time::ZERO);
            if lease.state == LeaseState::Granted && end > *until + SLIP {
                *until = end;
                self.promises.stale = true;
            }
        }
        self.promises.bound = bound;
    }
}
