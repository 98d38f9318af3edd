//! Who did what: for admins, a page at a time, the newest first.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Admin, RequestParams};
use super::tokens::blocking;
use super::{ApiProblem, ApiSite};
use crate::store::tokens::AuditFilter;
use crate::views::{AuditList, ErrorView};

/// Entries of one answer, at most.
const ENTRIES_MAX: usize = 1_000;
const ENTRIES: usize = 200;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Only entries with lower numbers.
    before: Option<i64>,
    /// Only what this user did.
    user: Option<String>,
    /// At most so many, of at most 1000.
    limit: Option<usize>,
}

#[utoipa::path(get, path = "/v1/audit", security(("token" = [])), params(AuditQuery),
    responses((status = 200, body = AuditList, description = "The newest first"),
        (status = 403, body = ErrorView, description = "Only admins may see it")))]
pub(super) async fn list(
    State(site): State<Arc<ApiSite>>,
    Admin(_): Admin,
    RequestParams(query): RequestParams<AuditQuery>,
) -> Result<Answer<AuditList>, ApiProblem> {
    let limit = query.limit.unwrap_or(ENTRIES).clamp(1, ENTRIES_MAX);
    let filter = AuditFilter { before: query.before, user: query.user, limit: limit + 1 };
    let mut entries = blocking(move || site.tokens.audits(&filter)).await??;
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok(Answer(AuditList { entries, more }))
}
