//! The nodes: look at them, take them out of service and back.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::extract::{Admin, Optional, Reader};
use super::jobs::Reason;
use super::{Problem, Site};
use crate::auth::Caller;
use crate::handle::Ask;
use crate::views::{ErrorView, NodeList};

#[utoipa::path(get, path = "/v1/nodes", security(("token" = [])), responses((status = 200, body = NodeList)))]
pub(super) async fn list(State(site): State<Arc<Site>>, Reader(_): Reader) -> Answer<NodeList> {
    Answer(NodeList { nodes: site.board().nodes.values().cloned().collect() })
}

#[utoipa::path(post, path = "/v1/nodes/{name}/drain", request_body = Option<Reason>, security(("token" = [])),
    params(("name" = String, Path, description = "The node")),
    responses((status = 204, description = "It takes nothing new"), (status = 403, body = ErrorView),
        (status = 404, body = ErrorView)))]
pub(super) async fn drain(
    State(site): State<Arc<Site>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
    Optional(reason): Optional<Reason>,
) -> Result<StatusCode, Problem> {
    change(&site, caller, node, true, reason.checked()?).await
}

#[utoipa::path(post, path = "/v1/nodes/{name}/resume", request_body = Option<Reason>, security(("token" = [])),
    params(("name" = String, Path, description = "The node")),
    responses((status = 204, description = "It takes jobs again"), (status = 403, body = ErrorView),
        (status = 404, body = ErrorView)))]
pub(super) async fn resume(
    State(site): State<Arc<Site>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
    Optional(reason): Optional<Reason>,
) -> Result<StatusCode, Problem> {
    change(&site, caller, node, false, reason.checked()?).await
}

async fn change(
    site: &Site,
    caller: Caller,
    node: String,
    drain: bool,
    reason: Option<String>,
) -> Result<StatusCode, Problem> {
    let who = caller.who;
    site.handle.ask(|reply| Ask::Drain { who, node, drain, reason, reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}
