//! What-if on history. Whoever may look may ask, one question at a time, and sees totals of all and teams of their own
//! jobs; admins see every team. When who asked goes away, or it takes too long, the work stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;

use super::extract::{Json, Reader};
use super::{ApiProblem, ApiSite};
use crate::auth::Denied;
use crate::background;
use crate::handle::{Ask, Refusal, Who};
use crate::replay::view::ReplayView;
use crate::replay::{JOBS_MAX, Replay, ReplayAsked, ReplayWatch, WaitingReplay, invalid};
use crate::views::{ErrorView, JobView};

/// The part of the time in which a request must be answered that the work may take.
const WORK: f64 = 0.8;

#[utoipa::path(post, path = "/v1/what-if/history", request_body = Replay, security(("token" = [])),
    responses((status = 200, body = ReplayView, description = "Totals of all, teams of one's own jobs; all teams for admins"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView), (status = 404, body = ErrorView),
        (status = 429, body = ErrorView), (status = 503, body = ErrorView)))]
pub(super) async fn replay(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    Json(replay): Json<Replay>,
) -> Result<Answer<ReplayView>, ApiProblem> {
    if replay.detail && !caller.who.admin {
        let error = "detail (--html) lists jobs of all users and is for admins only; leave it out";
        return Err(ApiProblem::new(StatusCode::FORBIDDEN, error));
    }
    replay.check()?;
    let turn = site.asking.turn(&caller.who.user)?;
    let place = turn.past()?;
    let ended = caller.ended();
    let asked = gathered(&site, caller.who, replay).await?;
    let (jobs, runs, length) =
        (asked.rows.len(), asked.replay.alternatives.len() + 1, asked.replay.history_s);
    let watch = ReplayWatch::default();
    let _waiting = WaitingReplay(watch.clone());
    let (replayer, watched) = (site.replayer.clone(), watch.clone());
    let work = background::answered(move || {
        let answer = asked.answer(replayer.as_ref(), &watched);
        drop((place, turn));
        answer
    });
    let told = tokio::time::timeout(site.patience.mul_f64(WORK), work);
    let told = async {
        tokio::select! { told = told => Ok(told), () = ended => Err(Denied::Unknown) }
    };
    match site.stop.run_until_cancelled(told).await.transpose()? {
        Some(Ok(told)) => Ok(Answer(told?)),
        Some(Err(_)) => {
            Err(too_long(watch.done.load(Ordering::Relaxed), (jobs * runs) as u64, length).into())
        }
        None => Err(Refusal::Unavailable("the server is shutting down; try again in a moment".into()).into()),
    }
}

/// All that is needed to answer it.
async fn gathered(site: &ApiSite, who: Who, replay: Replay) -> Result<ReplayAsked, Refusal> {
    let present = site.handle.ask(|reply| Ask::Present { reply }).await?;
    let window @ (from, to) = replay.window(present.at)?;
    let rows = site.past(move |past| past.recorded(from, to, JOBS_MAX + 1)).await?;
    if rows.len() > JOBS_MAX {
        let message = format!(
            "more than {JOBS_MAX} jobs in that period, the limit of one question; choose a shorter period, or \
             simulate them yourself: yard trace export, then yard sim"
        );
        return Err(invalid("history_s", message));
    }
    let open = rows.iter().filter(|row| row.summary.is_none()).map(|row| row.id.0);
    let board = site.board();
    let living = open.filter_map(|id| Some((id, JobView::clone(board.jobs.get(&id)?)))).collect();
    drop(board);
    Ok(ReplayAsked { who, replay, present, rows, living, window })
}

/// It would take longer than anybody may ask for.
fn too_long(done: u64, all: u64, length: Option<f64>) -> Refusal {
    let part = done as f64 / all.max(1) as f64;
    let fits = length.map(|length| format!(", such as the last {:.1} h", length * part * WORK / 3600.0));
    let message = format!(
        "the time limit of one question was reached after {done} of {all} jobs, over all runs; choose a shorter \
         period{}, compare fewer alternatives, or simulate it yourself: yard trace export, then yard sim",
        fits.unwrap_or_default()
    );
    invalid("history_s", message)
}
