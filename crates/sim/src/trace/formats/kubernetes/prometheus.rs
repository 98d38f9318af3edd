//! A range query over kube-state-metrics: `kube_pod_created`, `kube_pod_start_time`, `kube_pod_completion_time`,
//! `kube_pod_owner` and `kube_pod_container_resource_requests` of GPUs.

use yard_core::Time;

use super::super::super::table::{MAX_GPUS, MAX_SECONDS};
use super::document::{ClusterDocument, Series};
use super::group::PodGroup;
use super::history::{PodHistory, PodLife};

pub(super) fn read(answer: &ClusterDocument, history: &mut PodHistory) -> Result<(), String> {
    let Some(data) = &answer.data else { return Ok(()) };
    if data.result_type != "matrix" {
        return Err(format!(
            "resultType is {:?}; ask /api/v1/query_range, which answers \"matrix\"",
            data.result_type
        ));
    }
    data.result.iter().try_for_each(|series| take(series, history))?;
    let times = data.result.iter().flat_map(|series| series.values.last()).map(|(at, _)| *at);
    end_vanished(history, data.result.iter(), times.fold(0.0, f64::max))
}

fn take(series: &Series, history: &mut PodHistory) -> Result<(), String> {
    let label = |name: &str| series.metric.get(name).map_or("", |value| &**value);
    let Some(last) = series.values.last() else { return Ok(()) };
    let life = history.pods.entry(identity(series)).or_default();
    life.namespace = label("namespace").to_owned();
    let seconds = || {
        let value = last.1.parse().ok().filter(|value| (0.0..=MAX_SECONDS).contains(value));
        value.map(Time::from_secs).ok_or_else(|| format!("{} {:?} is no time", label("__name__"), last.1))
    };
    match label("__name__") {
        "kube_pod_created" => life.created = Some(seconds()?),
        "kube_pod_start_time" => life.bound = Some(seconds()?),
        "kube_pod_completion_time" => life.ended = Some(seconds()?),
        "kube_pod_owner" => life.group = owner(label("owner_kind"), label("owner_name"), label("namespace")),
        "kube_pod_container_resource_requests" if label("resource").ends_with("_gpu") => {
            life.gpus = life.gpus.saturating_add(count(&last.1)?).min(MAX_GPUS);
        }
        _ => {}
    }
    life.group.get_or_insert_with(|| alone(series));
    Ok(())
}

fn identity(series: &Series) -> String {
    let label = |name: &str| series.metric.get(name).map_or("", |value| &**value);
    match label("uid") {
        "" => format!("{}/{}", label("namespace"), label("pod")),
        uid => uid.to_owned(),
    }
}

fn alone(series: &Series) -> PodGroup {
    let name = series.metric.get("pod").cloned().unwrap_or_default();
    PodGroup { key: identity(series), name, reusable: false }
}

fn owner(kind: &str, name: &str, namespace: &str) -> Option<PodGroup> {
    let gang = !name.is_empty() && !super::group::SINGLE_OWNERS.contains(&kind);
    gang.then(|| PodGroup {
        key: format!("{namespace}/{kind}/{name}"),
        name: name.to_owned(),
        reusable: true,
    })
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse::<f64>().ok().filter(|count| (0.0..=f64::from(MAX_GPUS)).contains(count));
    count.map(|count| count.ceil() as u32).ok_or_else(|| format!("{text:?} is not a number of GPUs"))
}

/// A pod that was deleted before it said that it was complete ended when its series did.
fn end_vanished<'a>(
    history: &mut PodHistory,
    all: impl Iterator<Item = &'a Series>,
    newest: f64,
) -> Result<(), String> {
    for series in
        all.filter(|series| series.metric.get("__name__").is_some_and(|name| name == "kube_pod_created"))
    {
        let Some((last, _)) = series.values.last() else { continue };
        let life: Option<&mut PodLife> = history.pods.get_mut(&identity(series));
        if let Some(life) = life.filter(|life| life.ended.is_none() && *last < newest) {
            if !(0.0..=MAX_SECONDS).contains(last) {
                return Err(format!("{last} is no time"));
            }
            life.ended = Some(Time::from_secs(*last));
        }
    }
    Ok(())
}
