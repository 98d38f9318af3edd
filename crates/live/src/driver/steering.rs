//! Jobs that are not over in their users' hands: held, released, started again, edited. Whose job it is decides who may
//! do that; what an administrator holds of somebody else, only an administrator releases.

use std::sync::Arc;

use yard_core::ids::JobId;
use yard_core::job::JobRun;
use yard_core::message::{Edit, Input};
use yard_core::units::Time;

use super::Driver;
use super::clients::may;
use super::jobs::JobPapers;
use super::staging::Edited;
use crate::handle::{Refusal, Reply, Steering, Who};
use crate::request::JobRequest;
use crate::request::check::check;
use crate::request::edit::JobEdit;
use crate::store::{Facts, HeldBy};
use crate::translate::translate;
use crate::views::JobView;

/// What is to be made durable.
struct Change {
    what: &'static str,
    input: Input,
    facts: Facts,
    edited: Option<Edited>,
    warnings: Vec<String>,
}

impl Change {
    fn new(what: &'static str, input: Input, facts: Facts) -> Change {
        Change { what, input, facts, edited: None, warnings: Vec::new() }
    }
}

impl Driver {
    pub(super) fn take_steer(&mut self, who: &Who, job: JobId, steering: Steering, reply: Reply<JobView>) {
        match self.steered(who, job, steering) {
            Ok(Change { what, input, facts, edited, warnings }) => {
                self.staged.audit(&who.user, what, format!("job {job}"), "accepted");
                self.staged.steer(job, (input, facts), edited, warnings, reply);
            }
            // Who asked may have gone.
            Err(refusal) => drop(reply.send(Err(refusal))),
        }
    }

    fn steered(&self, who: &Who, job: JobId, steering: Steering) -> Result<Change, Refusal> {
        let Some(record) = self.records.all.get(&job).filter(|record| may(who, &record.view.user)) else {
            let state = self.look_up_for(who, job)?.state;
            return Err(Refusal::Conflict(format!(
                "job {job} is over already: {state}; to run it again, submit it again (its command: yard show {job})"
            )));
        };
        let Some(run) = self.engine.job(job).filter(|run| !run.cancelled) else {
            return Err(Refusal::Conflict(format!("job {job} is being cancelled")));
        };
        let facts = self.staged.facts_of(job).unwrap_or(&record.facts).clone();
        match steering {
            Steering::Hold { reason } => self.held(who, job, (record, run), facts, reason),
            Steering::Release => released(who, job, facts),
            Steering::Requeue => requeued(job, run, facts),
            Steering::Edit(edit) => self.edited(job, (record, run), facts, &edit),
        }
    }

    fn held(
        &self,
        who: &Who,
        job: JobId,
        (record, run): (&JobPapers, &JobRun),
        mut facts: Facts,
        reason: Option<String>,
    ) -> Result<Change, Refusal> {
        if let Some(by) = facts.held.as_ref().filter(|by| by.admin && !who.admin) {
            return Err(Refusal::Conflict(format!("job {job} is held already, by {}", by.user)));
        }
        let pausable = self.engine.job_spec(job).is_none_or(|spec| spec.pausable);
        if run.lease.is_some() && run.stopping.is_none() && !pausable {
            return Err(Refusal::Conflict(format!(
                "job {job} is running and cannot be paused (pause: never); let it finish, or use yard requeue \
                 {job} or yard cancel {job}"
            )));
        }
        let admin = who.admin && who.user != record.view.user;
        facts.held = Some(HeldBy { user: who.user.clone(), admin, reason });
        let warnings = run.promise.map(|_| {
            "the promise of its deadline is cancelled, and is not renewed when the job is released".to_owned()
        });
        let warnings = warnings.into_iter().collect();
        Ok(Change { warnings, ..Change::new("hold", Input::Hold(job), facts) })
    }

    fn edited(
        &self,
        job: JobId,
        (record, run): (&JobPapers, &JobRun),
        facts: Facts,
        edit: &JobEdit,
    ) -> Result<Change, Refusal> {
        if !run.state.is_waiting() {
            return Err(Refusal::Conflict(format!(
                "job {job} is {}; only waiting jobs can be edited: yard hold {job} first, and yard release \
                 {job} afterwards",
                record.view.state
            )));
        }
        if self.staged.edits(job) {
            return Err(Refusal::Conflict(format!("job {job} is being edited by somebody else; try again")));
        }
        let before = &record.request;
        let after = edit.apply(before);
        check(&after).map_err(|wrong| refused(wrong.field, &wrong.to_string()))?;
        may_change(run, before, &after, edit)?;
        if edit.priority.is_some() {
            self.priority(&after)?;
        }
        if edit.deadline.is_some() {
            self.deadline(&after)?;
        }
        self.grace(&after)?;
        let change = self.edit(job, &record.view.user, before, &after)?;
        let aimed = edit.deadline.flatten().is_some() && self.engine.settings().promises;
        let warnings = aimed
            .then(|| "the new deadline is best effort: deadlines are only promised at submission".to_owned());
        let edited = Some(Edited { before: before.clone(), after: Arc::new(after) });
        let warnings = warnings.into_iter().collect();
        Ok(Change { edited, warnings, ..Change::new("edit", Input::Edit(Box::new(change)), facts) })
    }

    /// What the engine is told. Its beliefs about the job stay.
    fn edit(&self, job: JobId, user: &str, before: &JobRequest, after: &JobRequest) -> Result<Edit, Refusal> {
        let offers = self.offers();
        let spec = |request| translate(user, request, self.kinds(), &*self.config.catalog, &offers);
        let (old, new) = (spec(before)?, spec(after)?);
        let length = |spec: &yard_core::job::JobSpec| (spec.steps, spec.length);
        let started = self.engine.job(job).is_some_and(|run| run.first_start.is_some());
        let steps = Some(length(&new)).filter(|steps| *steps != length(&old) && !started);
        let deadline = after.deadline.map(Time::from_secs);
        Ok(Edit { job, name: new.name, weight: new.weight, priority: new.priority, deadline, steps })
    }
}

fn released(who: &Who, job: JobId, mut facts: Facts) -> Result<Change, Refusal> {
    match facts.held.take() {
        None => Err(Refusal::Conflict(format!("job {job} is not held"))),
        Some(by) if by.admin && !who.admin => Err(Refusal::Forbidden(format!(
            "job {job} is held by {}, an administrator; only an administrator can release it",
            by.user
        ))),
        Some(_) => Ok(Change::new("release", Input::Release(job), facts)),
    }
}

fn requeued(job: JobId, run: &JobRun, facts: Facts) -> Result<Change, Refusal> {
    if run.lease.is_none() {
        return Err(Refusal::Conflict(format!(
            "job {job} is waiting already; to see why: yard explain {job}"
        )));
    }
    Ok(Change::new("requeue", Input::Requeue(job), facts))
}

/// What depends on what has been promised, or done, stays as it is.
fn may_change(run: &JobRun, before: &JobRequest, after: &JobRequest, edit: &JobEdit) -> Result<(), Refusal> {
    let deadline = after.deadline != before.deadline;
    let length = after.duration_s != before.duration_s;
    let limit = after.time_limit_s != before.time_limit_s;
    if run.promise.is_some() && (deadline || length || limit) {
        let field = if deadline {
            "deadline"
        } else if length {
            "duration_s"
        } else {
            "time_limit_s"
        };
        return Err(refused(
            field,
            &format!(
                "{field}: the deadline of this job is promised and planned for; to change it, cancel the job \
                 and submit it again"
            ),
        ));
    }
    if !before.rewards.is_empty() && (deadline || edit.weight.is_some()) {
        let field = if deadline { "deadline" } else { "weight" };
        return Err(refused(
            field,
            &format!("{field}: the rewards of this job depend on it; cancel the job and submit it again"),
        ));
    }
    if length && run.first_start.is_some() {
        return Err(refused(
            "duration_s",
            "duration_s: the job has run already, so its length is estimated from its progress",
        ));
    }
    Ok(())
}

fn refused(field: &str, message: &str) -> Refusal {
    Refusal::Invalid { field: Some(field.to_owned()), message: message.to_owned() }
}
