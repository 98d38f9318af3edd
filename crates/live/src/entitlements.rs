//! What a token is good for beyond its scope. Jobs say of themselves which team they count for, how much they weigh and
//! how urgent they are; a token says how much of that its user may ask for. A join token says for which machines it is.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;
use yard_core::job::Claim;

use crate::request::JobRequest;
use crate::request::edit::JobEdit;
use crate::store::tokens::Scope;

/// What a user may ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Entitlements {
    /// Teams that jobs may count for. A job that names none counts for the first.
    pub teams: Vec<String>,
    /// The largest weight of a job.
    pub weight_max: f64,
    /// The largest priority of a job.
    pub priority_max: i32,
    /// The classes that jobs may have.
    #[schema(value_type = Vec<String>)]
    pub classes: Vec<Claim>,
}

impl Default for Entitlements {
    /// What everybody may ask for: nothing that puts one's jobs before those of others.
    fn default() -> Entitlements {
        Entitlements {
            teams: Vec::new(),
            weight_max: 1.0,
            priority_max: 0,
            classes: vec![Claim::Ordinary, Claim::Opportunistic],
        }
    }
}

/// A job asks for more than its user may have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub struct Excess {
    /// The field, as in `JobRequest`.
    pub field: &'static str,
    /// In a sentence, with what is allowed.
    pub message: String,
}

impl Entitlements {
    /// Refuses what the user may not ask for, and writes down what follows from the token where the job says nothing.
    pub fn apply(&self, request: &mut JobRequest) -> Result<(), Excess> {
        self.team(request)?;
        self.weight(request)?;
        self.priority(request.priority)?;
        if !self.classes.contains(&request.class) {
            let (asked, allowed) = (class_name(request.class), self.class_names());
            return excess("class", format!("your token does not allow {asked}; it allows {allowed}"));
        }
        Ok(())
    }

    fn team(&self, request: &mut JobRequest) -> Result<(), Excess> {
        let Some(team) = &request.tenant else {
            request.tenant = self.teams.first().cloned();
            return Ok(());
        };
        if self.teams.contains(team) {
            return Ok(());
        }
        let allowed = match self.teams.is_empty() {
            true => "it has no team, so leave out tenant".to_owned(),
            false => format!("it allows {}", self.teams.join(", ")),
        };
        excess("tenant", format!("your token does not allow team {team:?}; {allowed}"))
    }

    fn weight(&self, request: &mut JobRequest) -> Result<(), Excess> {
        match request.weight {
            Some(asked) => self.heavy(asked),
            None if self.weight_max < 1.0 => {
                request.weight = Some(self.weight_max);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn heavy(&self, asked: f64) -> Result<(), Excess> {
        let most = self.weight_max;
        if asked <= most {
            return Ok(());
        }
        excess("weight", format!("{asked} is above the limit of your token, {most}"))
    }

    fn priority(&self, asked: i32) -> Result<(), Excess> {
        let most = self.priority_max;
        if asked <= most {
            return Ok(());
        }
        excess("priority", format!("{asked} is above the limit of your token, {most}"))
    }

    /// Refuses an edit that asks for more than the user may have. What it leaves as it is was allowed before.
    pub fn allow(&self, edit: &JobEdit) -> Result<(), Excess> {
        edit.priority.map_or(Ok(()), |priority| self.priority(priority))?;
        edit.weight.map_or(Ok(()), |weight| self.heavy(weight))
    }

    /// The classes, for people.
    pub fn class_names(&self) -> String {
        self.classes.iter().map(|class| class_name(*class)).collect::<Vec<_>>().join(", ")
    }
}

/// A class by its name in a job file.
pub fn class_name(class: Claim) -> &'static str {
    match class {
        Claim::Ordinary => "ordinary",
        Claim::Guaranteed => "guaranteed",
        Claim::Opportunistic => "opportunistic",
    }
}

fn excess(field: &'static str, message: String) -> Result<(), Excess> {
    Err(Excess { field, message })
}

/// What a token is good for beyond its scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    /// What its user may ask for; none: there is no limit.
    pub limits: Option<Entitlements>,
    /// Patterns of the names that machines may join under.
    pub nodes: Vec<String>,
    /// How many machines may still join with it; none: there is no limit.
    pub uses: Option<u64>,
}

impl Grant {
    /// What a token of this scope is good for where nobody says more.
    pub fn usual(scope: Scope) -> Grant {
        match scope {
            Scope::Admin => Grant::default(),
            Scope::Join => Grant { nodes: vec!["*".to_owned()], ..Grant::default() },
            Scope::Read | Scope::Submit => {
                Grant { limits: Some(Entitlements::default()), ..Grant::default() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobRequest {
        JobRequest { command: vec!["true".into()], ..JobRequest::default() }
    }

    fn refused(limits: &Entitlements, change: impl Fn(&mut JobRequest)) -> Option<&'static str> {
        let mut request = job();
        change(&mut request);
        limits.apply(&mut request).err().map(|excess| excess.field)
    }

    #[test]
    fn nobody_gets_before_others_by_asking() {
        let plain = Entitlements::default();
        assert_eq!(refused(&plain, |_| ()), None);
        assert_eq!(refused(&plain, |job| job.priority = -5), None);
        assert_eq!(refused(&plain, |job| job.weight = Some(0.5)), None);
        assert_eq!(refused(&plain, |job| job.class = Claim::Opportunistic), None);
        assert_eq!(refused(&plain, |job| job.weight = Some(1e6)), Some("weight"));
        assert_eq!(refused(&plain, |job| job.weight = Some(f64::NAN)), Some("weight"));
        assert_eq!(refused(&plain, |job| job.priority = 1), Some("priority"));
        assert_eq!(refused(&plain, |job| job.class = Claim::Guaranteed), Some("class"));
        assert_eq!(refused(&plain, |job| job.tenant = Some("vision".into())), Some("tenant"));
    }

    #[test]
    fn a_token_allows_what_it_says_and_its_first_team_is_the_default() {
        let limits = Entitlements {
            teams: vec!["vision".into(), "nlp".into()],
            weight_max: 4.0,
            priority_max: 10,
            classes: vec![Claim::Guaranteed],
        };
        let generous = |job: &mut JobRequest| {
            (job.weight, job.priority, job.class) = (Some(4.0), 10, Claim::Guaranteed);
        };
        let mut request = job();
        generous(&mut request);
        assert_eq!(limits.apply(&mut request), Ok(()));
        assert_eq!(request.tenant.as_deref(), Some("vision"));
        assert_eq!(refused(&limits, |job| (generous(job), job.tenant = Some("nlp".into())).1), None);
        let other = refused(&limits, |job| (generous(job), job.tenant = Some("audio".into())).1);
        assert_eq!(other, Some("tenant"));
        assert_eq!(refused(&limits, |_| ()), Some("class"), "ordinary is not among its classes");
        let said = limits.apply(&mut job()).unwrap_err().to_string();
        assert_eq!(said, "class: your token does not allow ordinary; it allows guaranteed");
    }

    #[test]
    fn a_job_that_says_no_weight_has_no_more_than_it_may() {
        let light = Entitlements { weight_max: 0.25, ..Entitlements::default() };
        let mut request = job();
        light.apply(&mut request).unwrap();
        assert_eq!(request.weight, Some(0.25));
    }
}
