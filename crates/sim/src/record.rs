//! What a run leaves behind: one row a job, the load over time, and who held which devices when.

use std::collections::BTreeMap;

use std::sync::Arc;

use smallvec::SmallVec;
use yard_core::cluster::{Placement, Pool, Slice, kind_of};
use yard_core::ids::{JobId, KindId, LeaseId};
use yard_core::job::{JobSpec, JobState, Reward};
use yard_core::message::{Event, Why};
use yard_core::table::Table;
use yard_core::{Span, Time};

use crate::cluster::ClusterSpec;
use crate::events::runs;
use crate::fairness::Fairness;
use crate::follow::Follow;
use crate::prices::Prices;

/// What became of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// When it was submitted.
    pub submit: Time,
    /// Devices it asked for.
    pub gpus: u32,
    /// When it first got devices.
    pub first_start: Option<Time>,
    /// When it was over.
    pub end: Option<Time>,
    /// How it ended; `Pending` while it has not.
    pub state: JobState,
    /// Time it held devices.
    pub held: Span,
    /// Times it was stopped for another job.
    pub preemptions: u32,
    /// Times it was moved.
    pub migrations: u32,
    /// Its finish-time fairness, once it is over.
    pub rho: Option<f64>,
    /// Device-seconds of that time that count for others on the same devices.
    pub shared: f64,
    /// Times it was given devices.
    pub starts: u32,
    /// Device-microseconds it held.
    pub service: u64,
    /// The time by which it was promised to be done.
    pub promise: Option<Time>,
    /// When that was first said to be at risk.
    pub at_risk: Option<Time>,
    /// What it is worth to be done by when, where its deadline is soft.
    pub rewards: Option<Arc<[Reward]>>,
    /// What the devices it held cost, its part where they are shared; 0 where the cluster has no prices.
    pub cost: f64,
    devices: u32,
    /// What its devices cost an hour.
    rate: f64,
    held_since: Option<Time>,
    lease: LeaseId,
    share_before: f64,
}

impl JobRecord {
    /// A job that has just come.
    pub fn new(submit: Time, gpus: u32) -> JobRecord {
        JobRecord {
            submit,
            gpus,
            first_start: None,
            end: None,
            state: JobState::Pending,
            held: Span::ZERO,
            preemptions: 0,
            migrations: 0,
            rho: None,
            shared: 0.0,
            starts: 0,
            service: 0,
            promise: None,
            at_risk: None,
            rewards: None,
            cost: 0.0,
            devices: 0,
            rate: 0.0,
            held_since: None,
            lease: LeaseId::default(),
            share_before: 0.0,
        }
    }
}

/// Devices that a job had until `end`, one bar for each run of them.
fn bars(
    end: Time,
    placement: &Placement,
    (job, start, lane): (JobId, Time, (u8, u8)),
) -> impl Iterator<Item = RecordBar> + Clone {
    let runs = placement.0.iter().flat_map(|slice| runs(slice.mask).map(move |run| (slice.node.0, run)));
    runs.map(move |(node, (first, devices))| RecordBar { node, first, devices, job, start, end, lane })
}

/// Who is on the devices of a lease.
#[derive(Debug)]
struct RecordHolding {
    start: Time,
    /// Who has them, and since when, each in a lane; who joins takes a lane that was left.
    lanes: SmallVec<[Option<(JobId, Time)>; 2]>,
    /// Until when device time was divided among them.
    divided: Time,
    placement: Placement,
}

impl RecordHolding {
    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.lanes.iter().flatten().map(|(job, _)| *job)
    }

    fn join(&mut self, job: JobId, now: Time) {
        match self.lanes.iter_mut().find(|lane| lane.is_none()) {
            Some(lane) => *lane = Some((job, now)),
            None => self.lanes.push(Some((job, now))),
        }
    }

    /// Device time since it was last divided goes to those that are on the devices, in equal parts.
    fn divide(&mut self, now: Time, jobs: &mut [JobRecord]) {
        let several = self.jobs().count() as f64;
        if several > 1.0 {
            let time = (now - self.divided).secs() * self.placement.devices() as f64;
            for job in self.jobs() {
                let (row, others) = (&mut jobs[job.index()], 1.0 - 1.0 / several);
                row.shared += time * others;
                row.cost -= (now - self.divided).secs() / 3600.0 * row.rate * others;
            }
        }
        self.divided = now;
    }
}

/// The load from an instant until the next sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The instant.
    pub time: Time,
    /// Jobs that wait.
    pub queued_jobs: u32,
    /// Devices they wait for.
    pub queued_gpus: u64,
    /// Jobs that hold devices.
    pub running_jobs: u32,
    /// Devices held.
    pub used_gpus: u64,
}

/// Devices of one node, held by one job for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordBar {
    /// The node's row.
    pub node: u32,
    /// First device.
    pub first: u32,
    /// How many.
    pub devices: u32,
    /// The job.
    pub job: JobId,
    /// From.
    pub start: Time,
    /// Until.
    pub end: Time,
    /// Its place among the jobs on these devices, and how many they were.
    pub lane: (u8, u8),
}

/// How much to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Keep {
    /// Load samples: one at each change.
    pub series: bool,
    /// Bars, at most so many.
    pub bars_max: usize,
}

/// The record of a run, as it grows.
#[derive(Debug)]
pub struct Record {
    /// One row a job, in order of submission.
    pub jobs: Vec<JobRecord>,
    /// The load over time.
    pub series: Vec<Sample>,
    /// Who held what.
    pub bars: Vec<RecordBar>,
    /// Whether bars were left out.
    pub bars_cut: bool,
    /// Device-microseconds held, by kind.
    pub used: Vec<u128>,
    /// Why jobs were refused, and how many for each reason.
    pub refused: BTreeMap<String, u64>,
    /// Plans that failed, with the last reason.
    pub failed_plans: u64,
    /// Why the last failed plan failed.
    pub last_failure: Option<String>,
    /// What devices cost, where the policy has prices.
    pub prices: Prices,
    /// What plans asked for and what jobs received.
    pub follow: Follow,
    keep: Keep,
    now: Sample,
    open: Table<RecordHolding>,
    pools_of: Vec<SmallVec<[Pool; 1]>>,
    /// What a device costs an hour, by kind; empty where nobody says.
    hourly: Vec<f64>,
    fairness: Fairness,
}

impl Record {
    pub(crate) fn new(keep: Keep, cluster: &ClusterSpec, jobs: usize) -> Record {
        let zero = Sample { time: Time::ZERO, queued_jobs: 0, queued_gpus: 0, running_jobs: 0, used_gpus: 0 };
        Record {
            refused: BTreeMap::new(),
            jobs: Vec::with_capacity(jobs),
            series: Vec::new(),
            bars: Vec::new(),
            bars_cut: false,
            used: vec![0; cluster.kinds.ids().count()],
            failed_plans: 0,
            last_failure: None,
            prices: Prices::default(),
            follow: Follow::default(),
            keep,
            now: zero,
            open: Table::new(),
            pools_of: cluster.nodes.iter().map(|node| node.pools.clone()).collect(),
            hourly: cluster.prices.clone(),
            fairness: Fairness::new(cluster.devices()),
        }
    }

    /// Jobs that are over.
    pub fn ended(&self) -> usize {
        self.jobs.len() - (self.now.queued_jobs + self.now.running_jobs) as usize
    }

    /// A job is about to be submitted.
    pub(crate) fn add(&mut self, now: Time, spec: &JobSpec) {
        let gpus = spec.shapes[0].devices();
        self.jobs.push(JobRecord {
            rewards: spec.rewards.clone(),
            share_before: self.fairness.arrive(now, gpus),
            ..JobRecord::new(now, gpus)
        });
        self.change(now, |sample| {
            sample.queued_jobs += 1;
            sample.queued_gpus += gpus as u64;
        });
    }

    /// Takes a fact in. `ideal` is the time a job would need alone.
    pub(crate) fn event(&mut self, now: Time, event: &Event, ideal: impl Fn(JobId) -> f64) {
        match event {
            Event::Granted { lease, jobs, placement } => self.granted(now, *lease, jobs, placement),
            Event::Freed { lease, placement } => self.freed(now, *lease, placement),
            Event::Stopping { job, why, .. } => match why {
                Why::Preempted => self.jobs[job.index()].preemptions += 1,
                Why::Moved => self.jobs[job.index()].migrations += 1,
                Why::Cancelled | Why::Killed | Why::Held | Why::Requeued | Why::Drained | Why::Lost => {}
            },
            Event::Stopped { job, .. } => self.stopped(now, *job),
            Event::Rejected { job, reason, .. } => {
                // What comes after that is about this job alone, such as the earliest deadline that it could have.
                let cause = reason.split(';').next().unwrap_or_default();
                *self.refused.entry(cause.to_owned()).or_default() += 1;
                self.ended_job(now, *job, JobState::Rejected, ideal(*job));
            }
            Event::Ended { job, state } => self.ended_job(now, *job, *state, ideal(*job)),
            Event::PlanFailed { reason, .. } => {
                self.failed_plans += 1;
                self.last_failure = Some(reason.clone());
            }
            Event::Planned { certificate, .. } => self.prices.planned(now, certificate, self.keep.series),
            Event::Promised { job, by, .. } => self.jobs[job.index()].promise = Some(*by),
            Event::Held { job } => self.jobs[job.index()].promise = None,
            Event::AtRisk { job, .. } => _ = self.jobs[job.index()].at_risk.get_or_insert(now),
            Event::Submitted { .. }
            | Event::Released { .. }
            | Event::Edited { .. }
            | Event::Orphaned { .. }
            | Event::Unpromised { .. }
            | Event::Started { .. }
            | Event::Node { .. }
            | Event::Stale { .. } => {}
        }
    }

    fn granted(&mut self, now: Time, lease: LeaseId, jobs: &[JobId], placement: &Placement) {
        let kind = placement.0.first().and_then(|slice| self.kind_of(slice));
        let rate = self.rate(placement);
        for job in jobs {
            kind.into_iter().for_each(|kind| self.follow.hold(now, *job, kind));
            let row = &mut self.jobs[job.index()];
            row.first_start.get_or_insert(now);
            (row.held_since, row.lease) = (Some(now), lease);
            (row.starts, row.devices, row.rate) = (row.starts + 1, placement.devices(), rate);
            let gpus = row.gpus as u64;
            self.change(now, |sample| {
                sample.queued_jobs -= 1;
                sample.queued_gpus -= gpus;
                sample.running_jobs += 1;
            });
        }
        match self.open.get_mut(&lease) {
            Some(holding) => {
                holding.divide(now, &mut self.jobs);
                jobs.iter().for_each(|job| holding.join(*job, now));
            }
            None => {
                self.change(now, |sample| sample.used_gpus += placement.devices() as u64);
                let lanes = jobs.iter().map(|job| Some((*job, now))).collect();
                let placement = placement.clone();
                self.open.insert(lease, RecordHolding { start: now, lanes, divided: now, placement });
            }
        }
    }

    fn kind_of(&self, slice: &Slice) -> Option<KindId> {
        let pools = self.pools_of.get(slice.node.index())?;
        // Most nodes have one kind.
        if let [only] = pools.as_slice() {
            return Some(only.kind);
        }
        kind_of(pools, slice.mask.trailing_zeros())
    }

    /// What devices cost an hour.
    fn rate(&self, placement: &Placement) -> f64 {
        if self.hourly.is_empty() {
            return 0.0;
        }
        let price = |kind: KindId| self.hourly.get(kind.index()).copied().unwrap_or(0.0);
        let each = placement.0.iter().map(|slice| {
            let kind = self.kind_of(slice);
            kind.map_or(0.0, price) * f64::from(slice.mask.count_ones())
        });
        each.sum()
    }

    fn freed(&mut self, now: Time, lease: LeaseId, placement: &Placement) {
        let devices = placement.devices() as u64;
        self.change(now, |sample| sample.used_gpus -= devices);
        let mut holding = self.open.remove(&lease).expect("a lease is freed after it is granted");
        // Devices are freed just before the last of their jobs is heard of again.
        let last: SmallVec<[JobId; 2]> = holding.jobs().collect();
        last.into_iter().for_each(|job| self.let_go(now, &mut holding, job));
        for slice in &placement.0 {
            let used = (now - holding.start).0 as u128 * slice.mask.count_ones() as u128;
            let kind = self.kind_of(slice).expect("what is freed was granted on a node of the cluster");
            self.used[kind.index()] += used;
        }
    }

    /// A job leaves the devices of a lease before others do.
    fn leave(&mut self, now: Time, lease: LeaseId, job: JobId) {
        if let Some(mut holding) = self.open.remove(&lease) {
            self.let_go(now, &mut holding, job);
            self.open.insert(lease, holding);
        }
    }

    /// The bars of a job on devices end, and device time is divided among those that were there.
    fn let_go(&mut self, now: Time, holding: &mut RecordHolding, job: JobId) {
        holding.divide(now, &mut self.jobs);
        let held = |lane: &Option<(JobId, Time)>| lane.is_some_and(|(member, _)| member == job);
        let Some(lane) = holding.lanes.iter().position(held) else { return };
        let start = holding.lanes[lane].take().map_or(now, |(_, start)| start);
        let bar = (job, start, (lane.min(255) as u8, holding.lanes.len().min(255) as u8));
        let room = self.keep.bars_max - self.bars.len();
        let bars = bars(now, &holding.placement, bar);
        self.bars_cut |= bars.clone().nth(room).is_some();
        self.bars.extend(bars.take(room));
    }

    /// A job laid its devices down.
    fn lay_down(&mut self, now: Time, job: JobId) -> bool {
        let row = &mut self.jobs[job.index()];
        let Some(since) = row.held_since.take() else { return false };
        row.held += now - since;
        row.service += (now - since).0 * u64::from(row.devices);
        row.cost += (now - since).secs() / 3600.0 * row.rate;
        self.follow.lay_down(now, job);
        let lease = row.lease;
        self.leave(now, lease, job);
        true
    }

    fn stopped(&mut self, now: Time, job: JobId) {
        self.lay_down(now, job);
        let gpus = self.jobs[job.index()].gpus as u64;
        self.change(now, |sample| {
            sample.running_jobs -= 1;
            sample.queued_jobs += 1;
            sample.queued_gpus += gpus;
        });
    }

    fn ended_job(&mut self, now: Time, job: JobId, state: JobState, ideal: f64) {
        let held = self.lay_down(now, job);
        let row = &mut self.jobs[job.index()];
        (row.end, row.state) = (Some(now), state);
        self.follow.end(now, job, row.submit, self.keep.series);
        let received = self.fairness.leave(now, row.gpus) - row.share_before;
        row.rho = (ideal > 0.0).then_some(received / ideal);
        let gpus = row.gpus as u64;
        self.change(now, |sample| {
            if held {
                sample.running_jobs -= 1;
            } else {
                sample.queued_jobs -= 1;
                sample.queued_gpus -= gpus;
            }
        });
    }

    fn change(&mut self, now: Time, change: impl FnOnce(&mut Sample)) {
        change(&mut self.now);
        self.now.time = now;
        if !self.keep.series {
            return;
        }
        match self.series.last_mut() {
            Some(last) if last.time == now => *last = self.now,
            _ => self.series.push(self.now),
        }
    }
}
