//! Who asks: a page that was given a token learns from it what to offer.

use axum::Json as Answer;

use super::extract::Reader;
use crate::views::MeView;

#[utoipa::path(get, path = "/v1/me", security(("token" = [])), responses((status = 200, body = MeView)))]
pub(super) async fn me(Reader(caller): Reader) -> Answer<MeView> {
    let (scope, limits) = (caller.scope.name().to_owned(), caller.limits().cloned());
    Answer(MeView { user: caller.who.user, scope, limits })
}
