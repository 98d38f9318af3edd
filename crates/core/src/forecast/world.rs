//! A world in which jobs start after what starting and loading cost, work at the speed that the engine believes, stop
//! after what saving costs, and never fail.

use std::collections::{BTreeMap, BTreeSet};

use super::Scenario;
use crate::engine::Engine;
use crate::ids::{JobId, LeaseId};
use crate::job::{JobRun, JobSpec, JobState};
use crate::message::{Command, News, Outcome, Report, Why};
use crate::units::{Span, Time};

/// What a job that holds devices is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Starting,
    Working,
    Saving,
    Lost,
}

/// A job that holds devices.
#[derive(Clone, Copy, Debug)]
struct Holder {
    lease: LeaseId,
    doing: Doing,
    /// Steps done, and when.
    done: f64,
    as_of: Time,
    speed: f64,
    /// When the next thing happens to it.
    due: Time,
}

/// Who holds devices, and what happens to them next.
#[derive(Default)]
pub(super) struct World {
    holders: BTreeMap<JobId, Holder>,
    /// What jobs really have to do, where it is not what they say.
    steps: BTreeMap<JobId, f64>,
    due: BTreeSet<(Time, JobId)>,
    /// Leases on which somebody came or went: the others there may work faster or slower now.
    stirred: BTreeSet<LeaseId>,
}

impl World {
    pub(super) fn new(engine: &Engine, scenario: &Scenario) -> World {
        let mut world = World { steps: scenario.steps.clone(), ..World::default() };
        for held in engine.leases() {
            for job in &held.jobs {
                let (run, spec) = both(engine, job.job);
                let (doing, from) = match run.state {
                    JobState::Starting => (Doing::Starting, run.held_since + beginning(run, spec)),
                    JobState::Suspending => (Doing::Saving, run.since + spec.costs.save),
                    _ => (Doing::Working, Time::NEVER),
                };
                let (now, done) = (engine.now(), run.done_at(engine.now()));
                let due = from.max(now);
                world.hold(
                    job.job,
                    Holder { lease: held.lease, doing, done, as_of: now, speed: run.speed, due },
                );
                if doing == Doing::Working {
                    world.set_due(job.job, engine);
                }
            }
        }
        world
    }

    /// A job that comes will have so much to do.
    pub(super) fn expect(&mut self, job: JobId, steps: f64) {
        self.steps.insert(job, steps);
    }

    /// When something happens next.
    pub(super) fn time(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time).filter(|time| *time < Time::NEVER)
    }

    /// What the next job whose time has come reports.
    pub(super) fn next_due(&mut self, now: Time) -> Option<Report> {
        let (time, job) = self.due.first().copied().filter(|(time, _)| *time <= now)?;
        self.due.remove(&(time, job));
        let holder = self.holders.get_mut(&job).expect("who is due holds devices");
        let lease = holder.lease;
        let done = holder.done + (now - holder.as_of).secs() * holder.speed;
        let news = match holder.doing {
            Doing::Starting => {
                (holder.doing, holder.as_of, holder.due) = (Doing::Working, now, Time::NEVER);
                News::Started
            }
            Doing::Working => News::Stopped { steps: done, outcome: Outcome::Finished },
            Doing::Saving => News::Stopped { steps: holder.done, outcome: Outcome::Saved },
            Doing::Lost => News::Stopped { steps: holder.done, outcome: Outcome::Lost },
        };
        if matches!(news, News::Stopped { .. }) {
            self.holders.remove(&job);
        }
        self.stirred.insert(lease);
        Some(Report { lease, job, news })
    }

    pub(super) fn execute(&mut self, engine: &Engine, command: &Command) {
        match command {
            Command::Grant { lease, jobs, .. } => {
                for job in jobs {
                    let (run, spec) = both(engine, *job);
                    let (now, due) = (engine.now(), engine.now() + beginning(run, spec));
                    let (doing, done) = (Doing::Starting, run.done);
                    self.hold(*job, Holder { lease: *lease, doing, done, as_of: now, speed: 0.0, due });
                }
            }
            Command::Revoke { lease, jobs, why } => {
                for job in jobs.iter().filter(|job| engine.job(**job).is_some()) {
                    let (run, spec) = both(engine, *job);
                    match why {
                        Why::Lost => self.lose(*job, engine.now(), run.done),
                        _ => self.stop(*job, engine.now(), spec.costs.save),
                    }
                }
                self.stirred.insert(*lease);
            }
            Command::Renew { .. } | Command::Tune { .. } => {}
        }
    }

    /// A job was told to stop: it works no longer.
    fn stop(&mut self, job: JobId, now: Time, save: Span) {
        let Some(mut holder) = self.holders.get(&job).copied() else { return };
        if holder.doing == Doing::Working {
            holder.done += (now - holder.as_of).secs() * holder.speed;
        }
        // One that has not begun has nothing to save.
        let save = if holder.doing == Doing::Working { save } else { Span::ZERO };
        self.hold(job, Holder { doing: Doing::Saving, as_of: now, speed: 0.0, due: now + save, ..holder });
    }

    /// A job's devices are gone, and what it had done since it last said so.
    fn lose(&mut self, job: JobId, now: Time, done: f64) {
        if let Some(holder) = self.holders.get(&job).copied() {
            self.hold(job, Holder { doing: Doing::Lost, done, as_of: now, speed: 0.0, due: now, ..holder });
        }
    }

    fn hold(&mut self, job: JobId, holder: Holder) {
        if let Some(before) = self.holders.insert(job, holder) {
            self.due.remove(&(before.due, job));
        }
        self.due.insert((holder.due, job));
    }

    /// Who works on leases where somebody came or went does so at the speed that the engine now believes.
    pub(super) fn keep_pace(&mut self, engine: &Engine) {
        for lease in std::mem::take(&mut self.stirred) {
            let jobs = engine.state().leases.get(lease).map(|lease| lease.jobs.clone()).unwrap_or_default();
            for job in jobs {
                self.set_due(engine.state().run(job).id, engine);
            }
        }
    }

    /// When a job that works will be done.
    fn set_due(&mut self, job: JobId, engine: &Engine) {
        let Some(mut holder) =
            self.holders.get(&job).copied().filter(|holder| holder.doing == Doing::Working)
        else {
            return;
        };
        let (now, (run, spec)) = (engine.now(), both(engine, job));
        holder.done += (now - holder.as_of).secs() * holder.speed;
        (holder.as_of, holder.speed) = (now, run.speed);
        let left = (self.steps.get(&job).copied().unwrap_or(spec.steps) - holder.done).max(0.0);
        let works = run.speed > 0.0;
        holder.due = if works { now + Span::from_secs(left / run.speed) } else { Time::NEVER };
        self.hold(job, holder);
    }
}

/// How long a job takes from its devices to its first step.
fn beginning(run: &JobRun, spec: &JobSpec) -> Span {
    spec.costs.start + if run.done > 0.0 { spec.costs.load } else { Span::ZERO }
}

fn both(engine: &Engine, job: JobId) -> (&JobRun, &JobSpec) {
    let living = "who holds devices lives";
    (engine.job(job).expect(living), engine.job_spec(job).expect(living))
}
