//! Promises become grants when devices are idle, and grants end when jobs are told to stop.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Engine;
use crate::ids::{JobId, JobIdx, LeaseId};
use crate::job::JobState;
use crate::leases::{LeaseState, own_way};
use crate::message::{Command, Effect, Event, Why};
use crate::state::State;

/// Why jobs are stopped, and who gets their devices.
pub(super) struct Stop {
    pub(super) why: Why,
    pub(super) to: SmallVec<[JobId; 1]>,
}

impl From<Why> for Stop {
    /// Where nobody in particular gets the devices.
    fn from(why: Why) -> Stop {
        Stop { why, to: SmallVec::new() }
    }
}

impl Engine {
    /// Hands a promise over once its devices are idle and its jobs have nothing else in hand.
    pub(super) fn grant_if_idle(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        let Some(promise) = state.leases.get(lease) else { return };
        let ready = promise.jobs.iter().all(|job| state.runs[job.index()].state.is_waiting());
        if promise.state != LeaseState::Promised || !ready || !state.nodes.are_idle(&promise.placement) {
            return;
        }
        let jobs: SmallVec<[JobIdx; 1]> = SmallVec::from_slice(&promise.jobs);
        let placement = promise.placement.clone();
        let own = |job: &JobIdx| own_way(&state.specs, jobs[0], *job, promise.shape);
        let shapes: SmallVec<[u16; 1]> = jobs.iter().map(own).collect();
        let until = state.now + state.settings.lease;
        Arc::make_mut(&mut state.nodes).hold(&placement);
        state.leases.grant(lease, state.now, until);
        for (job, shape) in jobs.iter().zip(&shapes) {
            state.take_up(*job, lease, *shape, placement.devices());
            state.set_batch(*job, &placement);
        }
        let batches = jobs.iter().map(|job| state.run(*job).batch).collect();
        let jobs: SmallVec<_> = jobs.iter().map(|job| state.run(*job).id).collect();
        out.push(Effect::Publish(Event::Granted { lease, jobs: jobs.clone(), placement: placement.clone() }));
        out.push(Effect::Execute(Command::Grant { lease, jobs, shapes, batches, placement, until }));
    }

    /// The group of a lease in force has other jobs from now on: who left it stops, who came to it starts.
    pub(super) fn regroup(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        let State { leases, book, specs, .. } = &mut self.state;
        let held = leases.get_mut(lease).expect("a lease that is passed on is on record");
        let wanted = &book.entry(held.share).jobs;
        let leavers: SmallVec<[JobIdx; 1]> =
            held.jobs.iter().copied().filter(|job| !wanted.contains(job)).collect();
        held.put_last(&leavers, specs);
        self.stop_jobs(lease, &leavers, Why::Preempted, out);
        self.join(lease, out);
    }

    /// Jobs that wait to join a group do so, once nobody who is to leave it is still there.
    pub(super) fn join(&mut self, id: LeaseId, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        let Some(lease) = state.leases.get(id).filter(|lease| lease.state == LeaseState::Granted) else {
            return;
        };
        let wanted = &state.book.entry(lease.share).jobs;
        let at_home =
            |job: &JobIdx| state.runs[job.index()].home.as_ref().is_none_or(|home| **home == lease.placement);
        let joins = |job: &&JobIdx| {
            !lease.jobs.contains(job) && state.runs[job.index()].state.is_waiting() && at_home(job)
        };
        let joiners: SmallVec<[JobIdx; 1]> = wanted.iter().filter(joins).copied().collect();
        if joiners.is_empty() || lease.jobs.iter().any(|job| !wanted.contains(job)) {
            return;
        }
        if !state.promises.kept.is_empty() && lease.jobs.iter().any(|job| state.is_binding(*job)) {
            return; // Company would make it slower, and others were promised its devices once it is done.
        }
        let (lead, shape, placement, until) =
            (lease.jobs[0], lease.shape, lease.placement.clone(), lease.until);
        let all: SmallVec<[JobIdx; 2]> = lease.jobs.iter().chain(&joiners).copied().collect();
        if state.gate().enter(&state.nodes, &all, shape, &placement).is_err() {
            return; // It would be in the way of who was promised these devices.
        }
        let shapes: SmallVec<[u16; 1]> =
            joiners.iter().map(|job| own_way(&state.specs, lead, *job, shape)).collect();
        for (job, shape) in joiners.iter().zip(&shapes) {
            state.leases.get_mut(id).expect("it was just looked at").jobs.push(*job);
            state.take_up(*job, id, *shape, placement.devices());
            state.set_batch(*job, &placement);
        }
        state.note_bound(&[id]);
        let batches = joiners.iter().map(|job| state.run(*job).batch).collect();
        let jobs: SmallVec<_> = joiners.iter().map(|job| state.run(*job).id).collect();
        out.push(Effect::Publish(Event::Granted {
            lease: id,
            jobs: jobs.clone(),
            placement: placement.clone(),
        }));
        out.push(Effect::Execute(Command::Grant { lease: id, jobs, shapes, batches, placement, until }));
    }

    /// Ends a lease whose devices are already promised onwards or free.
    pub(super) fn end_lease(&mut self, lease: LeaseId, stop: impl Into<Stop>, out: &mut Vec<Effect>) {
        let ended = self.state.leases.get(lease).expect("a lease that ends is on record");
        if ended.state == LeaseState::Promised {
            self.state.leases.remove(lease);
            return;
        }
        let jobs: SmallVec<[JobIdx; 1]> = SmallVec::from_slice(&ended.jobs);
        self.state.leases.end(lease);
        self.stop_jobs(lease, &jobs, stop, out);
    }

    pub(super) fn stop_jobs(
        &mut self,
        lease: LeaseId,
        jobs: &[JobIdx],
        stop: impl Into<Stop>,
        out: &mut Vec<Effect>,
    ) {
        let (now, Stop { why, to }) = (self.state.now, stop.into());
        let mut told = SmallVec::new();
        for job in jobs {
            let pausable = self.state.specs[job.index()].pausable;
            let run = self.state.run_mut(*job);
            if run.state == JobState::Suspending {
                // One that is on its way out already can only be hurried.
                if why == Why::Killed {
                    run.stopping = Some(why);
                    told.push(run.id);
                }
                continue;
            }
            let for_another = matches!(why, Why::Preempted | Why::Moved);
            assert!(pausable || !for_another, "job {} is stopped for another and may not be", run.id);
            (run.done, run.as_of, run.speed) = (run.done_at(now), now, 0.0);
            run.become_state(now, JobState::Suspending);
            run.stopping = Some(why);
            match why {
                Why::Preempted => run.preemptions += 1,
                Why::Moved => run.migrations += 1,
                Why::Cancelled | Why::Killed | Why::Held | Why::Requeued | Why::Drained | Why::Lost => {}
            }
            let id = run.id;
            told.push(id);
            if let Some(stint) = self.state.stints.get_mut(job) {
                stint.until = Some(now);
            }
            self.state.changed.touched.push(*job);
            out.push(Effect::Publish(Event::Stopping { job: id, why, to: to.clone() }));
        }
        self.state.set_paces(lease);
        if !told.is_empty() {
            out.push(Effect::Execute(Command::Revoke { lease, jobs: told, why }));
        }
    }
}

impl State {
    /// Takes the promise of a lease's devices back.
    pub(super) fn release(&mut self, lease: LeaseId) {
        let placement = self.leases.get(lease).expect("a promised lease is on record").placement.clone();
        self.nodes_mut().release(&placement);
    }

    /// A job lies frozen no longer, or its home is lost.
    pub(super) fn leave_home(&mut self, job: JobIdx) {
        if self.resting.remove(&job) {
            self.run_mut(job).home = None;
        }
    }

    /// A job takes up devices.
    fn take_up(&mut self, job: JobIdx, lease: LeaseId, shape: u16, devices: u32) {
        let now = self.now;
        self.leave_home(job);
        let run = self.run_mut(job);
        run.become_state(now, JobState::Starting);
        (run.lease, run.shape, run.devices, run.held_since) = (Some(lease), shape, devices, now);
        run.first_start.get_or_insert(now);
        run.starts += 1;
        self.changed.touched.push(job);
    }
}
