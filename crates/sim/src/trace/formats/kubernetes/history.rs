//! What is known of each pod, from however many sightings.

use std::collections::BTreeMap;

use yard_core::Time;

use super::document::Pod;
use super::group::{PodGroup, group_of};
use super::pod;

/// What is known of one pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodLife {
    pub(super) namespace: String,
    pub(super) created: Option<Time>,
    pub(super) bound: Option<Time>,
    /// When its last container ended.
    pub(super) ended: Option<Time>,
    /// When it was last deleted: a pod that is given time to end is deleted twice.
    pub(super) deleted: Option<Time>,
    pub(super) gpus: u32,
    pub(super) kinds: String,
    pub(super) group: Option<PodGroup>,
}

/// All pods, by unique identifier, and the newest one of each name.
#[derive(Default)]
pub(super) struct PodHistory {
    pub(super) pods: BTreeMap<String, PodLife>,
    names: BTreeMap<(String, String), String>,
}

impl PodHistory {
    /// Takes up what a pod says of itself.
    pub(super) fn saw(&mut self, pod: &Pod) -> Result<(), String> {
        let meta = &pod.metadata;
        self.note(pod).map_err(|problem| format!("pod {}/{}: {problem}", meta.namespace, meta.name))
    }

    fn note(&mut self, pod: &Pod) -> Result<(), String> {
        let meta = &pod.metadata;
        if meta.uid.is_empty() {
            return Err(
                "a pod without metadata.uid; export whole pods, as kubectl get pods -o json does".into()
            );
        }
        self.names.insert((meta.namespace.clone(), meta.name.clone()), meta.uid.clone());
        let life = self.pods.entry(meta.uid.clone()).or_default();
        life.namespace.clone_from(&meta.namespace);
        life.created = pod::instant(&meta.creation_timestamp)?.or(life.created);
        life.bound = life.bound.or(pod::bound(pod)?);
        life.ended = life.ended.or(pod::ended(pod)?);
        life.gpus = life.gpus.max(pod::gpus(pod)?);
        life.kinds = pod::kinds(pod);
        life.group = Some(group_of(pod));
        Ok(())
    }

    /// A pod was deleted: it is over by then, if nobody says when it ended.
    pub(super) fn deleted(&mut self, namespace: &str, name: &str, at: Time) {
        let uid = self.names.get(&(namespace.to_owned(), name.to_owned()));
        if let Some(life) = uid.and_then(|uid| self.pods.get_mut(uid)) {
            life.deleted = life.deleted.max(Some(at));
        }
    }
}
