//! One job: submit it, look at it, cancel it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use utoipa::ToSchema;
use yard_core::ids::JobId;

use super::extract::{Json, Optional, Reader, Submitter};
use super::room::RequestRoom;
use super::tokens::blocking;
use super::{ApiProblem, ApiSite, JobFilter, logs};
use crate::auth::Caller;
use crate::entitlements::Excess;
use crate::handle::Ask;
use crate::request::JobRequest;
use crate::request::check::check;
use crate::views::{ErrorView, JobView};

const KEY: &str = "idempotency-key";
const KEY_MAX: usize = 200;
const REASON_MAX: usize = 1_000;

/// Why, in words.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CancelReason {
    /// In words, for whoever asks later.
    pub(super) reason: Option<String>,
}

impl CancelReason {
    pub(super) fn checked(self) -> Result<Option<String>, ApiProblem> {
        let bad = |reason: &String| reason.len() > REASON_MAX || reason.chars().any(char::is_control);
        if self.reason.as_ref().is_some_and(bad) {
            return Err(ApiProblem::field("reason", "reason: one line of at most 1000 bytes"));
        }
        Ok(self.reason)
    }
}

/// How a job is cancelled.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CancelRequest {
    /// In words, for whoever asks later.
    reason: Option<String>,
    /// Kill it at once, without time to save.
    force: bool,
}

#[utoipa::path(post, path = "/v1/jobs", request_body = JobRequest, security(("token" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request harmless")),
    responses((status = 201, body = JobView, description = "The job is durable"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView), (status = 409, body = ErrorView),
        (status = 429, body = ErrorView), (status = 503, body = ErrorView)))]
pub(super) async fn submit(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    headers: HeaderMap,
    Extension(room): Extension<RequestRoom>,
    Json(mut request): Json<JobRequest>,
) -> Result<(StatusCode, Answer<JobView>), ApiProblem> {
    check(&request).map_err(|wrong| ApiProblem::field(wrong.field, wrong.to_string()))?;
    entitled(&caller, &mut request)?;
    let key = key(&headers)?;
    let request = has_secrets(&site, &caller, request).await?;
    let (who, request) = (caller.who, Box::new(request));
    let job = site.handle.ask(|reply| Ask::Submit { who, request, key, room: room.take(), reply }).await?;
    Ok((StatusCode::CREATED, Answer(job)))
}

/// The request, if its user has the secrets that it asks for.
async fn has_secrets(
    site: &Arc<ApiSite>,
    caller: &Caller,
    request: JobRequest,
) -> Result<JobRequest, ApiProblem> {
    if request.secrets.is_empty() {
        return Ok(request);
    }
    let (site, user) = (site.clone(), caller.who.user.clone());
    let (request, lacks) = blocking(move || {
        let lacks = site.secrets.lacks(&user, &request.secrets);
        (request, lacks)
    })
    .await?;
    match lacks? {
        Some(why) => Err(ApiProblem::field("secrets", format!("secrets: {why}"))),
        None => Ok(request),
    }
}

/// Refuses what a job asks for and its user's token does not allow.
pub(super) fn entitled(caller: &Caller, request: &mut JobRequest) -> Result<(), ApiProblem> {
    let Some(limits) = caller.limits() else { return Ok(()) };
    limits.apply(request).map_err(|excess| too_much(&excess))
}

/// It is more than the token allows.
pub(super) fn too_much(excess: &Excess) -> ApiProblem {
    let problem = ApiProblem::field(excess.field, excess.to_string());
    ApiProblem { status: StatusCode::FORBIDDEN, ..problem }
}

#[utoipa::path(get, path = "/v1/jobs/{id}", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = JobView), (status = 404, body = ErrorView)))]
pub(super) async fn show(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    Path(id): Path<String>,
) -> Result<Answer<JobView>, ApiProblem> {
    let mut job = find(&site, &caller, &id).await?;
    if job.request.is_none() {
        let id = job.id;
        job.request = site.past(move |past| past.request(id)).await?;
    }
    if job.state == "failed" || job.failures > 0 && job.state == "pending" {
        job.log_end = logs::end(&site, caller.who, JobId(job.id)).await;
    }
    Ok(Answer(job))
}

#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", request_body = Option<CancelRequest>, security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = JobView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(super) async fn cancel(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(id): Path<String>,
    Optional(CancelRequest { reason, force }): Optional<CancelRequest>,
) -> Result<Answer<JobView>, ApiProblem> {
    let job = JobId(find(&site, &caller, &id).await?.id);
    let (who, reason) = (caller.who, CancelReason { reason }.checked()?);
    Ok(Answer(site.handle.ask(|reply| Ask::Cancel { who, job, reason, force, reply }).await?))
}

/// The job that somebody means, if it is theirs to see.
pub(super) async fn find(site: &ApiSite, caller: &Caller, id: &str) -> Result<JobView, ApiProblem> {
    let missing = || {
        ApiProblem::new(
            StatusCode::NOT_FOUND,
            format!("you have no job {id}; to list your jobs: yard jobs --all"),
        )
    };
    if id == "last" {
        return last(site, caller).await?.ok_or_else(missing);
    }
    let number: u64 = id.parse().map_err(|_| ApiProblem::field("id", "id: a job is a number, or `last`"))?;
    let known = site.board().jobs.get(&number).cloned();
    let job = match known {
        Some(job) => Some(JobView::clone(&job)),
        None => site.past(move |past| past.job(number)).await?,
    };
    job.filter(|job| visible(caller, &job.user)).ok_or_else(missing)
}

pub(super) fn visible(caller: &Caller, owner: &str) -> bool {
    caller.who.admin || caller.who.user == owner
}

/// The newest of one's own.
async fn last(site: &ApiSite, caller: &Caller) -> Result<Option<JobView>, ApiProblem> {
    let user = caller.who.user.clone();
    let known = site.board().jobs.values().rev().find(|job| job.user == user).cloned();
    if let Some(job) = known {
        return Ok(Some(JobView::clone(&job)));
    }
    let filter = JobFilter { user: Some(user), limit: 1, ..JobFilter::default() };
    Ok(site.past(move |past| past.jobs(&filter)).await?.pop())
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ApiProblem> {
    let bad = || ApiProblem::field("Idempotency-Key", "Idempotency-Key: 1 to 200 visible ASCII characters");
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let key = value.to_str().map_err(|_| bad())?;
    if key.is_empty() || key.len() > KEY_MAX { Err(bad()) } else { Ok(Some(key.to_owned())) }
}
