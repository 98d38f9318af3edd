//! Who may begin though it could not be stopped in time for who was promised the same devices: only where nobody was.
//! Whoever is let in is put on record with the time by which it is done.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::asks::{left, starting};
use crate::belief::Belief;
use crate::cluster::{Nodes, Placement};
use crate::ids::{JobIdx, LeaseId, NodeId};
use crate::job::{JobRun, JobSpec, JobState, Length, lying};
use crate::leases::{Lease, LeaseState, own_way};
use crate::promise::{Ground, Spot, spot_of};
use crate::state::State;
use crate::units::{Span, Time};

/// What ends may be off by, because instants are whole microseconds and sums of steps are not exact.
pub(super) const SLIP: Span = Span(1_000);

/// What can be foretold of jobs that run on without a stop.
struct Outlook {
    now: Time,
    settle: Span,
    specs: Arc<Vec<Arc<JobSpec>>>,
    runs: Arc<Vec<JobRun>>,
    belief: Arc<Belief>,
}

impl Outlook {
    /// When a job of a group is done: in the company of all of it, at the latest from when others gave its devices back.
    fn end(
        &self,
        jobs: &[JobIdx],
        job: JobIdx,
        (shape, placement): (u16, &Placement),
        held: Option<LeaseId>,
    ) -> Time {
        let (spec, run) = (&self.specs[job.index()], &self.runs[job.index()]);
        let shape = own_way(&self.specs, jobs[0], job, shape);
        let at = lying(&spec.shapes, shape, placement) as usize;
        let others = jobs.iter().filter(|other| **other != job);
        let company = others.map(|other| self.specs[other.index()].profile);
        // Company that makes it faster may leave.
        let kept = self.belief.kept(spec.profile, company, &spec.shapes[at].needs).min(1.0);
        let speed = spec.speeds[at] * kept;
        // Where nobody said how long it takes, it may take for ever.
        if speed <= 0.0 || spec.length != Length::Stated {
            return Time::NEVER;
        }
        let holds = held.is_some() && run.lease == held && run.state != JobState::Suspending;
        let begins = if holds {
            starting(spec, run, self.now)
        } else {
            self.settle + spec.costs.start + spec.costs.load
        };
        self.now + begins + Span::from_secs(left(spec, run, self.now) / speed) + SLIP
    }
}

/// Lets in or not.
#[derive(Default)]
pub(crate) struct Gate {
    /// Those that are not simply let in.
    jobs: BTreeSet<JobIdx>,
    /// Those of them that have a plan, which they give up when they begin, and when they must be done.
    planned: BTreeMap<JobIdx, Time>,
    /// What those who must have devices now were promised: their plans speak for that already.
    seats: BTreeMap<JobIdx, (u16, Spot)>,
    ground: RefCell<Ground>,
    outlook: Option<Outlook>,
}

impl Gate {
    /// Whether it has a word to say on this group.
    pub(crate) fn concerns(&self, jobs: &[JobIdx]) -> bool {
        !self.jobs.is_empty() && jobs.iter().any(|job| self.jobs.contains(job))
    }

    /// Lets a group in, or names the nodes on which it would be in the way: none, where it is not let in anywhere.
    pub(crate) fn enter(
        &self,
        nodes: &Nodes,
        jobs: &[JobIdx],
        shape: u16,
        placement: &Placement,
    ) -> Result<(), SmallVec<[NodeId; 4]>> {
        let Some(outlook) = self.outlook.as_ref().filter(|_| self.concerns(jobs)) else { return Ok(()) };
        let spot = spot_of(nodes, placement);
        if let [job] = jobs
            && self.seats.get(job).is_some_and(|seat| *seat == (shape, spot.clone()))
        {
            return Ok(());
        }
        let mut until = Time::ZERO;
        for job in jobs {
            let end = outlook.end(jobs, *job, (shape, placement), None);
            // In a slow shape it would break its own promise.
            if self.planned.get(job).is_some_and(|by| end > *by) {
                return Err(SmallVec::new());
            }
            until = until.max(end);
        }
        let planned: SmallVec<[JobIdx; 2]> =
            jobs.iter().copied().filter(|job| self.planned.contains_key(job)).collect();
        let mut ground = self.ground.borrow_mut();
        let lacking = ground.lacking(nodes, &spot, (outlook.now, until), &planned);
        if !lacking.is_empty() {
            return Err(lacking);
        }
        ground.drop_all(&planned);
        ground.hold(None, &spot, until);
        Ok(())
    }
}

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
        let end = |job: &JobIdx| outlook.end(&jobs, *job, (lease.shape, &lease.placement), Some(id));
        jobs.iter().map(end).max().unwrap_or(self.now)
    }

    /// When one that began early is done: as believed, once it holds its devices; before, it was let in because it will be.
    pub(super) fn early_end(&self, job: JobIdx) -> Time {
        let held = self.run(job).lease;
        match held.and_then(|id| self.leases.get(id)) {
            Some(lease) => self.outlook().end(&lease.jobs, job, (lease.shape, &lease.placement), held),
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
            let end =
                |job: &JobIdx| outlook.end(&lease.jobs, *job, (lease.shape, &lease.placement), Some(*id));
            let end = holders.map(end).max().unwrap_or(Time::ZERO);
            if lease.state == LeaseState::Granted && end > *until + SLIP {
                *until = end;
                self.promises.stale = true;
            }
        }
        self.promises.bound = bound;
    }
}
