//! The description of the API, made from the routes themselves.

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::IntoResponse;
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

/// The description as it is sent. Anybody may ask for it, so all answers share one text in memory.
#[derive(Clone)]
pub(super) struct DocumentText(Bytes);

impl DocumentText {
    pub(super) fn new(document: &utoipa::openapi::OpenApi) -> DocumentText {
        DocumentText(Bytes::from(serde_json::to_vec(document).expect("a description is JSON")))
    }
}

#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "This document")))]
pub(super) async fn document(Extension(DocumentText(text)): Extension<DocumentText>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}
