//! Tokens: made by admins, listed and revoked by whom they speak for.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::extract::{Admin, Json, Reader, Submitter};
use super::names::check_plain;
use super::{ApiProblem, ApiSite, grants};
use crate::clock::now_us;
use crate::store::tokens::Scope;
use crate::views::{ErrorView, NewToken, TokenList, TokenRequest};

/// A hundred years: what is longer is for ever.
const EXPIRES_MAX_S: f64 = 100.0 * 365.0 * 86_400.0;

#[utoipa::path(get, path = "/v1/tokens", operation_id = "list_tokens", security(("token" = [])),
    responses((status = 200, body = TokenList, description = "One's own; all for admins")))]
pub(super) async fn list(State(site): State<Arc<ApiSite>>, Reader(caller): Reader) -> Answer<TokenList> {
    let user = (!caller.who.admin).then_some(caller.who.user.as_str());
    Answer(TokenList { tokens: site.tokens.list(user) })
}

#[utoipa::path(post, path = "/v1/tokens", request_body = TokenRequest, security(("token" = [])),
    responses((status = 201, body = NewToken, description = "The only time the secret is shown"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView)))]
pub(super) async fn create(
    State(site): State<Arc<ApiSite>>,
    Admin(caller): Admin,
    Json(request): Json<TokenRequest>,
) -> Result<(StatusCode, Answer<NewToken>), ApiProblem> {
    let by = caller.who.user;
    let user = request.user.clone().unwrap_or_else(|| by.clone());
    check_plain("user", &user)?;
    let scope = scope(&request.scope)?;
    let grant = grants::of(scope, &request)?;
    let expires = request.expires_s.or(grants::usual_expiry(scope, &request)).map(expiry).transpose()?;
    let make =
        move || site.tokens.create_with(&user, scope, grant, expires, &by, &site.authority.fingerprint());
    let token = blocking(make).await??;
    Ok((StatusCode::CREATED, Answer(token)))
}

#[utoipa::path(delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", security(("token" = [])),
    params(("id" = String, Path, description = "Its public number")),
    responses((status = 204, description = "It is good no more"),
        (status = 403, body = ErrorView, description = "It allows more than the caller's own token"),
        (status = 404, body = ErrorView)))]
pub(super) async fn revoke(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiProblem> {
    if site.tokens.may_revoke(&caller, &id) == Some(false) {
        let error = "this token allows more than yours; revoke it with that token itself or with an admin's";
        return Err(ApiProblem::new(StatusCode::FORBIDDEN, error));
    }
    let who = caller.who;
    let revoke = move || {
        let owner = (!who.admin).then_some(who.user.as_str());
        site.tokens.revoke(&id, owner, &who.user)
    };
    if blocking(revoke).await?? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiProblem::new(StatusCode::NOT_FOUND, "you have no such token; to list yours: yard token list"))
}

/// Runs what may wait for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiProblem> {
    let failed =
        |_| ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error; see the server's log");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

fn scope(name: &str) -> Result<Scope, ApiProblem> {
    let named: StrDeserializer<'_, Error> = name.into_deserializer();
    Scope::deserialize(named)
        .map_err(|_| ApiProblem::field("scope", "scope: one of read, submit, admin, join"))
}

fn expiry(seconds: f64) -> Result<u64, ApiProblem> {
    if !(seconds > 0.0 && seconds <= EXPIRES_MAX_S) {
        return Err(ApiProblem::field("expires_s", "expires_s: more than 0 and at most a hundred years"));
    }
    Ok(now_us() + (seconds * 1e6) as u64)
}
