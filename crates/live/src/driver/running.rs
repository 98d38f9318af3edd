//! Between the engine and the agents: grants become gangs of parts, orders go out with what to run, and what becomes
//! of a gang is reported to the engine in its own units.

use smallvec::SmallVec;
use yard_core::cluster::{Placement, ResourceId};
use yard_core::gang::{FromGang, GangJob, GangNews, GangPart, Restored, ToGang};
use yard_core::ids::{AgentId, JobId, LeaseId};
use yard_core::job::Costs;
use yard_core::message::{Command, Input, News, Outcome, Report};
use yard_core::part::{Ending, Held, How, Order, PartId, Ranks, Start, Told};
use yard_core::units::{Span, Time};

use super::Driver;
use super::hellos::{REASON_MAX, shortened};
use super::jobs::Record;
use super::limits::limits;
use super::staging::After;
use crate::request;
use crate::store::Ran;
use crate::wire::{Task, ToAgent};

/// Longest time that saving or loading a job is believed to take.
const COST_MAX: Span = Span::from_whole_secs(24 * 3_600);

impl Driver {
    /// Carries out what the engine wants.
    pub(super) fn execute(&mut self, now: Time, command: Command) {
        match command {
            Command::Grant { lease, jobs, placement, .. } => {
                let jobs = jobs.iter().filter_map(|job| self.gang_job(*job, &placement)).collect();
                self.gangs_step(now, ToGang::Granted { lease, jobs });
            }
            Command::Revoke { lease, jobs, why } => {
                self.gangs_step(now, ToGang::Revoked { lease, jobs: jobs.to_vec(), why });
            }
            // Agents hold one lease for the whole node, which their beats extend.
            Command::Renew { .. } => {}
            Command::Tune { lease, job, batch } => self.tune(lease, job, batch),
        }
    }

    /// A job on its devices. Also notes where its ranks run, for its logs.
    fn gang_job(&mut self, job: JobId, placement: &Placement) -> Option<GangJob> {
        let run = self.engine.job(job)?;
        let (instance, executed) = (run.starts, run.executed);
        let most = self.config.grace_max;
        let per_device = self.records.all.get(&job)?.request.ranks == request::Ranks::Device;
        let parts = self.parts(placement, per_device);
        let record = self.records.all.get_mut(&job)?;
        let ran = parts.iter().map(|part| Ran {
            node: self.agents.get(part.agent).name.clone(),
            first: part.ranks.first,
            count: part.ranks.count,
        });
        record.facts.ran = ran.collect();
        self.staged.facts.insert(job);
        let (pause, grace, limit) = (record.request.pause, record.grace(most), record.limit(executed));
        let sharing = self.engine.job_spec(job)?.sharing();
        let (claim, loss_max) = (sharing.claim, sharing.loss_max);
        Some(GangJob { job, instance, pause, grace, limit, claim, loss_max, parts })
    }

    /// What each agent has of a placement, in its order.
    fn parts(&self, placement: &Placement, per_device: bool) -> Vec<GangPart> {
        let mut parts: Vec<(AgentId, SmallVec<[Held; 1]>)> = Vec::new();
        for slice in &placement.0 {
            let (agent, held) = self.agents.holder_of(slice).expect("a node that joined is some agent's");
            match parts.iter_mut().find(|(known, _)| *known == agent) {
                Some((_, devices)) => devices.push(held),
                None => parts.push((agent, SmallVec::from_elem(held, 1))),
            }
        }
        let count = |devices: &[Held]| devices.iter().map(|held| held.mask.count_ones()).sum();
        let counts = parts.iter().map(|(_, devices)| if per_device { count(devices) } else { 1 });
        let ranks = Ranks::split(&counts.collect::<Vec<_>>());
        let part = |((agent, devices), ranks): ((AgentId, SmallVec<[Held; 1]>), Ranks)| {
            let host = self.agents.get(agent);
            let card = devices.iter().any(|held| host.has_cards(held.group));
            GangPart { agent, address: host.address.clone(), devices, ranks, card }
        };
        parts.into_iter().zip(ranks).map(part).collect()
    }

    /// Everything that held devices when the server went down.
    pub(super) fn restored(&mut self) -> Vec<Restored> {
        let held: Vec<_> = self.engine.leases().collect();
        let mut jobs = Vec::new();
        for held in held {
            for job in &held.jobs {
                let restored = self.gang_job(job.job, &held.placement);
                jobs.extend(restored.map(|gang| Restored {
                    lease: held.lease,
                    job: gang,
                    stop: job.stopping,
                }));
            }
        }
        jobs
    }

    pub(super) fn gangs_step(&mut self, now: Time, what: ToGang) {
        let mut out = Vec::new();
        self.gangs.step(what, &mut out);
        self.heed_gangs(now, out);
    }

    /// How a job ended is on disk.
    pub(super) fn durable(&mut self, now: Time, lease: LeaseId, job: JobId) {
        let mut out = Vec::new();
        self.gangs.durable(lease, job, &mut out);
        self.heed_gangs(now, out);
    }

    pub(super) fn heed_gangs(&mut self, now: Time, out: Vec<FromGang>) {
        for wish in out {
            match wish {
                FromGang::Order { agent, order } => self.order(now, agent, order),
                FromGang::Report { lease, job, news } => self.report(now, lease, job, news),
            }
        }
    }

    fn order(&mut self, now: Time, agent: AgentId, order: Order) {
        let task = match &order {
            Order::Start(start) => match self.task(agent, start) {
                Ok(task) => task.map(Box::new),
                Err(reason) => return self.not_started(now, agent, start.part, reason),
            },
            _ => None,
        };
        self.agents.get(agent).send(ToAgent::Order { order, task });
    }

    /// A part has failed before its agent heard of it.
    fn not_started(&mut self, now: Time, agent: AgentId, part: PartId, reason: String) {
        let message = Some(format!("it could not start: {reason}"));
        let ending = Ending { how: How::Crashed, step: None, code: None, signal: None, message };
        self.gangs_step(now, ToGang::Told { agent, part, told: Told::Ended(ending) });
    }

    /// What a part's processes are.
    fn task(&self, agent: AgentId, start: &Start) -> Result<Option<Task>, String> {
        let job = start.part.job;
        let Some(record) = self.records.all.get(&job) else { return Ok(None) };
        let secrets = self.secrets.hand_over(&record.view.user, &record.request.secrets)?;
        Ok(self.plain_task(agent, start, record).map(|task| Task { secrets, ..task }))
    }

    /// The same without secrets.
    fn plain_task(&self, agent: AgentId, start: &Start, record: &Record) -> Option<Task> {
        let job = start.part.job;
        let (request, run) = (&record.request, self.engine.job(job)?);
        let shape = self.engine.job_spec(job)?.shapes.get(run.shape as usize)?;
        let group = start.devices.first().map_or(0, |held| held.group) as usize;
        let agent = self.agents.get(agent);
        let reserved = record.held.as_ref().zip(agent.nodes.first()).map(|((_, at), node)| at.host_on(*node));
        let memory = reserved.map_or(0, |amounts| amounts.get(ResourceId::MEMORY));
        let kind = agent.groups.get(group).map(|group| group.kind.clone()).unwrap_or_default();
        let limits = limits(request, start, &kind, &agent.abilities, self.config.sharing);
        Some(Task {
            name: record.view.name.clone(),
            user: record.view.user.clone(),
            command: request.command.clone(),
            env: request.env.clone(),
            workdir: request.workdir.clone().unwrap_or_default(),
            checkpoint_dir: request.checkpoint.dir.clone(),
            stop_signal: request.checkpoint.signal.clone().unwrap_or_else(|| "TERM".into()),
            output: request.output.clone(),
            error: request.error.clone(),
            batch_size: run.batch.map(|batch| batch.local).or(shape.batch_size).or(request.batch_size),
            accumulation: run.batch.map(|batch| batch.extra),
            memory_mib: request.memory_mib,
            cpus: request.cpus,
            memory_part_mib: (request.memory_mib.is_none() && memory > 0).then_some(u64::from(memory)),
            kind,
            limits,
            secrets: Vec::new(),
        })
    }

    fn report(&mut self, now: Time, lease: LeaseId, job: JobId, news: GangNews) {
        self.changed_jobs.insert(job);
        let news = match news {
            GangNews::Started => Some(News::Started),
            GangNews::Progress { step, total } => self.progress(now, job, step, total),
            GangNews::Checkpointed { step, took } => {
                self.checkpointed(job, step, took);
                None
            }
            GangNews::Costs { save, load } => self.costs(job, save, load),
            GangNews::Stuck(stuck) => Some(News::Stuck(stuck)),
            GangNews::Ended(ending) => {
                self.staged.keep_after(After::Durable(lease, job));
                self.stopped(now, job, ending)
            }
        };
        if let Some(news) = news {
            self.staged.keep(Input::Report(Report { lease, job, news }));
        }
    }

    /// A job says how far it is. The engine hears of it now and then: it goes on by itself in between.
    fn progress(&mut self, now: Time, job: JobId, step: u64, total: Option<u64>) -> Option<News> {
        let record = self.records.all.get_mut(&job)?;
        if record.facts.total != total && total.is_some() {
            self.staged.facts.insert(job);
        }
        record.progress(now, step, total);
        let steps = record.work(self.engine.job_spec(job)?, step)?;
        let due = record.reported.is_none_or(|last| now - last >= self.config.progress);
        if !due {
            return None;
        }
        record.reported = Some(now);
        Some(News::Progress { steps })
    }

    /// What pausing a job costs. One that is frozen starts no process anew.
    fn costs(&self, job: JobId, save: Option<Span>, load: Option<Span>) -> Option<News> {
        let known = self.engine.job_spec(job)?.costs;
        let (save, load) = (save.map(|span| span.min(COST_MAX)), load.map(|span| span.min(COST_MAX)));
        let costs = Costs { save: save.unwrap_or(known.save), load: load.unwrap_or(known.load), ..known };
        (costs != known).then_some(News::Costs(costs))
    }

    fn checkpointed(&mut self, job: JobId, step: u64, took: Span) {
        if let Some(record) = self.records.all.get_mut(&job) {
            // It is the job that says how long it took.
            record.checkpointed(step, took.min(self.config.grace_max));
            self.staged.facts.insert(job);
        }
    }

    fn stopped(&mut self, now: Time, job: JobId, ending: Ending) -> Option<News> {
        let outcome = match ending.how {
            How::Finished => Outcome::Finished,
            How::Saved => Outcome::Saved,
            How::Paused => Outcome::Frozen,
            How::Crashed => Outcome::Crashed,
            How::Expired => Outcome::Expired,
            How::Lost | How::Refused => Outcome::Lost,
        };
        let (spec, run) = (self.engine.job_spec(job)?, self.engine.job(job)?);
        let record = self.records.all.get_mut(&job)?;
        if let Some(step) = ending.step {
            record.facts.checkpointed = Some(step);
            record.view.checkpointed = Some(step);
        }
        let facts = &mut record.facts;
        (facts.exit_code, facts.signal) = (ending.code, ending.signal);
        facts.message = ending.message.map(|text| shortened(text, REASON_MAX));
        self.staged.facts.insert(job);
        let safe = record.facts.checkpointed.and_then(|step| record.work(spec, step));
        let steps = match outcome {
            Outcome::Finished => spec.steps,
            // One that says nothing of steps is taken at its word that it saved what it did.
            Outcome::Saved | Outcome::Frozen if !record.facts.talks => run.done_at(now),
            _ => safe.unwrap_or(0.0),
        };
        Some(News::Stopped { steps, outcome })
    }
}
