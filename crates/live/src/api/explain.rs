//! Why a job waits. Only the driver knows: it asks the engine what the next round would do.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use yard_core::ids::JobId;

use super::extract::Reader;
use super::jobs::find;
use super::{ApiProblem, ApiSite};
use crate::explain::over;
use crate::handle::Ask;
use crate::views::{ErrorView, Explanation};

#[utoipa::path(get, path = "/v1/jobs/{id}/explain", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = Explanation), (status = 404, body = ErrorView)))]
pub(super) async fn explain(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    Path(id): Path<String>,
) -> Result<Answer<Explanation>, ApiProblem> {
    let job = find(&site, &caller, &id).await?;
    if job.ended_at.is_some() {
        return Ok(Answer(over(job.id, &job.state, job.reason.as_deref())));
    }
    let (estimate, length, job) = (job.estimate, job.length.clone(), JobId(job.id));
    let told = site.handle.ask(|reply| Ask::Explain { job, reply }).await?;
    Ok(Answer(Explanation { estimate, length, ..told }))
}
