//! The nodes: look at them, take them out of service and back.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::extract::{Admin, Json, Optional, Reader};
use super::jobs::Reason;
use super::{Problem, Site};
use crate::handle::Ask;
use crate::views::{ErrorView, NodeList, NodeView};

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
    let nodes = site.board().glance().nodes;
    Answer(NodeList { nodes: nodes.iter().map(|node| NodeView::clone(node)).collect() })
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

/// How many nodes are taken out of service, whichever.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainSome {
    /// The kind of their devices.
    kind: String,
    /// How many.
    count: u32,
    /// In words, for whoever asks later.
    reason: Option<String>,
    /// Whether what runs there is asked to save and go on elsewhere.
    #[serde(default)]
    evict: bool,
}

/// The nodes that were taken out of service.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Drained {
    /// Their names.
    nodes: Vec<String>,
}

#[utoipa::path(post, path = "/v1/nodes/drain", request_body = DrainSome, security(("token" = [])),
    responses((status = 200, body = Drained, description = "Those take nothing new whose jobs cost least to stop"),
        (status = 403, body = ErrorView), (status = 404, body = ErrorView)))]
pub(super) async fn drain_some(
    State(site): State<Arc<Site>>,
    Admin(caller): Admin,
    Json(DrainSome { kind, count, reason, evict }): Json<DrainSome>,
) -> Result<Answer<Drained>, Problem> {
    let reason = Reason { reason }.checked()?;
    let nodes = site.handle.ask(|reply| Ask::Cheapest { kind, count, reply }).await?;
    for node in &nodes {
        let (who, node, reason) = (caller.who.clone(), node.clone(), reason.clone());
        site.handle.ask(|reply| Ask::Drain { who, node, drain: true, evict, reason, reply }).await?;
    }
    Ok(Answer(Drained { nodes }))
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
