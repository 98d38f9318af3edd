//! The history as a trace, to be run again by the simulator.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Reader, RequestParams};
use super::{ApiProblem, ApiSite, TraceFilter};

/// Which part of it.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct When {
    /// Only jobs submitted from then on: seconds since 1970, UTC.
    from: Option<f64>,
    /// Only jobs submitted before: seconds since 1970, UTC.
    to: Option<f64>,
}

#[utoipa::path(get, path = "/v1/trace", params(When), security(("token" = [])),
    responses((status = 200, content_type = "text/csv", body = String,
        description = "One's own jobs; all for admins")))]
pub(super) async fn trace(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    RequestParams(when): RequestParams<When>,
) -> Result<impl IntoResponse, ApiProblem> {
    let user = (!caller.who.admin).then_some(caller.who.user);
    let filter = TraceFilter { user, from: when.from, to: when.to };
    let csv = site.past(move |past| past.trace(&filter)).await?;
    Ok(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], csv))
}
