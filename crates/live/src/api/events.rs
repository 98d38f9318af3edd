//! What happens, as it happens: server-sent events that resume where the last connection broke off, or a page of
//! the history. Who subscribes is subscribed before the history is read, so nothing falls in between.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::IntoParams;

use super::extract::{Reader, RequestParams};
use super::{ApiProblem, ApiSite, EventFilter};
use crate::handle::Refusal;
use crate::views::{ErrorView, EventList, EventView};

const PAGE: usize = 1_000;
const PAGE_MAX: usize = 10_000;

/// Which events.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Only with higher numbers. `Last-Event-ID` says the same.
    after: Option<u64>,
    /// Only with lower numbers; not for a stream.
    before: Option<u64>,
    /// At most so many, where they are not followed.
    limit: Option<usize>,
    /// Only those about this job.
    job: Option<u64>,
    /// As a stream that goes on (the default), or what there is as JSON.
    follow: bool,
}

impl Default for EventsQuery {
    fn default() -> EventsQuery {
        EventsQuery { after: None, before: None, limit: None, job: None, follow: true }
    }
}

#[utoipa::path(get, path = "/v1/events", params(EventsQuery), security(("token" = [])),
    responses((status = 200, description = "A stream of events, or a page of them",
        content((EventView = "text/event-stream"), (EventList = "application/json"))), (status = 400, body = ErrorView),
        (status = 429, body = ErrorView)))]
pub(super) async fn events(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    headers: HeaderMap,
    RequestParams(which): RequestParams<EventsQuery>,
) -> Result<Response, ApiProblem> {
    let viewer = (!caller.who.admin).then(|| caller.who.user.clone());
    let after = last_event(&headers)?.or(which.after);
    if !which.follow {
        let limit = which.limit.unwrap_or(PAGE).min(PAGE_MAX);
        let filter = EventFilter { viewer, job: which.job, after, before: which.before, limit };
        let events = site.past(move |past| past.events(&filter)).await?;
        return Ok(Answer(EventList { events }).into_response());
    }
    if which.before.is_some() {
        return Err(ApiProblem::field("before", "before: only with follow=false"));
    }
    let place = site.quota.stream(&caller.who.user)?;
    let (stop, ended) = (site.stop.clone(), caller.ended());
    let feed = Feed::open(site, viewer, which.job, after).await?.stream();
    let feed = place.hold(feed.take_until(stop.cancelled_owned()).take_until(ended));
    Ok(Sse::new(feed).keep_alive(KeepAlive::default()).into_response())
}

pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<u64>, ApiProblem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|value| value.parse().ok());
    let bad = || ApiProblem::field("Last-Event-ID", "Last-Event-ID: the number of an event");
    number.map(Some).ok_or_else(bad)
}

/// One reader's events.
struct Feed {
    site: Arc<ApiSite>,
    viewer: Option<String>,
    /// Only what is about this job.
    job: Option<u64>,
    live: Receiver<Arc<EventView>>,
    /// The last event that was sent, or that was old when the reader came.
    last: u64,
    /// Read from the history, not yet sent.
    backlog: VecDeque<EventView>,
    /// Whether the history may have more than was read.
    behind: bool,
}

impl Feed {
    async fn open(
        site: Arc<ApiSite>,
        viewer: Option<String>,
        job: Option<u64>,
        after: Option<u64>,
    ) -> Result<Feed, Refusal> {
        let live = site.handle.events.subscribe();
        let last = match after {
            Some(after) => after,
            None => newest(&site).await?,
        };
        Ok(Feed { site, viewer, job, live, last, backlog: VecDeque::new(), behind: after.is_some() })
    }

    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut feed| async {
            let event = feed.next().await?;
            Some((Ok(frame(&event)), feed))
        })
    }

    async fn next(&mut self) -> Option<EventView> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                self.last = event.id;
                return Some(event);
            }
            if self.behind {
                self.backlog = self.read().await?;
                self.behind = !self.backlog.is_empty();
                continue;
            }
            match self.live.recv().await {
                Ok(event) if self.wants(&event) => self.backlog.push_back((*event).clone()),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// More of the history; none when it cannot be read: the reader comes back and says where it was.
    async fn read(&self) -> Option<VecDeque<EventView>> {
        let (viewer, after) = (self.viewer.clone(), Some(self.last));
        let filter = EventFilter { viewer, job: self.job, after, before: None, limit: PAGE };
        self.site.past(move |past| past.events(&filter)).await.ok().map(VecDeque::from)
    }

    fn wants(&self, event: &EventView) -> bool {
        let others = event.user.is_some() && self.viewer.is_some() && event.user != self.viewer;
        let about = self.job.is_none() || event.job == self.job;
        event.id > self.last && about && !others
    }
}

async fn newest(site: &ApiSite) -> Result<u64, Refusal> {
    let filter = EventFilter { limit: 1, ..EventFilter::default() };
    let events = site.past(move |past| past.events(&filter)).await?;
    Ok(events.last().map_or(0, |event| event.id))
}

fn frame(event: &EventView) -> Event {
    let data = serde_json::to_string(event).expect("an event is JSON");
    Event::default().id(event.id.to_string()).event(&event.event).data(data)
}
