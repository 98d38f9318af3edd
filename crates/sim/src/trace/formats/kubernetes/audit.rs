//! Events of the audit log about pods: what the server answered is the pod as it was then.

use super::document::{ClusterDocument, Pod};
use super::history::PodHistory;
use super::pod;

pub(super) fn read(event: &ClusterDocument, history: &mut PodHistory) -> Result<(), String> {
    let object = event.object_ref.as_ref().filter(|object| object.resource == "pods");
    let complete = event.stage.as_deref().is_none_or(|stage| stage == "ResponseComplete");
    let Some(object) = object.filter(|_| complete) else { return Ok(()) };
    let answer = event.response_object.as_ref().filter(|answer| answer["kind"] == "Pod");
    if let Some(answer) = answer {
        let pod: Pod =
            serde_json::from_value(answer.clone()).map_err(|error| format!("responseObject: {error}"))?;
        history.saw(&pod)?;
    }
    let (verb, at) = (event.verb.as_deref(), pod::instant(&event.stage_timestamp)?);
    if let (Some("delete"), Some(at)) = (verb, at) {
        history.deleted(&object.namespace, &object.name, at);
    }
    Ok(())
}
