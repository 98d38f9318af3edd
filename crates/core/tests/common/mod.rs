//! A world for the engine, small enough to read at a glance: a first-fit placer, a policy whose order the
//! test gives, an executor that obeys at once or only when told to, and a picture of who holds what.
//!
//! A cluster is written `a:4 b:2:slow`: node, devices, kind (`gpu` where none is given). A shape is written
//! `2`, `2slow`, `2@node`; the shapes of one job are joined by `|`. See `World::line` for scripts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::cluster::{Kinds, Level, NodeSpec, Nodes, Placement, Slice};
use yard_core::ids::{JobId, JobIdx, KindId, LeaseId, NodeId, PlanId};
use yard_core::job::{Costs, JobSpec, JobState, Need, Rank, Shape};
use yard_core::message::{Command, Effect, Event, Input, News, NodeChange, Outcome, Report, Why};
use yard_core::policy::Placer;
use yard_core::view::View;
use yard_core::{Engine, Settings, Span, Time};

/// Shares by rank; what runs, runs on; the first that does not fit blocks.
pub(crate) const QUEUE: Mode = Mode::Ordered { preempt: false, skip: false, classes: true };
/// As `QUEUE`, but those that fit go past.
pub(crate) const SKIP: Mode = Mode::Ordered { preempt: false, skip: true, classes: true };
/// Better ranks stop worse ones.
pub(crate) const PREEMPT: Mode = Mode::Ordered { preempt: true, skip: true, classes: true };

/// Ticks at one instant after which the engine is held to want time to stand still.
const TICKS_MAX: usize = 1_000;

/// Takes the first free devices, node by node.
pub(crate) struct FirstFit;

impl Placer for FirstFit {
    fn place(&self, nodes: &Nodes, shape: &Shape) -> Option<Placement> {
        let mut placement = Placement::default();
        for need in &shape.needs {
            match shape.level() {
                Level::Any => fill(nodes, *need, |_| true, &mut placement)?,
                Level::Node => {
                    let able = |node: NodeId| nodes.get(node).free_count(need.kind) >= need.devices;
                    fill(nodes, *need, able, &mut placement)?;
                }
                level => {
                    let domains: BTreeSet<_> = nodes.by_domain(level).into_keys().collect();
                    let within = |one| move |node: NodeId| nodes.domain(node, level) == one;
                    domains.into_iter().find_map(|one| fill(nodes, *need, within(one), &mut placement))?;
                }
            }
        }
        Some(placement)
    }
}

/// Adds the first free devices of those nodes that will do; adds nothing where they are too few.
fn fill(nodes: &Nodes, need: Need, will_do: impl Fn(NodeId) -> bool, out: &mut Placement) -> Option<()> {
    let (mut left, mut slices) = (need.devices, Vec::new());
    let of_kind = nodes.iter().filter(|(id, _)| will_do(*id));
    for (id, node) in of_kind {
        let count = left.min(node.free_count(need.kind));
        if count > 0 {
            slices.push(Slice::of(id, node.take(need.kind, count)));
            left -= count;
        }
    }
    (left == 0).then(|| out.0.extend(slices))
}

/// A policy that says what the test wants.
pub(crate) struct Scripted {
    pub(crate) mode: Mode,
    /// Ranks by job; a job without one ranks by its number.
    pub(crate) ranks: BTreeMap<u64, f64>,
    /// Fractions by job; 1 where none is given.
    pub(crate) fractions: BTreeMap<u64, f64>,
    /// Fractions by job and shape, in place of the above; 0 stands for what nobody else wants.
    pub(crate) parts: BTreeMap<u64, Vec<f64>>,
    /// Jobs that share devices.
    pub(crate) groups: Vec<Vec<u64>>,
    /// Whether it answers for what changed only.
    pub(crate) incremental: bool,
}

impl Scripted {
    pub(crate) fn rank(&self, job: u64) -> f64 {
        self.ranks.get(&job).copied().unwrap_or(job as f64)
    }

    pub(crate) fn allocate(&self, view: &View) -> Allocation {
        let rows = if self.incremental { view.dirty() } else { view.active().collect() };
        let shares = rows.into_iter().flat_map(|row| self.shares(view, row)).collect();
        let shares = if self.incremental { Shares::Changed(shares) } else { Shares::All(shares) };
        Allocation { mode: self.mode, shares, replan_at: None, certificate: None }
    }

    fn shares(&self, view: &View, row: JobIdx) -> Vec<Share> {
        let Some(parts) = self.parts.get(&view.run(row).id.0) else {
            return self.share(view, row).into_iter().collect();
        };
        let share = |(shape, part): (u16, &f64)| {
            let leftover = Share::leftover(row, shape, Rank::default());
            if *part == 0.0 { leftover } else { Share { fraction: *part, ..leftover } }
        };
        (0..).zip(parts).map(share).collect()
    }

    /// The share that a job leads; none where another of its group does.
    fn share(&self, view: &View, row: JobIdx) -> Option<Share> {
        let job = view.run(row).id.0;
        let alone = vec![job];
        let group = self.groups.iter().find(|group| group.contains(&job)).unwrap_or(&alone);
        let row_of = |job: &u64| view.active().find(|row| view.run(*row).id.0 == *job);
        let rows: Vec<_> = group.iter().filter_map(row_of).collect();
        let fraction = self.fractions.get(&job).copied().unwrap_or(1.0);
        let share = Share { jobs: rows.into(), shape: None, fraction, rank: Rank(self.rank(job), 0.0) };
        (share.jobs[0] == row).then_some(share)
    }
}

/// The engine and what is around it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    pub(crate) policy: Scripted,
    /// Whether orders are carried out at once, or when the test says so.
    pub(crate) obeys: bool,
    /// Whether plans are answered at once, or when the test says so.
    pub(crate) answers: bool,
    /// Plans not answered yet.
    pub(crate) plans: Vec<(PlanId, View)>,
    /// Everything published so far.
    pub(crate) events: Vec<Event>,
    /// Everything that happened to the engine.
    pub(crate) journal: Vec<(Time, Input)>,
    /// What submitted jobs are like from now on.
    pub(crate) costs: Costs,
    pub(crate) failures_max: u32,
    pub(crate) pausable: bool,
    pub(crate) not_before: Option<Time>,
    pub(crate) after: Vec<u64>,
    /// Whether jobs that are stopped for others lie frozen.
    pub(crate) freezes: bool,
    commands: Vec<Command>,
    /// The executor's own account of who holds what.
    held: BTreeMap<LeaseId, (Vec<JobId>, Placement)>,
    newest: BTreeMap<Seen, LeaseId>,
}

/// Who remembers the newest lease it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Device(NodeId, u32),
    Job(JobId),
}

impl World {
    /// A cluster on which decisions follow events and leases do not lapse.
    pub(crate) fn new(cluster: &str) -> World {
        World::with(Settings { lease: Span(u64::MAX), ..Settings::default() }, cluster)
    }

    /// A cluster with a round of 60 s.
    pub(crate) fn with_rounds(cluster: &str) -> World {
        let (round, lease) = (Span::from_secs(60.0), Span(u64::MAX));
        World::with(Settings { round, lease, ..Settings::default() }, cluster)
    }

    pub(crate) fn with(settings: Settings, cluster: &str) -> World {
        let (kinds, nodes) = parse_cluster(cluster);
        let policy = Scripted {
            mode: PREEMPT,
            ranks: BTreeMap::new(),
            fractions: BTreeMap::new(),
            parts: BTreeMap::new(),
            groups: Vec::new(),
            incremental: false,
        };
        let mut world = World {
            engine: Engine::new(settings, kinds, Box::new(FirstFit)),
            now: Time::ZERO,
            policy,
            obeys: true,
            answers: true,
            plans: Vec::new(),
            events: Vec::new(),
            journal: Vec::new(),
            costs: Costs::default(),
            failures_max: 0,
            pausable: true,
            not_before: None,
            after: Vec::new(),
            freezes: false,
            commands: Vec::new(),
            held: BTreeMap::new(),
            newest: BTreeMap::new(),
        };
        nodes.into_iter().for_each(|node| world.step(Input::Node(NodeChange::Join(node))));
        world
    }

    /// The same, with an executor that does nothing until told to.
    pub(crate) fn manual(cluster: &str) -> World {
        World { obeys: false, ..World::new(cluster) }
    }

    /// Lets something happen, and what follows from it at once; checks all invariants after every step.
    pub(crate) fn step(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut out = Vec::new();
            self.journal.push((self.now, input.clone()));
            self.engine.step(self.now, input, &mut out);
            self.engine.check();
            out.into_iter().for_each(|effect| self.take(effect, &mut inputs));
        }
    }

    fn take(&mut self, effect: Effect, inputs: &mut VecDeque<Input>) {
        match effect {
            Effect::Plan { plan, view } if self.answers => {
                inputs.push_back(Input::Planned { plan, answer: Ok(self.policy.allocate(&view)) });
            }
            Effect::Plan { plan, view } => self.plans.push((plan, view)),
            Effect::Publish(event) => self.note(event),
            Effect::Execute(command) => {
                self.execute(&command, inputs);
                self.commands.push(command);
            }
        }
    }

    fn note(&mut self, event: Event) {
        match &event {
            Event::Stopped { job, .. } | Event::Ended { job, .. } => {
                self.held.values_mut().for_each(|(jobs, _)| jobs.retain(|held| held != job));
            }
            Event::Freed { lease, .. } => {
                self.held.remove(lease).expect("devices come back once");
            }
            _ => {}
        }
        self.events.push(event);
    }

    fn execute(&mut self, command: &Command, inputs: &mut VecDeque<Input>) {
        let (lease, jobs, news) = match command {
            Command::Renew { .. } | Command::Tune { .. } => return,
            Command::Grant { lease, jobs, placement, .. } => {
                self.fence(*lease, jobs, placement);
                let held = self.held.entry(*lease).or_insert_with(|| (Vec::new(), placement.clone()));
                held.0.extend(jobs);
                (lease, jobs, News::Started)
            }
            Command::Revoke { lease, jobs, why } => {
                let frozen = self.freezes && *why == Why::Preempted;
                let saved = if frozen { Outcome::Frozen } else { Outcome::Saved };
                let outcome = if *why == Why::Lost { Outcome::Lost } else { saved };
                (lease, jobs, News::Stopped { steps: 0.0, outcome })
            }
        };
        if self.obeys {
            let report = |job: &JobId| Input::Report(Report { lease: *lease, job: *job, news: news.clone() });
            inputs.extend(jobs.iter().map(report));
        }
    }

    /// As agents do: no device has two holders, and neither a device nor a job ever sees an older lease. Who joins
    /// a lease that is held has its very devices, and no others.
    fn fence(&mut self, lease: LeaseId, jobs: &[JobId], placement: &Placement) {
        let holds = |job: &JobId| self.held.values().any(|(held, _)| held.contains(job));
        assert!(!jobs.iter().any(holds), "lease {lease}: a job of it holds devices already");
        if let Some((_, held)) = self.held.get(&lease) {
            return assert!(held == placement, "lease {lease}: joined elsewhere");
        }
        assert!(self.held.values().all(|(_, held)| !overlap(held, placement)), "lease {lease}: held twice");
        let devices = placement.0.iter().flat_map(|slice| {
            let bits = (0..128).filter(|bit| slice.mask >> bit & 1 == 1);
            bits.map(|bit| Seen::Device(slice.node, bit))
        });
        for place in devices.chain(jobs.iter().map(|job| Seen::Job(*job))) {
            let last = self.newest.insert(place, lease);
            assert!(last.is_none_or(|last| last < lease), "{place:?} saw {last:?} before {lease:?}");
        }
    }

    /// Ticks for as long as the engine wants to at this instant.
    pub(crate) fn settle(&mut self) {
        for _ in 0..TICKS_MAX {
            if self.engine.deadline().is_none_or(|time| time > self.now) {
                return;
            }
            self.step(Input::Tick);
        }
        panic!("the engine does not let time go on");
    }

    /// Lets time pass, with a tick whenever the engine wants one.
    pub(crate) fn wait(&mut self, seconds: f64) {
        let until = self.now + Span::from_secs(seconds);
        self.settle();
        while let Some(time) = self.engine.deadline().filter(|time| *time <= until) {
            self.now = time;
            self.settle();
        }
        self.now = until;
    }

    /// Submits a job; its number.
    pub(crate) fn submit(&mut self, shapes: &str) -> u64 {
        self.submit_spec(self.spec(shapes))
    }

    /// Submits this job; its number.
    pub(crate) fn submit_spec(&mut self, spec: JobSpec) -> u64 {
        let job = self.engine.next_job().0;
        self.step(Input::Submit(Box::new(spec)));
        job
    }

    pub(crate) fn spec(&self, shapes: &str) -> JobSpec {
        let shapes: Vec<_> = shapes.split('|').map(|shape| parse_shape(shape, self.engine.kinds())).collect();
        let speeds = vec![1.0; shapes.len()];
        JobSpec {
            costs: self.costs,
            failures_max: self.failures_max,
            pausable: self.pausable,
            not_before: self.not_before,
            after: self.after.iter().copied().map(JobId).collect(),
            ..JobSpec::new("job", shapes, speeds, 100.0)
        }
    }

    pub(crate) fn state(&self, job: u64) -> Option<JobState> {
        self.engine.job(JobId(job)).map(|run| run.state)
    }

    /// Has the holder of a job's lease report.
    pub(crate) fn report(&mut self, job: u64, news: News) {
        let run = self.engine.job(JobId(job)).expect("a living job");
        let lease = run.lease.expect("a job that holds devices");
        self.step(Input::Report(Report { lease, job: JobId(job), news }));
    }

    pub(crate) fn started(&mut self, job: u64) {
        self.report(job, News::Started);
    }

    pub(crate) fn stopped(&mut self, job: u64, outcome: Outcome) {
        self.report(job, News::Stopped { steps: 0.0, outcome });
    }

    /// Answers the newest plan.
    pub(crate) fn answer(&mut self, answer: Result<Allocation, String>) {
        let (plan, _) = self.plans.last().expect("a plan was asked for");
        self.step(Input::Planned { plan: *plan, answer });
    }

    /// A driver begins anew: the policy is asked about everything.
    pub(crate) fn begin(&mut self) {
        let settings = self.engine.settings().clone();
        self.step(Input::Begin(Box::new(settings)));
    }

    /// Has the policy asked again although nothing happened, as when its order changes with time.
    pub(crate) fn replan(&mut self) {
        self.begin();
        self.settle();
    }

    /// Runs lines parted by `;`, settling after each.
    pub(crate) fn script(&mut self, script: &str) -> &mut World {
        for line in script.split(';') {
            self.line(line);
            self.settle();
        }
        self
    }

    /// One line: `mode queue|skip|preempt|fractions`, `submit SHAPES… [rank R]`, `rank JOB R`,
    /// `after JOB…` (of all submitted from then on), `end JOB`,
    /// `crash JOB`, `cancel JOB`, `kill JOB`, `hold|release|requeue JOB`, `drain|resume|leave|fail NODE`, `bad NODE MASK`, `wait SECONDS`.
    fn line(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["mode", mode] => self.policy.mode = parse_mode(mode),
            ["submit", ref shapes @ .., "rank", rank] => self.submit_all(shapes, Some(number(rank))),
            ["after", ref jobs @ ..] => self.after = jobs.iter().map(|job| number(job) as u64).collect(),
            ["submit", ref shapes @ ..] => self.submit_all(shapes, None),
            ["rank", job, rank] => {
                self.policy.ranks.insert(number(job) as u64, number(rank));
                self.begin();
            }
            ["end", job] => self.stopped(number(job) as u64, Outcome::Finished),
            ["crash", job] => self.stopped(number(job) as u64, Outcome::Crashed),
            ["cancel", job] => self.step(Input::Cancel(JobId(number(job) as u64))),
            ["kill", job] => self.step(Input::Kill(JobId(number(job) as u64))),
            ["hold", job] => self.step(Input::Hold(JobId(number(job) as u64))),
            ["release", job] => self.step(Input::Release(JobId(number(job) as u64))),
            ["requeue", job] => self.step(Input::Requeue(JobId(number(job) as u64))),
            ["wait", seconds] => self.wait(number(seconds)),
            ["bad", node, mask] => {
                let (node, bad) = (self.node(node), number(mask) as u128);
                self.step(Input::Node(NodeChange::Health { node, bad }));
            }
            [change, node] => {
                let change = parse_change(change, self.node(node));
                self.step(Input::Node(change));
            }
            _ => panic!("what is `{line}`?"),
        }
    }

    fn submit_all(&mut self, shapes: &[&str], rank: Option<f64>) {
        for shape in shapes {
            let job = self.submit(shape);
            rank.map(|rank| self.policy.ranks.insert(job, rank));
        }
    }

    fn node(&self, name: &str) -> NodeId {
        let found = self.engine.nodes().iter().find(|(_, node)| node.spec.name == name);
        found.unwrap_or_else(|| panic!("there is no node `{name}`")).0
    }

    /// Who holds what by the executor's account, then who was told to stop and who waits.
    pub(crate) fn picture(&self) -> String {
        let nodes = self.engine.nodes().iter();
        let mut parts: Vec<_> = nodes
            .map(|(id, node)| {
                let devices = (0..node.spec.devices()).map(|device| self.holders(id, device));
                format!("{}: {}", node.spec.name, devices.collect::<Vec<_>>().join(" "))
            })
            .collect();
        parts.extend(self.list("stops", |state| state == JobState::Suspending));
        parts.extend(self.list("waits", JobState::is_waiting));
        parts.join(" | ")
    }

    fn holders(&self, node: NodeId, device: u32) -> String {
        let here = |slice: &Slice| slice.node == node && slice.mask >> device & 1 == 1;
        let holds = |(_, placement): &&(Vec<JobId>, Placement)| placement.0.iter().any(here);
        let Some((jobs, _)) = self.held.values().find(holds) else { return ".".into() };
        jobs.iter().map(JobId::to_string).collect::<Vec<_>>().join("+")
    }

    fn list(&self, title: &str, which: impl Fn(JobState) -> bool) -> Option<String> {
        let jobs = (0..self.engine.next_job().0).filter(|job| self.state(*job).is_some_and(&which));
        let names: Vec<_> = jobs.map(|job| job.to_string()).collect();
        (!names.is_empty()).then(|| format!("{title} {}", names.join(" ")))
    }

    /// The jobs that hold devices and were not told to stop.
    pub(crate) fn running(&self) -> BTreeSet<u64> {
        let works = |state| matches!(state, JobState::Starting | JobState::Running);
        (0..self.engine.next_job().0).filter(|job| self.state(*job).is_some_and(works)).collect()
    }

    /// The orders given since this was last asked: `revoke 1 preempted, grant 2`.
    pub(crate) fn orders(&mut self) -> String {
        let commands = std::mem::take(&mut self.commands);
        commands.iter().map(order).collect::<Vec<_>>().join(", ")
    }

    /// The same as they were given.
    pub(crate) fn commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Nodes join, written as a cluster is.
    pub(crate) fn join(&mut self, nodes: &str) {
        let (_, nodes) = parse_cluster(nodes);
        nodes.into_iter().for_each(|node| self.step(Input::Node(NodeChange::Join(node))));
    }

    /// The jobs told to stop since orders were last asked for.
    pub(crate) fn revoked(&mut self) -> BTreeSet<u64> {
        let commands = std::mem::take(&mut self.commands).into_iter();
        let jobs = commands.filter_map(|command| match command {
            Command::Revoke { jobs, .. } => Some(jobs),
            _ => None,
        });
        jobs.flatten().map(|job| job.0).collect()
    }

    /// The numbers of all leases granted so far.
    pub(crate) fn granted(&self) -> Vec<LeaseId> {
        let granted = self.events.iter().filter_map(|event| match event {
            Event::Granted { lease, .. } => Some(*lease),
            _ => None,
        });
        granted.collect()
    }

    /// How a job ended, if it did.
    pub(crate) fn end(&self, job: u64) -> Option<JobState> {
        self.events.iter().find_map(|event| match event {
            Event::Ended { job: ended, state } if ended.0 == job => Some(*state),
            _ => None,
        })
    }

    /// Why the last refused plan was.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.events.iter().rev().find_map(|event| match event {
            Event::PlanFailed { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// Runs a script on a cluster and compares the picture.
#[track_caller]
pub(crate) fn check(cluster: &str, script: &str, expected: &str) {
    assert_eq!(World::new(cluster).script(script).picture(), expected, "{cluster}: {script}");
}

fn overlap(one: &Placement, other: &Placement) -> bool {
    let meets = |slice: &Slice| other.0.iter().any(|o| o.node == slice.node && o.mask & slice.mask != 0);
    one.0.iter().any(meets)
}

fn order(command: &Command) -> String {
    let names = |jobs: &[JobId]| jobs.iter().map(JobId::to_string).collect::<Vec<_>>().join("+");
    match command {
        Command::Grant { jobs, .. } => format!("grant {}", names(jobs)),
        Command::Renew { lease, .. } => format!("renew lease {lease}"),
        Command::Tune { job, batch, .. } => format!("tune {job} {}x{}", batch.local, batch.extra + 1),
        Command::Revoke { jobs, why, .. } => {
            format!("revoke {} {}", names(jobs), format!("{why:?}").to_lowercase())
        }
    }
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

fn parse_mode(word: &str) -> Mode {
    match word {
        "queue" => QUEUE,
        "skip" => SKIP,
        "preempt" => PREEMPT,
        "fractions" => Mode::Fractions,
        _ => panic!("there is no mode `{word}`"),
    }
}

fn parse_change(word: &str, node: NodeId) -> NodeChange {
    match word {
        "drain" => NodeChange::Drain(node),
        "resume" => NodeChange::Resume(node),
        "leave" => NodeChange::Leave(node),
        "fail" => NodeChange::Fail(node),
        _ => panic!("what is `{word}`?"),
    }
}

fn parse_cluster(text: &str) -> (Kinds, Vec<NodeSpec>) {
    let mut kinds = Kinds::default();
    kinds.intern("gpu");
    let nodes = text.split_whitespace().map(|word| {
        let parts: Vec<_> = word.split(':').collect();
        let kind = kinds.intern(parts.get(2).unwrap_or(&"gpu"));
        NodeSpec::of(parts[0], kind, number(parts[1]) as u32)
    });
    let nodes = nodes.collect();
    (kinds, nodes)
}

fn parse_shape(text: &str, kinds: &Kinds) -> Shape {
    let (what, level) = text.split_once('@').unwrap_or((text, "any"));
    let level = Level::named(level).unwrap_or_else(|| panic!("there is no level `{level}`"));
    let digits = what.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(what.len());
    let (devices, kind) = what.split_at(digits);
    let kind = if kind.is_empty() { KindId(0) } else { kinds.find(kind).expect("a kind of the cluster") };
    Shape::of(kind, number(devices) as u32).within(level)
}
