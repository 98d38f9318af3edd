//! What will become of the jobs: the engine run forward from a state, under a policy, in a small world where what is
//! believed is true. No second scheduler predicts the first: the same code decides.
//!
//! What is not known is data: a `Scenario` says how much work jobs really have, and who comes later. Several of them
//! (`past` draws them from what has been) give an interval for each job (`interval`). Each run is bounded in steps and
//! in time; a job that is not over by then is said to start or end at a time that is not known. How earlier estimates
//! turned out (`record`) makes intervals wider or narrower, and a scenario may hold a job that was not submitted:
//! what would become of it, and of the others because of it.
//!
//! A run is exact, round by round, until the job that is asked about has begun, or so much work was done
//! (`Limits::exact_max`); from then on rounds grow with the distance (`rough`), and what they decide is about right where
//! jobs take turns (`yard validate` has the figures).

pub mod interval;
mod lengths;
pub mod past;
pub mod record;
mod rough;
pub mod what_if;
mod world;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::Engine;
use crate::allocation::{Allocation, Shares};
use crate::belief::Belief;
use crate::cluster::Placement;
use crate::ids::JobId;
use crate::job::JobSpec;
use crate::message::{Effect, Event, Input, NodeChange, Why};
use crate::policy::{Placer, Policy};
use crate::state::{RestoreError, State};
use crate::units::{Span, Time};
use rough::Rough;
use world::World;

/// One way in which things may go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// What jobs that are here really have to do in all, in steps; others have what they say.
    pub steps: BTreeMap<JobId, f64>,
    /// Who comes, in order of time, and what each really has to do.
    pub arrivals: Vec<(Time, JobSpec, f64)>,
    /// A job that is asked about: it comes at once, with so much to do.
    pub asked: Option<(Box<JobSpec>, f64)>,
    /// What happens to nodes, in order of time.
    pub nodes: Vec<(Time, NodeChange)>,
    /// Whether it ends with that job, and is one of many runs that make an interval; the others are of no interest then.
    pub only_asked: bool,
    /// When it begins, where that is later than the state; nothing happened in between.
    pub at: Time,
    /// From when on rounds grow, where that is given: two runs are alike only if theirs do from the same time on.
    pub rough_from: Option<Time>,
}

/// How far a forecast goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Steps of the engine.
    pub steps_max: u64,
    /// Plans of the policy, which may be dear.
    pub plans_max: u64,
    /// Both together, as `work_of` counts them.
    pub work_max: u64,
    /// Work after which rounds grow; or sooner, when the job that is asked about has begun. The most there is: never.
    pub exact_max: u64,
    /// Time from now on.
    pub horizon: Span,
}

impl Limits {
    /// How far one run for a question goes, so that an answer takes a fraction of a second where a thousand jobs are.
    pub const QUESTION: Limits = Limits {
        steps_max: 100_000,
        plans_max: 10_000,
        work_max: 400_000,
        exact_max: 60_000,
        horizon: Span::from_whole_secs(30 * 86_400),
    };

    /// Work after which rounds grow in runs for estimates of all jobs.
    pub const EXACT: u64 = 20_000;
}

impl Default for Limits {
    fn default() -> Limits {
        let horizon = Span::from_whole_secs(180 * 86_400);
        Limits { steps_max: 200_000, plans_max: 20_000, work_max: u64::MAX, exact_max: u64::MAX, horizon }
    }
}

/// When a job starts and ends, as far as the forecast came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// When it first got or gets devices.
    pub start: Option<Time>,
    /// When it is over.
    pub end: Option<Time>,
    /// How often it is stopped from now on, for another or because of its devices.
    pub stops: u32,
}

/// What is foretold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// The jobs that are there, and the one that is asked about.
    pub outlooks: BTreeMap<JobId, Outlook>,
    /// The job that is asked about.
    pub asked: Option<Asked>,
    /// Whether the limits ended it before all jobs were over.
    pub cut: bool,
    /// The work it took, as limits count it.
    pub work: u64,
    /// From when on its rounds may grow.
    pub rough_from: Option<Time>,
    /// From when on they have, and it is about right.
    pub grown_from: Option<Time>,
    /// How far it came: what has not happened by then happens later, if at all.
    pub reached: Time,
}

/// What would become of a job that is asked about, beside its outlook.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The number it would have.
    pub job: JobId,
    /// Its first devices.
    pub place: Option<Placement>,
    /// Why it would be refused, and the earliest deadline that could be promised.
    pub refused: Option<(String, Option<Time>)>,
}

/// Shares of an answer that cost as much as a step; and where it was solved for, and has a price, so many times more.
const SHARES: u64 = 8;
const SOLVED: u64 = 5;

/// What a plan costs, in steps: by its answer, since a policy that answers for what changed takes as long as that.
fn work_of(answer: &Allocation) -> u64 {
    let (Shares::All(shares) | Shares::Changed(shares)) = &answer.shares;
    shares.len() as u64 / SHARES * if answer.certificate.is_some() { SOLVED } else { 1 }
}

/// Instants between two looks at whether to stop: a look at a clock costs as much as a step. A plan may cost more than
/// all steps together, so that there is a look after each, too.
const STOP_EVERY: u32 = 32;

/// Rounds in a row that start nobody while nobody runs and nobody comes, after which those that are left stay.
const IDLE_ROUNDS_MAX: u32 = 64;

/// Runs a state forward until the jobs that are in it are over, or the limits are reached.
pub fn run(
    state: &State,
    placer: Box<dyn Placer>,
    policy: &mut dyn Policy,
    scenario: &Scenario,
    limits: Limits,
) -> Result<Forecast, RestoreError> {
    run_until(state, placer, policy, scenario, limits, &|| false)
}

/// The same, or until it is told to stop: it is cut off then.
pub fn run_until(
    state: &State,
    placer: Box<dyn Placer>,
    policy: &mut dyn Policy,
    scenario: &Scenario,
    limits: Limits,
    stop: &dyn Fn() -> bool,
) -> Result<Forecast, RestoreError> {
    let mut state = state.clone();
    state.now = state.now.max(scenario.at);
    if state.belief.learns() {
        state.belief = Arc::new(Belief::clone(&state.belief).fixed());
    }
    let engine = Engine::restore(state, placer)?;
    let mut run = Run::new(engine, policy, scenario, limits);
    // Whoever answered plans is not here: one that is being made is asked for again.
    let settings = run.engine.settings().clone();
    run.step(Input::Begin(Box::new(settings)));
    scenario.asked.iter().for_each(|(spec, steps)| run.ask(spec, *steps));
    let (mut stopped, mut instants, mut plans) = (stop(), 0u32, run.plans);
    while let Some(now) = run.next_time().filter(|_| !stopped) {
        run.happen(now);
        instants = instants.wrapping_add(1);
        stopped = (instants.is_multiple_of(STOP_EVERY) || run.plans > plans) && stop();
        plans = run.plans;
    }
    let cut = run.open > 0 && !run.told() && (stopped || run.goes_on());
    let (rough_from, grown_from) = (run.rough.from(), run.rough.grown());
    let Run { outlooks, asked, work, now: reached, .. } = run;
    Ok(Forecast { outlooks, asked, cut, work, rough_from, grown_from, reached })
}

struct Run<'a> {
    engine: Engine,
    policy: &'a mut dyn Policy,
    world: World,
    arrivals: &'a [(Time, JobSpec, f64)],
    nodes: &'a [(Time, NodeChange)],
    outlooks: BTreeMap<JobId, Outlook>,
    asked: Option<Asked>,
    only_asked: bool,
    /// Jobs that nobody waits for, because they are held.
    idle: BTreeSet<JobId>,
    /// The other jobs of the state that are not over.
    open: usize,
    now: Time,
    until: Time,
    steps: u64,
    plans: u64,
    work: u64,
    limits: Limits,
    idle_rounds: u32,
    rough: Rough,
}

impl<'a> Run<'a> {
    fn new(engine: Engine, policy: &'a mut dyn Policy, scenario: &'a Scenario, limits: Limits) -> Run<'a> {
        let world = World::new(&engine, scenario);
        let idle = held(engine.state());
        let jobs = engine.state().rows.iter();
        let outlook = |row| Outlook { start: engine.state().run(row).first_start, ..Outlook::default() };
        let outlooks: BTreeMap<_, _> = jobs.map(|(id, row)| (*id, outlook(*row))).collect();
        let now = engine.now();
        Run {
            policy,
            world,
            arrivals: &scenario.arrivals,
            nodes: &scenario.nodes,
            open: outlooks.len() - idle.len(),
            idle,
            outlooks,
            asked: None,
            only_asked: scenario.only_asked,
            now,
            until: now + limits.horizon,
            steps: 0,
            plans: 0,
            work: 0,
            limits,
            idle_rounds: 0,
            rough: Rough::new(engine.settings().round, scenario.rough_from, scenario.only_asked),
            engine,
        }
    }

    /// The job that is asked about comes.
    fn ask(&mut self, spec: &JobSpec, steps: f64) {
        let job = self.engine.next_job();
        self.asked = Some(Asked { job, place: None, refused: None });
        self.outlooks.insert(job, Outlook::default());
        self.open += 1;
        self.world.expect(job, steps);
        self.step(Input::Submit(Box::new(spec.clone())));
    }

    /// Whether all that is of interest is known.
    fn told(&self) -> bool {
        let over = |asked: &Asked| asked.refused.is_some() || self.outlooks[&asked.job].end.is_some();
        self.only_asked && self.asked.as_ref().is_some_and(over)
    }

    /// Whether what follows need not be exact.
    fn is_tired(&self) -> bool {
        let begun = |asked: &Asked| self.outlooks[&asked.job].start.is_some();
        let known = self.limits.exact_max < u64::MAX && self.asked.as_ref().is_some_and(begun);
        known || self.work >= self.limits.exact_max
    }

    fn spent(&self) -> bool {
        let Limits { steps_max, plans_max, work_max, .. } = self.limits;
        self.steps >= steps_max || self.plans >= plans_max || self.work >= work_max
    }

    /// Whether something would happen yet if it went on: else who is left stays.
    fn goes_on(&self) -> bool {
        self.idle_rounds < IDLE_ROUNDS_MAX && (self.spent() || self.next().is_some())
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        let arrival = self.arrivals.first().map(|(time, ..)| *time);
        let node = self.nodes.first().map(|(time, _)| *time);
        let times = arrival.into_iter().chain(node).chain(self.world.time()).chain(self.engine.deadline());
        times.min().map(|time| time.max(self.now))
    }

    fn next_time(&self) -> Option<Time> {
        if self.open == 0 || self.spent() || self.idle_rounds >= IDLE_ROUNDS_MAX || self.told() {
            return None;
        }
        self.next().filter(|time| *time <= self.until)
    }

    /// As in every loop around the engine: first what is reported, then what happens to nodes and who comes, then the
    /// engine's own tick.
    fn happen(&mut self, now: Time) {
        self.now = now;
        self.engine.state.settings.round = self.rough.round(&self.engine, now, self.is_tired());
        while let Some(report) = self.world.next_due(now) {
            self.step(Input::Report(report));
        }
        while let Some(((_, change), rest)) = self.nodes.split_first().filter(|((time, _), _)| *time <= now) {
            self.nodes = rest;
            self.step(Input::Node(change.clone()));
        }
        while let Some(((_, spec, steps), rest)) =
            self.arrivals.split_first().filter(|((time, ..), _)| *time <= now)
        {
            self.arrivals = rest;
            self.world.expect(self.engine.next_job(), *steps);
            self.step(Input::Submit(Box::new(spec.clone())));
        }
        if self.engine.deadline().is_some_and(|deadline| deadline <= now) {
            self.step(Input::Tick);
            let idle = self.world.time().is_none() && self.arrivals.is_empty() && self.nodes.is_empty();
            self.idle_rounds = if idle { self.idle_rounds + 1 } else { 0 };
        }
    }

    /// One step of the engine, and of what it asks for at once.
    fn step(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        let mut effects = Vec::new();
        while let Some(input) = inputs.pop_front() {
            self.steps += 1;
            self.work += 1;
            self.engine.step(self.now, input, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    Effect::Plan { plan, view } => {
                        self.plans += 1;
                        let answer = self.policy.allocate(&view).map_err(|error| error.to_string());
                        self.work += answer.as_ref().map_or(0, work_of);
                        inputs.push_back(Input::Planned { plan, answer });
                    }
                    Effect::Execute(command) => self.world.execute(&self.engine, &command),
                    Effect::Publish(event) => self.note(&event),
                }
            }
            self.world.keep_pace(&self.engine);
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Granted { jobs, placement, .. } => {
                for job in jobs {
                    let outlook = self.outlooks.get_mut(job);
                    outlook.into_iter().for_each(|outlook| _ = outlook.start.get_or_insert(self.now));
                }
                if let Some(asked) = self.asked.as_mut().filter(|asked| jobs.contains(&asked.job)) {
                    asked.place.get_or_insert_with(|| placement.clone());
                }
            }
            Event::Stopping { job, why, .. } if !matches!(why, Why::Cancelled | Why::Killed) => {
                self.outlooks.get_mut(job).into_iter().for_each(|outlook| outlook.stops += 1);
            }
            Event::Rejected { job, reason, earliest } => {
                if let Some(asked) = self.asked.as_mut().filter(|asked| asked.job == *job) {
                    asked.refused = Some((reason.clone(), *earliest));
                    self.open -= 1;
                }
            }
            Event::Ended { job, .. } => {
                if let Some(outlook) = self.outlooks.get_mut(job) {
                    outlook.end = Some(self.now);
                    self.open -= usize::from(!self.idle.contains(job));
                }
            }
            _ => {}
        }
    }
}

/// Jobs that are held, and those that come after them: nobody knows when they will start.
fn held(state: &State) -> BTreeSet<JobId> {
    let mut held = BTreeSet::new();
    // A job comes after earlier ones.
    for (id, row) in state.rows.iter() {
        let follows = || state.specs[row.index()].after.iter().any(|job| held.contains(job));
        if state.run(*row).held || follows() {
            held.insert(*id);
        }
    }
    held
}

#[cfg(test)]
mod tests;
