//! Our own agents: a process on each machine that starts jobs and speaks `wire` with this server on a connection which it
//! opens. A job on several machines is a *gang* with a *part* on each; `core::gang` decides what its agents do next.
//!
//! The lease of a whole machine is what makes silence safe: an agent stops its jobs when no beat of it was answered for so
//! long, so after that time and what a lapsed lease leaves its jobs to stop, they may run elsewhere.

mod audience;
mod hello;
mod limits;
mod older;
mod orders;
mod peers;
mod post;
mod silence;

use std::collections::BTreeMap;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use yard_core::gang::{Gangs, ToGang};
use yard_core::ids::{AgentId, JobId, LeaseId};
use yard_core::part::Pause;
use yard_core::units::Span;

use self::peers::Peers;
use super::{
    Backend, BackendAbilities, BackendEntry, DeviceChoice, Directive, HostId, HostReach, Incoming, JobLaunch,
    Notice, Survived,
};
use crate::driver::Config;
use crate::handle::{Ask, LogOf, LogRequest, Reply};
use crate::secrets::Secrets;
use crate::store::StoreError;
use crate::wire::{FromAgent, Hello, ToAgent};

/// The line of the table.
pub const ENTRY: BackendEntry =
    BackendEntry { name: "agents", about: "Agents of this scheduler, one on each machine", make };

/// The longest time between two looks for silent agents.
const LOOK_MAX: Span = Span::from_whole_secs(1);

/// How agents are dealt with.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long an agent may run jobs after it sent the last beat that was answered.
    pub lease: Span,
    /// How often agents should send a beat.
    pub beat: Span,
    /// How long after its lease, and after the time that a lapsed lease leaves its jobs to stop, a silent node is given
    /// up.
    pub margin: Span,
    /// How jobs that share a card do so.
    pub sharing: CardSharing,
}

impl Default for Terms {
    fn default() -> Terms {
        let seconds = Span::from_whole_secs;
        Terms { lease: seconds(60), beat: seconds(2), margin: seconds(5), sharing: CardSharing::default() }
    }
}

/// How jobs on one card share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardSharing {
    /// The driver of the card lets them take turns. Only who asks for a part of a card is limited, through MPS.
    #[default]
    Plain,
    /// Through MPS, side by side, wherever a job is on one card and could share it.
    Mps,
}

/// What an agent's connection has to say.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are of the largest variant")]
pub enum AgentCall {
    /// An agent connected, and may send from now on.
    Connect {
        /// Who it is.
        hello: Box<Hello>,
        /// What to tell it. Closing it ends the connection.
        link: mpsc::Sender<ToAgent>,
        /// The number of this connection, to be given with `From` and `Disconnect`.
        reply: Reply<u64>,
    },
    /// An agent said something.
    From {
        /// Its connection.
        connection: u64,
        /// What.
        message: FromAgent,
        /// The room it takes among those of its connection that wait, given back once it is taken up.
        room: Option<OwnedSemaphorePermit>,
    },
    /// An agent's connection is gone.
    Disconnect {
        /// Its connection.
        connection: u64,
    },
}

impl From<AgentCall> for Ask {
    fn from(call: AgentCall) -> Ask {
        Ask::Exec(Incoming::Agents(call))
    }
}

/// The backend.
struct Agents {
    terms: Terms,
    abilities: BackendAbilities,
    peers: Peers,
    gangs: Gangs,
    /// What runs, to be told to an agent once more where it does not know it.
    launches: BTreeMap<(LeaseId, JobId), JobLaunch>,
    /// What jobs are given when they start.
    secrets: Secrets,
}

fn make(config: &Config) -> Result<Box<dyn Backend>, StoreError> {
    Ok(Box::new(Agents::new(config.terms, Secrets::open(&config.data)?)))
}

impl Agents {
    fn new(terms: Terms, secrets: Secrets) -> Agents {
        let abilities = BackendAbilities {
            name: ENTRY.name,
            pauses: &[Pause::Auto, Pause::Checkpoint, Pause::Stop, Pause::Freeze, Pause::Never],
            devices: DeviceChoice::Exact,
            shares: true,
            logs: true,
            signals: true,
            only: None,
            look_every: Span(terms.beat.0 / 2).min(LOOK_MAX),
            margin: terms.margin,
        };
        let (peers, gangs, launches) = Default::default();
        Agents { terms, abilities, peers, gangs, launches, secrets }
    }
}

impl Backend for Agents {
    fn abilities(&self) -> &BackendAbilities {
        &self.abilities
    }

    fn restore(&mut self, now: Span, survived: Survived) {
        survived.hosts.into_iter().for_each(|host| self.peers.restore(now, host));
        self.restore_gangs(survived.jobs);
    }

    fn execute(&mut self, now: Span, directive: Directive, out: &mut Vec<Notice>) {
        match directive {
            Directive::Admit { ticket, host } => self.admit(now, ticket, host, out),
            Directive::Decline { ticket, refusal } => self.decline(ticket, refusal),
            Directive::Sever { host } => self.sever(agent(host), out),
            Directive::Remove { host } => {
                self.peers.get_mut(agent(host)).into_iter().for_each(|peer| peer.removing = true);
                self.sever(agent(host), out);
            }
            Directive::Removed { host } => {
                // What lies frozen there is lost with it.
                self.step_gangs(ToGang::AgentLost { agent: agent(host) }, out);
                self.peers.forget(agent(host));
            }
            Directive::Grant { lease, launches } => self.grant(lease, launches, out),
            Directive::Revoke { lease, jobs, why } => {
                self.step_gangs(ToGang::Revoked { lease, jobs, why }, out);
            }
            Directive::Tune { lease, job, batch } => self.tune(lease, job, batch),
            Directive::Forget { lease, job } => self.forget(lease, job, out),
            Directive::Over { job } => self.step_gangs(ToGang::JobOver { job }, out),
            Directive::ReadLog { host, request, log } => {
                let LogRequest { job, rank, of, tail, follow } = log;
                let (stderr, both) = (of == LogOf::Stderr, of == LogOf::Both);
                let message = ToAgent::Logs { request, job, rank, stderr, both, tail, follow };
                self.peers.send(agent(host), message);
            }
            Directive::ReadMore { host, request, pieces } => {
                self.peers.send(agent(host), ToAgent::LogsMore { request, pieces });
            }
            Directive::StopReading { host, request } => {
                self.peers.send(agent(host), ToAgent::LogsEnd { request });
            }
        }
    }

    fn hear(&mut self, now: Span, incoming: Incoming, out: &mut Vec<Notice>) {
        let Incoming::Agents(call) = incoming;
        match call {
            AgentCall::Connect { hello, link, reply } => self.connect(*hello, link, reply, out),
            AgentCall::From { connection, message, room } => {
                self.take(now, connection, message, out);
                drop(room);
            }
            AgentCall::Disconnect { connection } => self.disconnected(connection, out),
        }
    }

    fn look(&mut self, now: Span, out: &mut Vec<Notice>) {
        self.look_for_full(out);
        self.look_for_silent(now, out);
    }

    fn heard(&self, host: HostId) -> Option<Span> {
        self.peers.get(agent(host)).map(|peer| peer.heard)
    }
}

/// A host's agent has its number.
fn agent(host: HostId) -> AgentId {
    AgentId(host.0)
}

fn host(agent: AgentId) -> HostId {
    HostId(agent.0)
}

/// An agent cannot be reached, or can.
fn reach(agent: AgentId, reach: HostReach) -> Notice {
    Notice::Reach { host: host(agent), reach }
}
