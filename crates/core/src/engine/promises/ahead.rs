//! Looking ahead: plans are brought up to date, and made anew where they are not enough any more.

use std::collections::BTreeMap;

use super::admission::Others;
use super::asks::Free;
use crate::gate::SLIP;
use crate::ids::JobIdx;
use crate::leases::LeaseState;
use crate::message::{Effect, Event};
use crate::promise::{Grid, Plan, Room, Spot, Stretch, hold_on};
use crate::state::{Promise, State};
use crate::units::{Span, Time};

/// The least time from one look at promises to the next that nothing else causes.
const LOOK: Span = Span::from_whole_secs(1);

impl State {
    /// Brings plans up to date: who must have devices now, and when that changes.
    pub(super) fn look_ahead(&mut self, out: &mut Vec<Effect>) {
        self.watch_bound();
        if std::mem::take(&mut self.promises.stale) {
            self.plan_around(out);
        }
        let (grid, room) = (Grid::new(self.now, self.settings.round), self.room());
        let jobs: Vec<JobIdx> = self.promises.kept.keys().copied().collect();
        let short: Vec<JobIdx> = jobs.into_iter().filter(|job| !self.bring_up(*job, &grid, &room)).collect();
        let (bound, short): (Vec<JobIdx>, Vec<JobIdx>) =
            short.into_iter().partition(|job| self.stays_put(*job));
        if !bound.is_empty() {
            bound.into_iter().for_each(|job| self.bind_late(job, out));
            self.plan_around(out);
        }
        if !short.is_empty() {
            self.plan_again(&short, out);
        }
        self.find_due();
        self.unbind_planned();
    }

    /// Drops what of a job's plan is over or not needed any more. Whether the rest is still enough.
    fn bring_up(&mut self, job: JobIdx, grid: &Grid, room: &Room) -> bool {
        let (now, by) = (self.now, self.run(job).promise.unwrap_or(Time::NEVER));
        if self.began_early(job) {
            return self.promises.kept[&job].at_risk || self.early_end(job) <= by + SLIP;
        }
        let ask = self.ask(job, by, room);
        let has = self.run(job).lease.is_some() || self.has_lease(job);
        let on = self.ask_on(job, &ask).and_then(|(shape, on)| hold_on(&on, shape, now));
        let due = self.promises.due.get(&job).copied();
        let Some(promise) = self.promises.kept.get_mut(&job) else { return true };
        let mut rest = promise.plan.stretches.clone();
        rest.retain(|stretch| stretch.until > now);
        let first = rest.first().copied().filter(|stretch| stretch.from <= now);
        let settled = first.is_some_and(|stretch| Some(stretch.shape) == due) && has;
        let last = rest.len() == 1;
        if !settled && !promise.at_risk {
            // Time that has passed without devices is lost.
            rest.iter_mut().for_each(|stretch| stretch.from = stretch.from.max(now.min(stretch.until)));
            let Some(trimmed) = ask.trim(&rest, grid) else { return false };
            rest = trimmed;
        }
        let empty = rest.is_empty();
        promise.plan.keep(rest);
        // Who has its devices for the last time must be done then.
        let slow = settled && last && !promise.at_risk && {
            let until = first.map_or(Time::NEVER, |stretch| stretch.until);
            on.is_some_and(|on| on.until > until + SLIP)
        };
        !slow && (settled || !empty)
    }

    /// Whether a job waits for devices that it was promised already.
    fn has_lease(&self, job: JobIdx) -> bool {
        self.book.shares_of(job).iter().any(|share| self.book.entry(*share).lease.is_some())
    }

    /// Whether a job holds devices and may not be stopped.
    fn stays_put(&self, job: JobIdx) -> bool {
        let lease = self.run(job).lease.and_then(|lease| self.leases.get(lease));
        let in_force = lease.is_some_and(|lease| lease.state == LeaseState::Granted);
        in_force && self.is_binding(job)
    }

    /// One that may not be stopped is slower than it was believed to be: the others have to do without its devices for
    /// as long as it takes.
    fn bind_late(&mut self, job: JobIdx, out: &mut Vec<Effect>) {
        self.promises.due.remove(&job);
        let lease = self.run(job).lease;
        self.note_bound(lease.as_slice());
        let (end, by) = (self.early_end(job), self.run(job).promise.unwrap_or(Time::NEVER));
        self.set_plan(job, Plan::default(), (end > by).then_some(Some(end)), out);
    }

    fn find_due(&mut self) {
        let firsts = self.promises.kept.iter().filter_map(|(job, promise)| {
            let first = promise.plan.stretches.first().filter(|first| first.from <= self.now)?;
            Some((*job, first.shape))
        });
        let due: BTreeMap<JobIdx, u16> = firsts.collect();
        let changes = self.promises.kept.values().filter_map(|promise| self.next_change(promise));
        let next = changes.min();
        let before = std::mem::replace(&mut self.promises.due, due);
        // Who was kept in its place and is so no longer is the policy's concern again.
        let over: Vec<JobIdx> =
            before.into_keys().filter(|job| !self.promises.due.contains_key(job)).collect();
        self.dirty |= !over.is_empty();
        self.changed.added.extend(over.iter().filter(|job| self.runs[job.index()].is_active()));
        (self.promises.next, self.promises.first) = (next, self.first_broken());
    }

    /// When a promise must be looked at again.
    fn next_change(&self, promise: &Promise) -> Option<Time> {
        match promise.plan.stretches[..] {
            [] => None,
            [first, ..] if first.from > self.now => Some(first.from),
            // What is believed to be done and is not would be looked at again and again.
            [last] => Some(last.until.max(self.now + LOOK)),
            [first, ..] => Some(first.until),
        }
    }

    /// A promise that is broken and was not said to be at risk is said to be, at once and not at the next beat: before
    /// anything else that happens then, the end of its job too.
    pub(in crate::engine) fn say_broken(&mut self, out: &mut Vec<Effect>) {
        if self.promises.first.is_none_or(|first| first > self.now) || !self.settings.promises {
            return;
        }
        let broken = |job: &JobIdx| self.broken_at(*job).is_some_and(|time| time <= self.now);
        let broken: Vec<JobIdx> = self.promises.kept.keys().copied().filter(broken).collect();
        for job in broken {
            let plan = self.promises.kept[&job].plan.clone();
            self.set_plan(job, plan, Some(None), out);
        }
        self.promises.first = self.first_broken();
    }

    /// When the first promise that is not said to be at risk will be broken, if nothing happens.
    fn first_broken(&self) -> Option<Time> {
        self.promises.kept.keys().filter_map(|job| self.broken_at(*job)).min()
    }

    /// When a promise that is not said to be at risk will be broken, if nothing happens.
    pub(super) fn broken_at(&self, job: JobIdx) -> Option<Time> {
        let calm = self.promises.kept.get(&job).is_some_and(|promise| !promise.at_risk);
        self.run(job).promise.filter(|_| calm).map(|by| by + Span(1))
    }

    /// Some plans are too little: their jobs are slower than they were believed to be, or failed, or lost their nodes. All
    /// are planned anew such that every promise holds, if that can be; else those get what the others leave.
    fn plan_again(&mut self, short: &[JobIdx], out: &mut Vec<Effect>) {
        if let Some(plans) = self.plan_anew() {
            return self.adopt(plans);
        }
        let (grid, room) = (self.grid(), self.room());
        let mut free = self.open(&room, &grid);
        for (job, promise) in self.promises.kept.iter().filter(|(job, _)| !short.contains(job)) {
            free.take(Some(*job), &self.ask(*job, Time::NEVER, &room), &promise.plan, &grid);
        }
        for job in short {
            self.plan_late(*job, &room, &grid, &mut free, out);
        }
    }

    /// A plan for one job on what others leave: in time, or as soon as may be.
    fn plan_late(&mut self, job: JobIdx, room: &Room, grid: &Grid, free: &mut Free, out: &mut Vec<Effect>) {
        let (by, spec) = (self.run(job).promise.unwrap_or(Time::NEVER), self.specs[job.index()].clone());
        let ask = self.ask(job, by, room);
        let in_time =
            self.plan_on(job, &ask, Others::HoldOn, free).or_else(|| self.fit(&spec, &ask, free, grid));
        let (plan, late) = match in_time {
            Some(plan) => (plan, None),
            None => self
                .soonest(&spec, &ask, free, grid)
                .map_or((Plan::default(), Some(None)), |(time, plan)| (plan, Some(Some(time)))),
        };
        free.take(Some(job), &ask, &plan, grid);
        self.set_plan(job, plan, late, out);
    }

    /// Plans around what nobody reckoned with. What is at risk is tried anew; but who holds devices and may not be stopped
    /// has those, whatever was planned, and others are planned around it.
    fn plan_around(&mut self, out: &mut Vec<Effect>) {
        loop {
            let short = self.misfits();
            let (bound, short): (Vec<JobIdx>, Vec<JobIdx>) =
                short.into_iter().partition(|job| self.stays_put(*job));
            if bound.is_empty() {
                if !short.is_empty() {
                    self.plan_again(&short, out);
                }
                return;
            }
            bound.into_iter().for_each(|job| self.bind_late(job, out));
        }
    }

    /// Jobs at risk, and those whose plans do not fit. Whose plan still fits keeps it, earliest first: what holds is not
    /// given up for a search that might not find it again.
    fn misfits(&self) -> Vec<JobIdx> {
        let (grid, room) = (self.grid(), self.room());
        let mut ground = self.open(&room, &grid).ground;
        let mut short = Vec::new();
        for (job, _) in self.promised_asks() {
            let promise = &self.promises.kept[&job];
            let fits = |(stretch, spot): (&Stretch, &Spot)| {
                let (from, until) = (stretch.from.max(self.now), stretch.until);
                let on_beat = from == self.now || from == from.round_up(self.settings.round);
                from >= until || on_beat && ground.lacking(&self.nodes, spot, (from, until), &[]).is_empty()
            };
            if !promise.at_risk && promise.plan.iter().all(fits) {
                ground.claim_plan(Some(job), &promise.plan);
            } else {
                short.push(job);
            }
        }
        short
    }

    fn set_plan(&mut self, job: JobIdx, plan: Plan, late: Option<Option<Time>>, out: &mut Vec<Effect>) {
        let (id, by) = (self.run(job).id, self.run(job).promise.unwrap_or(Time::NEVER));
        let Some(promise) = self.promises.kept.get_mut(&job) else { return };
        promise.plan = plan;
        let news = late.is_some() && !promise.at_risk;
        promise.at_risk = late.is_some();
        if news {
            out.push(Effect::Publish(Event::AtRisk { job: id, by, likely: late.flatten() }));
        }
    }
}
