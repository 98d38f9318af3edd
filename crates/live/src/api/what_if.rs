//! What would become of a job if it were submitted now, or of all jobs if a node went. It only looks, so that whoever
//! may look may ask; others' jobs are only counted. Further questions are queued: of one user one is worked at, so that two
//! open pages are both answered and nobody takes the places of the others. First answers have a place of their own, so
//! that they never wait for long ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::extract::{Json, Reader};
use super::jobs::entitled;
use super::{ApiProblem, ApiSite};
use crate::auth::{Caller, Denied};
use crate::background::{self, workers};
use crate::handle::{Ask, Refusal};
use crate::request::check::check;
use crate::views::{ErrorView, WhatIfView};
use crate::what_if::{WhatIf, WhatIfQuestion, view};

/// People whose questions are answered or wait for their turn, all together.
const ASKING_MAX: usize = 32;
/// Questions of one of them: as many pages as somebody may have open.
const OF_ONE_MAX: usize = 4;

/// The longest that a question waits for its turn.
const TURN_MAX: Duration = Duration::from_secs(20);

/// Seconds after which to ask again while others' questions are answered.
const BUSY_S: f64 = 10.0;

#[utoipa::path(post, path = "/v1/what-if", request_body = WhatIf, security(("token" = [])),
    responses((status = 200, body = WhatIfView, description = "Nothing happened"),
        (status = 400, body = ErrorView), (status = 403, body = ErrorView), (status = 404, body = ErrorView),
        (status = 429, body = ErrorView), (status = 503, body = ErrorView)))]
pub(super) async fn what_if(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    Json(mut asked): Json<WhatIf>,
) -> Result<Answer<WhatIfView>, ApiProblem> {
    if let Some(job) = &mut asked.job {
        check(job).map_err(|wrong| ApiProblem::field(wrong.field, wrong.to_string()))?;
        entitled(&caller, job)?;
    }
    let turn = site.asking.turn(&caller.who.user)?;
    // Before the copy is made: it is of the state as it is when the answer is worked out, and there are few of them.
    let place = turn.place(asked.quick, TURN_MAX).await?;
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
    site: Arc<ApiSite>,
    question: WhatIfQuestion,
    caller: Caller,
    turn: ([OwnedSemaphorePermit; 2], Turn),
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
    users: Arc<Mutex<BTreeMap<String, AskingUser>>>,
    places: Arc<Semaphore>,
    /// For first answers, which take a moment.
    quick: Arc<Semaphore>,
    /// The past is simulated for one at a time, beside the others: it takes so long that they would have to wait.
    past: Arc<Semaphore>,
}

/// Somebody with questions.
#[derive(Debug)]
struct AskingUser {
    questions: usize,
    /// One of them is worked at; and one in a hurry.
    own: [Arc<Semaphore>; 2],
}

impl Default for AskingUser {
    fn default() -> AskingUser {
        AskingUser { questions: 0, own: [(); 2].map(|()| Arc::new(Semaphore::new(1))) }
    }
}

impl Default for Asking {
    fn default() -> Asking {
        Asking {
            users: Arc::default(),
            places: Arc::new(Semaphore::new(workers())),
            quick: Arc::new(Semaphore::new(1)),
            past: Arc::new(Semaphore::new(1)),
        }
    }
}

/// The right to be answered, until it is dropped.
pub(super) struct Turn(Asking, String);

impl Asking {
    /// A few questions a user, and of a few users.
    pub(super) fn turn(&self, user: &str) -> Result<Turn, ApiProblem> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= ASKING_MAX && !users.contains_key(user) {
            return Err(ApiProblem::later(
                1.0,
                "too many questions are being answered; try again in a moment",
            ));
        }
        let known = users.entry(user.to_owned()).or_default();
        if known.questions >= OF_ONE_MAX {
            let error =
                format!("{OF_ONE_MAX} of your questions are being answered already; try again in a moment");
            return Err(ApiProblem::later(1.0, error));
        }
        known.questions += 1;
        drop(users);
        Ok(Turn(self.clone(), user.to_owned()))
    }

    /// How many questions of a user are answered or queued.
    #[cfg(test)]
    pub(super) fn of(&self, user: &str) -> usize {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.get(user).map_or(0, |user| user.questions)
    }
}

impl Turn {
    /// Waits until it can be worked at, first come, first served; `quick`: it takes only a moment.
    async fn place(&self, quick: bool, longest: Duration) -> Result<[OwnedSemaphorePermit; 2], ApiProblem> {
        let asking = &self.0;
        let own = {
            let users = asking.users.lock().unwrap_or_else(PoisonError::into_inner);
            users.get(&self.1).map(|user| user.own[usize::from(quick)].clone())
        };
        let own = own.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
        let places = if quick { &asking.quick } else { &asking.places };
        let both = async {
            Ok::<_, AcquireError>([own.acquire_owned().await?, places.clone().acquire_owned().await?])
        };
        let busy = || {
            let error = "other questions are still being answered; try again in a moment";
            ApiProblem::later(BUSY_S, error)
        };
        tokio::time::timeout(longest, both).await.ok().and_then(Result::ok).ok_or_else(busy)
    }

    /// The right to have the past simulated.
    pub(super) fn past(&self) -> Result<OwnedSemaphorePermit, ApiProblem> {
        let busy = "another replay of the past is running; try again in a moment";
        self.0.past.clone().try_acquire_owned().map_err(|_| ApiProblem::later(BUSY_S, busy))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = users.get_mut(&self.1) {
            user.questions -= 1;
            if user.questions == 0 {
                users.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_asks_a_few_questions_and_not_all_users_at_once() {
        let asking = Asking::default();
        let mut own: Vec<_> = (0..OF_ONE_MAX).map(|_| asking.turn("ann").ok()).collect();
        assert!(own.iter().all(Option::is_some));
        assert_eq!(asking.turn("ann").err().map(|problem| problem.status.as_u16()), Some(429));
        let others: Vec<_> = (1..ASKING_MAX).map(|user| asking.turn(&user.to_string()).ok()).collect();
        assert!(others.iter().all(Option::is_some));
        assert_eq!(asking.turn("eve").err().and_then(|problem| problem.retry_s), Some(1.0));
        own.pop();
        assert!(asking.turn("ann").is_ok() && asking.turn("ann").is_ok());
        own.clear();
        assert!(asking.turn("eve").is_ok(), "who has no more questions leaves room");
    }

    #[tokio::test]
    async fn further_questions_are_queued() {
        let asking = Asking { places: Arc::new(Semaphore::new(1)), ..Asking::default() };
        let (ann, bob) = (asking.turn("ann").ok().unwrap(), asking.turn("bob").ok().unwrap());
        let working = ann.place(false, TURN_MAX).await.ok();
        let refused = bob.place(false, Duration::from_millis(1)).await.err();
        assert_eq!(refused.and_then(|problem| problem.retry_s), Some(BUSY_S));
        assert!(bob.place(true, TURN_MAX).await.is_ok(), "a first answer does not wait for a long one");
        let waits = tokio::spawn(async move { bob.place(false, TURN_MAX).await.is_ok() });
        drop(working);
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn of_one_user_one_question_is_worked_at() {
        let asking = Asking { places: Arc::new(Semaphore::new(8)), ..Asking::default() };
        let [first, second] = [(); 2].map(|()| asking.turn("ann").ok().unwrap());
        let working = first.place(false, TURN_MAX).await.ok();
        assert!(second.place(false, Duration::from_millis(1)).await.is_err(), "it waits for the first");
        assert!(asking.turn("bob").ok().unwrap().place(false, TURN_MAX).await.is_ok(), "others do not");
        drop(working);
        assert!(second.place(false, TURN_MAX).await.is_ok());
    }
}
