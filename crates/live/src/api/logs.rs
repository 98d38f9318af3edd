//! A job's log, streamed from the agent that has it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;
use utoipa::IntoParams;
use yard_core::ids::JobId;

use super::extract::{Reader, RequestParams};
use super::jobs::find;
use super::{ApiProblem, ApiSite};
use crate::handle::{Ask, LogOf, LogRequest, LogStream, Who};
use crate::views::ErrorView;
use crate::wire::{LOG_CREDIT, LOG_PIECE};

/// How long the first piece may take to decide the status; a log that is followed may have none yet.
const FIRST: Duration = Duration::from_secs(5);
/// How long a reader may stand still before the rest is dropped.
const STALLED: Duration = Duration::from_secs(30);
/// How much of the end of a failed job's log is shown with it, and how long that is waited for.
const END_LINES: u64 = 20;
const END_BYTES: usize = 8 << 10;
const END_READ: usize = (LOG_CREDIT as usize - 1) * LOG_PIECE;
const END_PATIENCE: Duration = Duration::from_secs(2);
/// Pieces on their way to the reader, beside those that the agent may send before it is asked for more.
const AHEAD: usize = 1;

/// Which of a job's logs, and how much of it.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct LogsQuery {
    /// The rank.
    rank: u32,
    /// `both` (output and errors in order of arrival, the default), `stdout` or `stderr`.
    stream: Option<LogOf>,
    /// The same in older words: `true` is `stderr`, `false` is `stdout`.
    stderr: Option<bool>,
    /// Only so many of its last lines.
    tail: Option<u64>,
    /// Whether to go on with what is written.
    follow: bool,
}

impl LogsQuery {
    fn of(&self) -> Result<LogOf, ApiProblem> {
        let old = self.stderr.map(|stderr| if stderr { LogOf::Stderr } else { LogOf::Stdout });
        match (self.stream, old) {
            (Some(of), Some(old)) if of != old => {
                Err(ApiProblem::field("stderr", "stderr: leave it out where stream is given"))
            }
            (of, old) => Ok(of.or(old).unwrap_or_default()),
        }
    }
}

#[utoipa::path(get, path = "/v1/jobs/{id}/logs", security(("token" = [])),
    params(("id" = String, Path, description = "Its number, or `last`"), LogsQuery),
    responses((status = 200, content_type = "text/plain", body = String), (status = 404, body = ErrorView),
        (status = 429, body = ErrorView)))]
pub(super) async fn logs(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    Path(id): Path<String>,
    RequestParams(which): RequestParams<LogsQuery>,
) -> Result<impl IntoResponse, ApiProblem> {
    let job = JobId(find(&site, &caller, &id).await?.id);
    let places = site.quota.log(&caller.who.user)?;
    let ended = caller.ended();
    let of = which.of()?;
    let LogsQuery { rank, tail, follow, .. } = which;
    let (who, log) = (caller.who, LogRequest { job, rank, of, tail, follow });
    let mut log = site.handle.ask(|reply| Ask::Logs { who, log, reply }).await?;
    let first = match timeout(FIRST, log.pieces.recv()).await {
        Ok(Some(Err(error))) => return Err(ApiProblem::new(StatusCode::NOT_FOUND, error)),
        Ok(Some(Ok(text))) => Some(text),
        Ok(None) | Err(_) => None,
    };
    let (to, from) = mpsc::channel(AHEAD);
    let cut = Cut::default();
    tokio::spawn(Pump { site, log, taken: 0, to, cut: cut.clone() }.run(first, ended));
    let body = stream::unfold((from, places, Some(cut)), |(mut from, places, cut)| async {
        match from.recv().await {
            Some(piece) => Some((piece, (from, places, cut))),
            None => cut?.get().map(|why| (Err(std::io::Error::other(*why)), (from, places, None))),
        }
    });
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from_stream(body)))
}

/// The last lines that a job's first rank wrote, where its node says so soon. Who looks at a job does not wait for more.
pub(super) async fn end(site: &ApiSite, who: Who, job: JobId) -> Option<String> {
    let _places = site.quota.log(&who.user).ok()?;
    let log = LogRequest { job, rank: 0, of: LogOf::Both, tail: Some(END_LINES), follow: false };
    let read = async {
        let mut log = site.handle.ask(|reply| Ask::Logs { who, log, reply }).await.ok()?;
        let mut text = String::new();
        while let Some(Ok(piece)) = log.pieces.recv().await {
            text.push_str(&piece);
            // Lines so long that more would have to be asked for are not for a glance.
            if text.len() > END_READ {
                return None;
            }
        }
        let from = (text.len().saturating_sub(END_BYTES)..).find(|at| text.is_char_boundary(*at))?;
        text.drain(..from);
        (!text.is_empty()).then_some(text)
    };
    timeout(END_PATIENCE, read).await.ok().flatten()
}

/// Why an answer ends before the log does.
type Cut = Arc<OnceLock<&'static str>>;

/// Hands pieces on, until the log, the reader, their token or the server ends. A log that breaks off breaks the answer
/// off, so that nobody takes it for the whole.
struct Pump {
    site: Arc<ApiSite>,
    log: LogStream,
    /// Pieces that the reader took since more were asked for.
    taken: u32,
    to: mpsc::Sender<std::io::Result<String>>,
    cut: Cut,
}

impl Pump {
    async fn run(mut self, first: Option<String>, ended: impl Future<Output = ()>) {
        let (to, stop) = (self.to.clone(), self.site.stop.clone());
        let cut = self.cut.clone();
        let why = tokio::select! {
            whole = self.hand_on(first) => (!whole).then_some("the reader was too slow"),
            () = to.closed() => None,
            () = ended => Some("the token was revoked or has expired"),
            () = stop.cancelled() => Some("the server is shutting down"),
        };
        if let Some(why) = why {
            // Nobody else says why.
            let _ = cut.set(why);
        }
    }

    /// Whether the reader has got all of it, or knows why not.
    async fn hand_on(&mut self, first: Option<String>) -> bool {
        let mut piece = first.map(Ok);
        if piece.is_none() {
            piece = self.log.pieces.recv().await;
        }
        while let Some(text) = piece {
            let broken = text.is_err();
            let text = text.map_err(std::io::Error::other);
            if self.to.send_timeout(text, STALLED).await.is_err() {
                return false;
            }
            if broken {
                return true;
            }
            self.ask_for_more().await;
            piece = self.log.pieces.recv().await;
        }
        true
    }

    /// Asks for as much as was taken, now and then.
    async fn ask_for_more(&mut self) {
        self.taken += 1;
        if self.taken >= LOG_CREDIT / 2 {
            let (request, pieces) = (self.log.request, std::mem::take(&mut self.taken));
            // A driver that is gone closes the log too.
            let _ = self.site.handle.asks.send(Ask::LogsMore { request, pieces }).await;
        }
    }
}
