//! The description of the API, made from the routes themselves.

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

#[derive(OpenApi)]
#[openapi(info(title = "Switchyard", description = "A scheduler for deep-learning clusters"),
    // A parameter names it, and what only parameters name is not collected.
    components(schemas(crate::handle::LogOf)))]
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
        let mut document = serde_json::to_value(document).expect("a description is JSON");
        let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
        paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut()).for_each(complete);
        DocumentText(Bytes::from(document.to_string()))
    }
}

/// What is so of every operation: how it may be refused, and what each answer means.
fn complete(operation: &mut Value) {
    let wants_token = operation.get("security").is_some();
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    let problem = json!({"application/json": {"schema": {"$ref": "#/components/schemas/ErrorView"}}});
    let always = [("401", wants_token), ("default", true)];
    for (status, _) in always.into_iter().filter(|(_, needed)| *needed) {
        responses.entry(status).or_insert_with(|| json!({"content": problem}));
    }
    for (status, response) in responses {
        let described = response["description"].as_str().is_some_and(|text| !text.is_empty());
        if !described {
            response["description"] = meaning(status).into();
        }
    }
}

/// What a status means here.
fn meaning(status: &str) -> &'static str {
    match status {
        "200" => "What was asked for",
        "201" => "It is made, and durable",
        "202" => "It is being done",
        "204" => "It is done",
        "400" => "The request is wrong: in which field, and what is allowed",
        "401" => "There is no token, or it is unknown, revoked or expired",
        "403" => "The token does not allow this",
        "404" => "There is no such thing, or it is not the caller's to see",
        "409" => "It contradicts what is: it is over, or was made in another way",
        "413" => "The body is too large",
        "429" => "Too much at once: try again after the seconds in Retry-After",
        "503" => "It cannot be done now: try again after the seconds in Retry-After",
        _ => "It was not done: why, and what to do",
    }
}

#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "This document")))]
pub(super) async fn document(Extension(DocumentText(text)): Extension<DocumentText>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}
