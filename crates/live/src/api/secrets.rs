//! One's own secrets: set them, see their names, take them away. Nobody gets a value back, not even an admin: only the
//! jobs of their owner are given them.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::extract::{Json, Submitter};
use super::tokens::blocking;
use super::{ApiProblem, ApiSite};
use crate::handle::Refusal;
use crate::request::secrets::check_name;
use crate::secrets::{SecretsError, VALUE_MAX};
use crate::views::{ErrorView, SecretList, SecretRequest};
use crate::wire::SecretValue;

#[utoipa::path(put, path = "/v1/secrets/{name}", request_body = SecretRequest, security(("token" = [])),
    params(("name" = String, Path, description = "What to call it")),
    responses((status = 204, description = "Jobs that start from now on are given this value"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView), (status = 429, body = ErrorView)))]
pub(super) async fn set(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(name): Path<String>,
    Json(SecretRequest { value }): Json<SecretRequest>,
) -> Result<StatusCode, ApiProblem> {
    check_name(&name).map_err(|wrong| ApiProblem::field("name", wrong))?;
    check_value(&value)?;
    site.quota.note(&caller)?;
    let user = caller.who.user;
    blocking(move || {
        site.secrets.set(&user, &name, &value)?;
        Ok::<_, ApiProblem>(site.tokens.audit(&user, "secret set", &name)?)
    })
    .await??;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(get, path = "/v1/secrets", operation_id = "list_secrets", security(("token" = [])),
    responses((status = 200, body = SecretList, description = "One's own, without their values")))]
pub(super) async fn list(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
) -> Result<Answer<SecretList>, ApiProblem> {
    let secrets = blocking(move || site.secrets.list(&caller.who.user)).await??;
    Ok(Answer(SecretList { secrets }))
}

#[utoipa::path(delete, path = "/v1/secrets/{name}", operation_id = "remove_secret", security(("token" = [])),
    params(("name" = String, Path, description = "Which")),
    responses((status = 204, description = "It is gone; jobs that ask for it do not start any more"),
        (status = 404, body = ErrorView)))]
pub(super) async fn remove(
    State(site): State<Arc<ApiSite>>,
    Submitter(caller): Submitter,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiProblem> {
    check_name(&name).map_err(|wrong| ApiProblem::field("name", wrong))?;
    site.quota.note(&caller)?;
    let user = caller.who.user;
    let gone = blocking(move || {
        let gone = site.secrets.remove(&user, &name)?;
        if gone {
            site.tokens.audit(&user, "secret remove", &name)?;
        }
        Ok::<_, ApiProblem>(gone)
    });
    if gone.await?? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiProblem::new(StatusCode::NOT_FOUND, "you have no such secret; to list yours: yard secret list"))
}

fn check_value(value: &SecretValue) -> Result<(), ApiProblem> {
    let bytes = value.0.len();
    if bytes == 0 || bytes > VALUE_MAX {
        let error = format!("value: it has {bytes} bytes; a secret has 1 to {VALUE_MAX}");
        return Err(ApiProblem::field("value", error));
    }
    if value.0.contains('\0') {
        return Err(ApiProblem::field(
            "value",
            "value: it contains a NUL byte, which a variable cannot hold",
        ));
    }
    Ok(())
}

impl From<SecretsError> for ApiProblem {
    fn from(error: SecretsError) -> ApiProblem {
        match error {
            SecretsError::TooMany => ApiProblem::new(StatusCode::TOO_MANY_REQUESTS, error.to_string()),
            _ => Refusal::Unavailable(error.to_string()).into(),
        }
    }
}
