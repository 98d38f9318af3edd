//! One simulation: a loop around the engine, as the live server is another. At each instant first
//! everything that happens is reported, then jobs arrive, then the engine gets its tick.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use yard_core::belief::Belief;
use yard_core::cluster::{Kinds, Nodes};
use yard_core::ids::JobId;
use yard_core::job::{Costs, JobSpec, JobState, Length};
use yard_core::message::{Effect, Event, Input, News, NodeChange, Report};
use yard_core::policy::{Placer, Policy};
use yard_core::state::Ledger;
use yard_core::view::{Changed, View};
use yard_core::{Engine, Settings, Span, State, Time};

use crate::cluster::ClusterSpec;
use crate::course::Course;
use crate::events::EventLog;
use crate::faults::Faults;
use crate::record::{Keep, Record};
use crate::world::{Coming, Quirks, World};

/// All that a simulation needs.
pub struct Simulation<'a> {
    /// The jobs with their times of submission, in order.
    pub jobs: &'a [(Time, &'a JobSpec)],
    /// What is true and what is believed of speeds, beyond the jobs' own.
    pub speeds: Speeds,
    /// The cluster.
    pub cluster: &'a ClusterSpec,
    /// How the engine is run.
    pub settings: Settings,
    /// Who decides.
    pub policy: &'a mut dyn Policy,
    /// Who places.
    pub placer: Box<dyn Placer>,
    /// Time between the jobs' own checkpoints.
    pub checkpoint_every: Span,
    /// Behaviours of other simulators.
    pub quirks: Quirks,
    /// What goes wrong.
    pub faults: Faults,
    /// What else happens: drains, cancellations, nodes that join.
    pub script: Vec<(Time, Input)>,
    /// The seed of all that is random.
    pub seed: u64,
    /// What to keep.
    pub keep: Keep,
    /// Where to write events.
    pub events: Option<Box<dyn io::Write + Send>>,
    /// Counts jobs that are over, for whoever watches.
    pub progress: Option<Arc<AtomicU64>>,
    /// Gives up after so many steps of the engine; for scenarios that might never end.
    pub steps_max: u64,
    /// Gives up once this is set, by whoever no longer waits for the outcome.
    pub stop: Option<Arc<AtomicBool>>,
    /// Sees each input and the engine after it; for journals and checks.
    pub probe: Option<Probe<'a>>,
}

/// What is true and what is believed of speeds, beyond what the jobs say themselves.
#[derive(Clone, Debug, Default)]
pub struct Speeds {
    /// What jobs really keep of their speeds beside each other. The engine is told, unless it is to learn.
    pub pairs: Belief,
    /// What the engine believes instead of the truth.
    pub learned: Option<RunLearned>,
    /// How jobs really go, one for each, where that is not by the speeds they say; empty: all go by those.
    pub courses: Vec<Option<Arc<Course>>>,
    /// How many steps each job says that it has to do, where that is not the truth.
    pub said: Option<Vec<f64>>,
    /// How the engine is told that it knows those.
    pub length: Length,
    /// What the engine is told that interruptions cost, where that is not the truth.
    pub said_costs: Option<Costs>,
}

/// A belief to begin with.
#[derive(Clone, Debug)]
pub struct RunLearned {
    /// Of jobs that share devices; it learns.
    pub belief: Belief,
    /// The guessed speeds of each job, one for each of its shapes.
    pub speeds: Vec<Arc<[f64]>>,
}

/// How far believed speeds were from true ones when jobs started.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    sum: f64,
    starts: u64,
}

impl Errors {
    fn add(&mut self, believed: f64, real: f64) {
        self.sum += if real > 0.0 { (believed / real - 1.0).abs() } else { 1.0 };
        self.starts += 1;
    }
}

/// Called after each step of the engine.
pub type Probe<'a> = &'a mut dyn FnMut(&Engine, Time, &Input);

/// What a simulation gives.
#[derive(Debug)]
pub struct RunOutcome {
    /// What became of the jobs.
    pub record: Record,
    /// The engine's sums.
    pub ledger: Ledger,
    /// Hash of the event log.
    pub events_sha256: String,
    /// When the last thing happened.
    pub end: Time,
    /// What the engine knew then.
    pub state: State,
    /// Mean relative error of believed speeds over all starts, where the belief is learned.
    pub belief_error: Option<f64>,
}

/// Rounds in a row that start nobody while nobody runs and nobody comes, after which the jobs that are
/// left can never run. Those that pass while a plan has to wait for its time come on top.
const IDLE_ROUNDS_MAX: u64 = 64;

/// Runs until nothing more can happen.
pub fn run(simulation: Simulation<'_>) -> io::Result<RunOutcome> {
    let mut run = Run::new(simulation);
    while let Some(now) = run.next_time() {
        run.happen(now);
        run.arrive(now);
        run.tick(now);
    }
    run.finish()
}

/// What the policy is asked at `time`, before it answers: after all that happened by then, and everything
/// as if new.
pub fn view_at(simulation: Simulation<'_>, time: Time) -> View {
    let mut run = Run::new(simulation);
    while let Some(now) = run.next_time().filter(|now| *now < time) {
        run.happen(now);
        run.arrive(now);
        run.tick(now);
    }
    run.happen(time);
    run.arrive(time);
    let changed = Changed { all: true, ..Changed::default() };
    View { now: time, changed, ..run.engine.view() }
}

fn says_memory(spec: &JobSpec) -> bool {
    spec.sharing.as_ref().is_some_and(|said| said.memory_mib.is_some() || said.usage.is_some())
}

struct Run<'a> {
    jobs: &'a [(Time, &'a JobSpec)],
    arrived: usize,
    engine: Engine,
    world: World,
    policy: &'a mut dyn Policy,
    record: Record,
    log: EventLog,
    effects: Vec<Effect>,
    todo: VecDeque<Input>,
    now: Time,
    idle_rounds: u64,
    idle_rounds_max: u64,
    steps: u64,
    steps_max: u64,
    stop: Option<Arc<AtomicBool>>,
    progress: Option<Arc<AtomicU64>>,
    probe: Option<Probe<'a>>,
    guesses: Option<Vec<Arc<[f64]>>>,
    courses: Vec<Option<Arc<Course>>>,
    said: Option<Vec<f64>>,
    length: Length,
    said_costs: Option<Costs>,
    errors: Errors,
}

impl<'a> Run<'a> {
    fn new(simulation: Simulation<'a>) -> Run<'a> {
        let Simulation {
            jobs, speeds, cluster, settings, policy, placer, quirks, faults, seed, keep, ..
        } = simulation;
        let joining = simulation.script.iter().filter_map(|(_, input)| match input {
            Input::Node(NodeChange::Join(spec)) => Some(spec),
            _ => None,
        });
        let mut nodes = Nodes::default();
        cluster.nodes.iter().chain(joining).for_each(|spec| _ = nodes.add(spec.clone()));
        let mut world =
            World::new(nodes, simulation.checkpoint_every, quirks, faults, speeds.pairs.clone(), seed);
        for (time, input) in simulation.script {
            world.coming.push(time, Coming::Planned(Box::new(input)));
        }
        let kinds: Kinds = cluster.kinds.clone();
        let waits = settings.plan_gap.0.checked_div(settings.round.0).unwrap_or(0);
        let mut run = Run {
            jobs,
            arrived: 0,
            engine: Engine::new(settings, kinds, placer),
            world,
            policy,
            record: Record::new(keep, cluster, jobs.len()),
            log: EventLog::new(simulation.events),
            effects: Vec::new(),
            todo: VecDeque::new(),
            now: Time::ZERO,
            idle_rounds: 0,
            idle_rounds_max: IDLE_ROUNDS_MAX + waits,
            steps: 0,
            steps_max: simulation.steps_max,
            stop: simulation.stop,
            progress: simulation.progress,
            probe: simulation.probe,
            guesses: None,
            courses: speeds.courses,
            said: speeds.said,
            length: speeds.length,
            said_costs: speeds.said_costs,
            errors: Errors::default(),
        };
        run.world.talks = speeds.learned.is_some();
        let (belief, guesses) = match speeds.learned {
            Some(RunLearned { belief, speeds }) => (belief.learning(), Some(speeds)),
            None => (speeds.pairs, None),
        };
        run.guesses = guesses;
        if belief.learns() || !belief.is_empty() {
            run.step(Input::Believe(Box::new(belief)));
        }
        for (_, name) in cluster.resources.iter() {
            run.step(Input::Resource(name.to_owned()));
        }
        // Where no job says what memory it takes, that of devices decides nothing.
        let said = jobs.iter().any(|(_, spec)| says_memory(spec));
        for node in &cluster.nodes {
            let node = if said { node.clone() } else { node.clone().with_memory(None) };
            run.step(Input::Node(NodeChange::Join(node)));
        }
        run
    }

    /// When something happens next. Faults alone keep nobody waiting: without jobs the run is over.
    fn next_time(&self) -> Option<Time> {
        let arrival = self.jobs.get(self.arrived).map(|(time, _)| *time);
        let over = arrival.is_none() && self.record.ended() == self.record.jobs.len();
        let stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if over || stopped || self.steps > self.steps_max {
            return None;
        }
        let deadline = self.engine.deadline().filter(|_| self.idle_rounds < self.idle_rounds_max);
        arrival.into_iter().chain(self.world.coming.time()).chain(deadline).min()
    }

    fn happen(&mut self, now: Time) {
        self.now = now;
        while let Some((turn, coming)) = self.world.coming.pop_due(now) {
            let input = self.world.happen(now, turn, coming);
            self.hear();
            let Some(input) = input else { continue };
            let started = match &input {
                Input::Report(Report { job, news: News::Started, .. }) if self.guesses.is_some() => {
                    Some(*job)
                }
                _ => None,
            };
            self.step(input);
            started.iter().for_each(|job| self.compare(*job));
        }
    }

    /// Hands on what jobs have said of their progress.
    fn hear(&mut self) {
        std::mem::take(&mut self.world.said).into_iter().for_each(|report| self.step(report));
    }

    /// Notes how far the believed speed of a job is from the true one.
    fn compare(&mut self, job: JobId) {
        if let Some(run) = self.engine.job(job).filter(|run| run.state == JobState::Running) {
            self.errors.add(run.speed, self.world.speed(job));
        }
    }

    fn arrive(&mut self, now: Time) {
        while let Some((_, spec)) = self.jobs.get(self.arrived).filter(|(time, _)| *time <= now) {
            let course = self.courses.get(self.arrived).cloned().flatten();
            self.arrived += 1;
            self.world.add(spec, course);
            self.record.add(now, spec);
            let mut spec = JobSpec::clone(spec);
            if let Some(guesses) = &self.guesses {
                spec.speeds = guesses[self.arrived - 1].clone();
            }
            if let Some(said) = &self.said {
                spec.steps = said[self.arrived - 1];
                spec.length = spec.length.max(self.length);
            }
            spec.costs = self.said_costs.unwrap_or(spec.costs);
            self.step(Input::Submit(Box::new(spec)));
        }
    }

    fn tick(&mut self, now: Time) {
        if self.engine.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        if self.engine.next_round().is_some_and(|time| time <= now) {
            self.world.toll(now).into_iter().for_each(|report| self.step(report));
            self.world.ask_all(now);
            self.hear();
        }
        self.step(Input::Tick);
        let nobody = self.world.coming.time().is_none() && self.arrived == self.jobs.len();
        let idle = nobody && !self.is_promised(now);
        self.idle_rounds = if idle { self.idle_rounds + 1 } else { 0 };
    }

    /// Whether somebody may wait on purpose: a job with a promise need not start before it must.
    fn is_promised(&self, now: Time) -> bool {
        self.record.jobs.iter().any(|job| job.end.is_none() && job.promise.is_some_and(|by| by > now))
    }

    /// One step of the engine, and of what it asks for at once.
    fn step(&mut self, input: Input) {
        self.take(input);
        while let Some(input) = self.todo.pop_front() {
            self.take(input);
        }
    }

    fn take(&mut self, input: Input) {
        self.steps += 1;
        let planned = matches!(input, Input::Planned { .. });
        let kept = self.probe.is_some().then(|| input.clone());
        self.engine.step(self.now, input, &mut self.effects);
        if let (Some(probe), Some(input)) = (&mut self.probe, &kept) {
            probe(&self.engine, self.now, input);
        }
        let mut effects = std::mem::take(&mut self.effects);
        let failed = |effect: &Effect| matches!(effect, Effect::Publish(Event::PlanFailed { .. }));
        if planned && !effects.iter().any(failed) {
            self.record.follow.settle(self.now);
        }
        effects.iter().for_each(|effect| self.perform(effect));
        effects.clear();
        self.effects = effects;
    }

    fn perform(&mut self, effect: &Effect) {
        match effect {
            Effect::Plan { plan, view } => {
                let answer = self.policy.allocate(view).map_err(|error| error.to_string());
                answer.iter().for_each(|answer| self.record.follow.propose(view, answer));
                self.todo.push_back(Input::Planned { plan: *plan, answer });
            }
            Effect::Execute(command) => {
                self.world.execute(self.now, command);
                self.todo.extend(self.world.said.drain(..));
            }
            Effect::Publish(event) => {
                self.log.record(self.now, event);
                let before = self.record.ended();
                let (jobs, courses) = (self.jobs, &self.courses);
                self.record.event(self.now, event, |job| {
                    let course = courses.get(job.index()).and_then(Option::as_ref);
                    course.map_or_else(|| ideal(jobs[job.index()].1), |course| course.ideal_s)
                });
                let ended = self.record.ended() - before;
                if let Some(progress) = self.progress.as_ref().filter(|_| ended > 0) {
                    progress.fetch_add(ended as u64, Ordering::Relaxed);
                }
            }
        }
    }

    fn finish(mut self) -> io::Result<RunOutcome> {
        self.record.prices.close(self.now);
        self.engine.check();
        let ledger = self.engine.ledger().clone();
        let Errors { sum, starts } = self.errors;
        let belief_error = self.guesses.filter(|_| starts > 0).map(|_| sum / starts as f64);
        let (record, end, state) = (self.record, self.now, self.engine.into_state());
        Ok(RunOutcome { record, ledger, events_sha256: self.log.finish()?, end, state, belief_error })
    }
}

/// Seconds a job would need alone, in its fastest shape.
fn ideal(spec: &JobSpec) -> f64 {
    spec.steps / spec.speeds.iter().copied().fold(0.0, f64::max)
}
