//! From what the user asked for to finished runs: everything is read and checked first, then the policies
//! run side by side, one thread each.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context, bail};
use yard_core::allocation::Allocation;
use yard_core::beat;
use yard_core::job::JobSpec;
use yard_core::message::Input;
use yard_core::policy::{Cadence, Policy};
use yard_core::view::View;
use yard_core::{Settings, Span, Time};
use yard_sim::asked::{self, AskedWhatIf};
use yard_sim::cluster::ClusterSpec;
use yard_sim::estimates::{self, Calibration, EstimatesHow};
use yard_sim::faults::Faults;
use yard_sim::learned::{self, Profiling};
use yard_sim::lending;
use yard_sim::lengths::ToldLengths;
use yard_sim::overheads::Overheads;
use yard_sim::record::Keep;
use yard_sim::run::Probe;
use yard_sim::throughput::Throughputs;
use yard_sim::trace::{Scaling, Trace, Work};
use yard_sim::workload::{Options, Workload};
use yard_sim::{Quirks, RunLearned, RunOutcome, Simulation, Speeds};

use crate::clock::{self, CommandStopwatch, Timed};
use crate::cmd::sim::{JobRange, RoundFlag, SimArgs};
use crate::compat::Compat;
use crate::output;
use crate::policy::{Chosen, Halt, ProgramUses};
use crate::study::source;

/// Length of a round where nobody says otherwise.
const ROUND_S: f64 = 360.0;

/// Steps of the engine after which a run is given up: with failures faster than repairs it would never end.
const STEPS_MAX: u64 = 1_000_000;
const STEPS_PER_JOB: u64 = 5_000;

/// Bars kept for the report's Gantt chart.
const BARS_MAX: usize = 400_000;

/// Everything about the runs to come, read and checked.
pub(crate) struct RunnerPlan {
    pub(crate) trace: Trace,
    pub(crate) cluster: ClusterSpec,
    pub(crate) overheads: Overheads,
    pub(crate) seed: u64,
    pub(crate) range: Option<JobRange>,
    pub(crate) compat: Option<&'static Compat>,
    pub(crate) choices: Vec<PolicyChoice>,
    pub(crate) notes: Vec<String>,
    /// Whether the trace's priorities were taken out.
    pub(crate) ignores_priorities: bool,
    workload: Workload,
    learned: Option<RunLearned>,
    learns: bool,
    pub(crate) lengths: ToldLengths,
    faults: Faults,
    lent: Vec<(Time, Input)>,
    keep: Keep,
}

/// One policy with its settings.
pub(crate) struct PolicyChoice {
    /// As the user wrote it.
    pub(crate) name: String,
    chosen: Chosen,
    pub(crate) round: Span,
    pub(crate) placer: String,
    quirks: Quirks,
    repack: bool,
    fill: bool,
    promises: bool,
}

/// One finished run.
pub(crate) struct PolicyRun {
    pub(crate) policy: String,
    pub(crate) round: Span,
    pub(crate) fill: bool,
    pub(crate) placer: String,
    pub(crate) outcome: RunOutcome,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: Option<f64>,
    pub(crate) plan_s: f64,
}

impl RunnerPlan {
    /// Reads and checks all inputs; nothing is written before this has succeeded.
    pub(crate) fn new(args: &SimArgs) -> anyhow::Result<RunnerPlan> {
        let compat = args.compat.as_deref().map(Compat::find).transpose()?;
        let cluster = ClusterSpec::parse(&args.cluster)?;
        let mut opened = source::open(args)?;
        let table = args.throughputs.as_deref().map(Throughputs::open).transpose()?;
        let by_app = table.as_ref().is_some_and(|table| table.apps().next().is_some());
        let usual = if by_app { "sia" } else { "h200" };
        let overheads = args.overheads.as_deref().or(compat.map(|compat| compat.overheads)).unwrap_or(usual);
        let overheads = Overheads::parse(overheads)?;
        let placement_aware = match &args.placement {
            Some(placement) => placement == "aware",
            None => compat.is_none_or(|compat| compat.placement_aware),
        };
        let scaling = args.jobs_as.as_deref().and_then(Scaling::named);
        let scaling = scaling.or(compat.and_then(|compat| compat.scaling));
        let profiled = args.belief == "oracle";
        let options =
            Options { table: table.as_ref(), overheads: &overheads, placement_aware, scaling, profiled };
        let mut workload = Workload::new(&opened.trace, &cluster, options)?;
        if let Some(load) = args.load {
            let all: f64 = service(&opened.trace, &workload.specs).iter().sum();
            source::bring_to_load(&mut opened.trace, all, cluster.devices(), load)?;
            workload = Workload::new(&opened.trace, &cluster, options)?;
        }
        let learned = learned(args, &mut workload, table.as_ref(), &cluster)?;
        if args.lend.is_some() && args.node_mtbf.is_some() {
            bail!(
                "--lend and --node-mtbf cannot be combined: a node that failed would come back whether lent or not"
            );
        }
        let lent =
            args.lend.as_deref().map(|path| lending::open(path, &cluster)).transpose()?.unwrap_or_default();
        let service = match args.lengths {
            ToldLengths::Known | ToldLengths::Noisy(_) => service(&opened.trace, &workload.specs),
            // What ended before is all that is known.
            ToldLengths::Unknown | ToldLengths::Predicted => Arc::from([]),
        };
        if let Some(twice) =
            args.policy.iter().enumerate().find(|(at, name)| args.policy[..*at].contains(name))
        {
            bail!("policy {:?} is given twice; give each policy once", twice.1);
        }
        let find = |name: &String| {
            let spec = compat.map_or(name.as_str(), |compat| compat.policy(name));
            Chosen::find(spec, &service, ProgramUses::Simulation)
        };
        let chosen: Vec<Chosen> = args.policy.iter().map(find).collect::<anyhow::Result<_>>()?;
        let ignored = priorities(args, &chosen, &opened.trace, &mut workload.specs)?;
        let choices = args.policy.iter().zip(chosen);
        let choices =
            choices.map(|(name, chosen)| PolicyChoice::new(name, chosen, args, compat, &workload.specs));
        let mut notes = opened.notes;
        notes.append(&mut workload.notes);
        let ignores_priorities = ignored.is_some();
        notes.extend(ignored);
        let keep = match (&args.html, args.series.as_ref().or(args.bundle.as_ref())) {
            (Some(_), _) => Keep { series: true, bars_max: BARS_MAX },
            (None, Some(_)) => Keep { series: true, ..Keep::default() },
            (None, None) => Keep::default(),
        };
        let plan = RunnerPlan {
            choices: choices.collect::<anyhow::Result<_>>()?,
            trace: opened.trace,
            cluster,
            overheads,
            seed: args.seed,
            range: args.jobs,
            compat,
            notes,
            ignores_priorities,
            workload,
            learned,
            learns: !profiled,
            lengths: args.lengths,
            faults: args.faults()?,
            lent,
            keep,
        };
        plan.check_range()?;
        check_outputs(args, &plan.choices)?;
        Ok(plan)
    }

    fn check_range(&self) -> anyhow::Result<()> {
        match self.range {
            Some(range) if range.to > self.trace.jobs.len() => {
                bail!(
                    "--jobs {}..{} goes past the {} jobs of {}",
                    range.from,
                    range.to,
                    self.trace.jobs.len(),
                    self.trace.source
                )
            }
            _ => Ok(()),
        }
    }

    /// What the scheduler believes of speeds, by name.
    pub(crate) fn belief(&self) -> &'static str {
        if self.learns { "learned" } else { "oracle" }
    }

    /// When the first job is submitted.
    pub(crate) fn start(&self) -> Time {
        self.trace.jobs.first().map_or(Time::ZERO, |job| job.submit)
    }

    fn run(
        &self,
        choice: &PolicyChoice,
        events: Option<&Path>,
        progress: Arc<AtomicU64>,
    ) -> anyhow::Result<PolicyRun> {
        let (watch, cpu) = (CommandStopwatch::start(), clock::thread_cpu_seconds());
        let halt = Arc::new(Halt::default());
        let mut policy = Timed::new(choice.chosen.make_for(&halt));
        let submits = self.trace.jobs.iter().map(|job| job.submit);
        let jobs: Vec<_> = submits.zip(&self.workload.specs).collect();
        let outcome = yard_sim::run(Simulation {
            keep: self.keep,
            events: events.map(create).transpose()?,
            progress: Some(progress),
            stop: Some(halt.stop.clone()),
            ..self.simulation(choice, &jobs, &mut policy)?
        });
        let outcome = match (outcome, events) {
            (Ok(outcome), Some(path)) => output::finish(path, Ok(())).map(|()| outcome)?,
            (Err(error), Some(path)) => return Err(output::finish(path, Err(error)).expect_err("it failed")),
            (outcome, None) => outcome?,
        };
        if let Some(why) = halt.why() {
            bail!(why);
        }
        Ok(PolicyRun {
            policy: choice.name.clone(),
            round: choice.round,
            fill: choice.fill,
            placer: choice.placer.clone(),
            outcome,
            wall_s: watch.seconds(),
            cpu_s: cpu.and_then(|before| Some(clock::thread_cpu_seconds()? - before)),
            plan_s: policy.seconds,
        })
    }

    /// A run of these jobs of which nothing is kept.
    fn simulation<'a>(
        &'a self,
        choice: &PolicyChoice,
        jobs: &'a [(Time, &'a JobSpec)],
        policy: &'a mut dyn Policy,
    ) -> anyhow::Result<Simulation<'a>> {
        let (every_round, apart) = (policy.cadence() == Cadence::EveryRound, policy.keeps_apart());
        let PolicyChoice { round, repack, fill, promises, .. } = *choice;
        let turns = self.compat.map(|compat| compat.turns(policy, self.seed)).unwrap_or_default();
        let plan_gap = self.compat.map(Compat::plan_gap).unwrap_or_default();
        Ok(Simulation {
            jobs,
            speeds: Speeds {
                pairs: self.workload.pairs.clone(),
                learned: self.learned.clone(),
                courses: self.workload.courses.clone(),
                said: self.lengths.said(&self.workload.specs, self.seed),
                length: self.lengths.length(),
                said_costs: None,
            },
            cluster: &self.cluster,
            settings: Settings {
                round,
                every_round,
                repack,
                fill,
                turns,
                plan_gap,
                promises,
                apart,
                learns_lengths: self.lengths != ToldLengths::Known,
                ..Settings::default()
            },
            policy,
            placer: yard_policies::placer(&choice.placer)?,
            checkpoint_every: self.overheads.checkpoint_every,
            quirks: choice.quirks.clone(),
            faults: self.faults.clone(),
            script: self.lent.clone(),
            seed: self.seed,
            keep: Keep::default(),
            events: None,
            progress: None,
            steps_max: STEPS_MAX + STEPS_PER_JOB * jobs.len() as u64,
            stop: None,
            probe: None,
        })
    }

    /// How often estimates made at so many instants of a run held. Where `off` is given, jobs say up to so many times
    /// too much or too little of their length. `recurs`: jobs like those of the past are expected to come.
    pub(crate) fn calibrate(
        &self,
        choice: &PolicyChoice,
        instants: usize,
        off: Option<f64>,
        recurs: bool,
    ) -> anyhow::Result<Calibration> {
        let mut policy = choice.chosen.make();
        let submits = self.trace.jobs.iter().map(|job| job.submit);
        let jobs: Vec<_> = submits.zip(&self.workload.specs).collect();
        let how = EstimatesHow {
            policy: &|| choice.chosen.make(),
            placer: &|| yard_policies::placer(&choice.placer).expect("it was made before"),
            recurs,
        };
        let said = off.map(|most| estimates::misjudged(&self.workload.specs, most, self.seed));
        let simulate = |probe: Probe<'_>| {
            let mut simulation = self.simulation(choice, &jobs, &mut *policy)?;
            simulation.speeds.said.clone_from(&said);
            Ok(yard_sim::run(Simulation { probe: Some(probe), ..simulation })?)
        };
        estimates::calibrate(&jobs, said.as_deref(), &how, (instants, self.seed), simulate)
    }

    /// What is foretold of one of the first `jobs` jobs before it is submitted, and what became of it. `recurs`: jobs
    /// like those of the past are expected to come.
    pub(crate) fn what_if(
        &self,
        choice: &PolicyChoice,
        at: usize,
        jobs: usize,
        recurs: bool,
    ) -> anyhow::Result<Option<AskedWhatIf>> {
        let mut policy = choice.chosen.make();
        let submits = self.trace.jobs.iter().map(|job| job.submit);
        let jobs: Vec<_> = submits.zip(&self.workload.specs).take(jobs).collect();
        let how = EstimatesHow {
            policy: &|| choice.chosen.make(),
            placer: &|| yard_policies::placer(&choice.placer).expect("it was made before"),
            recurs,
        };
        let simulate = |probe: Probe<'_>| {
            let simulation = self.simulation(choice, &jobs, &mut *policy)?;
            Ok(yard_sim::run(Simulation { probe: Some(probe), ..simulation })?)
        };
        asked::ask(&jobs, at, &how, self.seed, simulate)
    }

    /// What the policy is asked at an instant of its own run, before it answers there; without an instant,
    /// when all jobs of the trace come at once.
    pub(crate) fn view(&self, choice: &PolicyChoice, at: Option<Time>) -> anyhow::Result<View> {
        let mut policy = choice.chosen.make();
        let start = self.start();
        let submits = self.trace.jobs.iter().map(|job| at.map_or(start, |_| job.submit));
        let jobs: Vec<_> = submits.zip(&self.workload.specs).collect();
        Ok(yard_sim::view_at(self.simulation(choice, &jobs, &mut *policy)?, at.unwrap_or(start)))
    }

    /// The policy's answer, and how long it thought.
    pub(crate) fn ask(&self, choice: &PolicyChoice, view: &View) -> anyhow::Result<(Allocation, f64)> {
        let mut policy = Timed::new(choice.chosen.make());
        let answer = policy.allocate(view).with_context(|| format!("policy {} failed", choice.name))?;
        Ok((answer, policy.seconds))
    }
}

/// Refuses priorities where a policy cannot honour them, or takes them out of all jobs and says so.
fn priorities(
    args: &SimArgs,
    policies: &[Chosen],
    trace: &Trace,
    jobs: &mut [JobSpec],
) -> anyhow::Result<Option<String>> {
    let Some(first) = trace.jobs.iter().find(|job| job.priority != 0) else { return Ok(None) };
    if args.priorities == "ignore" {
        jobs.iter_mut().for_each(|job| job.priority = 0);
        let count = trace.jobs.iter().filter(|job| job.priority != 0).count();
        return Ok(Some(format!("the priorities of {count} jobs are ignored (--priorities ignore)")));
    }
    for chosen in policies {
        if let Some(why) = chosen.priority.refusal(&chosen.name) {
            let (source, line) = (&trace.source, first.line);
            bail!(
                "{source}, line {line}, field priority: {why}; to compare policies without them: --priorities ignore"
            );
        }
    }
    Ok(None)
}

/// What the scheduler believes at first, where it is not the truth.
fn learned(
    args: &SimArgs,
    workload: &mut Workload,
    table: Option<&Throughputs>,
    cluster: &ClusterSpec,
) -> anyhow::Result<Option<RunLearned>> {
    if args.belief != "learned" {
        return Ok(None);
    }
    if !(0.0..=1.0).contains(&args.profiled) {
        bail!("--profiled {}: give a fraction from 0 to 1", args.profiled);
    }
    if !workload.courses.is_empty() {
        return Ok(None);
    }
    let Some(table) = table else {
        bail!("--belief learned needs a table of speeds: --throughputs");
    };
    let complete: learned::Complete =
        |rows, columns, known| yard_policies::Completion::default().complete(rows, columns, known);
    let how = Profiling { seed: args.seed, chance: args.profiled, complete };
    Ok(Some(learned::believe(workload, table, cluster, how)))
}

/// Outputs that cannot be written, or would be written over each other, are found out before the run.
fn check_outputs(args: &SimArgs, choices: &[PolicyChoice]) -> anyhow::Result<()> {
    let events = args
        .events
        .iter()
        .flat_map(|path| choices.iter().map(|choice| events_path(path, choice, choices.len())));
    let mut paths: Vec<PathBuf> =
        args.html.iter().chain(&args.per_job).chain(&args.series).cloned().chain(events).collect();
    paths.iter().try_for_each(|path| output::check_target(path))?;
    paths.retain(|path| !path.exists() || path.is_file());
    paths.sort();
    match paths.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("{} is given for two outputs; use different files", pair[0].display()),
        None => Ok(()),
    }
}

fn create(path: &Path) -> anyhow::Result<Box<dyn Write + Send>> {
    let file = File::create(output::growing(path));
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// Device-seconds of the trace's jobs: the history from which Gittins' index is computed. Those of jobs that count
/// steps are as believed, in the way in which each is slowest.
fn service(trace: &Trace, specs: &[JobSpec]) -> Arc<[f64]> {
    let seconds = trace.jobs.iter().zip(specs).filter_map(|(job, spec)| match job.work {
        Work::Seconds(seconds) => Some(seconds * job.gpus as f64),
        Work::Steps(_) | Work::Profile => spec.slowest().map(|(speed, devices)| spec.steps / speed * devices),
    });
    seconds.collect()
}

impl PolicyChoice {
    fn new(
        name: &str,
        chosen: Chosen,
        args: &SimArgs,
        compat: Option<&'static Compat>,
        jobs: &[JobSpec],
    ) -> anyhow::Result<PolicyChoice> {
        let round = round(args, compat, &chosen, jobs);
        if chosen.make().cadence() == Cadence::EveryRound && round == Span::ZERO {
            bail!("policy {name:?} needs rounds: give --round a length above 0, such as 360s");
        }
        let placer =
            args.placer.as_deref().or(compat.map(|compat| compat.placer(&chosen.name))).unwrap_or("pack");
        yard_policies::placer(placer)?;
        let quirks = compat.map(|compat| compat.quirks(round)).unwrap_or_default();
        let repack = compat.is_some_and(|compat| compat.repack);
        // The papers' simulators decide at beats and at no other time.
        let fill = compat.is_none() && !args.strict_rounds;
        let (name, placer, promises) = (name.to_owned(), placer.to_owned(), args.promises);
        Ok(PolicyChoice { name, chosen, round, placer, quirks, repack, fill, promises })
    }
}

fn round(args: &SimArgs, compat: Option<&Compat>, chosen: &Chosen, jobs: &[JobSpec]) -> Span {
    let fitting = if chosen.rounds { ROUND_S } else { 0.0 };
    let seconds = compat.map_or(fitting, |compat| compat.round_s);
    match args.round {
        Some(RoundFlag::Auto) => beat::round_for(jobs.iter()),
        Some(RoundFlag::Of(length)) => length.0,
        None => Span::from_secs(seconds),
    }
}

/// Runs all policies, as many at a time as there are cores.
pub(crate) fn run_all(plan: &RunnerPlan, args: &SimArgs) -> anyhow::Result<Vec<PolicyRun>> {
    let next = AtomicUsize::new(0);
    let done = Arc::new(AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(plan.choices.len());
    let work = || {
        let mut runs = Vec::new();
        while let Some(choice) = plan.choices.get(next.fetch_add(1, Ordering::Relaxed)) {
            let at =
                plan.choices.iter().position(|other| std::ptr::eq(other, choice)).expect("it is one of them");
            let events = args.events.as_deref().map(|path| events_path(path, choice, plan.choices.len()));
            runs.push((at, plan.run(choice, events.as_deref(), done.clone())));
        }
        runs
    };
    let mut runs: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let watcher = RunWatcher::new((plan.trace.jobs.len() * plan.choices.len()) as u64);
        watcher.watch(&done, || workers.iter().all(|worker| worker.is_finished()));
        workers.into_iter().flat_map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    runs.sort_by_key(|(at, _)| *at);
    runs.into_iter().map(|(_, run)| run).collect()
}

/// Runs all policies, one after the other: where many simulations run at a time anyway.
pub(crate) fn run_in_turn(plan: &RunnerPlan) -> anyhow::Result<Vec<PolicyRun>> {
    plan.choices.iter().map(|choice| plan.run(choice, None, Arc::default())).collect()
}

/// `FILE`, or `FILE.POLICY` where there are several.
fn events_path(path: &Path, choice: &PolicyChoice, policies: usize) -> PathBuf {
    if policies == 1 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", choice.name.replace(['/', ':'], "_")));
    name.into()
}

/// A progress bar with rate and time to go, for runs that somebody watches.
struct RunWatcher(Option<indicatif::ProgressBar>);

impl RunWatcher {
    fn new(jobs: u64) -> RunWatcher {
        let style = "{bar:40} {human_pos} of {human_len} jobs  {rate}  {eta} to go";
        let rate = |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
            // A number that cannot be written is missing from a progress bar, no more.
            let _ = write!(out, "{:.0} jobs/s", state.per_sec());
        };
        let style = indicatif::ProgressStyle::with_template(style).expect("the template is well formed");
        let style = style.with_key("rate", rate);
        RunWatcher(output::is_watched().then(|| indicatif::ProgressBar::new(jobs).with_style(style)))
    }

    fn watch(&self, done: &AtomicU64, finished: impl Fn() -> bool) {
        let Some(bar) = &self.0 else { return };
        while !finished() {
            bar.set_position(done.load(Ordering::Relaxed));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        bar.finish_and_clear();
    }
}
