//! One input is stepped, and what follows from it: directives to the backend, questions to the policy, and facts for people.

use yard_core::cluster::Placement;
use yard_core::ids::{JobId, LeaseId};
use yard_core::job::{JobRun, JobState};
use yard_core::message::{Effect, Event, Input, News, Outcome, Report, Why};
use yard_core::units::{Span, Time};

use super::Driver;
use super::clock::Stopwatch;
use super::hosts::GroupMask;
use super::jobs::devices;
use crate::exec::Directive;
use crate::planner::Verdict;
use crate::store::EndedJob;

impl Driver {
    /// Steps the next input, which is durable, and does what follows.
    pub(super) fn step(&mut self, now: Time, input: Input) {
        for effect in self.step_engine(now, input) {
            match effect {
                Effect::Plan { plan, view } => {
                    let verdict = self.planner.ask(self.clock.elapsed(), plan, view);
                    verdict.into_iter().for_each(|verdict| self.act_on(verdict));
                }
                Effect::Execute(command) => self.execute(now, command),
                Effect::Publish(_) => {}
            }
        }
    }

    /// Steps the next input and notes the facts; what remains is to be carried out. A recovery drops it.
    pub(super) fn step_engine(&mut self, now: Time, input: Input) -> Vec<Effect> {
        self.seq += 1;
        let job = match &input {
            Input::Report(report) => Some(report.job),
            Input::Cancel(job) | Input::Kill(job) => Some(*job),
            _ => None,
        };
        // A job that ends is not there afterwards.
        let before = job.and_then(|job| self.engine.job(job)).cloned();
        if let Input::Report(report) = &input
            && let News::Stopped { outcome, .. } = report.news
            && let Some(record) = self.records.all.get_mut(&report.job)
            && before.as_ref().is_some_and(|run| run.lease == Some(report.lease))
        {
            record.ended_run(outcome);
        }
        self.remember(now, &input, before.as_ref());
        let decides = matches!(input, Input::Tick | Input::Planned { .. });
        let watch = Stopwatch::start();
        let mut effects = Vec::new();
        self.engine.step(now, input, &mut effects);
        if decides && !effects.is_empty() {
            self.config.meter.round(watch.took());
        }
        let mut n = 0;
        for effect in &effects {
            if let Effect::Publish(event) = effect {
                self.note(now, event, before.as_ref());
                self.publish(now, event, &mut n);
            }
        }
        self.derived.seq = self.seq;
        effects
    }

    /// What forecasts go by: who came, and how much jobs that are done had to do.
    fn remember(&mut self, now: Time, input: &Input, before: Option<&JobRun>) {
        match input {
            Input::Submit(spec) => self.forecaster.came(now, spec),
            Input::Report(Report { job, lease, news: News::Stopped { outcome: Outcome::Finished, .. } }) => {
                let run = before.filter(|run| run.lease == Some(*lease));
                if let Some((run, spec)) = run.zip(self.engine.job_spec(*job)) {
                    self.forecaster.done(now, run, spec);
                }
            }
            _ => {}
        }
    }

    /// What to do about a plan.
    pub(super) fn act_on(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Step(input, text) => self.staged.keep_text(input, text),
            Verdict::Broken(plan, reason) => {
                self.staged.keep(Input::Planned { plan, answer: Err(reason) });
            }
            Verdict::Ignore => {}
        }
    }

    /// Brings what is known of a job up to date.
    fn note(&mut self, now: Time, event: &Event, before: Option<&JobRun>) {
        match event {
            Event::Granted { lease, jobs, placement } => {
                self.devices_held += placement.devices() as u64;
                jobs.iter().for_each(|job| self.take_up(*job, *lease, placement));
                jobs.iter().for_each(|job| self.forecaster.began(now, *job));
            }
            Event::Stopped { job, .. } => self.put_down(*job),
            Event::Rejected { job, reason, earliest } => {
                self.note_earliest(*job, *earliest);
                self.end_job(now, *job, None, JobState::Rejected, Some(dated(reason, *earliest)));
            }
            Event::Ended { job, state } => {
                self.put_down(*job);
                self.forecaster.ended(now, *job, *state);
                self.end_job(now, *job, before, *state, None);
            }
            Event::Edited { job } => {
                self.records.all.get_mut(job).into_iter().for_each(|record| record.edited = true);
                self.changed_jobs.insert(*job);
            }
            Event::Held { job } | Event::Released { job } => _ = self.changed_jobs.insert(*job),
            Event::Orphaned { job, after } => {
                if let Some(record) = self.records.all.get_mut(job) {
                    record.orphaned(*after);
                }
            }
            Event::Stopping { job, why, to } => {
                self.config.meter.preempted((*why == Why::Preempted) as u64);
                if let Some(record) = self.records.all.get_mut(job) {
                    record.stopping(*why, to);
                }
                self.changed_jobs.insert(*job);
            }
            Event::Unpromised { job, earliest } => {
                self.note_earliest(*job, *earliest);
                self.changed_jobs.insert(*job);
            }
            Event::Submitted { job }
            | Event::Promised { job, .. }
            | Event::AtRisk { job, .. }
            | Event::Started { job } => {
                self.changed_jobs.insert(*job);
            }
            Event::Planned { certificate, .. } => self.prices.clone_from(&certificate.prices),
            Event::Node { node, .. } => {
                self.changed_hosts.extend(self.hosts.of_node(*node));
            }
            Event::Freed { placement, .. } => {
                self.devices_held = self.devices_held.saturating_sub(placement.devices() as u64);
            }
            Event::PlanFailed { .. } | Event::Stale { .. } => {}
        }
    }

    /// What deadline could have been promised, for who submitted the job.
    fn note_earliest(&mut self, job: JobId, earliest: Option<Time>) {
        if let Some(record) = self.records.all.get_mut(&job) {
            record.view.earliest = earliest.map(Time::secs);
        }
    }

    pub(super) fn take_up(&mut self, job: JobId, lease: LeaseId, placement: &Placement) {
        let Some(record) = self.records.all.get_mut(&job) else { return };
        record.held = Some((lease, placement.clone()));
        (record.reported, record.trained) = (None, None);
        self.records.holding.insert(job);
        self.changed_jobs.insert(job);
        for slice in &placement.0 {
            let Some((host, GroupMask { group, mask })) = self.hosts.holder_of(slice) else { continue };
            devices(mask).for_each(|device| self.hosts.get_mut(host).hold(group, device, job));
            self.changed_hosts.insert(host);
        }
    }

    fn put_down(&mut self, job: JobId) {
        self.changed_jobs.insert(job);
        self.records.holding.remove(&job);
        let held = self.records.all.get_mut(&job).and_then(|record| record.held.take());
        for slice in held.into_iter().flat_map(|(_, placement)| placement.0) {
            let Some((host, GroupMask { group, mask })) = self.hosts.holder_of(&slice) else { continue };
            devices(mask).for_each(|device| self.hosts.get_mut(host).put_down(group, device, job));
            self.changed_hosts.insert(host);
        }
    }

    fn end_job(
        &mut self,
        now: Time,
        job: JobId,
        before: Option<&JobRun>,
        state: JobState,
        reason: Option<String>,
    ) {
        if let Some(mut record) = self.records.remove(job) {
            record.end(before.filter(|run| run.id == job), state, reason, now);
            self.config.meter.ended(&record.view.state);
            self.derived.ended.push(EndedJob { ended: now, view: record.view });
        }
        self.direct(now, Directive::Over { job });
    }
}

/// A refusal with the moment that it speaks of, to the minute and never too early.
fn dated(reason: &str, earliest: Option<Time>) -> String {
    let minute = earliest.map(|time| time.round_up(Span::from_whole_secs(60)));
    let moment = minute.and_then(|time| jiff::Timestamp::from_microsecond(i64::try_from(time.0).ok()?).ok());
    match moment {
        Some(moment) => format!("{reason}, at {}", moment.strftime("%Y-%m-%d %H:%M UTC")),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_minute() {
        let time = Time::from_secs(1_794_838_801.0);
        assert_eq!(dated("later", Some(time)), "later, at 2026-11-16 14:21 UTC");
        assert_eq!(dated("never", None), "never");
    }
}
