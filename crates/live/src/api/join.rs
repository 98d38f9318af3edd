//! A machine becomes a node with a join token; a node renews its certificate with the one it has.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;

use super::extract::Json;
use super::names::check_plain;
use super::tokens::blocking;
use super::{Problem, Site};
use crate::ca::CaError;
use crate::clock::now_us;
use crate::listen::Peer;
use crate::views::{ErrorView, JoinReply, JoinRequest};

#[utoipa::path(post, path = "/v1/join", request_body = JoinRequest,
    responses((status = 200, body = JoinReply), (status = 400, body = ErrorView), (status = 401, body = ErrorView)))]
pub(super) async fn join(
    State(site): State<Arc<Site>>,
    peer: Peer,
    Json(request): Json<JoinRequest>,
) -> Result<Answer<JoinReply>, Problem> {
    let by = allowed(&site, &peer, &request)?;
    check_plain("name", &request.name)?;
    let signed = site.authority.sign(&request.csr, &request.name, now_us());
    let certificate = signed.map_err(|error| match error {
        CaError::Request(_) => Problem::field("csr", error.to_string()),
        _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    })?;
    let (log, name) = (site.clone(), request.name);
    blocking(move || log.tokens.audit(&by, "join", &name)).await??;
    Ok(Answer(JoinReply { certificate, ca: site.authority.pem().to_owned() }))
}

/// On whose word: a join token's owner, or the node itself.
fn allowed(site: &Site, peer: &Peer, request: &JoinRequest) -> Result<String, Problem> {
    if let Some(token) = &request.token {
        return Ok(site.tokens.check_join(token.trim(), peer.address.ip().to_canonical())?);
    }
    if peer.node.as_deref() == Some(request.name.as_str()) {
        return Ok(format!("node {}", request.name));
    }
    let error = "joining needs a join token, or the node's own certificate; `yard token create --scope join` makes one";
    Err(Problem::new(StatusCode::UNAUTHORIZED, error))
}
