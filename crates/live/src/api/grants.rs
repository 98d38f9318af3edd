//! What a new token is good for, from what an admin asks for. What does not go with its scope is refused rather than
//! ignored: whoever says it believes that it counts.

use super::ApiProblem;
use crate::entitlements::{Entitlements, Grant};
use crate::request::check::name;
use crate::store::tokens::Scope;
use crate::views::TokenRequest;

const DAY_S: f64 = 86_400.0;
const TEAMS_MAX: usize = 64;
const PATTERNS_MAX: usize = 64;
const PATTERN_MAX: usize = 128;
const WEIGHT_MAX: f64 = 1e6;
const USES_MAX: u64 = 1_000_000;

/// What a token of this scope is to be good for.
pub(super) fn of(scope: Scope, request: &TokenRequest) -> Result<Grant, ApiProblem> {
    only_for(scope, request)?;
    match scope {
        Scope::Join => joins(request),
        Scope::Admin => Ok(Grant::default()),
        Scope::Read | Scope::Submit => Ok(Grant { limits: Some(limits(request)?), ..Grant::default() }),
    }
}

/// How many seconds a token is good where nobody says: one that lets machines in does not lie about for ever.
pub(super) fn usual_expiry(scope: Scope, request: &TokenRequest) -> Option<f64> {
    let days = if request.nodes.is_some() { 30.0 } else { 1.0 };
    (scope == Scope::Join).then_some(days * DAY_S)
}

fn only_for(scope: Scope, request: &TokenRequest) -> Result<(), ApiProblem> {
    let limits = [
        ("teams", request.teams.is_some()),
        ("weight_max", request.weight_max.is_some()),
        ("priority_max", request.priority_max.is_some()),
        ("classes", request.classes.is_some()),
    ];
    let joins = [("nodes", request.nodes.is_some()), ("uses", request.uses.is_some())];
    let said =
        |fields: &[(&'static str, bool)]| fields.iter().find(|(_, said)| *said).map(|(field, _)| *field);
    if let Some(field) = said(&joins).filter(|_| scope != Scope::Join) {
        return Err(ApiProblem::field(field, format!("{field}: only for join tokens")));
    }
    match (scope, said(&limits)) {
        (Scope::Admin, Some(field)) => Err(ApiProblem::field(
            field,
            format!("{field}: admin tokens have no limits; create a submit token"),
        )),
        (Scope::Join, Some(field)) => {
            Err(ApiProblem::field(field, format!("{field}: join tokens cannot submit jobs")))
        }
        _ => Ok(()),
    }
}

fn limits(request: &TokenRequest) -> Result<Entitlements, ApiProblem> {
    let usual = Entitlements::default();
    let limits = Entitlements {
        teams: request.teams.clone().unwrap_or(usual.teams),
        weight_max: request.weight_max.unwrap_or(usual.weight_max),
        priority_max: request.priority_max.unwrap_or(usual.priority_max),
        classes: request.classes.clone().unwrap_or(usual.classes),
    };
    if limits.teams.len() > TEAMS_MAX {
        return Err(ApiProblem::field("teams", format!("teams: at most {TEAMS_MAX}")));
    }
    let named = limits.teams.iter().try_for_each(|team| name("teams", Some(team)));
    named.map_err(|wrong| ApiProblem::field(wrong.field, wrong.to_string()))?;
    if !(limits.weight_max > 0.0 && limits.weight_max <= WEIGHT_MAX) {
        return Err(ApiProblem::field("weight_max", format!("weight_max: above 0 and at most {WEIGHT_MAX}")));
    }
    if limits.classes.is_empty() || limits.classes.len() > 3 {
        return Err(ApiProblem::field("classes", "classes: some of ordinary, guaranteed and opportunistic"));
    }
    Ok(limits)
}

fn joins(request: &TokenRequest) -> Result<Grant, ApiProblem> {
    let Some(nodes) = &request.nodes else {
        return Ok(Grant { uses: Some(uses(request)?.unwrap_or(1)), ..Grant::usual(Scope::Join) });
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_*?".contains(&byte);
    let good =
        |pattern: &String| !pattern.is_empty() && pattern.len() <= PATTERN_MAX && pattern.bytes().all(plain);
    if nodes.is_empty() || nodes.len() > PATTERNS_MAX || !nodes.iter().all(good) {
        return Err(ApiProblem::field(
            "nodes",
            "nodes: names of nodes, with * and ? for any characters, such as gpu-*",
        ));
    }
    Ok(Grant { nodes: nodes.clone(), uses: uses(request)?, limits: None })
}

fn uses(request: &TokenRequest) -> Result<Option<u64>, ApiProblem> {
    if request.uses.is_some_and(|uses| uses == 0 || uses > USES_MAX) {
        return Err(ApiProblem::field("uses", format!("uses: from 1 to {USES_MAX}")));
    }
    Ok(request.uses)
}
