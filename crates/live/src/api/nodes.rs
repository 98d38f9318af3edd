//! The nodes: look at them, take them out of service and back, and take their names from them.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::extract::{Admin, Json, Optional, Reader, RequestParams};
use super::jobs::CancelReason;
use super::tokens::blocking;
use super::{ApiProblem, ApiSite};
use crate::auth::Caller;
use crate::clock::now_us;
use crate::handle::{Ask, Refusal};
use crate::store::tokens::{Audit, TokenStore};
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

#[utoipa::path(get, path = "/v1/nodes", operation_id = "list_nodes", security(("token" = [])), responses((status = 200, body = NodeList)))]
pub(super) async fn list(State(site): State<Arc<ApiSite>>, Reader(_): Reader) -> Answer<NodeList> {
    let nodes = site.board().glance().nodes;
    Answer(NodeList { nodes: nodes.iter().map(|node| NodeView::clone(node)).collect() })
}

#[utoipa::path(post, path = "/v1/nodes/{name}/drain", request_body = Option<Drain>, security(("token" = [])),
    params(("name" = String, Path, description = "The node")),
    responses((status = 204, description = "It takes nothing new"), (status = 403, body = ErrorView),
        (status = 404, body = ErrorView)))]
pub(super) async fn drain(
    State(site): State<Arc<ApiSite>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
    Optional(Drain { reason, evict }): Optional<Drain>,
) -> Result<StatusCode, ApiProblem> {
    let reason = CancelReason { reason }.checked()?;
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
    State(site): State<Arc<ApiSite>>,
    Admin(caller): Admin,
    Json(DrainSome { kind, count, reason, evict }): Json<DrainSome>,
) -> Result<Answer<Drained>, ApiProblem> {
    let reason = CancelReason { reason }.checked()?;
    let nodes = site.handle.ask(|reply| Ask::Cheapest { kind, count, reply }).await?;
    for node in &nodes {
        let (who, node, reason) = (caller.who.clone(), node.clone(), reason.clone());
        site.handle.ask(|reply| Ask::Drain { who, node, drain: true, evict, reason, reply }).await?;
    }
    Ok(Answer(Drained { nodes }))
}

#[utoipa::path(post, path = "/v1/nodes/{name}/resume", request_body = Option<CancelReason>, security(("token" = [])),
    params(("name" = String, Path, description = "The node")),
    responses((status = 204, description = "It takes jobs again"), (status = 403, body = ErrorView),
        (status = 404, body = ErrorView)))]
pub(super) async fn resume(
    State(site): State<Arc<ApiSite>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
    Optional(reason): Optional<CancelReason>,
) -> Result<StatusCode, ApiProblem> {
    let reason = reason.checked()?;
    let change = |reply| Ask::Drain { who: caller.who, node, drain: false, evict: false, reason, reply };
    site.handle.ask(change).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(post, path = "/v1/nodes/{name}/revoke", operation_id = "revoke_node", security(("token" = [])),
    params(("name" = String, Path, description = "The node")),
    responses((status = 204, description = "Its certificates are void and its connection is closed"),
        (status = 403, body = ErrorView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(super) async fn revoke(
    State(site): State<Arc<ApiSite>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
) -> Result<StatusCode, ApiProblem> {
    let known = site.board().nodes.contains_key(&node);
    // First the record, then the connection: one that is being made is checked against the record once more.
    certificates(&site, &caller, &node, "revoke node", move |store, audit| {
        if !known && !store.is_taken(audit.target)? {
            return Err(no_node(audit.target));
        }
        if store.is_local(audit.target)? {
            let error = format!(
                "node {} is the server's own machine and has no certificate; start the server with --no-agent",
                audit.target
            );
            return Err(ApiProblem::new(StatusCode::CONFLICT, error));
        }
        Ok(store.revoke_node(audit.target, audit)?)
    })
    .await?;
    site.handle.ask(|reply| Ask::Sever { node, reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How a node is removed.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Removal {
    /// Also while it is up.
    force: bool,
}

#[utoipa::path(delete, path = "/v1/nodes/{name}", operation_id = "remove_node", security(("token" = [])),
    params(("name" = String, Path, description = "The node"), Removal),
    responses((status = 204, description = "It is forgotten once nothing runs there any more, and its name is free"),
        (status = 403, body = ErrorView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It is up")))]
pub(super) async fn remove(
    State(site): State<Arc<ApiSite>>,
    Admin(caller): Admin,
    Path(node): Path<String>,
    RequestParams(Removal { force }): RequestParams<Removal>,
) -> Result<StatusCode, ApiProblem> {
    let state = site.board().nodes.get(&node).map(|known| known.state.clone());
    let up = state.as_ref().is_some_and(|state| matches!(state.as_str(), "up" | "draining"));
    let known = state.is_some();
    certificates(&site, &caller, &node, "remove node", move |store, audit| {
        let node = audit.target;
        if !known && !store.is_taken(node)? {
            return Err(no_node(node));
        }
        if up && store.is_local(node)? {
            let error =
                format!("node {node} is the server's own machine; start the server with --no-agent first");
            return Err(ApiProblem::new(StatusCode::CONFLICT, error));
        }
        if up && !force {
            let error = format!(
                "node {node} is up. Stop its agent first, or remove it with --force: its jobs then restart \
                 elsewhere once its lease has expired"
            );
            return Err(ApiProblem::new(StatusCode::CONFLICT, error));
        }
        Ok(store.release_node(node, audit)?)
    })
    .await?;
    let who = caller.who;
    match site.handle.ask(|reply| Ask::Remove { who, node, reply }).await {
        // It joined and never connected: its certificate was all there was.
        Ok(()) | Err(Refusal::NotFound(_)) => Ok(StatusCode::NO_CONTENT),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Changes what is recorded of a node's certificates.
async fn certificates(
    site: &Arc<ApiSite>,
    caller: &Caller,
    node: &str,
    what: &'static str,
    change: impl FnOnce(&TokenStore, Audit<'_>) -> Result<(), ApiProblem> + Send + 'static,
) -> Result<(), ApiProblem> {
    let (tokens, user, node) = (site.tokens.clone(), caller.who.user.clone(), node.to_owned());
    let changed = move || {
        let audit = Audit { time_us: now_us(), user: &user, what, target: &node };
        change(tokens.store(), audit)
    };
    blocking(changed).await?
}

fn no_node(node: &str) -> ApiProblem {
    Refusal::NotFound(format!("there is no node {node:?}; to list the nodes: yard nodes")).into()
}
