//! Fuzzing by simulation: a seed makes a cluster, jobs, faults, drains, cancellations, holds and `upsets`. Every invariant
//! is checked after every step; the journal of inputs, replayed without a policy and across a saved and
//! restored state, must end in the same state; and every job must end: whatever may run, runs again, and soon
//! where nobody else does (`idle`). What fails can be made short (`shrink`).

mod after;
mod courses;
mod holding;
mod idle;
mod machines;
mod parts;
mod places;
mod priorities;
mod promises;
mod rumours;
mod sharing;
mod show;
mod shrink;
mod training;
mod upsets;

use std::sync::Arc;

use yard_core::belief::Belief;
use yard_core::cluster::{Level, NodeSpec};
use yard_core::ids::{JobId, NodeId, ProfileId};
use yard_core::job::{Costs, JobSpec, JobState, Length, Need, Shape};
use yard_core::message::{Input, NodeChange};
use yard_core::policy::{Cadence, Placer, Policy};
use yard_core::turns::{GavelTurns, Turns};
use yard_core::{Engine, Settings, Span, State, Time};

use crate::chaos::NO_SENSE;
use crate::cluster::ClusterSpec;
use crate::course::Course;
use crate::faults::Faults;
use crate::random::Random;
use crate::record::Keep;
use crate::run::{RunLearned, RunOutcome, Simulation, Speeds, run};
use crate::world::Quirks;
use idle::Idle;
pub use idle::IdleSense;
pub use parts::Part;
use promises::{FuzzPromises, Kind};
pub use shrink::shrink;
use upsets::Upsets;

/// Steps within which a scenario must end; most need a few hundred.
const STEPS_MAX: u64 = 50_000;

/// What a seed makes.
#[derive(Clone, Debug)]
pub struct Scenario {
    cluster: ClusterSpec,
    jobs: Vec<(Time, JobSpec)>,
    pairs: Belief,
    script: Vec<(Time, Input)>,
    faults: Faults,
    round: Span,
    repack: bool,
    fill: bool,
    turns: Turns,
    plan_gap: Span,
    checkpoint_every: Span,
    upsets: Upsets,
    promises: FuzzPromises,
    courses: Vec<Option<Arc<Course>>>,
    /// Whether the engine learns, from guesses that are all wrong.
    learns: bool,
    seed: u64,
}

/// What one seed went through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuzzTally {
    /// Steps of the engine.
    pub steps: usize,
    /// Jobs that were done.
    pub done: usize,
    /// Jobs that ended otherwise.
    pub other: usize,
    /// Stops for other jobs.
    pub preemptions: u32,
    /// Jobs that were promised to be done in time.
    pub promised: usize,
}

impl Scenario {
    /// The scenario of this seed.
    pub fn new(seed: u64) -> Scenario {
        let mut scenario = Scenario::without_promises(seed);
        promises::add(seed, &mut scenario, Kind::Some);
        courses::settle(&mut scenario);
        scenario
    }

    /// The same where nothing goes wrong and deadlines are promised: all that was promised must be kept.
    pub fn calm(seed: u64) -> Scenario {
        let mut scenario = Scenario::without_promises(seed);
        promises::add(seed, &mut scenario, Kind::Calm);
        courses::settle(&mut scenario);
        scenario
    }

    /// The same where all sorts of things go wrong and deadlines are promised.
    pub fn rough(seed: u64) -> Scenario {
        let mut scenario = Scenario::without_promises(seed);
        promises::add(seed, &mut scenario, Kind::Rough);
        courses::settle(&mut scenario);
        scenario
    }

    fn without_promises(seed: u64) -> Scenario {
        let mut random = Random::new(seed ^ 0x5917_c4ac);
        let mut cluster = cluster(&mut random);
        machines::make(seed, &mut cluster);
        places::make(seed, &mut cluster);
        let costly = random.chance(0.5);
        let mut jobs = jobs(&mut random, &cluster, costly);
        machines::ask(seed, &cluster, &mut jobs);
        places::ask(seed, &cluster, &mut jobs);
        let mut script = script(&mut random, &cluster, jobs.len() as u64);
        script.extend(places::moves(seed, &cluster));
        let pairs = pairs(&mut Random::new(seed ^ 0xbe51de), &cluster);
        let seconds =
            |random: &mut Random, low: f64, high: f64| Span::from_secs(low + random.unit() * (high - low));
        let faults = Faults {
            node_mtbf: random.chance(0.3).then(|| seconds(&mut random, 2_000.0, 50_000.0)),
            repair: seconds(&mut random, 1.0, 2_000.0),
            slow_nodes: if random.chance(0.3) { 0.3 } else { 0.0 },
            slow_factor: 0.5,
            job_mtbf: random.chance(0.2).then(|| seconds(&mut random, 1_000.0, 9_000.0)),
            freezing: freezes(seed),
        };
        let round = if random.chance(0.6) { seconds(&mut random, 10.0, 600.0) } else { Span::ZERO };
        let checkpoint_every = if random.chance(0.5) { Span::from_secs(50.0) } else { Span::ZERO };
        // Placing everybody anew each round is for simulators in which moving is free.
        let repack = random.chance(0.1) && !costly;
        let fill = random.chance(0.5);
        let turns = turns(&mut random);
        let plan_gap = if random.chance(0.3) { seconds(&mut random, 1.0, 2_000.0) } else { Span::ZERO };
        let (upsets, upsetting) = Upsets::new(seed, &cluster, &mut jobs);
        sharing::add(seed, &mut cluster, &mut jobs);
        after::add(seed, &mut jobs);
        priorities::add(seed, &mut jobs);
        script.extend(training::add(seed, &cluster, &mut jobs));
        script.extend(courses::lent(seed, &cluster));
        script.extend(upsetting);
        script.extend(holding::add(seed, &jobs));
        script.extend(rumours::add(seed, jobs.len() as u64, &cluster.kinds, learns(seed)));
        let courses = courses::add(seed, &mut jobs);
        if has_open_lengths(seed) {
            leave_open(&mut jobs);
        }
        Scenario {
            cluster,
            jobs,
            pairs,
            script,
            faults,
            round,
            repack,
            fill,
            turns,
            plan_gap,
            checkpoint_every,
            upsets,
            promises: FuzzPromises::default(),
            courses,
            learns: learns(seed),
            seed,
        }
    }

    /// Runs it under a policy; panics where an invariant is broken, says so where a promise is. With a policy
    /// that has sense, if late, every job must end, and nobody waits long on an idle cluster.
    pub fn check(
        &self,
        policy: &mut dyn Policy,
        sense: Option<IdleSense>,
        placer: &dyn Fn() -> Box<dyn Placer>,
    ) -> Result<FuzzTally, String> {
        let settings = self.settings(policy);
        let mut journal: Vec<(Time, Input)> = Vec::new();
        let mut idle = Idle::new(policy, sense);
        let mut probe = |engine: &Engine, now: Time, input: &Input| {
            engine.check();
            idle.look(engine, now);
            journal.push((now, input.clone()));
        };
        let jobs: Vec<_> = self.jobs.iter().map(|(time, spec)| (*time, spec)).collect();
        let outcome = run(Simulation {
            jobs: &jobs,
            speeds: Speeds {
                pairs: self.pairs.clone(),
                learned: self.learned(),
                courses: self.courses.clone(),
                said: None,
                length: Length::Stated,
                said_costs: None,
            },
            cluster: &self.cluster,
            settings: settings.clone(),
            policy,
            placer: placer(),
            checkpoint_every: self.checkpoint_every,
            quirks: Quirks::default(),
            faults: self.faults.clone(),
            script: self.script(&settings),
            seed: self.seed,
            keep: Keep { series: true, bars_max: 1000 },
            events: None,
            progress: None,
            steps_max: STEPS_MAX,
            stop: None,
            probe: Some(&mut probe),
        });
        let RunOutcome { record, state, .. } = outcome.map_err(|error| error.to_string())?;
        self.replay(settings, &journal, &state, placer)?;
        if let Some(reason) = record.last_failure.as_ref().filter(|reason| *reason != NO_SENSE) {
            return Err(format!("a plan was refused: {reason}"));
        }
        if let Some(left) = idle.left_waiting() {
            return Err(left);
        }
        let open = record.jobs.iter().filter(|job| job.end.is_none()).count();
        if open > 0 && sense.is_some() {
            let (jobs, steps) = (record.jobs.len(), journal.len());
            return Err(format!("{open} of {jobs} jobs had not ended after {steps} steps"));
        }
        if let Some(broken) = self.broken(&record) {
            return Err(broken);
        }
        let done = record.jobs.iter().filter(|job| job.state == JobState::Succeeded).count();
        let preemptions = record.jobs.iter().map(|job| job.preemptions).sum();
        let promised = record.jobs.iter().filter(|job| job.promise.is_some()).count();
        Ok(FuzzTally { steps: journal.len(), done, other: record.jobs.len() - done, preemptions, promised })
    }

    /// All that is in store, and drivers that begin with settings much like these.
    fn script(&self, settings: &Settings) -> Vec<(Time, Input)> {
        [self.script.clone(), self.upsets.begins(settings)].concat()
    }

    /// What it then believes at first.
    fn learned(&self) -> Option<RunLearned> {
        let wrong = |job: &(Time, JobSpec)| job.1.speeds.iter().map(|speed| 0.2 + speed * speed).collect();
        let belief = Belief::default();
        (self.learns && !self.promises.calm)
            .then(|| RunLearned { belief, speeds: self.jobs.iter().map(wrong).collect() })
    }

    fn settings(&self, policy: &dyn Policy) -> Settings {
        let (every_round, apart) = (policy.cadence() == Cadence::EveryRound, policy.keeps_apart());
        let round = if every_round && self.round == Span::ZERO { Span::from_secs(60.0) } else { self.round };
        let Scenario { repack, fill, turns, plan_gap, .. } = *self;
        let (lease, backoff) = (Span::from_whole_secs(1_000), self.upsets.backoff);
        let promises = self.promises.on;
        let learns_lengths = has_open_lengths(self.seed);
        Settings {
            round,
            every_round,
            repack,
            fill,
            turns,
            plan_gap,
            lease,
            backoff,
            promises,
            apart,
            learns_lengths,
        }
    }

    /// Steps a new engine through the journal, saving and restoring it half way; no policy is asked.
    fn replay(
        &self,
        settings: Settings,
        journal: &[(Time, Input)],
        end: &State,
        placer: &dyn Fn() -> Box<dyn Placer>,
    ) -> Result<(), String> {
        let mut engine = Engine::new(settings, self.cluster.kinds.clone(), placer());
        let mut dropped = Vec::new();
        for (at, (now, input)) in journal.iter().enumerate() {
            if at == journal.len() / 2 {
                let saved = serde_json::to_string(engine.state()).map_err(|error| error.to_string())?;
                let state: State = serde_json::from_str(&saved).map_err(|error| error.to_string())?;
                engine = Engine::restore(state, placer()).map_err(|error| error.to_string())?;
            }
            engine.step(*now, input.clone(), &mut dropped);
            dropped.clear();
        }
        if engine.state() == end { Ok(()) } else { Err("the replayed journal ends in another state".into()) }
    }
}

fn turns(random: &mut Random) -> Turns {
    if random.chance(0.6) {
        return Turns::Owed;
    }
    let shuffle = random.chance(0.5).then(|| random.below(9));
    Turns::Gavel(GavelTurns { shuffle, leftovers: random.chance(0.7) })
}

fn cluster(random: &mut Random) -> ClusterSpec {
    let mut spec = ClusterSpec { text: "fuzz".into(), ..ClusterSpec::default() };
    for kind in 0..1 + random.below(3) {
        let kind = spec.kinds.intern(&format!("kind{kind}"));
        for at in 0..1 + random.below(5) {
            let devices = *random.pick(&[1, 2, 4, 8]);
            let name = format!("node{}-{at}", kind.0);
            spec.nodes
                .push(NodeSpec::of(name, kind, devices).within(Level::Rack, &random.below(2).to_string()));
        }
    }
    spec
}

/// Whether jobs that are stopped lie frozen, every second of them.
fn freezes(seed: u64) -> bool {
    Random::new(seed ^ 0xf0_02e4).chance(0.2)
}

/// Whether the engine learns speeds.
fn learns(seed: u64) -> bool {
    seed % 3 == 1
}

/// Whether of some jobs nobody says how long they are.
fn has_open_lengths(seed: u64) -> bool {
    seed % 8 == 2
}

/// Two jobs of three say nothing; one of them is like others.
fn leave_open(jobs: &mut [(Time, JobSpec)]) {
    for (at, (_, job)) in jobs.iter_mut().enumerate() {
        job.length = [Length::Stated, Length::Predicted, Length::Unknown][at % 3];
    }
}

fn jobs(random: &mut Random, cluster: &ClusterSpec, costly: bool) -> Vec<(Time, JobSpec)> {
    // A few lists of shapes that many jobs share, as in real traces.
    let lists: Vec<Arc<[Shape]>> = (0..1 + random.below(6)).map(|_| shapes(random, cluster)).collect();
    let mut now = 0.0;
    let mean = *random.pick(&[0.0, 5.0, 60.0, 600.0]);
    let mut jobs = Vec::new();
    for at in 0..1 + random.below(40) {
        // Whole seconds make ties, and ties find bugs.
        now += if mean > 0.0 { random.exponential(mean).floor() } else { 0.0 };
        let shapes = random.pick(&lists).clone();
        let speeds: Vec<f64> = shapes.iter().map(|_| 0.5 + random.unit()).collect();
        let cost =
            |random: &mut Random| if costly { Span::from_secs(random.unit() * 30.0) } else { Span::ZERO };
        let costs = Costs { save: cost(random), load: cost(random), start: cost(random) };
        let deadline = random.chance(0.3).then(|| Time::from_secs(now + random.unit() * 5_000.0));
        let steps = 1.0 + (random.unit() * 1_500.0).floor();
        let spec = JobSpec {
            deadline,
            costs,
            profile: ProfileId(at as u32 % PROFILES),
            failures_max: 1_000,
            ..JobSpec::new(at.to_string(), shapes, speeds, steps)
        };
        jobs.push((Time::from_secs(now), spec));
    }
    jobs
}

/// Profiles of the jobs, the unknown one among them.
const PROFILES: u32 = 4;

/// What some profiles keep beside others; of the rest nothing is known. Nobody is brought to a stand.
fn pairs(random: &mut Random, cluster: &ClusterSpec) -> Belief {
    let mut pairs = Belief::default();
    for kind in cluster.kinds.ids() {
        for at in 0..PROFILES * PROFILES {
            let (a, b) = (ProfileId(at / PROFILES), ProfileId(at % PROFILES));
            if a.0 > 0 && b.0 > 0 && random.chance(0.7) {
                pairs.set_beside(a, b, kind, 0.1 + random.unit());
            }
        }
    }
    pairs
}

/// Shapes of which at least one fits the cluster.
fn shapes(random: &mut Random, cluster: &ClusterSpec) -> Arc<[Shape]> {
    let kinds: Vec<_> = cluster.kinds.ids().collect();
    let mut shapes = Vec::new();
    for _ in 0..1 + random.below(3) {
        let kind = *random.pick(&kinds);
        let of_kind = || cluster.nodes.iter().filter_map(|node| Some(node.pool(kind)?.0.devices));
        let level = *random.pick(&[Level::Any, Level::Any, Level::Node]);
        let most = if level == Level::Node { of_kind().max() } else { Some(of_kind().sum()) };
        let devices = 1 + random.below(most.unwrap_or(1).min(9) as u64) as u32;
        shapes.push(Shape::of(kind, devices).within(level));
    }
    if kinds.len() > 1 && random.chance(0.2) {
        let needs = kinds[..2].iter().map(|kind| Need { kind: *kind, devices: 1 }).collect();
        shapes.push(Shape::of_needs(needs, Level::Any));
    }
    shapes.dedup();
    shapes.into()
}

/// Cancellations, and nodes that drain, leave or fail and always come back: nobody is kept out for good.
fn script(random: &mut Random, cluster: &ClusterSpec, n_jobs: u64) -> Vec<(Time, Input)> {
    let mut script = Vec::new();
    let when = |random: &mut Random| Time::from_secs((random.unit() * 4_000.0).floor());
    for _ in 0..random.below(6) {
        // Also of jobs that are over or do not exist.
        script.push((when(random), Input::Cancel(JobId(random.below(n_jobs + 3)))));
    }
    for _ in 0..random.below(5) {
        let node = NodeId(random.below(cluster.nodes.len() as u64) as u32);
        let change = match random.below(3) {
            0 => NodeChange::Drain(node),
            1 => NodeChange::Leave(node),
            _ => NodeChange::Fail(node),
        };
        let from = when(random);
        script.push((from, Input::Node(change)));
        script.push((from + Span::from_secs(random.unit() * 1_000.0), Input::Node(NodeChange::Resume(node))));
    }
    script
}
