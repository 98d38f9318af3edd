//! What is answered when something is not done: a status, a sentence with the remedy, and the field it is about.

use std::any::Any;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;

use crate::auth::Denied;
use crate::handle::Refusal;
use crate::store::certificates::BarredCertificate;
use crate::store::tokens::TokensError;
use crate::views::ErrorView;

/// An answer that is not the one hoped for.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiProblem {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub view: ErrorView,
    /// Seconds after which to try again.
    pub retry_s: Option<f64>,
}

impl ApiProblem {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> ApiProblem {
        ApiProblem { status, view: ErrorView { error: error.into(), field: None }, retry_s: None }
    }

    /// A request that is wrong in one field.
    pub(crate) fn field(field: &str, error: impl Into<String>) -> ApiProblem {
        let view = ErrorView { error: error.into(), field: Some(field.to_owned()) };
        ApiProblem { view, ..ApiProblem::new(StatusCode::BAD_REQUEST, "") }
    }

    pub(crate) fn later(retry_s: f64, error: impl Into<String>) -> ApiProblem {
        ApiProblem { retry_s: Some(retry_s), ..ApiProblem::new(StatusCode::TOO_MANY_REQUESTS, error) }
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response<Body> {
        let mut response = (self.status, Json(self.view)).into_response();
        if let Some(seconds) = self.retry_s {
            let seconds = HeaderValue::from(seconds.ceil().max(1.0) as u64);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refusal> for ApiProblem {
    fn from(refusal: Refusal) -> ApiProblem {
        let status = match &refusal {
            Refusal::Invalid { .. } => StatusCode::BAD_REQUEST,
            Refusal::NotFound(_) => StatusCode::NOT_FOUND,
            Refusal::Forbidden(_) => StatusCode::FORBIDDEN,
            Refusal::Conflict(_) => StatusCode::CONFLICT,
            Refusal::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let retry_s = matches!(refusal, Refusal::Unavailable(_)).then_some(1.0);
        let error = refusal.to_string();
        let field = if let Refusal::Invalid { field, .. } = refusal { field } else { None };
        ApiProblem { status, view: ErrorView { error, field }, retry_s }
    }
}

impl From<TokensError> for ApiProblem {
    fn from(error: TokensError) -> ApiProblem {
        Refusal::Unavailable(error.to_string()).into()
    }
}

impl From<BarredCertificate> for ApiProblem {
    fn from(barred: BarredCertificate) -> ApiProblem {
        let status = match barred {
            BarredCertificate::Revoked(_) | BarredCertificate::Unknown(_) => StatusCode::FORBIDDEN,
            BarredCertificate::Taken(_) => StatusCode::CONFLICT,
            BarredCertificate::UsedUp => StatusCode::UNAUTHORIZED,
            BarredCertificate::Store(error) => return error.into(),
        };
        ApiProblem::new(status, barred.to_string())
    }
}

impl From<Denied> for ApiProblem {
    fn from(denied: Denied) -> ApiProblem {
        let refused = |error: &str| ApiProblem::new(StatusCode::UNAUTHORIZED, error);
        match denied {
            Denied::Unknown => refused("this token is unknown or was revoked; ask an admin for a new one"),
            Denied::Expired => refused("this token has expired; ask an admin for a new one"),
            Denied::TooMany(seconds) => ApiProblem::later(
                seconds,
                "too many requests with a wrong token; wait a moment, then use a valid one",
            ),
        }
    }
}

pub(super) async fn no_such_path(request: Request) -> ApiProblem {
    let path = request.uri().path();
    ApiProblem::new(StatusCode::NOT_FOUND, format!("there is nothing at {path}; see /v1/openapi.json"))
}

pub(super) async fn no_such_method(request: Request) -> ApiProblem {
    let error =
        format!("{} is not for {} here; see /v1/openapi.json", request.uri().path(), request.method());
    ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, error)
}

pub(super) fn panicked(_: Box<dyn Any + Send>) -> Response<Body> {
    tracing::error!("a request made the server panic: please report it");
    let error = "internal error; see the server's log";
    ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response()
}
