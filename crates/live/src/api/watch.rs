//! The board as it changes: first all of it that somebody may see, then what changed, a few times a second at most.
//! Who comes back says which revision they saw last and is sent what changed since, or all of it again where that
//! was too long ago. The stream ends with their token.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use tokio::time::sleep;

use super::extract::Reader;
use super::jobs::visible;
use super::{Problem, Site};
use crate::auth::Caller;
use crate::board::Board;
use crate::changes::Changed;
use crate::clock::{now_us, seconds};
use crate::views::{ChangeView, ErrorView, JobView};

/// How long changes are gathered before they are sent together.
const PACE: Duration = Duration::from_millis(250);

#[utoipa::path(get, path = "/v1/watch", security(("token" = [])),
    params(("Last-Event-ID" = Option<u64>, Header, description = "The revision that was seen last")),
    responses((status = 200, content_type = "text/event-stream", body = ChangeView), (status = 400, body = ErrorView)))]
pub(super) async fn watch(
    State(site): State<Arc<Site>>,
    Reader(caller): Reader,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let seen = super::events::last_event(&headers)?;
    let stop = site.stop.clone();
    let watcher = Watcher { site, caller, seen };
    Ok(Sse::new(watcher.stream().take_until(stop.cancelled_owned())).keep_alive(KeepAlive::default()))
}

/// One who watches.
struct Watcher {
    site: Arc<Site>,
    caller: Caller,
    /// The revision that was sent last.
    seen: Option<u64>,
}

impl Watcher {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold((self, false), |(mut watcher, mut waited)| async move {
            loop {
                if waited {
                    sleep(PACE).await;
                }
                waited = true;
                if !watcher.caller.still_good() {
                    return None;
                }
                if let Some(change) = watcher.next() {
                    return Some((Ok(frame(&change)), (watcher, true)));
                }
            }
        })
    }

    /// What there is to send now, if anything.
    fn next(&mut self) -> Option<ChangeView> {
        let board = self.site.board();
        let revision = board.changes.revision();
        let changed = match self.seen {
            Some(seen) if seen == revision => return None,
            Some(seen) => board.changes.since(seen),
            None => None,
        };
        let change = ChangeView {
            revision,
            time: seconds(now_us()),
            whole: changed.is_none(),
            jobs: jobs(&board, changed.as_ref(), &self.caller),
            nodes: nodes(&board, changed.as_ref()),
            status: board.status.clone(),
        };
        drop(board);
        self.seen = Some(revision);
        Some(change)
    }
}

fn jobs(board: &Board, changed: Option<&Changed>, caller: &Caller) -> Vec<JobView> {
    let theirs = |job: &&JobView| visible(caller, &job.user);
    let plain = |job: &JobView| JobView { request: None, ..job.clone() };
    match changed {
        Some(changed) => {
            changed.jobs.iter().filter_map(|id| board.jobs.get(id)).filter(theirs).map(plain).collect()
        }
        None => board.jobs.values().filter(theirs).map(plain).collect(),
    }
}

fn nodes(board: &Board, changed: Option<&Changed>) -> Vec<crate::views::NodeView> {
    match changed {
        Some(changed) => changed.nodes.iter().filter_map(|name| board.nodes.get(name)).cloned().collect(),
        None => board.nodes.values().cloned().collect(),
    }
}

fn frame(change: &ChangeView) -> Event {
    let data = serde_json::to_string(change).expect("a change is JSON");
    Event::default().id(change.revision.to_string()).event("change").data(data)
}
