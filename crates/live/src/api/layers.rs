//! What happens around each request: it is counted and timed by its route (never by its full path, which may name a
//! job or a node), and it must begin to be answered in time.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, timeout};

use super::{ApiProblem, ApiSite};

pub(super) async fn record(State(site): State<Arc<ApiSite>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = method_name(&request);
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let response = next.run(request).await;
    let (code, took) = (response.status().as_u16(), begun.elapsed());
    site.metrics.request(method, route, code, took);
    tracing::debug!(method, route, code, ms = took.as_secs_f64() * 1e3, "request");
    response
}

pub(super) async fn patience(State(site): State<Arc<ApiSite>>, request: Request, next: Next) -> Response {
    let late = |_| {
        let error = "the request took too long; try again in a moment";
        ApiProblem { retry_s: Some(1.0), ..ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, error) }
            .into_response()
    };
    timeout(site.patience, next.run(request)).await.unwrap_or_else(late)
}

/// A closed list, because a client may invent methods and each would be a new metric.
fn method_name(request: &Request) -> &'static str {
    match request.method().as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}
