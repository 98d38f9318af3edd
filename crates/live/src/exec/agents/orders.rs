//! From the driver's jobs to orders for agents: a job becomes a gang with a part on each machine, orders go out with what
//! to run, and what becomes of a gang is news of its job.

use smallvec::SmallVec;
use yard_core::gang::{FromGang, GangJob, GangNews, GangPart, Gangs, Restored, ToGang};
use yard_core::ids::{AgentId, JobId, LeaseId};
use yard_core::message::Outcome;
use yard_core::part::{Ending, Held, How, Order, PartId, Start, Told};
use yard_core::training::Batch;

use super::limits::limits;
use super::{Agents, agent};
use crate::exec::{
    ChosenDevices, JobLaunch, JobNews, LaunchDevices, LaunchPlace, Notice, RunEnd, SurvivedJob,
};
use crate::wire::{Task, ToAgent};

impl Agents {
    pub(super) fn grant(&mut self, lease: LeaseId, launches: Vec<JobLaunch>, out: &mut Vec<Notice>) {
        let jobs = launches.iter().map(|launch| self.gang_job(launch)).collect();
        let launches = launches.into_iter().map(|launch| ((lease, launch.job), launch));
        self.launches.extend(launches);
        self.step_gangs(ToGang::Granted { lease, jobs }, out);
    }

    /// What ran when the server went down; what agents know of it they say when they are back.
    pub(super) fn restore_gangs(&mut self, survived: Vec<SurvivedJob>) {
        let restored = |SurvivedJob { lease, launch, stopping }: &SurvivedJob| Restored {
            lease: *lease,
            job: self.gang_job(launch),
            stop: *stopping,
        };
        self.gangs = Gangs::restore(survived.iter().map(restored).collect::<Vec<_>>());
        let launches = survived.into_iter().map(|job| ((job.lease, job.launch.job), job.launch));
        self.launches = launches.collect();
    }

    fn gang_job(&self, launch: &JobLaunch) -> GangJob {
        GangJob {
            job: launch.job,
            instance: launch.instance,
            pause: launch.request.pause,
            grace: launch.grace,
            limit: launch.limit,
            claim: launch.claim,
            loss_max: launch.loss_max,
            parts: launch.places.iter().map(|place| self.part(place)).collect(),
        }
    }

    fn part(&self, place: &LaunchPlace) -> GangPart {
        let agent = agent(place.host);
        let peer = self.peers.get(agent);
        let devices: SmallVec<[Held; 1]> = place.devices.iter().map(held).collect();
        let card = peer.is_some_and(|peer| devices.iter().any(|held| peer.has_cards(held.group)));
        let address = peer.map(|peer| peer.address.clone()).unwrap_or_default();
        GangPart { agent, address, devices, ranks: place.ranks, card }
    }

    /// All parts of a job make steps of another size from now on.
    pub(super) fn tune(&mut self, lease: LeaseId, job: JobId, batch: Batch) {
        let Some(launch) = self.launches.get_mut(&(lease, job)) else { return };
        launch.batch = Some(batch);
        let part = PartId { lease, job, instance: launch.instance };
        for agent in self.gangs.agents(lease, job) {
            self.peers.send(agent, ToAgent::Tune { part, batch });
        }
    }

    /// How a job ended is on disk.
    pub(super) fn forget(&mut self, lease: LeaseId, job: JobId, out: &mut Vec<Notice>) {
        let mut wishes = Vec::new();
        self.gangs.durable(lease, job, &mut wishes);
        if self.gangs.agents(lease, job).next().is_none() {
            self.launches.remove(&(lease, job));
        }
        self.heed(wishes, out);
    }

    pub(super) fn step_gangs(&mut self, what: ToGang, out: &mut Vec<Notice>) {
        let mut wishes = Vec::new();
        self.gangs.step(what, &mut wishes);
        self.heed(wishes, out);
    }

    fn heed(&mut self, wishes: Vec<FromGang>, out: &mut Vec<Notice>) {
        for wish in wishes {
            match wish {
                FromGang::Order { agent, order } => self.order(agent, order, out),
                FromGang::Report { lease, job, news } => {
                    out.push(Notice::Job { lease, job, news: job_news(news) });
                }
            }
        }
    }

    fn order(&mut self, agent: AgentId, order: Order, out: &mut Vec<Notice>) {
        let task = match &order {
            Order::Start(start) => match self.task(agent, start) {
                Ok(task) => task.map(Box::new),
                Err(reason) => return self.not_started(agent, start.part, &reason, out),
            },
            _ => None,
        };
        self.peers.send(agent, ToAgent::Order { order, task });
    }

    /// A part has failed before its agent heard of it.
    fn not_started(&mut self, agent: AgentId, part: PartId, reason: &str, out: &mut Vec<Notice>) {
        let message = Some(format!("it could not start: {reason}"));
        let ending = Ending { how: How::Crashed, step: None, code: None, signal: None, message };
        self.step_gangs(ToGang::Told { agent, part, told: Told::Ended(ending) }, out);
    }

    /// What a part's processes are.
    fn task(&self, agent: AgentId, start: &Start) -> Result<Option<Task>, String> {
        let PartId { lease, job, .. } = start.part;
        let Some(launch) = self.launches.get(&(lease, job)) else { return Ok(None) };
        let secrets = self.secrets.hand_over(&launch.user, &launch.request.secrets)?;
        Ok(self.plain_task(agent, start, launch).map(|task| Task { secrets, ..task }))
    }

    /// The same without secrets.
    fn plain_task(&self, id: AgentId, start: &Start, launch: &JobLaunch) -> Option<Task> {
        let (peer, request) = (self.peers.get(id)?, &launch.request);
        let group = start.devices.first().map_or(0, |held| held.group) as usize;
        let kind = peer.groups.get(group).map(|(kind, _)| kind.clone()).unwrap_or_default();
        let limits = limits(request, start, &kind, &peer.abilities, self.terms.sharing);
        let place = launch.places.iter().find(|place| agent(place.host) == id);
        let memory = place.map_or(0, |place| place.memory_mib);
        Some(Task {
            name: launch.name.clone(),
            user: launch.user.clone(),
            command: request.command.clone(),
            env: request.env.clone(),
            workdir: request.workdir.clone().unwrap_or_default(),
            checkpoint_dir: request.checkpoint.dir.clone(),
            stop_signal: request.checkpoint.signal.clone().unwrap_or_else(|| "TERM".into()),
            output: request.output.clone(),
            error: request.error.clone(),
            batch_size: launch.batch.map(|batch| batch.local).or(launch.batch_size),
            accumulation: launch.batch.map(|batch| batch.extra),
            memory_mib: request.memory_mib,
            cpus: request.cpus,
            memory_part_mib: (request.memory_mib.is_none() && memory > 0).then_some(u64::from(memory)),
            kind,
            limits,
            secrets: Vec::new(),
        })
    }
}

/// Agents are told which devices a job has.
fn held(devices: &LaunchDevices) -> Held {
    match devices.chosen {
        ChosenDevices::Exactly(mask) => Held { group: devices.group, mask },
        ChosenDevices::Count(_) => panic!("agents are given exact devices, as their abilities say"),
    }
}

fn job_news(news: GangNews) -> JobNews {
    match news {
        GangNews::Started => JobNews::Started,
        GangNews::Progress { step, total } => JobNews::Progress { step, total },
        GangNews::Checkpointed { step, took } => JobNews::Checkpointed { step, took },
        GangNews::Costs { save, load } => JobNews::Costs { save, load },
        GangNews::Stuck(stuck) => JobNews::Stuck(stuck),
        GangNews::Ended(ending) => JobNews::Ended(run_end(ending)),
    }
}

fn run_end(ending: Ending) -> RunEnd {
    let outcome = match ending.how {
        How::Finished => Outcome::Finished,
        How::Saved => Outcome::Saved,
        How::Paused => Outcome::Frozen,
        How::Crashed => Outcome::Crashed,
        How::Expired => Outcome::Expired,
        How::Lost | How::Refused => Outcome::Lost,
    };
    let Ending { step, code, signal, message, .. } = ending;
    RunEnd { outcome, step, code, signal, message }
}
