//! How promises are kept: who must have devices now has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::book::ShareId;
use crate::engine::Engine;
use crate::ids::{JobIdx, LeaseId};
use crate::job::Spread;
use crate::leases::LeaseState;
use crate::message::{Effect, Event, Why};
use crate::promise::{Ask, Grid, Room, Stretch, Timeline, earliest, satisfy};
use crate::rounds;
use crate::state::State;
use crate::units::{Span, Time};

/// The least time from one look at promises to the next that nothing else causes.
const LOOK: Span = Span::from_whole_secs(1);

impl Engine {
    /// Gives devices to all who must have them now, before anybody's order.
    pub(in crate::engine) fn keep_promises(&mut self, out: &mut Vec<Effect>) {
        let state = &mut self.state;
        if !state.settings.promises || state.promises.kept.is_empty() {
            state.promises.due.clear();
            return;
        }
        state.look_ahead(out);
        let mut seats: Vec<(JobIdx, ShareId)> = Vec::new();
        for (job, shape) in self.state.promises.due.clone() {
            seats.extend(self.seat_for(job, shape, out).map(|share| (job, share)));
        }
        let state = &mut self.state;
        seats.sort_by_key(|(job, _)| (std::cmp::Reverse(state.bulk(*job)), state.run(*job).id));
        let seats: Vec<ShareId> = seats.into_iter().map(|(_, share)| share).collect();
        if seats.iter().all(|share| state.book.entry(*share).lease.is_some()) {
            return;
        }
        let kept: BTreeSet<LeaseId> =
            state.leases.iter().filter(|(_, lease)| state.is_kept(lease)).map(|(id, _)| id).collect();
        let shares: BTreeSet<ShareId> =
            kept.iter().filter_map(|id| state.leases.get(*id)).map(|lease| lease.share).collect();
        let specs = state.specs.clone();
        let turning = state.turning();
        let decision = rounds::seat(
            rounds::Parts {
                book: &mut state.book,
                nodes: Arc::make_mut(&mut state.nodes),
                leases: &mut state.leases,
                placer: &*self.placer,
                young: &|_| false,
                fixed: &|lease| shares.contains(&lease.share),
                turning,
                homes: rounds::Homes { resting: &state.resting, runs: &state.runs },
                barred: &BTreeSet::new(),
            },
            &seats,
            &|lease| lease.is_fixed(&specs),
        );
        self.carry_out(decision, out);
    }

    /// The share through which a job has what it was promised; a new one in the place of all that it had, where none
    /// of those is. None while it may not be stopped where it is, or is not there to run.
    fn seat_for(&mut self, job: JobIdx, shape: u16, out: &mut Vec<Effect>) -> Option<ShareId> {
        let state = &self.state;
        if !state.run(job).is_active() || state.run(job).cancelled {
            return None;
        }
        let shares: SmallVec<[ShareId; 1]> = SmallVec::from_slice(state.book.shares_of(job));
        let has_it = |share: &ShareId| {
            let entry = state.book.entry(*share);
            entry.lease.is_some() && entry.held() == shape && entry.jobs.len() == 1
        };
        if let Some(share) = shares.iter().copied().find(has_it) {
            return Some(share);
        }
        let lease_of = |share: &ShareId| state.book.entry(*share).lease.and_then(|id| state.leases.get(id));
        if shares.iter().filter_map(lease_of).any(|lease| lease.is_fixed(&state.specs)) {
            return None;
        }
        self.clear_shares(job, &shares, out);
        let state = &mut self.state;
        state.changed.touched.push(job);
        Some(state.book.put_first(job, shape, state.now, &state.specs, &state.runs))
    }

    /// Takes a job out of all its shares; groups that it leaves go on.
    fn clear_shares(&mut self, job: JobIdx, shares: &[ShareId], out: &mut Vec<Effect>) {
        let mut left = Vec::new();
        for share in shares {
            let (lease, alone) =
                (self.state.book.entry(*share).lease, self.state.book.entry(*share).jobs.len() == 1);
            let Some(lease) = lease else { continue };
            if alone {
                self.state.release(lease);
                self.state.book.unchoose(*share);
                self.end_lease(lease, Why::Moved, out);
            } else if let Some(held) = self.state.leases.get_mut(lease) {
                match held.state {
                    LeaseState::Promised => held.drop_job(job, &self.state.specs),
                    LeaseState::Granted | LeaseState::Ending => left.push(lease),
                }
            }
        }
        self.state.book.remove_job(job, &self.state.specs);
        left.into_iter().for_each(|lease| self.regroup(lease, out));
    }
}

impl State {
    /// How much of a block a job takes: larger ones are placed first.
    fn bulk(&self, job: JobIdx) -> (u32, u32) {
        let shape = &self.specs[job.index()].shapes[self.promises.due[&job] as usize];
        let block = if shape.spread == Spread::Any { 0 } else { shape.devices().next_power_of_two() };
        (block, shape.devices())
    }

    /// Brings plans up to date: who must have devices now, and when that changes.
    fn look_ahead(&mut self, out: &mut Vec<Effect>) {
        if std::mem::take(&mut self.promises.stale) {
            self.plan_around(out);
        }
        let (grid, room) = (self.grid_now(), self.room());
        let jobs: Vec<JobIdx> = self.promises.kept.keys().copied().collect();
        let short: Vec<JobIdx> = jobs.into_iter().filter(|job| !self.bring_up(*job, &grid, &room)).collect();
        if !short.is_empty() {
            self.plan_again(&short, out);
        }
        self.find_due();
    }

    /// The grid for decisions that are made at this very instant.
    fn grid_now(&self) -> Grid {
        Grid::new(self.now, self.settings.round)
    }

    /// Drops what of a job's plan is over or not needed any more. Whether the rest is still enough.
    fn bring_up(&mut self, job: JobIdx, grid: &Grid, room: &Room) -> bool {
        let (now, by) = (self.now, self.run(job).promise.unwrap_or(Time::NEVER));
        let ask = self.ask(job, by, room);
        let has = self.run(job).lease.is_some() || self.has_lease(job);
        if self.began_early(job) {
            let on = self.ask_on(job, &ask);
            let end = on.and_then(|(shape, on)| {
                let seconds = on.left / on.way(shape)?.speed;
                Some(now + on.overhead + Span::from_secs(seconds))
            });
            let Some(promise) = self.promises.kept.get_mut(&job) else { return true };
            promise.plan.clear();
            return promise.at_risk || end.is_none_or(|end| end <= by);
        }
        let Some(promise) = self.promises.kept.get_mut(&job) else { return true };
        promise.plan.retain(|stretch| stretch.until > now);
        let current = promise.plan.first().filter(|stretch| stretch.from <= now).map(|stretch| stretch.shape);
        let settled = current.is_some() && current == self.promises.due.get(&job).copied() && has;
        if settled || promise.at_risk {
            return settled || !promise.plan.is_empty();
        }
        match ask.trim(&promise.plan, grid) {
            Some(plan) => promise.plan = plan,
            None => return false,
        }
        true
    }

    /// Whether a job waits for devices that it was promised already.
    fn has_lease(&self, job: JobIdx) -> bool {
        self.book.shares_of(job).iter().any(|share| self.book.entry(*share).lease.is_some())
    }

    fn find_due(&mut self) {
        let now = self.now;
        let mut due = BTreeMap::new();
        let mut next: Option<Time> = None;
        for (job, promise) in &self.promises.kept {
            let Some(first) = promise.plan.first() else { continue };
            let change = if first.from <= now {
                due.insert(*job, first.shape);
                first.until
            } else {
                first.from
            };
            // What is believed to be done and is not would be looked at again and again.
            let change = change.max(now + LOOK);
            next = Some(next.map_or(change, |next| next.min(change)));
        }
        let before = std::mem::replace(&mut self.promises.due, due);
        // Who was kept in its place and is so no longer is the policy's concern again.
        let over: Vec<JobIdx> =
            before.into_keys().filter(|job| !self.promises.due.contains_key(job)).collect();
        self.dirty |= !over.is_empty();
        self.changed.added.extend(over.iter().filter(|job| self.runs[job.index()].is_active()));
        self.promises.next = next;
    }

    /// Some plans are too little: their jobs are slower than they were believed to be, or failed. All are planned anew
    /// such that every promise holds, if that can be; else those get what the others leave.
    fn plan_again(&mut self, short: &[JobIdx], out: &mut Vec<Effect>) {
        if let Some(plans) = self.plan_anew() {
            return self.adopt(plans);
        }
        let (grid, room) = (self.grid(), self.room());
        let mut timeline = self.open_timeline(&room, &grid);
        for (job, promise) in self.promises.kept.iter().filter(|(job, _)| !short.contains(job)) {
            timeline.take_plan(&self.ask(*job, Time::NEVER, &room), &promise.plan, &grid);
        }
        for job in short {
            self.plan_late(*job, &room, &grid, &mut timeline, out);
        }
    }

    /// A plan for one job on what others leave: in time, or as soon as may be.
    fn plan_late(
        &mut self,
        job: JobIdx,
        room: &Room,
        grid: &Grid,
        timeline: &mut Timeline,
        out: &mut Vec<Effect>,
    ) {
        let by = self.run(job).promise.unwrap_or(Time::NEVER);
        let ask = self.ask(job, by, room);
        let (plan, late) = match satisfy(&ask, timeline, grid) {
            Some(plan) => (plan, None),
            None => earliest(&ask, timeline, grid)
                .map_or((Vec::new(), Some(None)), |(time, plan)| (plan, Some(Some(time)))),
        };
        timeline.take_plan(&ask, &plan, grid);
        self.set_plan(job, plan, late, out);
    }

    /// Plans around what nobody reckoned with: everybody's promise if that can be, else as many as can be, earliest
    /// first, and the others as soon as may be.
    fn plan_around(&mut self, out: &mut Vec<Effect>) {
        // What holds is not given up for a search that might not find it again.
        if self.plans_hold() {
            return;
        }
        if let Some(plans) = self.plan_anew() {
            return self.adopt(plans);
        }
        let (grid, room) = (self.grid(), self.room());
        let mut timeline = self.open_timeline(&room, &grid);
        for (job, _) in self.promised_asks() {
            self.plan_late(job, &room, &grid, &mut timeline, out);
        }
    }

    /// Whether all plans fit together on what there is now.
    fn plans_hold(&self) -> bool {
        let (grid, room) = (self.grid_now(), self.room());
        let mut timeline = self.open_timeline(&room, &grid);
        self.promises.kept.iter().filter(|(job, _)| !self.began_early(**job)).all(|(job, promise)| {
            let ask = self.ask(*job, Time::NEVER, &room);
            let fits = |stretch: &Stretch| {
                let way = ask.way(stretch.shape);
                way.is_some_and(|way| {
                    timeline.fits_for(way, stretch.from.max(grid.now), grid.after(stretch.until))
                })
            };
            let holds = !promise.at_risk && promise.plan.iter().all(fits);
            timeline.take_plan(&ask, &promise.plan, &grid);
            holds
        })
    }

    fn set_plan(
        &mut self,
        job: JobIdx,
        plan: Vec<Stretch>,
        late: Option<Option<Time>>,
        out: &mut Vec<Effect>,
    ) {
        let (id, by) = (self.run(job).id, self.run(job).promise.unwrap_or(Time::NEVER));
        let Some(promise) = self.promises.kept.get_mut(&job) else { return };
        promise.plan = plan;
        let news = late.is_some() && !promise.at_risk;
        promise.at_risk = late.is_some();
        if news {
            out.push(Effect::Publish(Event::AtRisk { job: id, by, likely: late.flatten() }));
        }
    }

    /// Jobs that may not start now because their devices could not be had back when others must have them.
    pub(in crate::engine) fn barred(&self) -> BTreeSet<JobIdx> {
        let mut barred = BTreeSet::new();
        if !self.settings.promises || self.promises.kept.is_empty() {
            return barred;
        }
        let waits = |job: &JobIdx| {
            let run = self.run(*job);
            let free = run.lease.is_none() && !self.promises.due.contains_key(job);
            free && run.is_active() && self.is_binding(*job)
        };
        let waiting: Vec<JobIdx> = self.rows.values().copied().filter(waits).collect();
        if waiting.is_empty() {
            return barred;
        }
        let (grid, room) = (self.grid_now(), self.room());
        let mut timeline = self.open_timeline(&room, &grid);
        for (job, promise) in &self.promises.kept {
            timeline.take_plan(&self.ask(*job, Time::NEVER, &room), &promise.plan, &grid);
        }
        for job in waiting {
            if !self.let_in(job, &room, &grid, &mut timeline) {
                barred.insert(job);
            }
        }
        barred
    }

    /// Whether a job may start in any of its shapes, wherever it comes to lie; takes that from the timeline.
    fn let_in(&self, job: JobIdx, room: &Room, grid: &Grid, timeline: &mut crate::promise::Timeline) -> bool {
        let spec = &self.specs[job.index()];
        let ask: Ask = self.ask(job, Time::NEVER, room);
        let mut tried = timeline.clone();
        if let Some(own) = self.promises.kept.get(&job) {
            tried.give_plan(&ask, &own.plan, grid);
        }
        let mut all = Vec::new();
        for shape in spec.usable() {
            let seconds = ask.left / spec.speeds[shape as usize];
            let end = self.now + ask.overhead + Span::from_secs(seconds);
            // In a slow shape it would break its own promise.
            if self.run(job).promise.is_some_and(|by| end > by) {
                return false;
            }
            let until = grid.after(end);
            let (takes, mut with) = (room.worst(&spec.shapes[shape as usize]), tried.clone());
            with.take(&takes, grid.now, until);
            if !with.is_sound() {
                return false;
            }
            all.push((takes, until));
        }
        // Which of its shapes it gets is not known yet.
        all.iter().for_each(|(takes, until)| timeline.take(takes, grid.now, *until));
        true
    }
}

/// Checks that nothing that was promised is forgotten.
pub(crate) fn check(state: &State) {
    for job in state.promises.kept.keys() {
        let run = state.run(*job);
        assert!(run.promise.is_some(), "job {}: a plan without a promise", run.id);
    }
    let promised = state.rows.values().filter(|row| state.run(**row).promise.is_some());
    assert!(promised.count() == state.promises.kept.len(), "a promise was forgotten");
}
