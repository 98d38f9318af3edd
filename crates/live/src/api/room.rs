//! The room that requests and answers take in memory, counted for the user they are of: a body from when it is read
//! until it is taken up, an answer until its last byte has left. So whoever sends much, or asks for much and does not
//! read it, is stopped alone.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Frame, SizeHint};

use super::ApiSite;
use crate::quota::QuotaPlace;

/// An answer that is no larger is not counted: as many as there can be connections take little.
const SMALL: u64 = 16 << 10;

/// What is known of a request while it is answered.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestRoom(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    user: OnceLock<String>,
    body: Mutex<Option<QuotaPlace>>,
}

impl RequestRoom {
    /// It is this user's.
    pub(super) fn is_of(&self, user: &str) {
        // A request has one token.
        let _ = self.0.user.set(user.to_owned());
    }

    /// Whose it is, once they have shown a token.
    pub(super) fn user(&self) -> Option<&str> {
        self.0.user.get().map(String::as_str)
    }

    /// Keeps the room of its body until the answer begins.
    pub(super) fn put(&self, place: QuotaPlace) {
        *self.0.body.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }

    /// Takes it out, for a request that outlives its handler.
    pub(super) fn take(&self) -> Option<QuotaPlace> {
        self.0.body.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Counts a request and its answer.
pub(super) async fn make_room(
    State(site): State<Arc<ApiSite>>,
    mut request: Request,
    next: Next,
) -> Response {
    let room = RequestRoom::default();
    request.extensions_mut().insert(room.clone());
    let response = next.run(request).await;
    drop(room.take());
    let bytes = response.body().size_hint().exact().filter(|bytes| *bytes > SMALL);
    let (Some(user), Some(bytes)) = (room.user(), bytes) else { return response };
    match site.quota.answer(user, usize::try_from(bytes).unwrap_or(usize::MAX)) {
        Ok(place) => response.map(|body| Body::new(Leaving { body, place: Arc::new(place) })),
        Err(problem) => problem.into_response(),
    }
}

/// An answer whose bytes are counted until they have left.
struct Leaving {
    body: Body,
    place: Arc<QuotaPlace>,
}

/// Bytes that wait for a reader, with the room they take.
struct WaitingRequest {
    bytes: Bytes,
    _place: Arc<QuotaPlace>,
}

impl AsRef<[u8]> for WaitingRequest {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl hyper::body::Body for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let place = self.place.clone();
        let counted = |bytes| Bytes::from_owner(WaitingRequest { bytes, _place: place });
        Pin::new(&mut self.body).poll_frame(cx).map(|frame| Some(frame?.map(|frame| frame.map_data(counted))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
