//! A model of the server: what is durable (leases, and jobs that wait), what is not (`Gangs`, reports that are not
//! written yet), and when an agent counts as lost.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::smallvec;
use yard_core::gang::{FromGang, GangJob, GangNews, GangPart, Gangs, Restored, ToGang};
use yard_core::ids::{AgentId, JobId, LeaseId};
use yard_core::job::Claim;
use yard_core::message::Why;
use yard_core::part::{Held, How, Order, PartId, Pause, Ranks};
use yard_core::{Span, Time};

use crate::agent::{Agent, Down, LEASE, Up};
use crate::world::{Rng, Tally};

/// Devices of each agent.
pub(crate) const DEVICES: u32 = 4;

/// How much longer than lease and grace the server waits: processes end and ticks come a little late.
const MARGIN: Span = Span::from_whole_secs(5);

/// How jobs pause, by their numbers.
const PAUSES: [Pause; 5] = [Pause::Auto, Pause::Checkpoint, Pause::Stop, Pause::Freeze, Pause::Freeze];

/// A lease of one job that is not over for the engine.
#[derive(Clone, Debug)]
struct Active {
    job: GangJob,
    stop: Option<Why>,
}

/// The server.
pub(crate) struct Server {
    // Durable.
    active: BTreeMap<PartId, Active>,
    pub(crate) waiting: BTreeSet<JobId>,
    pub(crate) over: BTreeSet<JobId>,
    starts: BTreeMap<JobId, u32>,
    next_lease: u64,
    /// How long jobs have to stop, in seconds, at least and at most.
    pub(crate) grace: (u64, u64),
    // Not durable.
    gangs: Gangs,
    reports: Vec<(PartId, GangNews)>,
    /// The connection of each agent that has said hello.
    connected: Vec<Option<u64>>,
    lost: Vec<bool>,
    answered: Vec<Time>,
}

impl Server {
    pub(crate) fn new(agents: usize, jobs: u64) -> Server {
        Server {
            active: BTreeMap::new(),
            waiting: (0..jobs).map(JobId).collect(),
            over: BTreeSet::new(),
            starts: BTreeMap::new(),
            next_lease: 1,
            grace: (0, 45),
            gangs: Gangs::default(),
            reports: Vec::new(),
            connected: vec![None; agents],
            lost: vec![false; agents],
            answered: vec![Time::ZERO; agents],
        }
    }

    /// It dies and is back: only what was durable is left.
    pub(crate) fn crash(&mut self, now: Time, agents: &mut [Agent], tally: &mut Tally) {
        tally.count("server crashed");
        let restored = self.active.iter().map(|(part, active)| Restored {
            lease: part.lease,
            job: active.job.clone(),
            stop: active.stop,
        });
        self.gangs = Gangs::restore(restored.collect::<Vec<_>>());
        self.reports.clear();
        self.connected.fill(None);
        self.lost.fill(false);
        self.answered.fill(now);
        agents.iter_mut().for_each(Agent::disconnect);
    }

    pub(crate) fn disconnect(&mut self, at: usize, agents: &mut [Agent]) {
        self.connected[at] = None;
        agents[at].disconnect();
    }

    fn step(&mut self, what: ToGang, agents: &mut [Agent], rng: &mut Rng, tally: &mut Tally) {
        let mut out = Vec::new();
        tally.note(|| format!("server: {what:?}"));
        self.gangs.step(what, &mut out);
        tally.note(|| format!("    {out:?}"));
        self.send(out, agents, rng, tally);
    }

    fn send(&mut self, out: Vec<FromGang>, agents: &mut [Agent], rng: &mut Rng, tally: &mut Tally) {
        for wish in out {
            match wish {
                FromGang::Report { lease, job, news } => self.report(lease, job, news),
                FromGang::Order { agent, order } if self.reaches(&agents[agent.index()], agent) => {
                    tally.count(order_name(&order));
                    let agent = &mut agents[agent.index()];
                    if rng.chance(1, 4) {
                        agent.repeats.push(order.clone());
                    }
                    agent.to_agent.push_back(Down::Order(order));
                }
                FromGang::Order { .. } => {}
            }
        }
    }

    fn reaches(&self, agent: &Agent, id: AgentId) -> bool {
        agent.connected && self.connected[id.index()] == Some(agent.connection)
    }

    fn report(&mut self, lease: LeaseId, job: JobId, news: GangNews) {
        let named = |part: &&PartId| (part.lease, part.job) == (lease, job);
        let part = *self.active.keys().rfind(named).expect("only of what runs is anything reported");
        let ended = |news: &GangNews| matches!(news, GangNews::Ended(_));
        let again = self.reports.iter().any(|(other, old)| *other == part && ended(old));
        assert!(!again, "{part:?} is over, and yet there is {news:?}");
        self.reports.push((part, news));
    }

    /// All reports are written, and the engine acts on them.
    pub(crate) fn commit(&mut self, agents: &mut [Agent], rng: &mut Rng, tally: &mut Tally) {
        for (part, news) in std::mem::take(&mut self.reports) {
            let active = self.active.contains_key(&part);
            assert!(active, "{part:?} is over for the engine, and yet there is {news:?}");
            check_safe(part, &news, agents);
            let GangNews::Ended(ending) = news else { continue };
            tally.count(&format!("job {:?}", ending.how));
            self.active.remove(&part);
            let over = matches!(ending.how, How::Finished | How::Expired);
            if over { &mut self.over } else { &mut self.waiting }.insert(part.job);
            let mut out = Vec::new();
            self.gangs.durable(part.lease, part.job, &mut out);
            self.send(out, agents, rng, tally);
            if over {
                self.step(ToGang::JobOver { job: part.job }, agents, rng, tally);
            }
        }
    }

    /// One thing that an agent has to say.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        at: usize,
        agents: &mut [Agent],
        rng: &mut Rng,
        tally: &mut Tally,
    ) {
        let Some(message) = agents[at].to_server.pop_front() else { return };
        let agent = AgentId(at as u32);
        match message {
            Up::Hello { sent, parts, paused } => {
                (self.connected[at], self.lost[at]) = (Some(agents[at].connection), false);
                self.answer(now, at, sent, agents);
                let dead: Vec<JobId> = paused.iter().filter(|job| self.over.contains(job)).copied().collect();
                self.step(ToGang::Hello { agent, parts, paused }, agents, rng, tally);
                dead.into_iter().for_each(|job| self.step(ToGang::JobOver { job }, agents, rng, tally));
            }
            Up::Beat { sent } => self.answer(now, at, sent, agents),
            Up::Told { part, told } => {
                let times = 1 + u32::from(rng.chance(1, 10));
                for _ in 0..times {
                    let told = told.clone();
                    self.step(ToGang::Told { agent, part, told }, agents, rng, tally);
                }
            }
        }
    }

    fn answer(&mut self, now: Time, at: usize, sent: Time, agents: &mut [Agent]) {
        self.answered[at] = now;
        agents[at].to_agent.push_back(Down::Contact { sent });
    }

    /// Agents that were silent for too long are lost.
    pub(crate) fn pass(&mut self, now: Time, agents: &mut [Agent], rng: &mut Rng, tally: &mut Tally) {
        for at in 0..agents.len() {
            let agent = AgentId(at as u32);
            let wait = LEASE + self.gangs.lapsed_grace(agent) + MARGIN;
            if !self.lost[at] && now > self.answered[at] + wait {
                tally.count("agent lost");
                self.lost[at] = true;
                self.disconnect(at, agents);
                self.step(ToGang::AgentLost { agent }, agents, rng, tally);
            }
        }
    }

    /// A lease for one job that waits, or for two that share its devices, where there are devices.
    pub(crate) fn grant(&mut self, agents: &mut [Agent], rng: &mut Rng, tally: &mut Tally) {
        let Some(places) = self.free_places(agents.len(), rng) else { return };
        let mut jobs = Vec::new();
        for _ in 0..1 + usize::from(rng.chance(1, 5)) {
            let waiting: Vec<JobId> = self.waiting.iter().copied().collect();
            let Some(job) = rng.pick(&waiting) else { continue };
            self.waiting.remove(&job);
            jobs.push(self.gang(job, &places, rng));
        }
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        for job in &jobs {
            self.active.insert(job.part(lease), Active { job: job.clone(), stop: None });
        }
        self.step(ToGang::Granted { lease, jobs }, agents, rng, tally);
    }

    fn free_places(&self, agents: usize, rng: &mut Rng) -> Option<Vec<(AgentId, u128)>> {
        let held = |agent: AgentId| {
            let parts = self.active.values().flat_map(|active| &active.job.parts);
            parts.filter(|part| part.agent == agent).fold(0, |held, part| held | part.devices[0].mask)
        };
        let first = rng.below(agents as u64) as usize;
        let mut places = Vec::new();
        for step in 0..agents.min(1 + rng.below(2) as usize) {
            let agent = AgentId(((first + step) % agents) as u32);
            let free = !held(agent) & ((1 << DEVICES) - 1);
            let count = 1 + rng.below(2) as u32;
            if free.count_ones() < count || self.lost[agent.index()] {
                return None;
            }
            let bits = (0..DEVICES).filter(|bit| free >> bit & 1 == 1).take(count as usize);
            places.push((agent, bits.fold(0, |mask, bit| mask | 1 << bit)));
        }
        Some(places)
    }

    fn gang(&mut self, job: JobId, places: &[(AgentId, u128)], rng: &mut Rng) -> GangJob {
        let counts: Vec<u32> = places.iter().map(|(_, mask)| mask.count_ones()).collect();
        let card = job.0.is_multiple_of(3);
        let part = |((agent, mask), ranks): (&(AgentId, u128), Ranks)| GangPart {
            agent: *agent,
            address: format!("node{agent}"),
            devices: smallvec![Held { group: 0, mask: *mask }],
            ranks,
            card,
        };
        let starts = self.starts.entry(job).or_default();
        *starts += 1;
        GangJob {
            job,
            instance: *starts,
            pause: PAUSES[job.0 as usize % PAUSES.len()],
            grace: Span::from_whole_secs(self.grace.0 + rng.below(self.grace.1 - self.grace.0)),
            limit: rng.chance(1, 5).then(|| Span::from_whole_secs(1 + rng.below(30))),
            claim: Claim::Ordinary,
            loss_max: 0.0,
            parts: places.iter().zip(Ranks::split(&counts)).map(part).collect(),
        }
    }

    /// Some job, or each of them, is to stop.
    pub(crate) fn revoke(&mut self, all: bool, agents: &mut [Agent], rng: &mut Rng, tally: &mut Tally) {
        let parts: Vec<PartId> = self.active.keys().copied().collect();
        let chosen = if all { parts } else { rng.pick(&parts).into_iter().collect() };
        for part in chosen {
            let causes =
                [Why::Preempted, Why::Preempted, Why::Moved, Why::Cancelled, Why::Drained, Why::Killed];
            let why = rng.pick(&causes).expect("there are causes");
            let active = self.active.get_mut(&part).expect("just listed");
            if active.stop.is_none() || (why == Why::Killed && active.stop != Some(why)) {
                active.stop = Some(why);
                let jobs = vec![part.job];
                self.step(ToGang::Revoked { lease: part.lease, jobs, why }, agents, rng, tally);
            }
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.reports.is_empty()
    }

    pub(crate) fn describe(&self) -> String {
        format!("active {:?}\ngangs {:?}", self.active, self.gangs)
    }
}

/// What is called safe was saved.
fn check_safe(part: PartId, news: &GangNews, agents: &[Agent]) {
    let step = match news {
        GangNews::Checkpointed { step, .. } => Some(*step),
        GangNews::Ended(ending) if ending.how != How::Finished => ending.step,
        _ => None,
    };
    let saved = |step| {
        agents.iter().filter_map(|agent| agent.checkpoints.get(&part.job)).any(|at| at.contains(&step))
    };
    assert!(step.is_none_or(saved), "{part:?} never saved step {step:?}");
}

fn order_name(order: &Order) -> &'static str {
    match order {
        Order::Start(start) if start.thaw => "order thaw",
        Order::Start(_) => "order start",
        Order::Go { .. } => "order go",
        Order::Stop { .. } => "order stop",
        Order::StopAt { .. } => "order stop at",
        Order::Forget { .. } => "order forget",
        Order::Discard { .. } => "order discard",
    }
}
