//! What a job with a deadline is answered when it is submitted.

use std::collections::BTreeMap;

use super::asks::Free;
use crate::ids::JobIdx;
use crate::job::{JobSpec, Late, Length};
use crate::message::Event;
use crate::promise::{Ask, Grid, Plan, Spot, Stretch, earliest, hold_on, spot_of};
use crate::state::{Promise, State};
use crate::units::{MICROS, Span, Time};

/// Deadlines tried for a better answer than what fits around all plans as they are.
const PROBES: u32 = 6;

/// The answer to a job.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It has no deadline, or none that anybody plans for.
    Plain,
    /// It will be done by then; the plans of all once it is there.
    Promised { by: Time, own: Plan, others: BTreeMap<JobIdx, Plan> },
    /// It cannot be promised; the earliest deadline that could.
    Late { earliest: Option<Time> },
    /// It is refused.
    Refused { reason: String, earliest: Option<Time> },
}

/// How the others' plans are dealt with to fit a new job in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Others {
    /// They stay as they are.
    Stay,
    /// All are planned anew; who has its devices goes on with them.
    HoldOn,
    /// All are planned anew.
    Anew,
    /// The same, first who must begin first: a long job with little time to spare finds only gaps behind many short ones
    /// that are due before it, and cannot be in two of them at once.
    LeastSlack,
}

impl Others {
    /// Jobs in the order in which they are planned; they come by deadline.
    fn order(self, asks: &[(JobIdx, Ask)]) -> Vec<(JobIdx, Ask)> {
        let mut asks = asks.to_vec();
        asks.sort_by_key(|(_, ask)| self.turn(ask));
        asks
    }

    fn turn(self, ask: &Ask) -> Time {
        match self {
            Others::Stay | Others::HoldOn | Others::Anew => ask.by,
            Others::LeastSlack => ask.latest_start(),
        }
    }
}

/// What becomes of a job to which no time can be promised, because nobody said how long it takes.
fn unsaid(late: Late) -> Answer {
    let reason = "no time can be promised to a job that does not say how long it takes; state its length, or leave \
                  late: refuse out";
    match late {
        Late::Try => Answer::Plain,
        Late::Refuse => Answer::Refused { reason: reason.to_owned(), earliest: None },
    }
}

impl State {
    /// What becomes of a job with a deadline. Changes nothing but how long stopping is reckoned to take.
    pub(in crate::engine) fn answer(&mut self, spec: &JobSpec) -> Answer {
        self.reckon_with(spec.costs.save);
        let Some(deadline) = spec.deadline.filter(|_| self.settings.promises) else { return Answer::Plain };
        if deadline <= self.now {
            let reason = "its deadline is in the past; give a later one, or none".to_owned();
            return Answer::Refused { reason, earliest: None };
        }
        let wishes: Vec<Time> = match &spec.rewards {
            Some(rewards) => rewards.iter().map(|reward| reward.by).filter(|by| *by > self.now).collect(),
            None => vec![deadline],
        };
        // Where how long it takes is anybody's guess, no time can be promised.
        if wishes.is_empty() || spec.length != Length::Stated {
            return unsaid(spec.late);
        }
        if self.promises.kept.is_empty() {
            self.promises.stale = false;
            self.bind_all();
        }
        let after = self.ready(spec);
        let desk = Desk::new(self, spec, after);
        let promised = wishes.into_iter().filter(|_| after.is_some()).find_map(|by| desk.promise(by));
        if let Some(promised) = promised {
            return promised;
        }
        let earliest = after.and_then(|_| desk.earliest(deadline));
        match spec.late {
            Late::Try => Answer::Late { earliest },
            Late::Refuse => Answer::Refused { reason: refusal(self.now, earliest), earliest },
        }
    }

    /// Puts an answer on record. The event that tells of it.
    pub(in crate::engine) fn note_answer(&mut self, job: JobIdx, answer: Answer) -> Option<Event> {
        let id = self.run(job).id;
        match answer {
            Answer::Plain | Answer::Refused { .. } => None,
            Answer::Late { earliest } => Some(Event::Unpromised { job: id, earliest }),
            Answer::Promised { by, own, others } => {
                let shapes = &self.specs[job.index()].shapes;
                let devices = own
                    .stretches
                    .iter()
                    .map(|stretch| shapes[stretch.shape as usize].devices())
                    .max()
                    .unwrap_or(0);
                self.run_mut(job).promise = Some(by);
                self.promises.kept.insert(job, Promise { plan: own, at_risk: false });
                self.adopt(others);
                let first = self.promises.first.into_iter().chain(self.broken_at(job));
                self.promises.first = first.min();
                Some(Event::Promised { job: id, by, devices })
            }
        }
    }

    /// When the jobs that it waits for will be done, if that is known.
    pub(super) fn ready(&self, spec: &JobSpec) -> Option<Time> {
        let mut ready = spec.not_before.unwrap_or(self.now);
        for row in spec.after.iter().filter_map(|id| self.rows.get(id)) {
            ready = ready.max(self.run(*row).promise?);
        }
        Some(ready)
    }

    /// Plans reckon with the longest time that a job may hold its devices after it was told to stop. Where a longer one
    /// does not fit with what was promised, its job binds its devices instead. Who gives its devices back in time then is
    /// bound no longer, and needs a plan too.
    fn reckon_with(&mut self, save: Span) {
        if !self.settings.promises || save <= self.promises.settle {
            return;
        }
        let before = std::mem::replace(&mut self.promises.settle, save);
        if self.promises.kept.is_empty() {
            return;
        }
        let bound = self.promises.bound.clone();
        self.unbind();
        match self.plan_anew() {
            Some(plans) => self.adopt(plans),
            None => (self.promises.settle, self.promises.bound) = (before, bound),
        }
    }

    /// Plans for all that was promised such that all of it holds, if there are any.
    pub(super) fn plan_anew(&self) -> Option<BTreeMap<JobIdx, Plan>> {
        let (grid, room) = (self.grid(), self.room());
        let open = self.open(&room, &grid);
        let asks: Vec<(JobIdx, Ask)> =
            self.promised_asks().into_iter().map(|(job, by)| (job, self.ask(job, by, &room))).collect();
        [Others::HoldOn, Others::Anew, Others::LeastSlack].into_iter().find_map(|others| {
            let (asks, mut free) = (others.order(&asks), open.clone());
            let mut plans = self.plan_holders(&asks, others, &mut free, &grid);
            self.plan_rest(&asks, &mut plans, &mut free, &grid).map(|()| plans)
        })
    }

    /// Who was promised what, earliest first. What is at risk is wanted as soon as it was last planned.
    pub(super) fn promised_asks(&self) -> Vec<(JobIdx, Time)> {
        let by = |(job, promise): (&JobIdx, &Promise)| {
            let end = promise.plan.stretches.last().filter(|_| promise.at_risk).map(|last| last.until);
            (*job, self.run(*job).promise.unwrap_or(Time::NEVER).max(end.unwrap_or(Time::ZERO)))
        };
        let planned = self.promises.kept.iter().filter(|(job, _)| !self.began_early(**job));
        let mut asks: Vec<(JobIdx, Time)> = planned.map(by).collect();
        asks.sort_by_key(|(job, by)| (*by, self.run(*job).id));
        asks
    }

    /// Plans for those who go on where they are.
    fn plan_holders(
        &self,
        asks: &[(JobIdx, Ask)],
        others: Others,
        free: &mut Free,
        grid: &Grid,
    ) -> BTreeMap<JobIdx, Plan> {
        let mut plans = BTreeMap::new();
        for (job, ask) in asks {
            if let Some(plan) = self.plan_on(*job, ask, others, free) {
                free.take(Some(*job), ask, &plan, grid);
                plans.insert(*job, plan);
            }
        }
        plans
    }

    /// Plans for the others of these jobs, in order; none where one of them finds none.
    fn plan_rest(
        &self,
        asks: &[(JobIdx, Ask)],
        plans: &mut BTreeMap<JobIdx, Plan>,
        free: &mut Free,
        grid: &Grid,
    ) -> Option<()> {
        for (job, ask) in asks {
            if plans.contains_key(job) {
                continue;
            }
            // One that may not be stopped can go nowhere else once it has devices, or is about to.
            let bound = ask.whole && (self.run(*job).lease.is_some() || self.is_seated(*job));
            let plan = self.fit(&self.specs[job.index()], ask, free, grid).filter(|_| !bound)?;
            free.take(Some(*job), ask, &plan, grid);
            plans.insert(*job, plan);
        }
        Some(())
    }

    /// The plan of who has the devices it must have and goes on with them, or is about to and may not be stopped then.
    pub(super) fn plan_on(&self, job: JobIdx, ask: &Ask, others: Others, free: &Free) -> Option<Plan> {
        let seated = ask.whole && self.is_seated(job);
        let plan =
            if seated { self.promises.kept.get(&job).map(|promise| promise.plan.clone()) } else { None };
        let plan = plan.or_else(|| self.going_on(job, ask, others))?;
        let fits = |(stretch, spot): (&Stretch, &Spot)| {
            let span = (stretch.from.max(self.now), stretch.until);
            free.ground.lacking(&self.nodes, spot, span, &[]).is_empty()
        };
        let all_fit = plan.iter().all(fits);
        all_fit.then_some(plan)
    }

    fn going_on(&self, job: JobIdx, ask: &Ask, others: Others) -> Option<Plan> {
        let due = self.promises.due.contains_key(&job);
        let goes_on = ask.whole || (due && matches!(others, Others::HoldOn));
        let (shape, on) = self.ask_on(job, ask).filter(|_| goes_on)?;
        let stretch = hold_on(&on, shape, self.now)?;
        let lease = self.run(job).lease.and_then(|lease| self.leases.get(lease))?;
        Some(Plan { stretches: vec![stretch], spots: vec![spot_of(&self.nodes, &lease.placement)] })
    }

    /// When a job can be done at the earliest on what is free, and how. What fits by counting may find no place, so
    /// later times are tried too.
    pub(super) fn soonest(
        &self,
        spec: &JobSpec,
        ask: &Ask,
        free: &Free,
        grid: &Grid,
    ) -> Option<(Time, Plan)> {
        let (by_count, _) = earliest(ask, &free.timeline, grid)?;
        let begin = ask.from.max(grid.now);
        let further = |twice: u32| grid.after(begin + Span((by_count - begin).0.saturating_mul(1 << twice)));
        (0..PROBES).map(further).find_map(|by| {
            let plan = self.fit_by(spec, &Ask { by, ..ask.clone() }, free, grid)?;
            Some((by, plan))
        })
    }

    /// Puts other plans in the place of those that were.
    pub(super) fn adopt(&mut self, plans: BTreeMap<JobIdx, Plan>) {
        for (job, plan) in plans {
            let by = self.run(job).promise;
            if let Some(promise) = self.promises.kept.get_mut(&job) {
                promise.at_risk &= plan.stretches.last().map(|last| last.until) > by;
                promise.plan = plan;
            }
        }
        self.promises.next = Some(self.now);
    }
}

/// All that is needed to try deadlines for one job.
struct Desk<'a> {
    state: &'a State,
    spec: &'a JobSpec,
    grid: Grid,
    ask: Ask,
    /// What is free of bound jobs, and what is free of promises too.
    open: Free,
    left: Free,
    others: Vec<(JobIdx, Ask)>,
}

impl<'a> Desk<'a> {
    fn new(state: &'a State, spec: &'a JobSpec, after: Option<Time>) -> Desk<'a> {
        let (grid, room) = (state.grid(), state.room());
        let open = state.open(&room, &grid);
        let mut left = open.clone();
        let asks = state.promised_asks().into_iter().map(|(job, by)| (job, state.ask(job, by, &room)));
        let others: Vec<(JobIdx, Ask)> = asks.collect();
        for (job, ask) in &others {
            left.take(Some(*job), ask, &state.promises.kept[job].plan, &grid);
        }
        let ask = state.first_ask(spec, Time::NEVER, &room);
        let ask = Ask { from: after.unwrap_or(ask.from), ..ask };
        Desk { state, spec, grid, ask, open, left, others }
    }

    /// A promise to be done by then, if it can be made.
    fn promise(&self, by: Time) -> Option<Answer> {
        let modes = [Others::Stay, Others::HoldOn, Others::Anew, Others::LeastSlack];
        let modes = if self.others.is_empty() { &modes[..1] } else { &modes };
        modes.iter().find_map(|others| self.fit(by, *others))
    }

    fn fit(&self, by: Time, others: Others) -> Option<Answer> {
        let ask = Ask { by, ..self.ask.clone() };
        let own = |free: &Free| self.state.fit(self.spec, &ask, free, &self.grid);
        if matches!(others, Others::Stay) {
            return Some(Answer::Promised { by, own: own(&self.left)?, others: BTreeMap::new() });
        }
        let all = others.order(&self.others);
        let before = |(_, other): &(JobIdx, Ask)| others.turn(other) <= others.turn(&ask);
        let (sooner, later) = all.split_at(all.partition_point(before));
        let mut free = self.open.clone();
        let mut plans = self.state.plan_holders(&all, others, &mut free, &self.grid);
        self.state.plan_rest(sooner, &mut plans, &mut free, &self.grid)?;
        let own = own(&free)?;
        free.take(None, &ask, &own, &self.grid);
        self.state.plan_rest(later, &mut plans, &mut free, &self.grid)?;
        Some(Answer::Promised { by, own, others: plans })
    }

    /// The earliest deadline that can be promised, a step later so that it still can be when it is asked for.
    fn earliest(&self, wanted: Time) -> Option<Time> {
        let (mut high, _) = self.state.soonest(self.spec, &self.ask, &self.left, &self.grid)?;
        let mut low = wanted.min(high);
        for _ in 0..PROBES {
            let middle = self.grid.after(Time(low.0 / 2 + high.0 / 2));
            if middle >= high {
                break;
            }
            match self.promise(middle) {
                Some(_) => high = middle,
                None => low = middle,
            }
        }
        Some(high + self.grid.step(high))
    }
}

fn refusal(now: Time, earliest: Option<Time>) -> String {
    match earliest {
        Some(time) => {
            let from_now = in_words(time - now);
            format!("its deadline cannot be kept; the earliest that can is {from_now} from now")
        }
        None => "its deadline cannot be kept, and no later one can be promised either: it has no shape that \
                 can be planned for"
            .into(),
    }
}

/// A length of time as people say it, never too short.
fn in_words(span: Span) -> String {
    let seconds = span.0.div_ceil(MICROS);
    let minutes = seconds.div_ceil(60);
    let hours = minutes.div_ceil(60);
    match hours {
        _ if seconds <= 60 => format!("{seconds} s"),
        _ if minutes < 60 => format!("{minutes} min"),
        0..=48 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} days {} h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = |seconds: f64| in_words(Span::from_secs(seconds));
        assert_eq!([said(0.2), said(60.0), said(61.0), said(3_599.0)], ["1 s", "60 s", "2 min", "1 h 0 min"]);
        assert_eq!([said(7_476.0), said(86_400.0 * 3.0)], ["2 h 5 min", "3 days 0 h"]);
    }
}
