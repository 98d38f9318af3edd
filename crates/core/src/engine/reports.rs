//! What holders of leases say, and what becomes of their jobs.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Engine;
use crate::cluster::{NodeState, Placement};
use crate::ids::{JobIdx, LeaseId};
use crate::job::{Costs, JobRun, JobSpec, JobState, Usage};
use crate::leases::LeaseState;
use crate::message::{Effect, Event, News, Outcome, Report, Why};
use crate::state::State;
use crate::units::{Span, Time};

impl Engine {
    pub(super) fn report(&mut self, report: Report, out: &mut Vec<Effect>) {
        let Report { lease, job, news } = report;
        let holds = |row: &JobIdx| {
            let run = self.state.run(*row);
            run.id == job && run.lease == Some(lease)
        };
        let held = self.state.leases.get(lease);
        let Some(row) = held.and_then(|held| held.jobs.iter().copied().find(holds)) else {
            return out.push(Effect::Publish(Event::Stale { lease, job }));
        };
        match news {
            News::Started => self.started(row, lease, out),
            News::Progress { steps } => self.progress(row, steps),
            News::Usage(usage) => self.used(row, usage),
            News::Regime { steps, regime } => self.turn(row, steps, regime),
            News::Trained { steps, timing, noise } => {
                self.progress(row, steps);
                self.trained(row, lease, timing, noise, out);
            }
            News::Loss { steps, loss } => {
                self.progress(row, steps);
                self.state.run_mut(row).losses.hear(steps, loss);
            }
            News::Costs(costs) => self.cost(row, costs),
            News::Stuck(stuck) => self.state.set_stuck(row, stuck),
            News::Stopped { steps, outcome } => self.stopped(row, lease, steps, outcome, out),
        }
    }

    fn started(&mut self, job: JobIdx, lease: LeaseId, out: &mut Vec<Effect>) {
        let now = self.state.now;
        let run = self.state.run_mut(job);
        if run.state != JobState::Starting {
            return; // It was told to stop meanwhile, or says so twice.
        }
        run.become_state(now, JobState::Running);
        run.as_of = now;
        let id = run.id;
        self.state.set_paces(lease);
        self.state.changed.touched.push(job);
        out.push(Effect::Publish(Event::Started { job: id }));
    }

    pub(super) fn progress(&mut self, job: JobIdx, steps: f64) {
        let now = self.state.now;
        let run = self.state.run_mut(job);
        if steps.is_finite() && run.state == JobState::Running {
            (run.done, run.as_of) = (steps, now);
            let lease = run.lease;
            self.state.changed.touched.push(job);
            self.state.measure(job, steps);
            lease.iter().for_each(|lease| self.state.set_paces(*lease));
        }
    }

    /// What a job does to its devices is news for the policy where it is more than a tenth off.
    fn used(&mut self, job: JobIdx, usage: Usage) {
        if !(0.0..=1.0).contains(&usage.busy) {
            return;
        }
        let before = self.state.run(job).usage.unwrap_or_default();
        self.state.note_usage(job, usage);
        let usage = self.state.run(job).usage.unwrap_or_default();
        let apart = |now: f64, before: f64| (now - before).abs() > 0.1 * now.max(before);
        let memory = apart(f64::from(usage.memory_mib), f64::from(before.memory_mib));
        if apart(usage.busy, before.busy) || memory {
            self.state.changed.touched.push(job);
            self.state.dirty = true;
        }
    }

    fn cost(&mut self, job: JobIdx, costs: Costs) {
        let before = self.state.is_binding(job);
        self.state.change_spec(job, |spec| spec.costs = costs);
        self.state.book.set_restart(job, costs.restart());
        self.state.changed.touched.push(job);
        if self.state.is_binding(job) != before {
            self.state.rebind(job);
        }
    }

    fn stopped(&mut self, job: JobIdx, lease: LeaseId, steps: f64, outcome: Outcome, out: &mut Vec<Effect>) {
        let now = self.state.now;
        if outcome == Outcome::Finished {
            self.state.note_length(job);
        }
        if matches!(outcome, Outcome::Finished | Outcome::Saved | Outcome::Frozen) && steps.is_finite() {
            self.state.measure(job, steps);
        }
        self.state.stints.remove(&job);
        if !self.state.specs[job.index()].pausable {
            // Others could not be placed around it; now they may.
            self.state.hopeless = None;
        }
        self.state.set_stuck(job, false);
        self.state.settle_home(job, lease, outcome);
        let told = self.state.run(job).state == JobState::Suspending;
        // No plan asked for that stop, and the last one may have counted on the devices, or left the job out.
        self.state.dirty |= self.state.run(job).stopping.is_some_and(is_unplanned);
        let freed = self.put_down(job, lease, out);
        let shares = self.state.book.shares_of(job).iter();
        let own: SmallVec<[LeaseId; 4]> =
            shares.filter_map(|share| self.state.book.entry(*share).lease).collect();
        let failures_max = self.state.specs[job.index()].failures_max;
        let run = self.state.run_mut(job);
        if steps.is_finite() {
            run.done = steps;
        }
        (run.as_of, run.speed) = (now, 0.0);
        run.failures += (outcome == Outcome::Crashed) as u32;
        let id = run.id;
        let next = after_stop(run, outcome, run.failures > failures_max);
        if !next.is_final() {
            run.become_state(now, next);
        }
        if next.is_final() {
            self.end_job(job, next, out);
        } else {
            self.state.wait_again(job, lease, outcome, told);
            out.push(Effect::Publish(Event::Stopped { job: id, steps, outcome }));
        }
        // Freed devices may be what a promise waits for; so may be the job itself.
        let mut waiting =
            freed.map_or_else(SmallVec::new, |placement| self.state.leases.promised_on(&placement));
        waiting.extend(own);
        waiting.push(lease);
        for lease in waiting {
            self.grant_if_idle(lease, out);
            self.join(lease, out);
        }
    }

    /// A job gives its devices back. Returns them once nobody of its group holds them any more.
    fn put_down(&mut self, job: JobIdx, lease: LeaseId, out: &mut Vec<Effect>) -> Option<Placement> {
        let state = &mut self.state;
        let now = state.now;
        let held = state.leases.get_mut(lease).expect("a job's lease is on record");
        held.drop_job(job, &state.specs);
        let (empty, devices) = (held.jobs.is_empty(), held.placement.devices());
        let (share, ending) = (held.share, held.state == LeaseState::Ending);
        let run = state.run_mut(job);
        let leased = (now - run.held_since).0 * devices as u64;
        run.lay_down(now);
        state.ledger.leased += leased;
        if !empty {
            state.end_if_deserted(lease);
            state.set_paces(lease);
            return None;
        }
        if !ending {
            state.release(lease);
            let unchosen = state.book.unchoose(share);
            assert!(unchosen == Some(lease), "a lease that ends by itself was in force");
        }
        let placement = state.leases.remove(lease).placement;
        state.nodes_mut().put_down(&placement);
        // Devices that nobody was promised are there for others now.
        state.dirty |= !ending;
        state.loose = true;
        out.push(Effect::Publish(Event::Freed { lease, placement: placement.clone() }));
        Some(placement)
    }
}

impl State {
    /// A job that was frozen has its home where it was.
    fn settle_home(&mut self, job: JobIdx, lease: LeaseId, outcome: Outcome) {
        let lease = (outcome == Outcome::Frozen).then(|| self.leases.get(lease)).flatten();
        let usable = |placement: &&Placement| {
            placement.0.iter().all(|slice| {
                let node = self.nodes.get(slice.node);
                node.state != NodeState::Down && node.bad & slice.mask == 0
            })
        };
        let home = lease.map(|lease| &lease.placement).filter(usable).map(|home| Box::new(home.clone()));
        if home.is_some() {
            self.resting.insert(job);
        }
        if self.run(job).home != home {
            self.run_mut(job).home = home;
        }
    }

    /// A lease that only jobs hold which are about to leave it is over for those that wait to join.
    fn end_if_deserted(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.get(id).filter(|lease| lease.state == LeaseState::Granted) else {
            return;
        };
        let (share, wanted) = (lease.share, &self.book.entry(lease.share).jobs);
        if lease.jobs.iter().any(|job| wanted.contains(job)) {
            return;
        }
        self.release(id);
        self.book.unchoose(share);
        self.leases.end(id);
        (self.dirty, self.loose) = (true, true);
    }

    /// Remembers how long a job was that is done. When that is told, the lengths of others are believed to be other ones.
    fn note_length(&mut self, job: JobIdx) {
        if self.settings.learns_lengths {
            let (spec, run) = (&self.specs[job.index()], &self.runs[job.index()]);
            if self.lengths.note(self.now, spec, run) {
                let open = self.rows.values().filter(|row| **row != job);
                let open = open.map(|row| (&*self.specs[row.index()], &self.runs[row.index()]));
                self.lengths.tell(self.now, open);
                self.changed.all = true;
            }
        }
    }

    pub(super) fn change_spec(&mut self, job: JobIdx, change: impl FnOnce(&mut JobSpec)) {
        change(Arc::make_mut(&mut Arc::make_mut(&mut self.specs)[job.index()]));
    }

    /// Whether a job that may be paused cannot be, where it runs.
    fn set_stuck(&mut self, job: JobIdx, stuck: bool) {
        let may = self.specs[job.index()].pausable || self.run(job).stuck;
        if may && self.run(job).stuck != stuck {
            self.run_mut(job).stuck = stuck;
            self.change_spec(job, |spec| spec.pausable = !stuck);
            self.changed.touched.push(job);
            self.dirty = true;
            self.rebind(job);
        }
    }

    /// A job that gave its devices back waits for others, or is held back first if it failed.
    fn wait_again(&mut self, job: JobIdx, lease: LeaseId, outcome: Outcome, told: bool) {
        let failures = self.run(job).failures;
        let hold = self.settings.hold_after(failures);
        if self.run(job).held {
            self.withdraw(job);
            return self.set_aside(job);
        }
        if outcome == Outcome::Crashed && hold > Span::ZERO {
            self.withdraw(job);
            return self.hold_back(job, self.now + hold);
        }
        self.changed.touched.push(job);
        self.dirty |= outcome == Outcome::Crashed;
        let group = self.leases.get(lease).filter(|group| group.state == LeaseState::Granted);
        let member = group.filter(|group| self.book.entry(group.share).jobs.contains(&job));
        // One that was told to leave and is a member again meanwhile comes back.
        if let Some(group) = member.filter(|_| !told) {
            self.book.leave(group.share, job, &self.specs);
            self.dirty = true;
        }
    }
}

impl JobRun {
    /// The job's own account of a lease that ends.
    fn lay_down(&mut self, now: Time) {
        let span = now - self.held_since;
        self.attained += span.0 * self.devices as u64;
        self.executed += span;
        (self.lease, self.devices, self.last_stop, self.stopping) = (None, 0, Some(now), None);
    }
}

/// Whether a stop was no plan's.
fn is_unplanned(why: Why) -> bool {
    matches!(why, Why::Held | Why::Requeued | Why::Drained | Why::Lost)
}

/// What becomes of a job that gave its devices back.
fn after_stop(run: &JobRun, outcome: Outcome, given_up: bool) -> JobState {
    match outcome {
        Outcome::Finished => JobState::Succeeded,
        _ if run.cancelled => JobState::Cancelled,
        Outcome::Expired => JobState::Failed,
        Outcome::Crashed if given_up => JobState::Failed,
        Outcome::Saved | Outcome::Frozen if run.state == JobState::Suspending => JobState::Suspended,
        Outcome::Saved | Outcome::Frozen | Outcome::Lost | Outcome::Crashed => JobState::Pending,
    }
}
