//! How the server is: for people, for Prometheus and for whatever restarts it.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::extract::Reader;
use super::{ApiProblem, ApiSite};
use crate::clock::{now_us, seconds};
use crate::handle::Refusal;
use crate::views::{ErrorView, StatusView};

#[utoipa::path(get, path = "/v1/status", security(("token" = [])),
    responses((status = 200, body = StatusView), (status = 503, body = ErrorView)))]
pub(super) async fn status(
    State(site): State<Arc<ApiSite>>,
    Reader(_): Reader,
) -> Result<Answer<StatusView>, ApiProblem> {
    let starting = || Refusal::Unavailable("the scheduler is starting; try again in a moment".into());
    Ok(Answer(site.board().status.clone().ok_or_else(starting)?))
}

#[utoipa::path(get, path = "/metrics", security(("token" = [])),
    responses((status = 200, content_type = "application/openmetrics-text", body = String,
        description = "For Prometheus")))]
pub(super) async fn metrics(State(site): State<Arc<ApiSite>>, Reader(_): Reader) -> impl IntoResponse {
    let glance = site.board().glance();
    let text = site.metrics.text(&glance, now_us());
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}

#[utoipa::path(get, path = "/healthz",
    responses((status = 200, description = "The process lives"), (status = 503, body = ErrorView)))]
pub(super) async fn healthz(State(site): State<Arc<ApiSite>>) -> Result<&'static str, ApiProblem> {
    if !site.handle.is_alive() {
        let error = "the scheduler has stopped; restart the server, its log says why".to_owned();
        return Err(Refusal::Unavailable(error).into());
    }
    Ok("ok\n")
}

#[utoipa::path(get, path = "/readyz",
    responses((status = 200, description = "The scheduling loop goes round"), (status = 503, body = ErrorView)))]
pub(super) async fn readyz(State(site): State<Arc<ApiSite>>) -> Result<&'static str, ApiProblem> {
    let silent = seconds(now_us().saturating_sub(site.board().alive));
    if silent > site.stall.as_secs_f64() {
        let error = format!("the scheduling loop has not gone round for {silent:.0} s; see the server's log");
        return Err(Refusal::Unavailable(error).into());
    }
    Ok("ok\n")
}
