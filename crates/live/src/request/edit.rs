//! What may change of a job while it waits. What is left out stays; `null` takes a deadline or a length away.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::JobRequest;

/// The body of `POST /v1/jobs/{id}/edit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobEdit {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Larger is more urgent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Its weight in fair shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// When it should be done: seconds since 1970, UTC. `null`: it has no deadline.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schema(value_type = Option<f64>)]
    pub deadline: Option<Option<f64>>,
    /// How long it should take, in seconds. `null`: nobody knows.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schema(value_type = Option<f64>)]
    pub duration_s: Option<Option<f64>>,
    /// How long it may run, in seconds, over all its starts. `null`: as long as it likes.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schema(value_type = Option<f64>)]
    pub time_limit_s: Option<Option<f64>>,
    /// How many seconds it has to save and stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_s: Option<f64>,
}

/// Tells `null` from what is left out.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl JobEdit {
    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        *self == JobEdit::default()
    }

    /// The request as it is then.
    pub fn apply(&self, request: &JobRequest) -> JobRequest {
        let mut edited = request.clone();
        edited.name = self.name.clone().or(edited.name);
        edited.priority = self.priority.unwrap_or(edited.priority);
        edited.weight = self.weight.or(edited.weight);
        edited.deadline = self.deadline.unwrap_or(edited.deadline);
        edited.duration_s = self.duration_s.unwrap_or(edited.duration_s);
        edited.time_limit_s = self.time_limit_s.unwrap_or(edited.time_limit_s);
        edited.checkpoint.grace_s = self.grace_s.or(edited.checkpoint.grace_s);
        edited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_stays_and_null_takes_away() {
        let before = JobRequest {
            name: Some("old".into()),
            deadline: Some(9.0),
            duration_s: Some(5.0),
            priority: 2,
            ..JobRequest::default()
        };
        let edit: JobEdit = serde_json::from_str(r#"{"deadline": null, "weight": 2.0}"#).unwrap();
        let after = JobRequest { deadline: None, weight: Some(2.0), ..before.clone() };
        assert_eq!(edit.apply(&before), after);
        assert_eq!(serde_json::to_string(&edit).unwrap(), r#"{"weight":2.0,"deadline":null}"#);
        assert!(serde_json::from_str::<JobEdit>(r#"{"gpus": 4}"#).is_err(), "the size stays");
        assert!(JobEdit::default().is_empty() && !edit.is_empty());
    }
}
