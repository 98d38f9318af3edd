//! Runs the past of a live cluster again, in the simulator: the composition of `yard_live::replay` with `yard_sim` and
//! the policies. Counted with the same code as `yard sim`.

use std::sync::Arc;

use yard_core::cluster::NodeSpec;
use yard_core::ids::JobId;
use yard_core::job::{Costs, JobSpec};
use yard_core::policy::{Policy, Priorities};
use yard_core::{Span, Time};
use yard_live::MakePolicy;
use yard_live::replay::view::{Detail, DetailBar, DetailJob, Figures};
use yard_live::replay::{Groups, NODES_MAX, Recorded, ReplayRan, ReplayWatch, Replayer, Scene, SceneJob};
use yard_sim::cluster::ClusterSpec;
use yard_sim::faults::Faults;
use yard_sim::happened::{self, Happened};
use yard_sim::overheads::Overheads;
use yard_sim::record::{JobRecord, Keep};
use yard_sim::summary::{self, Summary};
use yard_sim::{Quirks, RunOutcome, Simulation, Speeds};

use crate::policy::{Chosen, PREFIX};

/// Steps of the engine after which a run is given up.
const STEPS_MAX: u64 = 1_000_000;
const STEPS_PER_JOB: u64 = 5_000;

/// A job that works for less is neither treated fairly nor not: one that fails at once would be the worst of all.
const RHO_LEAST_S: f64 = 1.0;

/// Bars kept of a run that is told in detail.
const BARS_MAX: usize = 50_000;

/// The simulator.
pub(super) struct Simulator {
    /// The policy that the server decides by.
    pub(super) present: Chosen,
}

impl Replayer for Simulator {
    /// What was measured on one H200. The first start of a job is part of the time that was recorded of it.
    fn costs(&self) -> Costs {
        let Costs { save, load, start } = Overheads::h200().costs;
        Costs { save, load: load + start, start: Span::ZERO }
    }

    fn policy(&self, spec: &str) -> Result<MakePolicy, String> {
        super::server::policy(spec).map_err(|error| error.to_string())
    }

    fn priorities(&self, spec: &str) -> Priorities {
        if spec.starts_with(PREFIX) {
            return self.present.priority;
        }
        let entry = yard_policies::find(spec.split(':').next().unwrap_or_default());
        entry.map_or(Priorities::Classes, |entry| entry.priority)
    }

    fn nodes(&self, spec: &str) -> Result<Vec<(String, u32)>, String> {
        let parsed = ClusterSpec::short(spec, NODES_MAX).map_err(|error| error.to_string())?;
        let pools = parsed.nodes.iter().flat_map(|node| &node.pools);
        Ok(pools.map(|pool| (parsed.kinds.name(pool.kind).to_owned(), pool.devices)).collect())
    }

    fn recorded(&self, jobs: &[Recorded], scene: &Scene, groups: &Groups) -> Vec<Figures> {
        let devices = scene.nodes.iter().map(NodeSpec::devices).sum();
        let happened: Vec<_> =
            jobs.iter().zip(&scene.jobs).map(|(job, made)| happened(job, made, scene)).collect();
        figures(&happened::rows(devices, &happened), scene, groups)
    }

    fn run(
        &self,
        scene: &Scene,
        groups: &Groups,
        detail: bool,
        watch: &ReplayWatch,
    ) -> Result<ReplayRan, String> {
        let cluster = ClusterSpec {
            text: String::new(),
            kinds: scene.kinds.clone(),
            resources: scene.resources.clone(),
            nodes: scene.nodes.clone(),
            prices: scene.prices.clone(),
        };
        let possible = possible(&scene.jobs);
        let mut policy = (scene.make)();
        let outcome = simulate(scene, &possible, &cluster, &mut *policy, detail, watch)?;
        let rows = rows(scene, &possible, &outcome);
        let mut figures = figures(&rows, scene, groups);
        if let Some(all) = figures.first_mut() {
            all.utilization = utilization(scene, &cluster, &outcome);
        }
        let detail = detail.then(|| told(scene, &possible, &cluster, &outcome, &rows));
        Ok(ReplayRan { figures, detail, notes: notes(&outcome, possible.len()) })
    }
}

/// The jobs that some node could run, and with them those that they come after.
fn possible(jobs: &[SceneJob]) -> Vec<usize> {
    let mut can = vec![false; jobs.len()];
    for (at, job) in jobs.iter().enumerate() {
        let before =
            |spec: &JobSpec| spec.after.iter().all(|before| can.get(before.index()).is_none_or(|can| *can));
        can[at] = job.spec.as_ref().is_some_and(before);
    }
    (0..jobs.len()).filter(|at| can[*at]).collect()
}

fn simulate(
    scene: &Scene,
    possible: &[usize],
    cluster: &ClusterSpec,
    policy: &mut dyn Policy,
    detail: bool,
    watch: &ReplayWatch,
) -> Result<RunOutcome, String> {
    let specs: Vec<_> = possible
        .iter()
        .filter_map(|at| Some((&scene.jobs[*at], renumbered(scene, possible, *at)?)))
        .collect();
    let jobs: Vec<_> = specs.iter().map(|(job, spec)| (job.submit, spec)).collect();
    let said = specs.iter().map(|(job, _)| job.said).collect();
    let keep = if detail { Keep { series: true, bars_max: BARS_MAX } } else { Keep::default() };
    let outcome = yard_sim::run(Simulation {
        jobs: &jobs,
        // The live scheduler knows nothing of what interruptions cost until a job has had one.
        speeds: Speeds {
            pairs: (*scene.belief).clone(),
            said: Some(said),
            said_costs: Some(Costs::default()),
            ..Speeds::default()
        },
        cluster,
        settings: scene.settings.clone(),
        policy,
        placer: (scene.placer)(),
        checkpoint_every: Overheads::h200().checkpoint_every,
        quirks: Quirks::default(),
        faults: Faults::default(),
        script: Vec::new(),
        seed: 0,
        keep,
        events: None,
        progress: Some(Arc::clone(&watch.done)),
        steps_max: STEPS_MAX + STEPS_PER_JOB * jobs.len() as u64,
        stop: Some(Arc::clone(&watch.stop)),
        probe: None,
    });
    outcome.map_err(|error| format!("cannot write the simulation: {error}"))
}

/// A job whose predecessors have the numbers that they have among the possible ones.
fn renumbered(scene: &Scene, possible: &[usize], at: usize) -> Option<JobSpec> {
    let mut spec = scene.jobs[at].spec.clone()?;
    let number = |before: &JobId| possible.binary_search(&before.index()).ok();
    spec.after = spec.after.iter().filter_map(number).map(|at| JobId(at as u64)).collect();
    Some(spec)
}

/// A row for each job of the scene; those that could not run wait for ever.
fn rows(scene: &Scene, possible: &[usize], outcome: &RunOutcome) -> Vec<JobRecord> {
    let mut rows: Vec<_> = scene.jobs.iter().map(|job| JobRecord::new(job.submit, job.gpus)).collect();
    for (at, row) in possible.iter().zip(&outcome.record.jobs) {
        rows[*at] = row.clone();
        rows[*at].rho = row.rho.filter(|_| alone_s(&scene.jobs[*at]) >= RHO_LEAST_S);
    }
    rows
}

/// The figures of each group.
fn figures(rows: &[JobRecord], scene: &Scene, groups: &Groups) -> Vec<Figures> {
    let one = |group: &Vec<usize>| {
        let jobs = group.iter().map(|at| (&rows[*at], scene.jobs[*at].deadline));
        let cost = (!scene.prices.is_empty()).then(|| group.iter().map(|at| rows[*at].cost).sum());
        Figures { cost, ..named(Summary::new(jobs)) }
    };
    groups.iter().map(one).collect()
}

fn named(summary: Summary) -> Figures {
    Figures {
        jobs: summary.jobs,
        finished: summary.finished,
        avg_jct_s: summary.avg_jct_s,
        p50_jct_s: summary.p50_jct_s,
        p90_jct_s: summary.p90_jct_s,
        p99_jct_s: summary.p99_jct_s,
        makespan_s: summary.makespan_s,
        avg_queue_s: summary.avg_queue_s,
        p90_queue_s: summary.p90_queue_s,
        preemptions: summary.preemptions,
        migrations: summary.migrations,
        restarts: summary.restarts,
        deadline_total: summary.deadline_total,
        deadline_met: summary.deadline_met,
        deadline_miss_ratio: summary.deadline_miss_ratio,
        avg_rho: summary.avg_rho,
        max_rho: summary.max_rho,
        gpu_hours: summary.gpu_hours,
        utilization: None,
        cost: None,
    }
}

/// Device time held against device time there was, from the first submission to the last end.
fn utilization(scene: &Scene, cluster: &ClusterSpec, outcome: &RunOutcome) -> Option<f64> {
    let start = scene.jobs.first()?.submit;
    let span = (outcome.end - start).0 as f64 * f64::from(cluster.devices());
    (span > 0.0).then(|| outcome.record.used.iter().sum::<u128>() as f64 / span)
}

/// What really happened to a job, in the times of the scene.
fn happened(job: &Recorded, made: &SceneJob, scene: &Scene) -> Happened {
    let since = |time: Time| Time(time.0.saturating_sub(scene.base.0));
    let ideal_s = Some(alone_s(made)).filter(|seconds| *seconds >= RHO_LEAST_S).unwrap_or(0.0);
    let kind = job.view.kind.as_deref().and_then(|kind| scene.kinds.find(kind));
    Happened {
        submit: made.submit,
        gpus: made.gpus,
        first_start: job.started().map(since),
        end: job.ended().map(since),
        held: job.held,
        starts: job.view.starts,
        preemptions: job.view.preemptions,
        migrations: job.view.migrations,
        ideal_s,
        hourly: kind.and_then(|kind| scene.prices.get(kind.index()).copied()).unwrap_or(0.0),
    }
}

/// Seconds that a job would need alone, in its fastest shape.
fn alone_s(job: &SceneJob) -> f64 {
    let fastest = |spec: &JobSpec| spec.speeds.iter().copied().fold(0.0, f64::max);
    job.spec.as_ref().map_or(0.0, |spec| spec.steps / fastest(spec))
}

/// What people should know of a run.
fn notes(outcome: &RunOutcome, jobs: usize) -> Vec<String> {
    let open = jobs - outcome.record.jobs.iter().filter(|job| job.end.is_some()).count();
    let open = (open > 0).then(|| format!("{open} jobs would not have finished"));
    let failed = outcome
        .record
        .last_failure
        .as_ref()
        .map(|reason| format!("{} plans failed; the last one: {reason}", outcome.record.failed_plans));
    open.into_iter().chain(failed).collect()
}

/// A run job by job and device by device.
fn told(
    scene: &Scene,
    possible: &[usize],
    cluster: &ClusterSpec,
    outcome: &RunOutcome,
    rows: &[JobRecord],
) -> Detail {
    let start = scene.jobs.first().map_or(Time::ZERO, |job| job.submit);
    let since = |time: Time| (time - start).secs();
    let number = |at: u64| possible.get(at as usize).map_or(0, |at| *at as u32);
    let jobs = scene.jobs.iter().zip(rows).map(|(job, row)| DetailJob {
        id: job.id,
        name: job.name.clone(),
        team: job.team.clone(),
        gpus: row.gpus,
        submit_s: since(row.submit),
        wait_s: summary::wait(row),
        jct_s: summary::jct(row),
        preemptions: row.preemptions,
        gpu_hours: (Span(row.service).secs() - row.shared) / 3600.0,
        rho: row.rho,
        deadline_met: job.deadline.map(|by| row.end.is_some_and(|end| end <= by)),
    });
    let record = &outcome.record;
    let series = record.series.iter().map(|sample| {
        (since(sample.time), sample.queued_jobs, sample.queued_gpus, sample.running_jobs, sample.used_gpus)
    });
    let bars = record.bars.iter().map(|bar| DetailBar {
        node: bar.node,
        first: bar.first,
        devices: bar.devices,
        job: number(bar.job.0),
        start_s: since(bar.start),
        end_s: since(bar.end),
        lane: bar.lane,
    });
    let nodes = cluster.nodes.iter();
    Detail {
        jobs: jobs.collect(),
        series: series.collect(),
        bars: bars.collect(),
        bars_cut: record.bars_cut,
        nodes: nodes.map(|node| (node.name.clone(), cluster.kinds_of(node), node.devices())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use yard_core::Settings;
    use yard_core::cluster::Resources;
    use yard_core::cluster::{Kinds, NodeSpec};
    use yard_core::ids::KindId;
    use yard_core::job::Shape;

    use super::*;
    use crate::policy::ProgramUses;

    fn simulator() -> Simulator {
        Simulator {
            present: Chosen::find("fifo", &Arc::from([]), ProgramUses::Server).expect("it is in the table"),
        }
    }

    #[test]
    fn nobody_names_a_program_but_the_administrator() {
        let refused = simulator().policy("exec:/bin/true").err().unwrap_or_default();
        assert!(refused.contains("command line"), "{refused}");
        assert!(simulator().policy("srtf").is_ok());
    }

    fn spec(seconds: f64, kinds: &[u16], after: &[u64]) -> JobSpec {
        let shapes: Vec<_> = kinds.iter().map(|kind| Shape::of(KindId(*kind), 1)).collect();
        JobSpec {
            after: after.iter().copied().map(JobId).collect(),
            ..JobSpec::new("job", shapes, vec![1.0; kinds.len()], seconds)
        }
    }

    /// One device of each of two kinds, at one and at two dollars an hour, under fifo.
    fn scene(jobs: Vec<Option<JobSpec>>) -> Scene {
        let mut kinds = Kinds::default();
        let node = |name: &str, kind| NodeSpec::of(name, kind, 1);
        let nodes = ["a", "b"].map(|name| node(name, kinds.intern(name))).into();
        let job = |(at, spec): (u64, Option<JobSpec>)| SceneJob {
            id: 10 + at,
            name: "job".into(),
            team: "team".into(),
            submit: Time::ZERO,
            gpus: 1,
            deadline: None,
            said: spec.as_ref().map_or(0.0, |spec| spec.steps),
            spec,
        };
        Scene {
            resources: Resources::default(),
            base: Time::ZERO,
            kinds,
            nodes,
            prices: vec![1.0, 2.0],
            settings: Settings::default(),
            make: super::super::server::policy("fifo").expect("there is such a policy"),
            placer: Arc::new(|| yard_policies::placer("pack").expect("there is such a placer")),
            belief: Arc::default(),
            jobs: (0..).zip(jobs).map(job).collect(),
        }
    }

    #[test]
    fn what_no_node_can_run_waits_for_ever_and_who_comes_after_it_too() {
        let hour = 3600.0;
        let scene = scene(vec![
            Some(spec(hour, &[0], &[])),
            None,
            Some(spec(hour, &[1], &[1])),
            Some(spec(hour, &[1], &[0])),
        ]);
        let groups = [vec![0, 1, 2, 3], vec![3]];
        let ran =
            simulator().run(&scene, &groups, true, &ReplayWatch::default()).expect("it can be simulated");
        let [all, last] = &ran.figures[..] else { panic!("{ran:?}") };
        assert_eq!((all.jobs, all.finished, all.makespan_s), (4, 2, Some(2.0 * hour)));
        assert_eq!(
            (last.jobs, last.avg_queue_s, last.cost),
            (1, Some(hour), Some(2.0)),
            "it waited for the first"
        );
        assert_eq!((all.cost, all.gpu_hours), (Some(3.0), 2.0));
        assert_eq!(all.utilization, Some(0.5));
        let detail = ran.detail.expect("it was asked for");
        let held: Vec<_> =
            detail.bars.iter().map(|bar| (detail.jobs[bar.job as usize].id, bar.end_s)).collect();
        assert_eq!(held, [(10, hour), (13, 2.0 * hour)]);
    }

    #[test]
    fn nothing_goes_on_when_nobody_waits() {
        let scene = scene(vec![Some(spec(60.0, &[0], &[]))]);
        let watch = ReplayWatch::default();
        watch.stop.store(true, Ordering::Relaxed);
        let ran = simulator().run(&scene, &[vec![0]], false, &watch).expect("it ends");
        assert_eq!((ran.figures[0].finished, watch.done.load(Ordering::Relaxed)), (0, 0));
        let watch = ReplayWatch::default();
        let ran = simulator().run(&scene, &[vec![0]], false, &watch).expect("it ends");
        assert_eq!((ran.figures[0].finished, watch.done.load(Ordering::Relaxed)), (1, 1));
    }
}
