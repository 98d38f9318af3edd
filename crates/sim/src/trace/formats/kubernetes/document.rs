//! One JSON document of a file, whichever it is. What is not named here is not read.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A document: the fields of a pod, a list, an audit event and a Prometheus answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ClusterDocument {
    pub(super) kind: Option<String>,
    metadata: PodMeta,
    spec: PodSpec,
    status: Value,
    pub(super) items: Option<Vec<Listed>>,
    pub(super) verb: Option<String>,
    pub(super) stage: Option<String>,
    pub(super) stage_timestamp: Option<String>,
    pub(super) object_ref: Option<ObjectRef>,
    pub(super) response_object: Option<Value>,
    pub(super) data: Option<PrometheusData>,
}

impl ClusterDocument {
    /// The pod that it is.
    pub(super) fn pod(self) -> Pod {
        let status = serde_json::from_value(self.status).unwrap_or_default();
        Pod { metadata: self.metadata, spec: self.spec, status }
    }
}

/// An element of a list.
pub(super) enum Listed {
    Pod(Box<Pod>),
    Other,
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Listed, D::Error> {
        let value = Value::deserialize(from)?;
        // A PodList leaves the kind of its items out.
        if value.get("kind").is_some_and(|kind| kind != "Pod") {
            return Ok(Listed::Other);
        }
        serde_json::from_value(value).map(|pod| Listed::Pod(Box::new(pod))).map_err(serde::de::Error::custom)
    }
}

/// What an audit event is about.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectRef {
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A pod.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    pub(super) metadata: PodMeta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodMeta {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) creation_timestamp: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) owner_references: Vec<Owner>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Owner {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
    pub(super) node_selector: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    pub(super) resources: PodResources,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PodResources {
    pub(super) limits: BTreeMap<String, Value>,
    pub(super) requests: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
    pub(super) start_time: Option<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) container_statuses: Vec<ContainerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) name: String,
    pub(super) status: String,
    pub(super) last_transition_time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerStatus {
    pub(super) state: ContainerState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerState {
    pub(super) terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Terminated {
    pub(super) finished_at: Option<String>,
}

/// The answer to a range query.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PrometheusData {
    pub(super) result_type: String,
    pub(super) result: Vec<Series>,
}

/// One series: its labels, and pairs of a time and a number.
#[derive(Deserialize)]
pub(super) struct Series {
    pub(super) metric: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) values: Vec<(f64, String)>,
}
