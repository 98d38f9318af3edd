//! What a pod says of itself: its GPUs, their kind, and its times.

use jiff::Timestamp;
use yard_core::Time;

use super::document::{Container, Pod};

/// More GPUs than any container can have.
const NODE_GPUS_MAX: u32 = 1024;

/// Node labels by which pods choose a kind of GPU.
const KIND_LABELS: [&str; 4] = [
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "accelerator",
];

/// Seconds since 1970 of a timestamp as Kubernetes writes it, or what is wrong with it.
pub(super) fn instant(text: &Option<String>) -> Result<Option<Time>, String> {
    let Some(text) = text else { return Ok(None) };
    let at: Timestamp =
        text.parse().map_err(|_| format!("{text:?} is no timestamp like 2026-10-01T08:00:00Z"))?;
    let seconds = at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64();
    if seconds < 0.0 { Err(format!("{text:?} is before 1970")) } else { Ok(Some(Time::from_secs(seconds))) }
}

/// When it was given its node.
pub(super) fn bound(pod: &Pod) -> Result<Option<Time>, String> {
    let scheduled = |name: &str, status: &str| name == "PodScheduled" && status == "True";
    let condition = pod.status.conditions.iter().find(|one| scheduled(&one.name, &one.status));
    match condition {
        Some(condition) => instant(&condition.last_transition_time),
        None => instant(&pod.status.start_time),
    }
}

/// When its last container ended, if all have.
pub(super) fn ended(pod: &Pod) -> Result<Option<Time>, String> {
    if !matches!(&*pod.status.phase, "Succeeded" | "Failed") {
        return Ok(None);
    }
    let finished = pod.status.container_statuses.iter().filter_map(|status| status.state.terminated.as_ref());
    let times = finished.map(|terminated| instant(&terminated.finished_at)).collect::<Result<Vec<_>, _>>()?;
    Ok(times.into_iter().flatten().max())
}

/// How many GPUs it holds: those of its containers together, or of its hungriest init container.
pub(super) fn gpus(pod: &Pod) -> Result<u32, String> {
    let together = pod
        .spec
        .containers
        .iter()
        .try_fold(0u32, |sum, one| Ok::<_, String>(sum.saturating_add(gpus_of(one)?)))?;
    pod.spec.init_containers.iter().try_fold(together, |most, one| Ok(most.max(gpus_of(one)?)))
}

fn gpus_of(container: &Container) -> Result<u32, String> {
    let resources = [&container.resources.limits, &container.resources.requests];
    let listed = resources.into_iter().find(|list| list.keys().any(|name| name.ends_with("/gpu")));
    let gpus = listed.into_iter().flatten().filter(|(name, _)| name.ends_with("/gpu"));
    gpus.into_iter().try_fold(0, |sum: u32, (name, count)| {
        let text = count.as_str().map_or_else(|| count.to_string(), str::to_owned);
        let whole = text.parse::<u32>().ok().filter(|count| *count <= NODE_GPUS_MAX);
        let whole =
            whole.ok_or_else(|| format!("{name}: {text} is not a whole number up to {NODE_GPUS_MAX}"))?;
        Ok(sum.saturating_add(whole))
    })
}

/// The kind of GPU that its node selector asks for; empty where it asks for none.
pub(super) fn kinds(pod: &Pod) -> String {
    let label = KIND_LABELS.iter().find_map(|label| pod.spec.node_selector.get(*label));
    label.map_or(String::new(), |kind| kind.replace('|', "_"))
}
