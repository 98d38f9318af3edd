//! Why jobs wait, one line for each of those in front: the queue by reason. Only so many are explained at a time,
//! because the driver answers for each.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use yard_core::ids::JobId;

use super::extract::Reader;
use super::jobs::visible;
use super::{Problem, Site};
use crate::handle::{Ask, Refusal};
use crate::views::{QueueView, QueuedView};

/// Jobs that are explained at most.
const EXPLAINED: usize = 64;
const WAITING: [&str; 2] = ["pending", "suspended"];

#[utoipa::path(get, path = "/v1/queue", security(("token" = [])), responses((status = 200, body = QueueView)))]
pub(super) async fn queue(
    State(site): State<Arc<Site>>,
    Reader(caller): Reader,
) -> Result<Answer<QueueView>, Problem> {
    let waiting: Vec<u64> = {
        let board = site.board();
        let theirs = board.jobs.values().filter(|job| visible(&caller, &job.user));
        theirs.filter(|job| WAITING.contains(&job.state.as_str())).map(|job| job.id).collect()
    };
    let mut jobs = Vec::new();
    for id in waiting.iter().take(EXPLAINED) {
        let job = JobId(*id);
        match site.handle.ask(|reply| Ask::Explain { job, reply }).await {
            Ok(told) => jobs.push(QueuedView { job: *id, reason: told.reason, text: told.text }),
            // It ended since.
            Err(Refusal::NotFound(_)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(Answer(QueueView { waiting: waiting.len() as u64, jobs }))
}
