//! What would become of a job if it were submitted now, or of all jobs if a node went. It only looks, so that whoever
//! may look may ask, one question at a time; others' jobs are only counted. Who asks while others do waits for their turn.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::extract::{Json, Reader};
use super::jobs::entitled;
use super::{Problem, Site};
use crate::auth::{Caller, Denied};
use crate::background::{self, workers};
use crate::handle::{Ask, Refusal};
use crate::request::check::check;
use crate::views::{ErrorView, WhatIfView};
use crate::what_if::{Question, WhatIf, view};

/// People whose questions are answered or wait for their turn, all together.
const ASKING_MAX: usize = 32;

/// The longest that a question waits for its turn.
const TURN_MAX: Duration = Duration::from_secs(20);

/// Seconds after which to ask again while others' questions are answered.
const BUSY_S: f64 = 10.0;

#[utoipa::path(post, path = "/v1/what-if", request_body = WhatIf, security(("token" = [])),
    responses((status = 200, body = WhatIfView, description = "Nothing happened"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView), (status = 404, body = ErrorView),
        (status = 429, body = ErrorView), (status = 503, body = ErrorView)))]
pub(super) async fn what_if(
    State(site): State<Arc<Site>>,
    Reader(caller): Reader,
    Json(mut asked): Json<WhatIf>,
) -> Result<Answer<WhatIfView>, Problem> {
    if let Some(job) = &mut asked.job {
        check(job).map_err(|wrong| Problem::field(wrong.field, wrong.to_string()))?;
        entitled(&caller, job)?;
    }
    let turn = site.asking.turn(&caller.who.user)?;
    // Before the copy is made: it is of the state as it is when the answer is worked out, and there are few of them.
    let place = turn.place(TURN_MAX).await?;
    let (who, asked) = (caller.who.clone(), Box::new(asked));
    let question = site.handle.ask(|reply| Ask::WhatIf { who, asked, reply }).await?;
    let ended = caller.ended();
    tokio::select! {
        answer = answered(site, question, caller, (place, turn)) => Ok(Answer(answer?)),
        () = ended => Err(Denied::Unknown.into()),
    }
}

/// Works the answer out on a thread that may take its time. Who asks again before it is done is sent away, even if they
/// gave up on the first answer.
async fn answered(
    site: Arc<Site>,
    question: Question,
    caller: Caller,
    turn: (OwnedSemaphorePermit, Turn),
) -> Result<WhatIfView, Refusal> {
    background::answered(move || {
        let answer = question.answer(&|| site.stop.is_cancelled() || !caller.still_good());
        let jobs = site.board().jobs.clone();
        let answer = answer.map(|told| view(&question, &told, &caller.who, &jobs));
        drop(turn);
        answer
    })
    .await
}

/// Who is being answered, and who works at it: fewer, so that scheduling has a processor to itself.
#[derive(Clone, Debug)]
pub struct Asking {
    users: Arc<Mutex<BTreeSet<String>>>,
    places: Arc<Semaphore>,
    /// The past is simulated for one at a time, beside the others: it takes so long that they would have to wait.
    past: Arc<Semaphore>,
}

impl Default for Asking {
    fn default() -> Asking {
        Asking {
            users: Arc::default(),
            places: Arc::new(Semaphore::new(workers())),
            past: Arc::new(Semaphore::new(1)),
        }
    }
}

/// The right to be answered, until it is dropped.
pub(super) struct Turn(Asking, String);

impl Asking {
    /// One question a user, and a few in all.
    pub(super) fn turn(&self, user: &str) -> Result<Turn, Problem> {
        let mut asking = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if asking.len() >= ASKING_MAX {
            return Err(Problem::later(1.0, "too many questions are being answered; try again in a moment"));
        }
        if !asking.insert(user.to_owned()) {
            return Err(Problem::later(1.0, "one question at a time; your last one is still being answered"));
        }
        drop(asking);
        Ok(Turn(self.clone(), user.to_owned()))
    }
}

impl Turn {
    /// Waits until it can be worked at, first come, first served.
    async fn place(&self, longest: Duration) -> Result<OwnedSemaphorePermit, Problem> {
        let busy =
            || Problem::later(BUSY_S, "others' questions are still being answered; try again in a moment");
        let place = tokio::time::timeout(longest, self.0.places.clone().acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(busy)
    }

    /// The right to have the past simulated.
    pub(super) fn past(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = "the past is being simulated for somebody else; try again in a moment";
        self.0.past.clone().try_acquire_owned().map_err(|_| Problem::later(BUSY_S, busy))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.users.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_asks_one_question_at_a_time_and_not_all_at_once() {
        let asking = Asking::default();
        let first = asking.turn("ann").ok();
        assert_eq!(asking.turn("ann").err().map(|problem| problem.status.as_u16()), Some(429));
        let others: Vec<_> = (1..ASKING_MAX).map(|user| asking.turn(&user.to_string()).ok()).collect();
        assert!(others.iter().all(Option::is_some));
        assert_eq!(asking.turn("eve").err().and_then(|problem| problem.retry_s), Some(1.0));
        drop(first);
        assert!(asking.turn("ann").is_ok() && asking.turn("ann").is_ok());
    }

    #[tokio::test]
    async fn who_asks_while_others_do_waits_for_their_turn() {
        let asking = Asking { places: Arc::new(Semaphore::new(1)), ..Asking::default() };
        let (ann, bob) = (asking.turn("ann").ok().unwrap(), asking.turn("bob").ok().unwrap());
        let working = ann.place(TURN_MAX).await.ok();
        let refused = bob.place(Duration::from_millis(1)).await.err();
        assert_eq!(refused.and_then(|problem| problem.retry_s), Some(BUSY_S));
        let waits = tokio::spawn(async move { bob.place(TURN_MAX).await.is_ok() });
        drop(working);
        assert!(waits.await.unwrap());
    }
}
