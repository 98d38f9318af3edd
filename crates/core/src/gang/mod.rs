//! The server's side of running jobs: from a lease to orders for each agent, and from the agents' news to one report
//! for the engine. No clock, no IO. Orders to an agent that is not connected may be dropped: its next `Hello` says
//! what it knows, and what it lacks is sent again.
//!
//! The end of a job under a lease is reported once all its parts have ended, and forgotten by the agents once the
//! driver says that the report is durable ([`Gangs::durable`]). After a restart of the server the gangs are made
//! again from the engine's leases ([`Gangs::restore`]), and each agent's `Hello` fills in the rest.

mod hello;
mod job;
mod resting;

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use self::job::Gang;
use self::resting::Resting;
use crate::ids::{AgentId, JobId, LeaseId};
use crate::job::Claim;
use crate::message::Why;
use crate::part::{Ending, Held, LAPSED_GRACE, Order, PartId, Pause, Ranks, Told};
use crate::units::Span;

/// A job that runs under a lease, as far as its agents are concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct GangJob {
    /// The job.
    pub job: JobId,
    /// Which start of the job this is.
    pub instance: u32,
    /// How it gives its devices back.
    pub pause: Pause,
    /// How long it may take to save and stop.
    pub grace: Span,
    /// How long it may still run.
    pub limit: Option<Span>,
    /// How firm its claim on its devices is.
    pub claim: Claim,
    /// The part of its speed alone that it may lose to others, where it is guaranteed.
    pub loss_max: f64,
    /// What runs where; each agent at most once, in the order of their node ranks.
    pub parts: Vec<GangPart>,
}

impl GangJob {
    /// The name of its parts under a lease.
    pub fn part(&self, lease: LeaseId) -> PartId {
        PartId { lease, job: self.job, instance: self.instance }
    }
}

/// What one agent runs of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct GangPart {
    /// The agent.
    pub agent: AgentId,
    /// Where other nodes' ranks reach this one's.
    pub address: String,
    /// Its devices.
    pub devices: SmallVec<[Held; 1]>,
    /// Its ranks; `Ranks::split` makes them.
    pub ranks: Ranks,
    /// Whether the devices are cards.
    pub card: bool,
}

/// A job that ran under a lease when the server went down.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// The lease.
    pub lease: LeaseId,
    /// The job.
    pub job: GangJob,
    /// What it had been told to stop for.
    pub stop: Option<Why>,
}

/// What happens to gangs.
#[derive(Clone, Debug, PartialEq)]
pub enum ToGang {
    /// The engine granted a lease.
    Granted {
        /// The lease.
        lease: LeaseId,
        /// Its jobs.
        jobs: Vec<GangJob>,
    },
    /// The engine wants jobs of a lease stopped.
    Revoked {
        /// The lease.
        lease: LeaseId,
        /// Which jobs.
        jobs: Vec<JobId>,
        /// What for.
        why: Why,
    },
    /// An agent has news of a part.
    Told {
        /// The agent.
        agent: AgentId,
        /// The part.
        part: PartId,
        /// The news.
        told: Told,
    },
    /// An agent connected.
    Hello {
        /// The agent.
        agent: AgentId,
        /// What it knows, from `Holder::parts`.
        parts: Vec<(PartId, Told)>,
        /// Jobs whose processes lie stopped there.
        paused: Vec<JobId>,
    },
    /// An agent has been silent for so long that nothing runs there any more.
    AgentLost {
        /// The agent.
        agent: AgentId,
    },
    /// A job is over for the engine: processes that lie stopped are not wanted any more.
    JobOver {
        /// The job.
        job: JobId,
    },
}

/// What gangs want.
#[derive(Clone, Debug, PartialEq)]
pub enum FromGang {
    /// Send this to an agent, if it is connected.
    Order {
        /// The agent.
        agent: AgentId,
        /// The order.
        order: Order,
    },
    /// Tell the engine.
    Report {
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// The news.
        news: GangNews,
    },
}

/// News of a whole job under a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum GangNews {
    /// All its processes run. May be said again after a restart of the server.
    Started,
    /// How far it has come.
    Progress {
        /// Steps done.
        step: u64,
        /// Steps to do in all, where it knows.
        total: Option<u64>,
    },
    /// Progress that is safe.
    Checkpointed {
        /// Steps that are safe.
        step: u64,
        /// How long saving took.
        took: Span,
    },
    /// What freezing and thawing it costs, where that is news.
    Costs {
        /// To freeze it.
        save: Option<Span>,
        /// To thaw it.
        load: Option<Span>,
    },
    /// Whether a pause would lose all it did, because it can neither be frozen where it runs nor save by itself.
    Stuck(bool),
    /// It is over under this lease, and its devices are free. `how` is one of `Finished`, `Saved`, `Paused`,
    /// `Crashed`, `Expired` and `Lost`. Said once; `Gangs::durable` must follow.
    Ended(Ending),
}

/// All jobs that run under leases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gangs {
    gangs: BTreeMap<PartId, Gang>,
    /// Jobs that are in no gang and whose processes lie stopped.
    resting: BTreeMap<JobId, Vec<Resting>>,
}

impl Gangs {
    /// As they were before the server went down, as far as the engine knows.
    pub fn restore(jobs: impl IntoIterator<Item = Restored>) -> Gangs {
        let gang = |Restored { lease, job, stop }: Restored| (job.part(lease), Gang::new(job, false, stop));
        Gangs { gangs: jobs.into_iter().map(gang).collect(), resting: BTreeMap::new() }
    }

    /// Something happened: what is wanted is appended to `out`.
    pub fn step(&mut self, what: ToGang, out: &mut Vec<FromGang>) {
        match what {
            ToGang::Granted { lease, jobs } => {
                jobs.into_iter().for_each(|job| self.grant(lease, job, out));
            }
            ToGang::Revoked { lease, jobs, why } => {
                jobs.into_iter().for_each(|job| self.revoke(lease, job, why, out));
            }
            ToGang::Told { agent, part, told } => self.told(agent, part, told, out),
            ToGang::Hello { agent, parts, paused } => self.hello(agent, parts, paused, out),
            ToGang::AgentLost { agent } => self.agent_lost(agent, out),
            ToGang::JobOver { job } => self.job_over(job, out),
        }
    }

    /// The report of a job's end is durable: its agents may forget it.
    pub fn durable(&mut self, lease: LeaseId, job: JobId, out: &mut Vec<FromGang>) {
        let over = self.under(lease, job).find(|(_, gang)| gang.is_over()).map(|(part, _)| part);
        let Some((part, gang)) = over.and_then(|part| Some((part, self.gangs.remove(&part)?))) else {
            return;
        };
        let agents = gang.job.parts.iter().map(|place| place.agent);
        out.extend(agents.map(|agent| FromGang::Order { agent, order: Order::Forget { part } }));
        if let Some(resting) = gang.rests() {
            self.resting.insert(job, resting);
        } else {
            out.extend(gang.paused_at().map(|agent| discard(agent, job)));
        }
    }

    /// How long after its lease lapsed processes may still live on an agent: `AgentLost` must wait for it.
    pub fn lapsed_grace(&self, agent: AgentId) -> Span {
        self.grace(agent).min(LAPSED_GRACE)
    }

    /// The longest time that a job on an agent has to save and stop.
    pub fn grace(&self, agent: AgentId) -> Span {
        let there = self.gangs.values().filter(|gang| gang.is_live_at(agent));
        there.map(|gang| gang.job.grace).max().unwrap_or_default()
    }

    /// The agents that run a job under a lease.
    pub fn agents(&self, lease: LeaseId, job: JobId) -> impl Iterator<Item = AgentId> + '_ {
        let newest = self.under(lease, job).next_back();
        newest.into_iter().flat_map(|(_, gang)| gang.job.parts.iter().map(|place| place.agent))
    }

    fn grant(&mut self, lease: LeaseId, job: GangJob, out: &mut Vec<FromGang>) {
        let part = job.part(lease);
        let resting = self.resting.remove(&job.job).unwrap_or_default();
        let thaw = resting::fits(&resting, &job.parts);
        let elsewhere = resting.iter().filter(|rest| job.parts.iter().all(|place| place.agent != rest.agent));
        out.extend(elsewhere.map(|rest| discard(rest.agent, job.job)));
        let gang = Gang::new(job, thaw, None);
        (0..gang.job.parts.len()).for_each(|at| out.push(gang.start(lease, at)));
        self.gangs.insert(part, gang);
    }

    fn revoke(&mut self, lease: LeaseId, job: JobId, why: Why, out: &mut Vec<FromGang>) {
        let newest = self.under(lease, job).next_back().map(|(part, _)| part);
        if let Some((part, gang)) = newest.and_then(|part| Some((part, self.gangs.get_mut(&part)?))) {
            gang.stop(part, why, out);
        }
    }

    /// The starts of a job under one lease, oldest first: one that left a group may come back to it.
    fn under(&self, lease: LeaseId, job: JobId) -> impl DoubleEndedIterator<Item = (PartId, &Gang)> {
        let named = |instance| PartId { lease, job, instance };
        self.gangs.range(named(0)..=named(u32::MAX)).map(|(part, gang)| (*part, gang))
    }

    fn told(&mut self, agent: AgentId, part: PartId, told: Told, out: &mut Vec<FromGang>) {
        let place = self.gangs.get_mut(&part).and_then(|gang| Some((gang.place(agent)?, gang)));
        let Some((at, gang)) = place else { return out.extend(unknown(agent, part, &told)) };
        gang.hear(part, at, told, out);
        gang.react(part, out);
    }

    fn agent_lost(&mut self, agent: AgentId, out: &mut Vec<FromGang>) {
        for (part, gang) in &mut self.gangs {
            if gang.is_live_at(agent) {
                gang.lose(agent, "its node could not be reached for too long");
                gang.react(*part, out);
            }
        }
        self.wake(agent, &BTreeSet::new(), out);
    }

    fn job_over(&mut self, job: JobId, out: &mut Vec<FromGang>) {
        let resting = self.resting.remove(&job).unwrap_or_default();
        out.extend(resting.into_iter().map(|rest| discard(rest.agent, job)));
    }
}

fn discard(agent: AgentId, job: JobId) -> FromGang {
    FromGang::Order { agent, order: Order::Discard { job } }
}

/// What to do about a part whose lease is over for the engine.
fn unknown(agent: AgentId, part: PartId, told: &Told) -> Option<FromGang> {
    let order = match told {
        Told::Ended(_) => Order::Forget { part },
        Told::Accepted | Told::Ready { .. } | Told::Started => Order::Stop { part, why: Why::Lost },
        Told::Progress { .. } | Told::Checkpointed { .. } | Told::Boundary { .. } => return None,
        Told::Cost { .. } | Told::Stuck(_) => return None,
    };
    Some(FromGang::Order { agent, order })
}
