//! Jobs, a page at a time: what goes on comes from the board, what is over from the history.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Reader, RequestParams};
use super::jobs::visible;
use super::{ApiProblem, ApiSite, JobFilter};
use crate::auth::Caller;
use crate::pattern::matches;
use crate::views::{ErrorView, JobList, JobView};

const LIMIT: usize = 1_000;
const LIMIT_MAX: usize = 20_000;
const NAME_MAX: usize = 200;
const OPEN: [&str; 5] = ["pending", "starting", "running", "suspending", "suspended"];
const OVER: [&str; 4] = ["succeeded", "failed", "cancelled", "rejected"];

/// Which jobs.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct JobsQuery {
    /// Only in this state.
    state: Option<String>,
    /// Only this user's.
    user: Option<String>,
    /// Only one's own.
    mine: bool,
    /// Also those that are over.
    all: bool,
    /// Only with a name like this: `*` stands for any characters, `?` for one.
    name: Option<String>,
    /// At most so many; 1000 where nothing is said, 20000 at most.
    limit: Option<usize>,
    /// Only with higher numbers, the lowest of them.
    after: Option<u64>,
    /// Only with lower numbers: the page before, given the first number of this one.
    before: Option<u64>,
}

#[utoipa::path(get, path = "/v1/jobs", operation_id = "list_jobs", params(JobsQuery), security(("token" = [])),
    responses((status = 200, body = JobList), (status = 400, body = ErrorView)))]
pub(super) async fn list(
    State(site): State<Arc<ApiSite>>,
    Reader(caller): Reader,
    RequestParams(which): RequestParams<JobsQuery>,
) -> Result<Answer<JobList>, ApiProblem> {
    which.check()?;
    let filter = which.filter(&caller);
    let mut found: BTreeMap<u64, Arc<JobView>> = BTreeMap::new();
    if which.past() {
        let asked = filter.clone();
        let over = site.past(move |past| past.jobs(&asked)).await?;
        found.extend(over.into_iter().map(|job| (job.id, Arc::new(job))));
    }
    found.retain(|_, job| visible(&caller, &job.user));
    let (known, hidden) = of_board(&site, &caller);
    which.overlay(known, &caller, &mut found);
    Ok(Answer(page(found, &which, hidden)))
}

impl JobsQuery {
    fn check(&self) -> Result<(), ApiProblem> {
        let known = |state: &String| OPEN.contains(&state.as_str()) || OVER.contains(&state.as_str());
        if self.state.as_ref().is_some_and(|state| !known(state)) {
            let error = format!("state: one of {}, {}", OPEN.join(", "), OVER.join(", "));
            return Err(ApiProblem::field("state", error));
        }
        if self.name.as_ref().is_some_and(|name| name.len() > NAME_MAX) {
            return Err(ApiProblem::field("name", format!("name: at most {NAME_MAX} bytes")));
        }
        Ok(())
    }

    /// One's own jobs, unless one is an admin; then whose one asks for.
    fn filter(&self, caller: &Caller) -> JobFilter {
        let mine = self.mine || !caller.who.admin;
        let user = if mine { Some(caller.who.user.clone()) } else { self.user.clone() };
        let (state, name) = (self.state.clone(), self.name.clone());
        // One more than is shown tells whether there are more.
        JobFilter { user, state, name, after: self.after, before: self.before, limit: self.limit() + 1 }
    }

    fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT).min(LIMIT_MAX)
    }

    /// Whether what is over counts.
    fn past(&self) -> bool {
        self.all || self.state.as_ref().is_some_and(|state| OVER.contains(&state.as_str()))
    }

    /// What the board knows is newer than what the history does.
    fn overlay(&self, known: Vec<Arc<JobView>>, caller: &Caller, found: &mut BTreeMap<u64, Arc<JobView>>) {
        known.iter().for_each(|job| drop(found.remove(&job.id)));
        let wanted = known.into_iter().filter(|job| self.wants(job, caller));
        found.extend(wanted.map(|job| (job.id, job)));
        if let Some(user) = self.user.as_ref() {
            found.retain(|_, job| job.user == *user);
        }
    }

    fn wants(&self, job: &JobView, caller: &Caller) -> bool {
        let state = match &self.state {
            Some(state) => job.state == *state,
            None => self.all || OPEN.contains(&job.state.as_str()),
        };
        let name = self.name.as_ref().is_none_or(|name| matches(name, &job.name));
        let after = self.after.is_none_or(|after| job.id > after);
        let before = self.before.is_none_or(|before| job.id < before);
        state && name && after && before && (!self.mine || job.user == caller.who.user)
    }
}

/// What the board has of theirs, and how many of others are not over.
fn of_board(site: &ApiSite, caller: &Caller) -> (Vec<Arc<JobView>>, u64) {
    let board = site.board();
    let (theirs, others): (Vec<_>, Vec<_>) = board.jobs.values().partition(|job| visible(caller, &job.user));
    let hidden = others.iter().filter(|job| job.ended_at.is_none()).count() as u64;
    (theirs.into_iter().cloned().collect(), hidden)
}

/// The first ones after a number, or else the newest.
fn page(found: BTreeMap<u64, Arc<JobView>>, which: &JobsQuery, hidden: u64) -> JobList {
    let (limit, more) = (which.limit(), found.len() > which.limit());
    let skip = if which.after.is_some() { 0 } else { found.len().saturating_sub(limit) };
    let shown = found.into_values().skip(skip).take(limit);
    let jobs = shown.map(|job| JobView { request: None, ..JobView::clone(&job) }).collect();
    JobList { jobs, more, hidden }
}
