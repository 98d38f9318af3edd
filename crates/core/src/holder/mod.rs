//! An agent's decisions: what to start, how to stop it and what to say of it. No clock, no IO: what happens
//! goes in through [`Holder::step`], what should be done comes out as [`Act`]s, so that simulation can drive it.
//!
//! Promises, and what they ask of whoever executes the acts:
//!
//! - *A device is never used under two leases at once*: a start is refused while another lease holds one of its
//!   devices, or once a higher lease has been seen there.
//! - *Without contact nothing runs for ever*: when the node's lease lapses, everything is stopped as if ordered,
//!   and killed after its grace or [`LAPSED_GRACE`](crate::part::LAPSED_GRACE), whichever is shorter. The server gives
//!   the jobs to others only after the lease, that time and a margin. While the agent itself is down nobody keeps this promise, so whoever is the processes' parent must kill them then.
//! - *What is persisted is acted on*: the state is written before `Spawn`, `Thaw`, `Freeze` and `Tell(Ended)` are
//!   executed. After a restart, feed `Contact` with the last known validity, each recorded `Exited`, then
//!   `Restarted`; acts that may have been lost come again.
//! - *What is frozen can be had back*: a part counts as paused only once the driver has moved what it had on cards
//!   and its processes lie stopped; until then it holds its devices, and where the driver fails it runs on and is
//!   stopped the next way.
//! - `now` comes from a clock that neither jumps nor stops while the agent is down, such as the time since boot.

mod ending;
mod freezing;
mod orders;
mod part;
mod restart;
mod room;
mod stopping;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use self::part::{Exit, Frozen, Part, Phase};
use crate::belief::rows;
use crate::ids::{JobId, LeaseId};
use crate::message::Why;
use crate::part::{Held, Master, Order, PartId, Start, Starved, Told};
use crate::units::{Span, Time};

/// How often progress is told, at most.
const PROGRESS_EVERY: Span = Span::from_whole_secs(1);

/// What happens to an agent's parts. Ranks are the job's, counted over all its nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The server wants something.
    Order(Order),
    /// `Act::Reserve` found a port.
    PortFound {
        /// The part.
        part: PartId,
        /// The port.
        port: u16,
    },
    /// `Act::Spawn` is done: every rank has a process.
    Spawned {
        /// The part.
        part: PartId,
    },
    /// `Act::Spawn` or `Act::Reserve` failed; no process of the part is left.
    SpawnFailed {
        /// The part.
        part: PartId,
        /// An exit code such as 127 where it is the job's own fault; none where it is the node's.
        code: Option<i32>,
        /// In a sentence.
        message: String,
    },
    /// A rank talks to the agent from now on.
    Hello {
        /// The part.
        part: PartId,
        /// The rank.
        rank: u32,
    },
    /// A rank that talked closed its connection.
    Silent {
        /// The part.
        part: PartId,
        /// The rank.
        rank: u32,
    },
    /// A rank says how far it has come.
    Progress {
        /// The part.
        part: PartId,
        /// The rank.
        rank: u32,
        /// Steps done.
        step: u64,
        /// Steps to do in all, where it knows.
        total: Option<u64>,
    },
    /// A rank says what it saved.
    Checkpointed {
        /// The part.
        part: PartId,
        /// The rank.
        rank: u32,
        /// Steps that are safe.
        step: u64,
        /// How long it took.
        took: Span,
    },
    /// A rank's answer to `Act::Hold`.
    Boundary {
        /// The part.
        part: PartId,
        /// The rank.
        rank: u32,
        /// The step before which it can stop.
        step: u64,
    },
    /// A rank's process tree is gone.
    Exited {
        /// The part.
        part: PartId,
        /// The rank.
        rank: u32,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Whether that was for want of memory.
        starved: Option<Starved>,
    },
    /// `Act::Freeze` with `deep` is done: what the part's processes had on cards is in the host's memory, and they
    /// lie stopped.
    Frozen {
        /// The part.
        part: PartId,
        /// Host memory that this takes.
        bytes: u64,
        /// How long it took.
        took: Span,
    },
    /// `Act::Freeze` with `deep` failed; the processes that are left run on.
    FreezeFailed {
        /// The part.
        part: PartId,
        /// In half a sentence.
        reason: String,
        /// Whether it would fail again: an old driver, or something the job does that cannot be frozen.
        forever: bool,
    },
    /// It is known without a try that a part cannot be frozen.
    Unfreezable {
        /// The part.
        part: PartId,
        /// In half a sentence.
        reason: String,
    },
    /// `Act::Thaw` with `deep` is done.
    Thawed {
        /// The part, by its new name.
        part: PartId,
        /// How long it took.
        took: Span,
    },
    /// `Act::Thaw` with `deep` failed: the processes cannot go on.
    ThawFailed {
        /// The part, by its new name.
        part: PartId,
        /// In half a sentence.
        reason: String,
    },
    /// What a part holds on its cards, all of them together.
    Usage {
        /// The part.
        part: PartId,
        /// Memory.
        bytes: u64,
    },
    /// What frozen jobs may hold of this node's memory.
    Room {
        /// Memory.
        bytes: u64,
    },
    /// The server answered a beat, which makes the node's lease valid until then.
    Contact {
        /// When the beat was sent, plus the length of the lease.
        valid_until: Time,
    },
    /// The agent is back after a restart, and these processes are alive, stopped ones too.
    Restarted {
        /// Part and rank of each.
        alive: Vec<(PartId, u32)>,
    },
    /// Time has passed; due at `Holder::deadline`.
    Tick,
}

/// What the agent should do now, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Find a free port and answer `PortFound`.
    Reserve {
        /// The part.
        part: PartId,
    },
    /// Start a process for each rank and answer `Spawned` or `SpawnFailed`.
    Spawn {
        /// The part.
        part: PartId,
        /// Where the ranks of a gang meet; none where the job is on this node alone and any free port will do.
        master: Option<Master>,
    },
    /// Ask these ranks, which talk, before which step they could stop, and make them wait there.
    Hold {
        /// The part.
        part: PartId,
        /// The ranks.
        ranks: Vec<u32>,
    },
    /// Tell these ranks, which talk, to stop.
    Stop {
        /// The part.
        part: PartId,
        /// The ranks.
        ranks: Vec<u32>,
        /// Before which step; none: as soon as it can.
        at: Option<u64>,
        /// What for.
        cause: Cause,
        /// How long they have.
        grace: Span,
    },
    /// Send the job's stop signal to these ranks, which do not talk.
    Signal {
        /// The part.
        part: PartId,
        /// The ranks.
        ranks: Vec<u32>,
    },
    /// Kill all processes of the part, if there are any.
    Kill {
        /// The part.
        part: PartId,
    },
    /// Stop all processes where they are.
    Freeze {
        /// The part.
        part: PartId,
        /// Whether what they have on cards is moved to the host's memory first; answered with `Frozen` or
        /// `FreezeFailed`. May be asked again after a restart.
        deep: bool,
    },
    /// Let stopped processes go on. They are known by the new part from now on.
    Thaw {
        /// The part they were stopped as.
        part: PartId,
        /// The part they are now.
        as_part: PartId,
        /// Whether what they had on cards is moved back; answered with `Thawed` or `ThawFailed`. May be asked again
        /// after a restart.
        deep: bool,
    },
    /// Kill stopped processes: nobody wants them any more.
    Drop {
        /// The part they were stopped as.
        part: PartId,
    },
    /// Tell the server, if it can be reached; what matters is in `Holder::parts` for when it is back.
    Tell {
        /// The part.
        part: PartId,
        /// The news.
        told: Told,
    },
    /// Nothing of the part is needed any more: records of its exits, its task.
    Forget {
        /// The part.
        part: PartId,
    },
}

/// What a part is stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The server said so.
    Ordered(Why),
    /// The server could not be reached for so long that it will give the job to others.
    Lapsed,
    /// The job's time is used up.
    Expired,
    /// Another of its ranks failed.
    Failed,
}

impl Cause {
    /// What the job's processes are told.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Ordered(Why::Preempted) => "preempted",
            Cause::Ordered(Why::Moved) => "moved",
            Cause::Ordered(Why::Held) => "held",
            Cause::Ordered(Why::Requeued) => "requeued",
            Cause::Ordered(Why::Cancelled | Why::Killed) => "cancelled",
            Cause::Ordered(Why::Drained | Why::Lost) | Cause::Lapsed | Cause::Failed => "drained",
            Cause::Expired => "expired",
        }
    }

    /// Whether the job may go on here later, so that its processes may wait in memory.
    fn may_freeze(self) -> bool {
        matches!(self, Cause::Ordered(Why::Preempted | Why::Held) | Cause::Lapsed)
    }
}

/// The agent's decisions, with all that must survive its restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// All parts that the server has not said to forget.
    #[serde(with = "rows")]
    parts: BTreeMap<PartId, Part>,
    /// The highest lease seen on each device, by group and number.
    #[serde(with = "rows")]
    seen: BTreeMap<(u32, u32), LeaseId>,
    /// Forgotten parts that `seen` alone would let start again, with their devices.
    #[serde(with = "rows")]
    over: BTreeMap<PartId, SmallVec<[Held; 1]>>,
    /// Jobs whose processes lie stopped.
    frozen: BTreeMap<JobId, Frozen>,
    /// Until when this node may run anything.
    valid_until: Time,
    /// What frozen jobs may hold of the node's memory.
    room: u64,
    /// Jobs that cannot be frozen, and why: the last ones of which that was found out.
    unfreezable: BTreeMap<JobId, String>,
}

impl Holder {
    /// Something happened: what should be done is appended to `out`.
    pub fn step(&mut self, now: Time, what: Happening, out: &mut Vec<Act>) {
        match what {
            Happening::Order(order) => self.order(now, order, out),
            Happening::PortFound { part, port } => self.port_found(part, port, out),
            Happening::Spawned { part } => self.spawned(now, part, out),
            Happening::SpawnFailed { part, code, message } => self.spawn_failed(part, code, message, out),
            Happening::Hello { part, rank } => self.hello(part, rank, out),
            Happening::Silent { part, rank } => self.silent(part, rank, out),
            Happening::Progress { part, rank, step, total } => {
                self.progress(now, part, rank, (step, total), out);
            }
            Happening::Checkpointed { part, rank, step, took } => {
                self.checkpointed(now, part, (rank, step), took, out);
            }
            Happening::Boundary { part, rank, step } => self.boundary(part, rank, step, out),
            Happening::Exited { part, rank, code, signal, starved } => {
                self.exited(now, part, rank, Exit { code, signal, starved }, out);
            }
            Happening::Frozen { part, bytes, took } => self.frozen(now, part, bytes, took, out),
            Happening::FreezeFailed { part, reason, forever } => {
                self.freeze_failed(now, part, reason, forever, out);
            }
            Happening::Unfreezable { part, reason } => self.remember_unfreezable(part.job, reason),
            Happening::Thawed { part, took } => self.thawed(now, part, took, out),
            Happening::ThawFailed { part, reason } => self.thaw_failed(part, &reason, out),
            Happening::Usage { part, bytes } => self.uses(part, bytes, out),
            Happening::Room { bytes } => self.room = bytes,
            Happening::Contact { valid_until } => self.valid_until = self.valid_until.max(valid_until),
            Happening::Restarted { alive } => self.restarted(now, alive, out),
            Happening::Tick => self.tick(now, out),
        }
        self.tell_stuck(now, out);
    }

    /// When it next wants a tick.
    pub fn deadline(&self) -> Option<Time> {
        let live = || self.parts.values().filter(|part| part.is_live());
        let lapse = live().any(|part| part.stop.is_none()).then_some(self.valid_until);
        live().filter_map(|part| part.deadline(self.valid_until)).chain(lapse).min()
    }

    /// All that the server must know of each part, for `Hello`: what each would have told, in order, without what
    /// is outdated. A part has at least one line.
    pub fn parts(&self) -> Vec<(PartId, Told)> {
        self.parts.iter().flat_map(|(id, part)| part.facts().into_iter().map(|told| (*id, told))).collect()
    }

    /// Jobs whose processes lie stopped here.
    pub fn paused(&self) -> Vec<JobId> {
        self.frozen.keys().copied().collect()
    }

    /// What the server ordered for a part that is not forgotten.
    pub fn start(&self, part: PartId) -> Option<&Start> {
        self.parts.get(&part).map(|part| &part.start)
    }

    /// Whether a part's processes talk to the agent, or did.
    pub fn speaks(&self, part: PartId) -> bool {
        self.parts.get(&part).is_some_and(Part::spoke)
    }

    /// Whether a part that is not over holds a device.
    pub fn holds(&self, group: u32, device: u32) -> bool {
        let live = self.parts.values().filter(|part| part.is_live());
        live.flat_map(|part| devices(&part.start.devices)).any(|held| held == (group, device))
    }

    /// Whether nothing runs or is about to.
    pub fn is_idle(&self) -> bool {
        self.parts.values().all(|part| !part.is_live())
    }

    /// A part that is not over. News of processes that were stopped under another name are its own.
    fn live(&mut self, id: PartId) -> Option<(PartId, &mut Part)> {
        let named = |(known, part): &(&PartId, &mut Part)| **known == id || part.was == Some(id);
        let found = self.parts.iter_mut().filter(|(_, part)| part.is_live()).find(named);
        found.map(|(id, part)| (*id, part))
    }

    fn port_found(&mut self, id: PartId, port: u16, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        if part.phase == Phase::Reserving {
            (part.phase, part.port) = (Phase::Ready, Some(port));
            out.push(Act::Tell { part: id, told: Told::Ready { port } });
        }
    }

    fn spawned(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        if part.phase == Phase::Spawning {
            part.run(now, id, out);
            self.begin_stop(now, id, out);
        }
    }

    fn progress(&mut self, now: Time, id: PartId, rank: u32, news: (u64, Option<u64>), out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let Some(rank) = part.rank(rank) else { return };
        (rank.step, rank.total) = (Some(news.0), news.1.or(rank.total));
        part.untold = true;
        if part.told + PROGRESS_EVERY <= now || Some(news.0) == news.1 {
            part.tell_progress(now, id, out);
        }
    }

    fn checkpointed(&mut self, now: Time, id: PartId, news: (u32, u64), took: Span, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let (rank, step) = news;
        let Some(rank) = part.rank(rank) else { return };
        rank.safe = rank.safe.max(Some(step));
        let safe = part.safe();
        if safe > part.safe_told {
            (part.safe_told, part.since, part.unsafe_before) = (safe, now, Span::ZERO);
            out.extend(safe.map(|step| Act::Tell { part: id, told: Told::Checkpointed { step, took } }));
        }
    }

    fn tick(&mut self, now: Time, out: &mut Vec<Act>) {
        let ids: Vec<PartId> =
            self.parts.iter().filter(|(_, part)| part.is_live()).map(|(id, _)| *id).collect();
        let valid_until = self.valid_until;
        for id in ids {
            if now >= self.valid_until {
                self.stop(now, id, Cause::Lapsed, out);
            }
            if self.live(id).is_some_and(|(_, part)| part.expires.is_some_and(|at| now >= at)) {
                self.stop(now, id, Cause::Expired, out);
            }
            if let Some((_, part)) = self.live(id) {
                part.tick(now, valid_until, id, out);
            }
        }
    }
}

/// Group and number of each device.
fn devices(held: &[Held]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let bits = |mask| (0..crate::cluster::NODE_DEVICES_MAX).filter(move |bit| mask >> bit & 1 == 1);
    held.iter().flat_map(move |held| bits(held.mask).map(|bit| (held.group, bit)))
}
