//! What a Kubernetes cluster knows of past pods. Any of these, alone or one after the other in one file:
//!
//! - `kubectl get pods -A -o json`: the pods that are there, ended ones included (`pod`);
//! - the API server's audit log, at the level RequestResponse for pods (`audit`);
//! - a Prometheus range query over kube-state-metrics (`prometheus`).
//!
//! Pods become jobs by the group they belong to (`group`). A job has as many GPUs as its pods held at one time at most,
//! and so much work that its GPU time is the sum of theirs. A pod holds its GPUs from the time at which it was
//! bound to a node until it ended. The namespace is the tenant. Pods without GPUs, and those that never started or
//! still run, are left out.

mod audit;
mod document;
mod group;
mod history;
mod pod;
mod prometheus;

use serde_json::Deserializer;

use self::document::{ClusterDocument, Listed};
use self::history::PodHistory;
use super::super::TraceError;
use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::Head;
use super::civil::count_from_first;

pub(super) fn detect(head: &Head<'_>) -> bool {
    let line = head.line.trim_start();
    line.starts_with('{') && ["\"apiVersion\"", "\"resultType\""].iter().any(|key| line.contains(key))
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let before = jobs.list.len();
    let mut history = PodHistory::default();
    for (at, document) in Deserializer::from_slice(text.bytes).into_iter::<ClusterDocument>().enumerate() {
        let document = document.map_err(|source| TraceError::Json { file: text.file.to_owned(), source })?;
        read(document, &mut history, jobs).map_err(|problem| TraceError::Element {
            file: text.file.to_owned(),
            element: at,
            problem,
        })?;
    }
    group::submit(history, jobs);
    count_from_first(jobs, before);
    Ok(())
}

/// Takes up one document, or says what is wrong with it.
fn read(document: ClusterDocument, history: &mut PodHistory, jobs: &mut TraceJobs) -> Result<(), String> {
    match document.kind.as_deref() {
        Some("Event") if document.verb.is_some() => audit::read(&document, history),
        Some("Pod") => history.saw(&document.pod()),
        _ if document.data.is_some() => prometheus::read(&document, history),
        _ => match document.items {
            Some(items) => items.iter().try_for_each(|item| match item {
                Listed::Pod(pod) => history.saw(pod),
                Listed::Other => {
                    jobs.leave_out("it is no pod");
                    Ok(())
                }
            }),
            None => {
                Err("it is neither a pod, a list of pods, an audit event nor a Prometheus answer".to_owned())
            }
        },
    }
}
