//! From a trace to jobs that the engine can take: shapes for the kinds of the cluster, speeds from a
//! throughput table (or one second of work a second), costs from the overhead profile.
//!
//! Where the table knows how fast a gang goes when it is spread over nodes, lying on one node and lying anywhere
//! are two shapes with a speed each. A mix of kinds in the table is one more shape. A job that may grow and shrink
//! has shapes of several sizes (`sizes`); one whose steps train better or worse has a course beside (`trained`), as
//! has one that goes through regimes (`regimes`).

mod close;
mod error;
mod hosts;
mod regimes;
mod sizes;
mod trained;

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::belief::Belief;
use yard_core::cluster::Level;
use yard_core::ids::{JobId, KindId, ProfileId};
use yard_core::job::{Costs, JobSpec, Length, Need, Shape};
use yard_core::training::{Regime, Training};

pub use error::WorkloadError;
use trained::Trainings;

use crate::cluster::ClusterSpec;
use crate::course::Course;
use crate::overheads::Overheads;
use crate::throughput::{Profile, Throughputs};
use crate::trace::{Scaling, Trace, TraceJob, Work};

/// Failures after which a simulated job is given up.
const FAILURES_MAX: u32 = 1_000;

/// A trace made ready for a cluster.
#[derive(Clone, Debug)]
pub struct Workload {
    /// One for each job of the trace, in order.
    pub specs: Vec<JobSpec>,
    /// What jobs of each profile keep of their speeds beside each other, by the table.
    pub pairs: Belief,
    /// What each `ProfileId` stands for; the first is that of jobs of which nothing is known.
    pub profiles: Vec<Option<Profile>>,
    /// How jobs really go, one for each, where that is not by their speeds; empty where all go by those.
    pub courses: Vec<Option<Arc<Course>>>,
    /// What there is to say of how jobs were made, a sentence each.
    pub notes: Vec<String>,
}

/// What the jobs of a trace are made with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Speeds by kind, model and gang.
    pub table: Option<&'a Throughputs>,
    /// What interruptions cost.
    pub overheads: &'a Overheads,
    /// Whether a gang's speed depends on whether it lies on one node, where the table says so.
    pub placement_aware: bool,
    /// What of all jobs is the scheduler's choice, in place of what the trace says of each.
    pub scaling: Option<Scaling>,
    /// Whether it is known beforehand how long steps take on all devices, or on one of each kind only.
    pub profiled: bool,
}

/// A job in the making.
struct Made {
    ways: (Vec<Shape>, Vec<f64>),
    steps: f64,
    profiled: bool,
    costs: Costs,
    training: Option<Arc<Training>>,
    regimes: Option<Arc<[Regime]>>,
    course: Option<Arc<Course>>,
}

/// Shapes, and a speed for each.
type WorkloadWays = (Arc<[Shape]>, Arc<[f64]>);

/// Like jobs share their shapes and speeds: a million jobs need a few dozen lists.
struct Lists {
    known: Vec<WorkloadWays>,
}

impl Lists {
    fn share(&mut self, shapes: Vec<Shape>, speeds: Vec<f64>) -> WorkloadWays {
        let same = |list: &&WorkloadWays| *list.0 == *shapes && *list.1 == *speeds;
        if let Some(list) = self.known.iter().find(same) {
            return list.clone();
        }
        // Equal shapes stay one list even where speeds differ: the engine groups jobs by it.
        let like = self.known.iter().find(|list| *list.0 == *shapes).map(|list| list.0.clone());
        self.known.push((like.unwrap_or_else(|| shapes.into()), speeds.into()));
        self.known.last().expect("just pushed").clone()
    }
}

/// The numbers of profiles, in the order in which the trace first has them. Seconds of work pass at one a second
/// whatever the model, so they are of another profile than steps of it.
#[derive(Default)]
struct Profiles {
    known: BTreeMap<(bool, Profile), ProfileId>,
    list: Vec<Option<Profile>>,
}

impl Profiles {
    fn number(&mut self, job: &TraceJob) -> ProfileId {
        let Some(model) = &job.model else { return ProfileId::default() };
        let profile = Profile { model: model.clone(), batch_size: job.batch_size, gpus: job.gpus };
        let next = ProfileId(self.list.len() as u32);
        let known = self.known.entry((matches!(job.work, Work::Steps(_)), profile.clone()));
        let number = *known.or_insert(next);
        if number == next {
            self.list.push(Some(profile));
        }
        number
    }
}

/// The numbers that jobs will have, by name; of an archive's jobs of one name the last before counts.
struct Numbers<'a> {
    trace: &'a Trace,
    known: BTreeMap<&'a str, JobId>,
    next: u64,
}

impl<'a> Numbers<'a> {
    /// The jobs that the next job comes after.
    fn after(&mut self, job: &'a TraceJob) -> Result<Box<[JobId]>, WorkloadError> {
        let number = |name: &str| {
            self.known.get(name).copied().ok_or_else(|| WorkloadError::NoPredecessor {
                source_name: self.trace.source.clone(),
                line: job.line,
                job: job.name.to_string(),
                after: name.to_string(),
            })
        };
        let after = job.after.iter().map(|name| number(name)).collect();
        self.known.insert(&job.name, JobId(self.next));
        self.next += 1;
        after
    }
}

impl Workload {
    /// Makes a trace ready, or says which line cannot run and why.
    pub fn new(
        trace: &Trace,
        cluster: &ClusterSpec,
        options: Options<'_>,
    ) -> Result<Workload, WorkloadError> {
        let mut lists = Lists { known: Vec::new() };
        let mut profiles = Profiles { list: vec![None], ..Profiles::default() };
        let site = WorkloadSite::new(trace, cluster, options);
        let mut numbers = Numbers { trace, known: BTreeMap::new(), next: 0 };
        let mut trainings = Trainings::default();
        let (mut specs, mut courses) = (Vec::with_capacity(trace.jobs.len()), Vec::new());
        for job in &trace.jobs {
            let mut made = site.make(job, &mut trainings)?;
            close::ask(&mut made.ways, job);
            hosts::ask(&mut made.ways.0, job, &site)?;
            let profile = if made.profiled { profiles.number(job) } else { ProfileId::default() };
            courses.push(made.course.clone());
            let after = numbers.after(job)?;
            let ways = lists.share(made.ways.0.clone(), made.ways.1.clone());
            specs.push(JobSpec { after, ..spec(job, ways, profile, made) });
        }
        if courses.iter().all(Option::is_none) {
            courses.clear();
        }
        let pairs = options.table.map_or_else(Belief::default, |table| pairs(table, cluster, &profiles.list));
        let notes = site.notes();
        Ok(Workload { specs, pairs, profiles: profiles.list, courses, notes })
    }
}

/// What the table says of every two profiles on every kind of the cluster.
pub(crate) fn pairs(table: &Throughputs, cluster: &ClusterSpec, profiles: &[Option<Profile>]) -> Belief {
    let mut belief = Belief::default();
    let numbered =
        || profiles.iter().enumerate().filter_map(|(at, one)| Some((ProfileId(at as u32), one.as_ref()?)));
    for kind in cluster.kinds.ids() {
        let name = cluster.kinds.name(kind);
        for (a, profile) in numbered() {
            for (b, other) in numbered().filter(|(_, other)| other.gpus == profile.gpus) {
                if let Some(kept) = table.kept(name, profile, other) {
                    belief.set_beside(a, b, kind, kept);
                }
            }
        }
    }
    belief
}

fn spec(job: &TraceJob, (shapes, speeds): WorkloadWays, profile: ProfileId, made: Made) -> JobSpec {
    JobSpec {
        name: job.name.clone(),
        user: job.user.clone(),
        tenant: job.tenant.clone(),
        weight: job.weight,
        priority: job.priority,
        deadline: job.deadline,
        steps: made.steps,
        length: Length::Stated,
        shapes,
        speeds,
        costs: made.costs,
        profile,
        failures_max: FAILURES_MAX,
        pausable: true,
        not_before: None,
        sharing: job.sharing.clone(),
        training: made.training,
        regimes: made.regimes,
        rewards: job.rewards.clone(),
        late: job.late,
        after: Box::default(),
    }
}

/// Where the jobs of a trace are to run.
struct WorkloadSite<'a> {
    trace: &'a Trace,
    cluster: &'a ClusterSpec,
    options: Options<'a>,
    /// Devices of each kind, and most on one node.
    totals: Vec<u32>,
    largest: Vec<u32>,
    /// Mixes of kinds that the cluster has: the name, and the devices.
    mixes: Vec<(&'a str, Vec<Need>)>,
}

impl<'a> WorkloadSite<'a> {
    fn new(trace: &'a Trace, cluster: &'a ClusterSpec, options: Options<'a>) -> WorkloadSite<'a> {
        let totals = cluster.totals();
        let mut largest = vec![0; totals.len()];
        cluster.nodes.iter().for_each(|node| {
            for pool in &node.pools {
                let most: &mut u32 = &mut largest[pool.kind.index()];
                *most = pool.devices.max(*most);
            }
        });
        let needs = |parts: Vec<(&str, u32)>| -> Option<Vec<Need>> {
            let need = |(kind, devices)| Some(Need { kind: cluster.kinds.find(kind)?, devices });
            let mut needs = parts.into_iter().map(need).collect::<Option<Vec<_>>>()?;
            needs.sort_unstable();
            needs.iter().all(|need| need.devices <= totals[need.kind.index()]).then_some(needs)
        };
        let mixes = options.table.into_iter().flat_map(Throughputs::mixes);
        let mixes = mixes.filter_map(|(name, parts)| Some((name, needs(parts)?))).collect();
        WorkloadSite { trace, cluster, options, totals, largest, mixes }
    }

    /// A job as its trace has it, or as the run says.
    fn make(&self, job: &TraceJob, trainings: &mut Trainings) -> Result<Made, WorkloadError> {
        let app = self.options.table.zip(job.model.as_deref()).and_then(|(table, model)| table.app(model));
        match (app, job.work) {
            _ if job.regimes.is_some() => self.through_regimes(job),
            (Some(app), _) => self.trained(job, app, trainings),
            (None, Work::Profile) => Err(self.no_profile(job)),
            (None, Work::Seconds(steps) | Work::Steps(steps)) => self.at_speeds(job, steps),
        }
    }

    /// A job that goes at the speeds of its shapes.
    fn at_speeds(&self, job: &TraceJob, steps: f64) -> Result<Made, WorkloadError> {
        Ok(Made {
            ways: self.shapes_of(job)?,
            steps,
            profiled: true,
            costs: self.options.overheads.of(job.model.as_deref(), job.gpus),
            training: None,
            regimes: None,
            course: None,
        })
    }

    /// Whether a job may run on a kind.
    fn allows(&self, job: &TraceJob, kind: KindId) -> bool {
        let name = self.cluster.kinds.name(kind);
        job.kinds.is_empty() || job.kinds.iter().any(|kind| **kind == *name)
    }

    /// All ways in which the job may run, those of the size it asks for first, and the fastest first among these.
    fn shapes_of(&self, job: &TraceJob) -> Result<(Vec<Shape>, Vec<f64>), WorkloadError> {
        if matches!(job.work, Work::Steps(_)) && self.options.table.is_none() {
            let (source_name, line) = (self.trace.source.clone(), job.line);
            return Err(WorkloadError::NoTable { source_name, line, job: job.name.to_string() });
        }
        let allowed = |kind| self.allows(job, kind);
        let mut ways: Vec<(Shape, f64)> = Vec::new();
        let (mut have, mut slow) = (0, false);
        for kind in self.cluster.kinds.ids().filter(|kind| allowed(*kind)) {
            have = have.max(self.totals[kind.index()]);
            for gpus in self.sizes(job, kind)? {
                slow |= !self.add_kind(job, gpus, kind, &mut ways);
            }
        }
        for (name, needs) in
            self.mixes.iter().filter(|(_, needs)| needs.iter().all(|need| allowed(need.kind)))
        {
            if let Some(speed) =
                self.speed(job, job.gpus, name).filter(|_| matches!(job.work, Work::Steps(_)))
            {
                ways.push((Shape::of_needs(needs.clone(), Level::Any), speed));
            }
        }
        if ways.is_empty() {
            return Err(self.refusal(job, have, slow));
        }
        let other_size = |way: &(Shape, f64)| way.0.devices() != job.gpus;
        ways.sort_by(|a, b| other_size(a).cmp(&other_size(b)).then(b.1.total_cmp(&a.1)));
        Ok(ways.into_iter().unzip())
    }

    /// The ways to run on so many devices of one kind; false where the table has no speed for it.
    fn add_kind(&self, job: &TraceJob, gpus: u32, kind: KindId, ways: &mut Vec<(Shape, f64)>) -> bool {
        let name = self.cluster.kinds.name(kind);
        let (together, spread) = (self.speed(job, gpus, name), self.spread_speed(job, gpus, name));
        let mut add = |level, speed| ways.push((Shape::of(kind, gpus).within(level), speed));
        if self.totals[kind.index()] >= gpus {
            match (together, spread) {
                (Some(speed), None) => add(Level::Any, speed),
                (Some(speed), Some(_)) if gpus <= self.largest[kind.index()] => add(Level::Node, speed),
                _ => {}
            }
            if let Some(speed) = spread.filter(|speed| *speed > 0.0) {
                add(Level::Any, speed);
            }
        }
        together.is_some() || spread.is_some()
    }

    /// Why no way was found.
    fn refusal(&self, job: &TraceJob, have: u32, slow: bool) -> WorkloadError {
        let (source_name, line, kinds) = (self.trace.source.clone(), job.line, &self.cluster.kinds);
        let kinds = kinds.ids().map(|kind| kinds.name(kind)).collect::<Vec<_>>().join(", ");
        if slow && have >= job.gpus {
            let batch = job.batch_size.map(|size| format!(" (batch size {size})")).unwrap_or_default();
            let model = format!("{}{batch}", job.model.as_deref().unwrap_or("a job without a model"));
            return WorkloadError::NoSpeed { source_name, line, model, gpus: job.gpus, kinds };
        }
        if have == 0 {
            let (job, wanted) = (job.name.to_string(), job.kinds.join(", "));
            return WorkloadError::NoKind { source_name, line, job, wanted, kinds };
        }
        let kinds = if job.kinds.is_empty() { "any".to_owned() } else { job.kinds.join(", ") };
        let (name, cluster) = (job.name.to_string(), self.cluster.text.clone());
        WorkloadError::TooLarge { source_name, line, job: name, gpus: job.gpus, cluster, have, kinds }
    }

    /// Steps a second on a kind or mix; seconds of work pass at one a second everywhere, on the devices that the
    /// job asks for.
    fn speed(&self, job: &TraceJob, gpus: u32, kind: &str) -> Option<f64> {
        match (job.work, self.options.table) {
            (Work::Seconds(_), _) => Some(self.seconds_speed(job, gpus, kind)),
            (Work::Steps(_), Some(table)) => table.speed(kind, job.model.as_deref()?, job.batch_size, gpus),
            (Work::Steps(_), None) | (Work::Profile, _) => None,
        }
    }

    /// Steps a second of a gang spread over nodes, where that is told apart; 0 where it cannot run so.
    fn spread_speed(&self, job: &TraceJob, gpus: u32, kind: &str) -> Option<f64> {
        let apart = self.options.placement_aware && gpus > 1 && matches!(job.work, Work::Steps(_));
        let table = self.options.table.filter(|_| apart)?;
        table.speed_spread(kind, job.model.as_deref()?, job.batch_size, gpus)
    }

    /// An error about something that a job says.
    fn contradiction(
        &self,
        job: &TraceJob,
        field: &'static str,
        problem: String,
        remedy: String,
    ) -> WorkloadError {
        let (source_name, line, job) = (self.trace.source.clone(), job.line, job.name.to_string());
        WorkloadError::Contradiction { source_name, line, field, job, problem, remedy }
    }
}

#[cfg(test)]
mod tests;
