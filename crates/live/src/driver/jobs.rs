//! The driver's memory of living jobs: what was asked for, what was heard of them, and how people see them. What
//! the engine knows is not kept twice: a view is made anew from it whenever something happens to the job.

mod records;
mod words;

use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::Engine;
use yard_core::cluster::Placement;
use yard_core::ids::{JobId, LeaseId};
use yard_core::job::{JobRun, JobSpec, JobState};
use yard_core::message::{Outcome, Why};
use yard_core::units::{Span, Time};

pub(super) use self::records::{RecordSum, Records};
use self::words::{because, kind, length_of, places};
pub(super) use self::words::{devices, state_name};
use super::cards::idle_reason;
use super::waiting;
use crate::explain;
use crate::request::JobRequest;
use crate::store::{Facts, HeldBy, JobRow};
use crate::translate;
use crate::views::JobView;

/// Time to save and stop where the user says nothing.
const GRACE: Span = Span::from_whole_secs(30);

/// How much the newest report counts in the rate that people see.
const RATE_NEWS: f64 = 0.3;

/// A living job.
#[derive(Debug)]
pub(super) struct JobPapers {
    pub(super) view: JobView,
    pub(super) request: Arc<JobRequest>,
    pub(super) facts: Facts,
    /// The devices it holds.
    pub(super) held: Option<(LeaseId, Placement)>,
    /// What it was last told to stop for, and who got its devices.
    why: Option<(Why, SmallVec<[JobId; 1]>)>,
    /// How its last run ended.
    outcome: Option<Outcome>,
    /// The job before it that did not succeed.
    orphaned: Option<JobId>,
    /// When it last said how far it is.
    heard: Option<Time>,
    /// It was edited, and what it asks for now is not in its request yet.
    pub(super) edited: bool,
    /// It is stopped for a moment, because it slows another.
    pub(super) hushed: bool,
    /// When the engine was last told.
    pub(super) reported: Option<Time>,
    /// When the engine last heard of its steps.
    pub(super) trained: Option<Time>,
    /// The loss that it reported and that is not on the board yet.
    pub(super) loss: Option<f64>,
}

impl JobPapers {
    pub(super) fn new(id: JobId, user: &str, request: Arc<JobRequest>, submitted: Time) -> JobPapers {
        let view = JobView {
            id: id.0,
            name: translate::name(&request).unwrap_or_default(),
            user: user.to_owned(),
            tenant: request.tenant.clone(),
            state: state_name(JobState::Pending),
            reason: None,
            held_by: None,
            gpus: request.gpus.or(request.min_gpus).unwrap_or(1),
            kind: None,
            nodes: Vec::new(),
            frozen: Vec::new(),
            priority: request.priority,
            deadline: request.deadline,
            promise: None,
            at_risk: false,
            earliest: None,
            submitted_at: submitted.secs(),
            started_at: None,
            ended_at: None,
            executed_s: 0.0,
            idle_s: None,
            step: None,
            steps: None,
            checkpointed: None,
            rate: None,
            starts: 0,
            preemptions: 0,
            migrations: 0,
            failures: 0,
            exit_code: None,
            length: None,
            estimate: None,
            request: None,
            log_end: None,
            warnings: Vec::new(),
        };
        let facts = Facts::default();
        JobPapers {
            view,
            request,
            facts,
            held: None,
            why: None,
            outcome: None,
            orphaned: None,
            heard: None,
            edited: false,
            hushed: false,
            reported: None,
            trained: None,
            loss: None,
        }
    }

    pub(super) fn restore(row: JobRow) -> JobPapers {
        let mut record = JobPapers::new(row.id, &row.user, Arc::new(row.request), row.submitted);
        (record.view.steps, record.view.checkpointed) = (row.facts.total, row.facts.checkpointed);
        record.view.step = row.facts.checkpointed;
        record.facts = row.facts;
        record
    }

    /// How long it may take to save and stop: no shorter than it says that saving takes, with room to spare, and never
    /// longer than the server allows.
    pub(super) fn grace(&self, most: Span) -> Span {
        let asked = self.request.checkpoint.grace_s.map_or(GRACE, Span::from_secs);
        asked.max(Span(self.facts.save.0.saturating_mul(2))).min(most)
    }

    /// How long it may still run.
    pub(super) fn limit(&self, executed: Span) -> Option<Span> {
        let limit = Span::from_secs(self.request.time_limit_s?);
        Some(Span(limit.0.saturating_sub(executed.0).max(1)))
    }

    /// It says how far it is.
    pub(super) fn progress(&mut self, now: Time, step: u64, total: Option<u64>) {
        if let (Some(before), Some(heard)) = (self.view.step, self.heard) {
            let seconds = (now - heard).secs();
            if seconds > 0.0 && step >= before {
                let rate = (step - before) as f64 / seconds;
                let old = self.view.rate.unwrap_or(rate);
                self.view.rate = Some(RATE_NEWS * rate + (1.0 - RATE_NEWS) * old);
            }
        }
        self.heard = Some(now);
        self.facts.talks = true;
        self.facts.total = total.or(self.facts.total);
        (self.view.step, self.view.steps) = (Some(step), self.facts.total);
    }

    /// It saved its progress. What saving cost it once it may cost again.
    pub(super) fn checkpointed(&mut self, step: u64, took: Span) {
        self.facts.talks = true;
        self.facts.checkpointed = Some(step);
        self.facts.save = self.facts.save.max(took);
        self.view.checkpointed = Some(step);
    }

    /// Work done when `step` is: the engine counts it in units of its own.
    pub(super) fn work(&self, spec: &JobSpec, step: u64) -> Option<f64> {
        let total = self.facts.total.filter(|total| *total > 0)?;
        Some(spec.steps * (step as f64 / total as f64).min(1.0))
    }

    /// What the engine believes about the job, as people see it.
    pub(super) fn refresh(&mut self, engine: &Engine, run: &JobRun, spec: &JobSpec, now: Time) {
        let view = &mut self.view;
        view.state = state_name(run.state);
        view.length = engine.length(run.id).map(|length| length_of(&length));
        view.promise = run.promise.map(Time::secs);
        view.at_risk = engine.is_at_risk(run.id);
        view.started_at = run.first_start.map(Time::secs);
        view.executed_s = run.executed_at(now).secs();
        (view.starts, view.preemptions) = (run.starts, run.preemptions);
        (view.migrations, view.failures) = (run.migrations, run.failures);
        view.held_by = self.facts.held.as_ref().filter(|_| run.held).map(|by| by.user.clone());
        view.frozen = run.home.as_deref().map_or_else(Vec::new, |home| places(engine, home));
        match &self.held {
            Some((_, placement)) => {
                self.view.gpus = placement.devices();
                self.view.nodes = places(engine, placement);
                self.view.kind = kind(engine, placement);
            }
            None => {
                self.view.gpus = self.request.gpus.or(self.request.min_gpus).unwrap_or(1);
                (self.view.nodes, self.view.kind, self.view.rate) = (Vec::new(), None, None);
                (self.heard, self.hushed) = (None, false);
            }
        }
        self.view.reason = self.waits_for(engine, run, spec);
    }

    /// It has used none of its devices for so long, if so.
    pub(super) fn idles(&mut self, idle: Option<Span>) {
        self.view.idle_s = idle.map(Span::secs);
        let reason = idle.map(|idle| idle_reason(self.view.gpus, idle));
        self.view.reason = self.view.reason.take().or(reason);
    }

    /// Why it is in the state it is in, where there is something to say.
    pub(super) fn waits_for(&self, engine: &Engine, run: &JobRun, spec: &JobSpec) -> Option<String> {
        match run.state {
            JobState::Pending | JobState::Suspended if run.held => Some(self.held()),
            JobState::Suspending => run.stopping.map(|why| format!("stopping: {}", self.because(why))),
            JobState::Pending | JobState::Suspended if run.held_until.is_some() => {
                Some(self.held_back(engine, run, spec))
            }
            JobState::Pending if self.outcome == Some(Outcome::Lost) => {
                Some(self.facts.message.clone().unwrap_or_else(|| "its node was lost".into()))
            }
            JobState::Pending if run.failures > 0 => {
                let (at, most) = (run.failures, spec.failures_max.saturating_add(1));
                Some(format!("failure {at} of {most}: {}", self.exit()))
            }
            JobState::Suspended if self.stopped_by().is_some() => {
                self.stopped_by().map(|why| self.because(why))
            }
            JobState::Pending | JobState::Suspended => Some(waiting::wanted(engine, spec)),
            JobState::Running if self.hushed => {
                Some("paused: it was slowing a guaranteed job on its GPU".into())
            }
            _ => None,
        }
    }

    /// What it was stopped for, where it still waits because of that: not once it is released, or may start again.
    fn stopped_by(&self) -> Option<Why> {
        self.why.as_ref().map(|(why, _)| *why).filter(|why| !matches!(why, Why::Held | Why::Requeued))
    }

    /// Who holds it, and what for.
    pub(super) fn held(&self) -> String {
        match &self.facts.held {
            Some(HeldBy { user, reason: Some(reason), .. }) => format!("held by {user}: {reason}"),
            Some(HeldBy { user, .. }) => format!("held by {user}"),
            None => "held".into(),
        }
    }

    fn held_back(&self, engine: &Engine, run: &JobRun, spec: &JobSpec) -> String {
        let awaits: Vec<JobId> =
            spec.after.iter().copied().filter(|job| engine.job(*job).is_some()).collect();
        if !awaits.is_empty() {
            return explain::waits_for(&awaits);
        }
        if run.failures == 0 || run.held_until == spec.not_before {
            return "waits for its begin time".into();
        }
        let span = engine.settings().hold_after(run.failures);
        let (at, most) = (run.failures, spec.failures_max.saturating_add(1));
        format!("waits for {} s after failure {at} of {most}: {}", span.secs(), self.exit())
    }

    /// How its last run ended, in a few words.
    fn exit(&self) -> String {
        match (self.facts.exit_code, self.facts.signal, &self.facts.message) {
            (_, _, Some(message)) => message.clone(),
            (Some(code), None, None) => format!("exit code {code}"),
            (_, Some(signal), None) => format!("signal {signal}"),
            (None, None, None) => "it ended without an exit code".into(),
        }
    }

    /// The job is over; `run` is how the engine saw it last.
    pub(super) fn end(&mut self, run: Option<&JobRun>, state: JobState, rejected: Option<String>, now: Time) {
        if let Some(run) = run {
            self.view.started_at = run.first_start.map(Time::secs);
            self.view.executed_s = run.executed_at(now).secs();
            (self.view.starts, self.view.preemptions) = (run.starts, run.preemptions);
            self.view.migrations = run.migrations;
            let crashed = self.outcome == Some(Outcome::Crashed) && run.holds();
            self.view.failures = run.failures + crashed as u32;
        }
        (self.view.nodes, self.view.rate, self.view.idle_s) = (Vec::new(), None, None);
        self.view.held_by = None;
        self.view.length = None;
        self.view.state = state_name(state);
        self.view.ended_at = Some(now.secs());
        self.view.exit_code = self.exit_code(state);
        self.view.reason = rejected.or_else(|| self.ended_by(state));
        if state == JobState::Succeeded && self.view.steps.is_some() {
            self.view.step = self.view.steps;
        }
    }

    fn exit_code(&self, state: JobState) -> Option<i32> {
        match state {
            JobState::Succeeded => Some(0),
            JobState::Rejected => None,
            // As shells say it.
            _ => self.facts.exit_code.or(self.facts.signal.map(|signal| signal.saturating_add(128))),
        }
    }

    fn ended_by(&self, state: JobState) -> Option<String> {
        match (state, self.outcome) {
            (JobState::Failed, Some(Outcome::Expired)) => {
                let limit = self.request.time_limit_s.unwrap_or_default();
                Some(format!("it reached its time limit of {limit} s"))
            }
            (JobState::Failed, _) => Some(self.exit()),
            (JobState::Cancelled, _) if self.orphaned.is_some() => {
                self.orphaned.map(|after| format!("it depends on job {after}, which did not succeed"))
            }
            (JobState::Cancelled, _) => self.facts.cancelled.as_ref().map(|(user, reason)| {
                let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("cancelled by {user}{reason}")
            }),
            _ => None,
        }
    }

    /// One that it comes after did not succeed.
    pub(super) fn orphaned(&mut self, after: JobId) {
        self.orphaned = Some(after);
    }

    /// It was told to stop.
    pub(super) fn stopping(&mut self, why: Why, to: &[JobId]) {
        self.why = Some((why, to.into()));
    }

    /// What it was stopped for, with the jobs that got its devices.
    fn because(&self, why: Why) -> String {
        if why == Why::Held {
            return self.held();
        }
        let to = self.why.as_ref().filter(|(last, _)| *last == why).map_or(&[][..], |(_, to)| to);
        because(why, to)
    }

    /// How a run under a lease ended, before the engine hears of it.
    pub(super) fn ended_run(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}
