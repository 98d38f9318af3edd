//! Between the engine and the backend: grants become launches, and what becomes of a job is reported to the engine in its
//! own units.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use yard_core::cluster::{Placement, ResourceId};
use yard_core::ids::{JobId, LeaseId};
use yard_core::job::Costs;
use yard_core::message::{Command, Input, News, Outcome, Report};
use yard_core::units::{Span, Time};

use super::Driver;
use super::hosts::GroupMask;
use super::staging::StagedAfter;
use crate::exec::notice::shortened;
use crate::exec::{
    ChosenDevices, DeviceChoice, Directive, HostId, JobLaunch, JobNews, LaunchDevices, LaunchPlace, Notice,
    Ranks, RunEnd, Survived, SurvivedHost, SurvivedJob,
};
use crate::request;
use crate::store::Ran;

/// Longest time that saving or loading a job is believed to take.
const COST_MAX: Span = Span::from_whole_secs(24 * 3_600);

/// Bytes of the reason for which a job ended.
const REASON_MAX: usize = 4_096;

impl Driver {
    /// Carries out what the engine wants.
    pub(super) fn execute(&mut self, now: Time, command: Command) {
        let directive = match command {
            Command::Grant { lease, jobs, placement, .. } => {
                let launches = jobs.iter().filter_map(|job| self.launch(*job, &placement)).collect();
                Directive::Grant { lease, launches }
            }
            Command::Revoke { lease, jobs, why } => Directive::Revoke { lease, jobs: jobs.to_vec(), why },
            // The backend has hosts hold what they hold for as long as they are there.
            Command::Renew { .. } => return,
            Command::Tune { lease, job, batch } => Directive::Tune { lease, job, batch },
        };
        self.direct(now, directive);
    }

    /// Has the backend do something.
    pub(super) fn direct(&mut self, now: Time, directive: Directive) {
        let mut notices = Vec::new();
        self.backend.execute(self.clock.elapsed(), directive, &mut notices);
        self.heed(now, notices);
    }

    /// What the backend has to say.
    pub(super) fn heed(&mut self, now: Time, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Offer { ticket, offer } => self.offered(now, ticket, offer),
                Notice::Reach { host, reach } => self.reached(host, reach),
                Notice::Lost { host } => self.lost(host),
                Notice::Device { host, group, device, problem } => self.health(host, group, device, problem),
                Notice::Cards { host, cards } => self.looked(host, cards),
                Notice::Job { lease, job, news } => self.heard(now, lease, job, news),
                Notice::Log { host, request, text, end, error } => {
                    self.logs.piece(host, request, text, end, error);
                }
            }
        }
    }

    /// A job on its devices. Also notes where its ranks run, for its logs.
    fn launch(&mut self, job: JobId, placement: &Placement) -> Option<JobLaunch> {
        let record = self.records.all.get(&job)?;
        let (run, spec) = (self.engine.job(job)?, self.engine.job_spec(job)?);
        let shape = spec.shapes.get(run.shape as usize);
        let (request, sharing) = (record.request.clone(), spec.sharing());
        let each = request.tasks_per_node.or((request.ranks == request::Ranks::Node).then_some(1));
        let launch = JobLaunch {
            job,
            instance: run.starts,
            name: record.view.name.clone(),
            user: record.view.user.clone(),
            grace: record.grace(self.config.grace_max),
            limit: record.limit(run.executed),
            claim: sharing.claim,
            loss_max: sharing.loss_max,
            batch_size: shape.and_then(|shape| shape.batch_size).or(request.batch_size),
            batch: run.batch,
            places: self.launch_places(placement, each),
            request,
        };
        let ran = launch.places.iter().map(|place| Ran {
            node: self.hosts.get(place.host).name.clone(),
            first: place.ranks.first,
            count: place.ranks.count,
        });
        let ran = ran.collect();
        self.records.all.get_mut(&job)?.facts.ran = ran;
        self.staged.facts.insert(job);
        Some(launch)
    }

    /// What each host has of a placement, in its order: `each` processes, or one for each device.
    fn launch_places(&self, placement: &Placement, each: Option<u32>) -> Vec<LaunchPlace> {
        let mut hosts: Vec<(HostId, SmallVec<[GroupMask; 1]>)> = Vec::new();
        for slice in &placement.0 {
            let (host, held) = self.hosts.holder_of(slice).expect("a node that joined is some host's");
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, devices)) => devices.push(held),
                None => hosts.push((host, SmallVec::from_elem(held, 1))),
            }
        }
        let count = |devices: &[GroupMask]| devices.iter().map(|held| held.mask.count_ones()).sum();
        let counts = hosts.iter().map(|(_, devices)| each.unwrap_or_else(|| count(devices)));
        let ranks = Ranks::split(&counts.collect::<Vec<_>>());
        let place = |((host, devices), ranks): ((HostId, SmallVec<[GroupMask; 1]>), Ranks)| {
            let node = self.hosts.get(host).nodes.first();
            let memory_mib = node.map_or(0, |node| placement.host_on(*node).get(ResourceId::MEMORY));
            let devices = devices.into_iter().map(|held| self.launch_devices(held)).collect();
            LaunchPlace { host, devices, ranks, memory_mib }
        };
        hosts.into_iter().zip(ranks).map(place).collect()
    }

    /// Devices as the backend takes them: the very ones that were placed, or as many.
    fn launch_devices(&self, GroupMask { group, mask }: GroupMask) -> LaunchDevices {
        let chosen = match self.backend.abilities().devices {
            DeviceChoice::Exact => ChosenDevices::Exactly(mask),
            DeviceChoice::Counts => ChosenDevices::Count(mask.count_ones()),
        };
        LaunchDevices { group, chosen }
    }

    /// Every host on record, and every job that held devices when the server went down.
    pub(super) fn survived(&mut self) -> Survived {
        let held: Vec<_> = self.engine.leases().collect();
        let mut jobs = Vec::new();
        for held in held {
            for job in &held.jobs {
                let launch = self.launch(job.job, &held.placement);
                let (lease, stopping) = (held.lease, job.stopping);
                jobs.extend(launch.map(|launch| SurvivedJob { lease, launch, stopping }));
            }
        }
        // One that was told to give everything back while it was out of reach has not been lost before it did.
        let holders: BTreeSet<HostId> =
            jobs.iter().flat_map(|job| &job.launch.places).map(|place| place.host).collect();
        let survived = |id: HostId| {
            let known = self.hosts.get(id).survived(id);
            SurvivedHost { lost: known.lost && !holders.contains(&id), ..known }
        };
        let hosts = self.hosts.ids().map(survived).collect();
        Survived { hosts, jobs }
    }

    /// News of a job that runs.
    fn heard(&mut self, now: Time, lease: LeaseId, job: JobId, news: JobNews) {
        let news = match news {
            JobNews::Usage(usage) => self.usage_news(job, usage),
            JobNews::Trained(said) => return self.trained(now, lease, job, said),
            JobNews::Hushed(hushed) => return self.hushed(job, hushed),
            JobNews::Started => Some(News::Started),
            JobNews::Progress { step, total } => self.progress(now, job, step, total),
            JobNews::Checkpointed { step, took } => {
                self.checkpointed(job, step, took);
                None
            }
            JobNews::Costs { save, load } => self.costs(job, save, load),
            JobNews::Stuck(stuck) => Some(News::Stuck(stuck)),
            JobNews::Ended(end) => {
                self.staged.keep_after(StagedAfter::Durable(lease, job));
                self.stopped(now, job, end)
            }
        };
        self.changed_jobs.insert(job);
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

    fn stopped(&mut self, now: Time, job: JobId, end: RunEnd) -> Option<News> {
        let outcome = end.outcome;
        let (spec, run) = (self.engine.job_spec(job)?, self.engine.job(job)?);
        let record = self.records.all.get_mut(&job)?;
        if let Some(step) = end.step {
            record.facts.checkpointed = Some(step);
            record.view.checkpointed = Some(step);
        }
        let facts = &mut record.facts;
        (facts.exit_code, facts.signal) = (end.code, end.signal);
        facts.message = end.message.map(|text| shortened(text, REASON_MAX));
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
