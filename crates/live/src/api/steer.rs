//! Jobs that are not over: hold them, release them, have them start again, change what they ask for.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use yard_core::ids::JobId;

use super::extract::{Optional, Submitter};
use super::jobs::{CancelReason, find, too_much};
use super::{ApiProblem, ApiSite};
use crate::auth::Caller;
use crate::handle::{Ask, Steering};
use crate::request::edit::JobEdit;
use crate::views::{ErrorView, JobView};

#[utoipa::path(post, path = "/v1/jobs/{id}/hold", request_body = Option<CancelReason>, security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = JobView, description = "It gets no devices until it is released"),
        (status = 400, body = ErrorView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(super) async fn hold(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(id): Path<String>,
    Optional(reason): Optional<CancelReason>,
) -> Result<Answer<JobView>, ApiProblem> {
    let reason = reason.checked()?;
    steer(&site, caller, &id, Steering::Hold { reason }).await
}

#[utoipa::path(post, path = "/v1/jobs/{id}/release", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = JobView, description = "It waits for devices again"),
        (status = 403, body = ErrorView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(super) async fn release(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(id): Path<String>,
) -> Result<Answer<JobView>, ApiProblem> {
    steer(&site, caller, &id, Steering::Release).await
}

#[utoipa::path(post, path = "/v1/jobs/{id}/requeue", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = JobView, description = "It stops, and starts again from its last checkpoint"),
        (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(super) async fn requeue(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(id): Path<String>,
) -> Result<Answer<JobView>, ApiProblem> {
    steer(&site, caller, &id, Steering::Requeue).await
}

#[utoipa::path(post, path = "/v1/jobs/{id}/edit", request_body = JobEdit, security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = JobView, description = "The job as it is then"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView)))]
pub(super) async fn edit(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(id): Path<String>,
    Optional(edit): Optional<JobEdit>,
) -> Result<Answer<JobView>, ApiProblem> {
    find(&site, &caller, &id).await?;
    if edit.is_empty() {
        return Err(ApiProblem::new(
            StatusCode::BAD_REQUEST,
            "nothing to change: name a field and its new value",
        ));
    }
    let allowed = caller.limits().map_or(Ok(()), |limits| limits.allow(&edit));
    allowed.map_err(|excess| too_much(&excess))?;
    steer(&site, caller, &id, Steering::Edit(Box::new(edit))).await
}

async fn steer(
    site: &Arc<ApiSite>,
    caller: Caller,
    id: &str,
    steering: Steering,
) -> Result<Answer<JobView>, ApiProblem> {
    let job = JobId(find(site, &caller, id).await?.id);
    let who = caller.who;
    Ok(Answer(site.handle.ask(|reply| Ask::Steer { who, job, steering, reply }).await?))
}
