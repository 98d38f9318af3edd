//! How fast a job went, as far as it said so since the server was started.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};

use super::extract::Reader;
use super::jobs::find;
use super::{ApiProblem, ApiSite};
use crate::pace::Pace;
use crate::views::ErrorView;

#[utoipa::path(get, path = "/v1/jobs/{id}/progress", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`")),
    responses((status = 200, body = Pace, description = "Few points, however long it runs; none for jobs that never say how far they are"),
        (status = 404, body = ErrorView)))]
pub(super) async fn progress(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    Path(id): Path<String>,
) -> Result<Answer<Pace>, ApiProblem> {
    let job = find(&site, &caller, &id).await?;
    Ok(Answer(site.board().paces.get(&job.id).cloned().unwrap_or_default()))
}
