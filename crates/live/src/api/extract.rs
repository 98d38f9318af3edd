//! What handlers take: who asks, and what they ask, with errors that name the field.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::room::RequestRoom;
use super::{ApiProblem, ApiSite, BODY_MAX};
use crate::auth::Caller;
use crate::listen::PeerAddress;
use crate::quota::GUEST_BODY_MAX;
use crate::store::tokens::Scope;

/// Somebody who may look.
pub(super) struct Reader(pub(super) Caller);
/// Somebody who may submit and cancel.
pub(super) struct Submitter(pub(super) Caller);
/// Somebody who may do everything.
pub(super) struct Admin(pub(super) Caller);

impl FromRequestParts<Arc<ApiSite>> for Reader {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<ApiSite>) -> Result<Reader, ApiProblem> {
        caller(parts, site, Scope::Read).map(Reader)
    }
}

impl FromRequestParts<Arc<ApiSite>> for Submitter {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<ApiSite>) -> Result<Submitter, ApiProblem> {
        caller(parts, site, Scope::Submit).map(Submitter)
    }
}

impl FromRequestParts<Arc<ApiSite>> for Admin {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<ApiSite>) -> Result<Admin, ApiProblem> {
        caller(parts, site, Scope::Admin).map(Admin)
    }
}

impl FromRequestParts<Arc<ApiSite>> for PeerAddress {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<ApiSite>) -> Result<PeerAddress, ApiProblem> {
        peer(parts).cloned()
    }
}

fn caller(parts: &Parts, site: &ApiSite, needed: Scope) -> Result<Caller, ApiProblem> {
    let peer = peer(parts)?;
    let caller = site.tokens.check(bearer(parts)?, peer.address.ip().to_canonical())?;
    if !caller.scope.allows(needed) {
        let error =
            format!("this needs a token with scope {}; yours has {}", needed.name(), caller.scope.name());
        return Err(ApiProblem::new(StatusCode::FORBIDDEN, error));
    }
    site.quota.request(&caller)?;
    peer.count_for(|| site.quota.connection(&caller.who.user))?;
    peer.known();
    if let Some(room) = parts.extensions.get::<RequestRoom>() {
        room.is_of(&caller.who.user);
    }
    Ok(caller)
}

fn peer(parts: &Parts) -> Result<&PeerAddress, ApiProblem> {
    parts.extensions.get::<PeerAddress>().ok_or_else(unknown_peer)
}

fn unknown_peer() -> ApiProblem {
    ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "the connection is not known")
}

fn bearer(parts: &Parts) -> Result<&str, ApiProblem> {
    let error = "this needs a token: send `Authorization: Bearer TOKEN`; create one with `yard token create`";
    let value = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| token.trim()).ok_or_else(|| ApiProblem::new(StatusCode::UNAUTHORIZED, error))
}

/// A body in JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<ApiSite>> for Json<T> {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, site: &Arc<ApiSite>) -> Result<Json<T>, ApiProblem> {
        let bytes = read(request, site).await?;
        parse(&bytes).map(Json)
    }
}

/// A body in JSON that may be missing.
pub(super) struct Optional<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<ApiSite>> for Optional<T> {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, site: &Arc<ApiSite>) -> Result<Optional<T>, ApiProblem> {
        let bytes = read(request, site).await?;
        if bytes.is_empty() { Ok(Optional(T::default())) } else { parse(&bytes).map(Optional) }
    }
}

/// What stands behind the `?`.
pub(super) struct RequestParams<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<ApiSite>> for RequestParams<T> {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<ApiSite>) -> Result<RequestParams<T>, ApiProblem> {
        let Query(params) = Query::try_from_uri(&parts.uri)
            .map_err(|error| ApiProblem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
        Ok(RequestParams(params))
    }
}

/// A body that says it is too large is refused before it is sent, and so is one for which there is no room now. One that
/// does not say how large it is takes as much room as it may need.
async fn read(request: Request, site: &ApiSite) -> Result<Vec<u8>, ApiProblem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<u64>().ok());
    let room = request.extensions().get::<RequestRoom>().cloned().unwrap_or_default();
    let known = room.user();
    let most = if known.is_some() { BODY_MAX } else { GUEST_BODY_MAX };
    let length = length.map_or(most, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if length > most {
        return Err(too_large(most));
    }
    let place = match (known, request.extensions().get::<PeerAddress>()) {
        (Some(user), _) => site.quota.room(user, length)?,
        (None, Some(peer)) => site.quota.guest_room(peer.address.ip().to_canonical(), length)?,
        (None, None) => return Err(unknown_peer()),
    };
    room.put(place);
    let gathered = gather(request.into_body(), most);
    if known.is_some() {
        return gathered.await;
    }
    timeout(site.quota.guest_body, gathered).await.unwrap_or_else(|_| {
        let error = "the body did not arrive in time; send it without pauses";
        Err(ApiProblem::new(StatusCode::REQUEST_TIMEOUT, error))
    })
}

async fn gather(body: Body, most: usize) -> Result<Vec<u8>, ApiProblem> {
    let (mut pieces, mut bytes) = (body.into_data_stream(), Vec::new());
    while let Some(piece) = pieces.next().await {
        let unread =
            |_| ApiProblem::new(StatusCode::BAD_REQUEST, "the body could not be read; send it again");
        let piece = piece.map_err(unread)?;
        if bytes.len() + piece.len() > most {
            return Err(too_large(most));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn too_large(most: usize) -> ApiProblem {
    let error = format!("the body is larger than {most} bytes; refer to files by their paths instead");
    ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}

/// Our bodies are objects. Without the check a list would do too: its items would be taken for the fields in order.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiProblem> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiProblem::new(
            StatusCode::BAD_REQUEST,
            "the body must be a JSON object, such as {\"…\": …}",
        ));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let error = error.into_inner().to_string();
        let field = if field == "." { unknown_field(&error).map(str::to_owned) } else { Some(field) };
        ApiProblem {
            view: crate::views::ErrorView { error, field },
            ..ApiProblem::new(StatusCode::BAD_REQUEST, "")
        }
    })?;
    let end = json.end().map(|()| value);
    end.map_err(|_| {
        ApiProblem::new(StatusCode::BAD_REQUEST, "the body has more than one JSON value; send one")
    })
}

/// serde names an unknown field in its message only.
fn unknown_field(error: &str) -> Option<&str> {
    error.strip_prefix("unknown field `")?.split('`').next()
}
