//! The board as it changes: first all of it that somebody may see, then what changed, a few times a second at most.
//! Who comes back says which revision they saw last and is sent what changed since, or all of it again where that
//! was too long ago. The stream ends with their token.
//!
//! A large answer goes out in pieces. A watcher keeps only the numbers of what is still to be sent and takes the
//! next few views when the last piece has left, so that a slow one costs a piece of memory, not a board.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::time::sleep;

use super::extract::Reader;
use super::jobs::visible;
use super::{ApiProblem, ApiSite};
use crate::auth::Caller;
use crate::board::Board;
use crate::changes::BoardChanged;
use crate::clock::{now_us, seconds};
use crate::views::{ChangeView, ErrorView, JobView, NodeView, StatusView};

/// How long changes are gathered before they are sent together.
const PACE: Duration = Duration::from_millis(250);
/// Jobs in one piece, and nodes.
const JOBS_MAX: usize = 256;
const NODES_MAX: usize = 32;

#[utoipa::path(get, path = "/v1/watch", security(("token" = [])),
    params(("Last-Event-ID" = Option<u64>, Header, description = "The revision that was seen last")),
    responses((status = 200, content_type = "text/event-stream", body = ChangeView), (status = 400, body = ErrorView),
        (status = 429, body = ErrorView)))]
pub(super) async fn watch(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiProblem> {
    let seen = super::events::last_event(&headers)?;
    let place = site.quota.stream(&caller.who.user)?;
    let (stop, ended) = (site.stop.clone(), caller.ended());
    let watcher = Watcher { site, caller, seen, rest: None };
    let stream = watcher.stream().take_until(stop.cancelled_owned()).take_until(ended);
    Ok(Sse::new(place.hold(stream)).keep_alive(KeepAlive::default()))
}

/// One who watches.
struct Watcher {
    site: Arc<ApiSite>,
    caller: Caller,
    /// The revision that was sent last.
    seen: Option<u64>,
    /// What is still to be sent of the next one.
    rest: Option<WatchRest>,
}

/// What is still to be sent of a revision, newest first.
struct WatchRest {
    revision: u64,
    /// Whether what was known before is to be forgotten first.
    whole: bool,
    jobs: Vec<u64>,
    nodes: Vec<String>,
}

/// A piece of a change, with the keys of `ChangeView`.
#[derive(Serialize)]
struct WatchPiece {
    revision: u64,
    time: f64,
    whole: bool,
    #[serde(serialize_with = "shared")]
    jobs: Vec<Arc<JobView>>,
    #[serde(serialize_with = "shared")]
    nodes: Vec<Arc<NodeView>>,
    status: Option<StatusView>,
    /// Whether the revision is complete with it: only then it can be gone on from.
    #[serde(skip)]
    last: bool,
}

impl Watcher {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold((self, false), |(mut watcher, mut waited)| async move {
            loop {
                if waited && watcher.rest.is_none() {
                    sleep(PACE).await;
                }
                waited = true;
                if !watcher.caller.still_good() {
                    return None;
                }
                if let Some(piece) = watcher.next() {
                    return Some((Ok(frame(&piece)), (watcher, true)));
                }
            }
        })
    }

    /// What there is to send now, if anything.
    fn next(&mut self) -> Option<WatchPiece> {
        let board = self.site.board();
        let mut rest = match self.rest.take() {
            Some(rest) => rest,
            None => WatchRest::look(&board, self.seen, &self.caller)?,
        };
        let piece = rest.take(&board);
        drop(board);
        if piece.last {
            self.seen = Some(piece.revision);
        } else {
            self.rest = Some(rest);
        }
        Some(piece)
    }
}

impl WatchRest {
    /// What changed since a revision, or everything.
    fn look(board: &Board, seen: Option<u64>, caller: &Caller) -> Option<WatchRest> {
        let revision = board.changes.revision();
        if seen == Some(revision) {
            return None;
        }
        let changed = seen.and_then(|seen| board.changes.since(seen));
        let theirs = |job: &&Arc<JobView>| visible(caller, &job.user);
        let number = |job: &Arc<JobView>| job.id;
        let (whole, jobs, nodes) = match changed {
            Some(BoardChanged { jobs, nodes }) => {
                let jobs = jobs.iter().rev().filter_map(|id| board.jobs.get(id));
                (false, jobs.filter(theirs).map(number).collect(), nodes.into_iter().rev().collect())
            }
            None => {
                let jobs = board.jobs.values().rev().filter(theirs).map(number).collect();
                (true, jobs, board.nodes.keys().rev().cloned().collect())
            }
        };
        Some(WatchRest { revision, whole, jobs, nodes })
    }

    /// The next piece. A job that has left the board since is left out.
    fn take(&mut self, board: &Board) -> WatchPiece {
        let jobs = self.jobs.split_off(self.jobs.len().saturating_sub(JOBS_MAX));
        let nodes = self.nodes.split_off(self.nodes.len().saturating_sub(NODES_MAX));
        WatchPiece {
            revision: self.revision,
            time: seconds(now_us()),
            whole: std::mem::take(&mut self.whole),
            jobs: jobs.iter().rev().filter_map(|id| board.jobs.get(id)).cloned().collect(),
            nodes: nodes.iter().rev().filter_map(|name| board.nodes.get(name)).cloned().collect(),
            status: board.status.clone(),
            last: self.jobs.is_empty() && self.nodes.is_empty(),
        }
    }
}

fn shared<T: Serialize, S: serde::Serializer>(list: &[Arc<T>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(list.iter().map(Arc::as_ref))
}

fn frame(piece: &WatchPiece) -> Event {
    let data = serde_json::to_string(piece).expect("a change is JSON");
    let event = Event::default().event("change").data(data);
    if piece.last { event.id(piece.revision.to_string()) } else { event }
}
