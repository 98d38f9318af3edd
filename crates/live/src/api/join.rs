//! A machine becomes a node with a join token; a node renews its certificate with the one it has.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;

use super::extract::Json;
use super::names::check_plain;
use super::tokens::blocking;
use super::{ApiProblem, ApiSite};
use crate::auth::JoinToken;
use crate::ca::CaError;
use crate::clock::now_us;
use crate::listen::PeerAddress;
use crate::pattern::matches;
use crate::store::certificates::{BarredCertificate, Issued};
use crate::store::tokens::Audit;
use crate::tls::fingerprint_of_pem;
use crate::views::{ErrorView, JoinReply, JoinRequest};

/// On whose word a certificate is made.
enum JoinGround {
    /// A join token's.
    Token(JoinToken),
    /// The node's own, by the certificate of this fingerprint.
    Shown(String),
}

#[utoipa::path(post, path = "/v1/join", request_body = JoinRequest,
    responses((status = 200, body = JoinReply), (status = 400, body = ErrorView), (status = 401, body = ErrorView),
        (status = 403, body = ErrorView), (status = 409, body = ErrorView, description = "The name is taken"),
        (status = 429, body = ErrorView, description = "Too often with this token, or by this node")))]
pub(super) async fn join(
    State(site): State<Arc<ApiSite>>,
    peer: PeerAddress,
    Json(request): Json<JoinRequest>,
) -> Result<Answer<JoinReply>, ApiProblem> {
    let ground = allowed(&site, &peer, &request)?;
    check_plain("name", &request.name)?;
    let known = site.board().nodes.contains_key(&request.name);
    let ca = site.authority.pem().to_owned();
    let certificate = blocking(move || certified(&site, &request, &ground, known)).await??;
    Ok(Answer(JoinReply { certificate, ca }))
}

/// By a join token or by the node's own certificate, whether that is still good or not.
fn allowed(site: &ApiSite, peer: &PeerAddress, request: &JoinRequest) -> Result<JoinGround, ApiProblem> {
    if let Some(token) = &request.token {
        let token = site.tokens.check_join(token.trim(), peer.address.ip().to_canonical())?;
        if !token.nodes.iter().any(|pattern| matches(pattern, &request.name)) {
            let (name, nodes) = (&request.name, token.nodes.join(", "));
            let error = format!("this join token is for nodes named {nodes}, not for {name}");
            return Err(ApiProblem::new(StatusCode::FORBIDDEN, error));
        }
        site.quota.join(&token.id)?;
        return Ok(JoinGround::Token(token));
    }
    match (&peer.node, &peer.certificate) {
        (Some(node), Some(shown)) if *node == request.name => Ok(JoinGround::Shown(shown.clone())),
        _ => {
            let error =
                "joining needs a join token (`yard token create --scope join`) or the node's own certificate";
            Err(ApiProblem::new(StatusCode::UNAUTHORIZED, error))
        }
    }
}

/// Signs a certificate and records it. `known`: there is a node of this name.
fn certified(
    site: &ApiSite,
    request: &JoinRequest,
    ground: &JoinGround,
    known: bool,
) -> Result<String, ApiProblem> {
    let (node, now) = (request.name.as_str(), now_us());
    match ground {
        JoinGround::Token(_) if known || site.tokens.store().is_taken(node)? => {
            return Err(BarredCertificate::Taken(node.to_owned()).into());
        }
        JoinGround::Token(_) => {}
        JoinGround::Shown(shown) => {
            site.tokens.store().admit(Issued { node, fingerprint: shown }, known, now)?;
            // Counted for who is admitted only: a revoked certificate must not use up the node's turn.
            site.quota.renewal(node)?;
        }
    }
    let signed = site.authority.sign(&request.csr, node, now);
    let certificate = signed.map_err(|error| match error {
        CaError::Request(_) => ApiProblem::field("csr", error.to_string()),
        _ => ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    })?;
    let fingerprint = fingerprint_of_pem(&certificate)
        .map_err(|error| ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let issued = Issued { node, fingerprint: &fingerprint };
    match ground {
        JoinGround::Token(token) => site.tokens.join(issued, token)?,
        JoinGround::Shown(shown) => {
            let user = format!("node {node}");
            let audit = Audit { time_us: now, user: &user, what: "renew", target: node };
            site.tokens.store().renew(issued, shown, audit)?;
        }
    }
    Ok(certificate)
}
