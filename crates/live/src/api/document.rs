//! The description of the API, made from the routes themselves.

use std::sync::Arc;

use axum::{Extension, Json as Answer};
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

#[derive(OpenApi)]
#[openapi(info(title = "Switchyard", description = "A scheduler for deep-learning clusters"))]
struct Document;

/// The description before any route is in it.
pub(super) fn empty() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("token", bearer);
    document
}

#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "This document")))]
pub(super) async fn document(
    Extension(document): Extension<Arc<utoipa::openapi::OpenApi>>,
) -> Answer<Arc<utoipa::openapi::OpenApi>> {
    Answer(document)
}
