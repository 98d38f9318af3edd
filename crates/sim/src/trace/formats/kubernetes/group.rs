//! Which pods are one job, and the jobs made of them.

use std::collections::BTreeMap;

use yard_core::Time;

use super::super::super::Work;
use super::super::super::jobs::TraceJobs;
use super::super::super::table::MAX_GPUS;
use super::document::Pod;
use super::history::{PodHistory, PodLife};

/// Labels and annotations by which pods say that they are one job, the most explicit first.
const GROUP_KEYS: [&str; 10] = [
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.k8s.io/group-name",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "volcano.sh/job-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "ray.io/cluster",
    "batch.kubernetes.io/job-name",
    "job-name",
];

/// Owners whose pods are each a job of their own: services, and what runs on every node.
pub(super) const SINGLE_OWNERS: [&str; 4] = ["ReplicaSet", "StatefulSet", "DaemonSet", "Node"];

/// What makes pods one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodGroup {
    /// Equal for the pods of one job.
    pub(super) key: String,
    /// What people call it, without the namespace.
    pub(super) name: String,
    /// Whether the key is a name, which somebody may use again later.
    pub(super) reusable: bool,
}

/// The group of a pod: by label, else by owner, else itself.
pub(super) fn group_of(pod: &Pod) -> PodGroup {
    let meta = &pod.metadata;
    let named = |key: &&str| meta.labels.get(*key).or_else(|| meta.annotations.get(*key));
    if let Some(name) = GROUP_KEYS.iter().find_map(named) {
        return PodGroup { key: format!("{}/{name}", meta.namespace), name: name.clone(), reusable: true };
    }
    let owner = meta.owner_references.iter().find(|owner| owner.controller);
    match owner.filter(|owner| !SINGLE_OWNERS.contains(&&*owner.kind)) {
        Some(owner) => PodGroup { key: owner.uid.clone(), name: owner.name.clone(), reusable: false },
        None => PodGroup { key: meta.uid.clone(), name: meta.name.clone(), reusable: false },
    }
}

/// A pod that ran: when it was created, and from when until when it held its GPUs.
#[derive(Clone)]
struct PodRun {
    created: Time,
    from: Time,
    until: Time,
    gpus: u32,
    kinds: String,
}

/// Adds the jobs that these pods were, those created first first.
pub(super) fn submit(history: PodHistory, jobs: &mut TraceJobs) {
    let mut groups: BTreeMap<(String, PodGroup), Vec<PodRun>> = BTreeMap::new();
    for (uid, life) in history.pods {
        let itself = || PodGroup { key: uid.clone(), name: uid.clone(), reusable: false };
        let group = (life.namespace.clone(), life.group.clone().unwrap_or_else(itself));
        match run_of(life) {
            Ok(run) => groups.entry(group).or_default().push(run),
            Err(why) => jobs.leave_out(why),
        }
    }
    for ((namespace, group), mut runs) in groups {
        runs.sort_by_key(|run| (run.created, run.from));
        let sessions = if group.reusable { sessions(runs) } else { vec![runs] };
        for (at, session) in sessions.iter().enumerate() {
            let again = if at == 0 { String::new() } else { format!("-{}", at + 1) };
            add(&format!("{namespace}/{}{again}", group.name), &namespace, session, jobs);
        }
    }
}

fn run_of(life: PodLife) -> Result<PodRun, &'static str> {
    match (life.gpus, life.bound, life.ended.or(life.deleted)) {
        (0, _, _) => Err("the pod has no GPU"),
        (_, None, _) => Err("the pod never started"),
        (_, Some(_), None) => Err("the pod still runs, so its length is not known"),
        (_, Some(from), Some(until)) if until <= from => Err("the pod ended when it started, or before"),
        (gpus, Some(from), Some(until)) => {
            let created = life.created.unwrap_or(from).min(from);
            Ok(PodRun { created, from, until, gpus, kinds: life.kinds })
        }
    }
}

/// A name that is used again after all of its pods ended is another job.
fn sessions(runs: Vec<PodRun>) -> Vec<Vec<PodRun>> {
    let mut sessions: Vec<Vec<PodRun>> = Vec::new();
    let mut last = Time::ZERO;
    for run in runs {
        if sessions.is_empty() || run.created > last {
            sessions.push(Vec::new());
        }
        last = last.max(run.until);
        sessions.last_mut().into_iter().for_each(|session| session.push(run.clone()));
    }
    sessions
}

fn add(name: &str, namespace: &str, runs: &[PodRun], jobs: &mut TraceJobs) {
    let gpus = most_at_once(runs);
    let gpu_s: f64 = runs.iter().map(|run| f64::from(run.gpus) * (run.until - run.from).secs()).sum();
    let created = runs.iter().map(|run| run.created).min().unwrap_or_default();
    let (tenant, kinds) = (jobs.word(namespace), jobs.kinds(&runs[0].kinds));
    let line = jobs.list.len() as u64 + 1;
    let job = jobs.add(name, created, gpus, Work::Seconds(gpu_s / f64::from(gpus)), line);
    (job.tenant, job.kinds) = (tenant, kinds);
}

/// The most GPUs that these pods held at one time; who ends makes room for who starts at the same instant.
fn most_at_once(runs: &[PodRun]) -> u32 {
    let starts = runs.iter().map(|run| (run.from, true, run.gpus));
    let mut changes: Vec<_> = starts.chain(runs.iter().map(|run| (run.until, false, run.gpus))).collect();
    changes.sort_unstable();
    let (mut held, mut most) = (0u32, 0u32);
    for (_, starts, gpus) in changes {
        held = if starts { held.saturating_add(gpus) } else { held.saturating_sub(gpus) };
        most = most.max(held);
    }
    most.min(MAX_GPUS)
}
