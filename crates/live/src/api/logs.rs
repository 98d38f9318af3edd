//! A job's log, streamed from the agent that has it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;
use yard_core::ids::JobId;

use super::extract::{Params, Reader};
use super::jobs::find;
use super::{Problem, Site};
use crate::handle::{Ask, LogRequest};
use crate::views::ErrorView;

type Piece = Result<String, String>;

/// How long the first piece may take to decide the status; a log that is followed may have none yet.
const FIRST: Duration = Duration::from_secs(5);
/// How long a reader may stand still before the rest is dropped, so that no log piles up in memory.
const STALLED: Duration = Duration::from_secs(30);
/// Pieces on their way to the reader.
const AHEAD: usize = 16;

/// Which of a job's logs, and how much of it.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// The rank.
    rank: u32,
    /// Standard error rather than output.
    stderr: bool,
    /// Only so many of its last lines.
    tail: Option<u64>,
    /// Whether to go on with what is written.
    follow: bool,
}

#[utoipa::path(get, path = "/v1/jobs/{id}/logs", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`"), Which),
    responses((status = 200, content_type = "text/plain", body = String), (status = 404, body = ErrorView)))]
pub(super) async fn logs(
    State(site): State<Arc<Site>>,
    Reader(caller): Reader,
    Path(id): Path<String>,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Problem> {
    let job = JobId(find(&site, &caller, &id).await?.id);
    let Which { rank, stderr, tail, follow } = which;
    let (who, log) = (caller.who, LogRequest { job, rank, stderr, tail, follow });
    let mut pieces = site.handle.ask(|reply| Ask::Logs { who, log, reply }).await?;
    let first = match timeout(FIRST, pieces.recv()).await {
        Ok(Some(Err(error))) => return Err(Problem::new(StatusCode::NOT_FOUND, error)),
        Ok(Some(Ok(text))) => text,
        Ok(None) | Err(_) => String::new(),
    };
    let (to, from) = mpsc::channel(AHEAD);
    tokio::spawn(pump(first, pieces, to, site.stop.clone()));
    let body = stream::unfold(from, |mut from| async { Some((from.recv().await?, from)) });
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from_stream(body)))
}

/// Hands pieces on, until the log, the reader or the server ends. A log that breaks off breaks the answer off, so
/// that nobody takes it for the whole.
async fn pump(
    first: String,
    mut pieces: mpsc::UnboundedReceiver<Piece>,
    to: mpsc::Sender<Result<String, std::io::Error>>,
    stop: CancellationToken,
) {
    let mut piece = Some(Ok(first));
    while let Some(text) = piece {
        let broken = text.is_err();
        let text = text.map_err(std::io::Error::other);
        if to.send_timeout(text, STALLED).await.is_err() || broken {
            return;
        }
        piece = tokio::select! {
            piece = pieces.recv() => piece,
            () = to.closed() => None,
            () = stop.cancelled() => None,
        };
    }
}
