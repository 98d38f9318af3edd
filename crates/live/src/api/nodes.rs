//! The nodes: look at them, take them out of service and back.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{Admin, Optional, Reader};
use super::jobs::Reason;
use super::{Problem, Site};
use crate::handle::Ask;
use crate::views::{ErrorView, NodeList};

/// How a node is taken out of service.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Drain {
    /// In words, for whoever asks later.
    reason: Option<String>,
    /// Whether what runs there is asked to save and go on elsewhere.
    evict: bool,
}

#[utoipa::path(get, path = "/v1/nodes", security(("token" = [])), responses((status = 200, body = NodeList)))]
pub(super) async fn list(State(site): State<Arc<Site>>, Reader(_): Reader) -> Answer<NodeList> {
    Answer(NodeList { nodes: site.board().nodes.values().cloned().collect() })
}

#[utoipa::path(post, path = "/v1/nodes/{name}/drain", request_body = Option<Drain>, security(("token" = [])),
    params(("name" = String, Path, description = "The node")),
    responses((status = 204, description = "It takes nothing new"), (status = 403, body = ErrorView),
        (status = 404, body = ErrorView)))]
pub(super) async fn drain(
    State(site): State<Arc<Site>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
    Optional(Drain { reason, evict }): Optional<Drain>,
) -> Result<StatusCode, Problem> {
    let reason = Reason { reason }.checked()?;
    let change = |reply| Ask::Drain { who: caller.who, node, drain: true, evict, reason, reply };
    site.handle.ask(change).await?;
    Ok(StatusCode::NO_CONTENT)
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
    let reason = reason.checked()?;
    let change = |reply| Ask::Drain { who: caller.who, node, drain: false, evict: false, reason, reply };
    site.handle.ask(change).await?;
    Ok(StatusCode::NO_CONTENT)
}
