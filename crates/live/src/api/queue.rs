//! Why jobs wait, one line for each of those in front: the queue by reason. The driver answers for each, so only so
//! many are explained, and no more begun once that took a while: looking must not hold up scheduling.

use std::sync::Arc;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use tokio::time::Instant;
use yard_core::ids::JobId;

use super::extract::Reader;
use super::jobs::visible;
use super::{ApiProblem, ApiSite};
use crate::handle::{Ask, Refusal};
use crate::views::{QueueView, QueuedView};

/// Jobs that are explained at most.
const EXPLAINED: usize = 64;
/// After this long no further one is begun.
const BUDGET: Duration = Duration::from_millis(50);
const WAITING: [&str; 2] = ["pending", "suspended"];

#[utoipa::path(get, path = "/v1/queue", security(("token" = [])), responses((status = 200, body = QueueView)))]
pub(super) async fn queue(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
) -> Result<Answer<QueueView>, ApiProblem> {
    let (waiting, hidden) = {
        let board = site.board();
        let waiting = board.jobs.values().filter(|job| WAITING.contains(&job.state.as_str()));
        let (theirs, others): (Vec<_>, Vec<_>) = waiting.partition(|job| visible(&caller, &job.user));
        (theirs.iter().map(|job| job.id).collect::<Vec<u64>>(), others.len() as u64)
    };
    let (mut jobs, begun) = (Vec::new(), Instant::now());
    for id in waiting.iter().take(EXPLAINED) {
        if begun.elapsed() > BUDGET {
            break;
        }
        let job = JobId(*id);
        match site.handle.ask(|reply| Ask::Explain { job, reply }).await {
            Ok(told) => jobs.push(QueuedView { job: *id, reason: told.reason, text: told.text }),
            // It ended since.
            Err(Refusal::NotFound(_)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(Answer(QueueView { waiting: waiting.len() as u64, jobs, hidden }))
}
