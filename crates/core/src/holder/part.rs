//! One part and its ranks: how far it has come, what is known of it, and when it next wants a tick.

use serde::{Deserialize, Serialize};

use super::{Act, Cause, PROGRESS_EVERY};
use crate::part::{Ending, PartId, Start, Starved, Told};
use crate::units::{Span, Time};

/// How far a part has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Of a gang: looks for a port.
    Reserving,
    /// Of a gang: waits for the others.
    Ready,
    /// Its processes are being started.
    Spawning,
    /// They lay frozen and are being thawed.
    Thawing,
    /// They run.
    Running,
    /// They are being frozen; where that fails, they run on.
    Freezing,
    /// It is over; kept until the server says that it knows.
    Ended(Ending),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    #[serde(default)]
    pub(super) starved: Option<Starved>,
}

impl Exit {
    pub(super) fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// What is known of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Rank {
    /// It is connected.
    pub(super) speaks: bool,
    /// It was connected once.
    pub(super) spoke: bool,
    /// Steps done, and to do.
    pub(super) step: Option<u64>,
    pub(super) total: Option<u64>,
    /// Steps that are safe.
    pub(super) safe: Option<u64>,
    /// Before which step it could stop.
    pub(super) boundary: Option<u64>,
    /// It was told to stop, or signalled.
    pub(super) told: bool,
    /// A signal of ours may be what ended it, so that its exit says nothing about it.
    pub(super) excused: bool,
    pub(super) exit: Option<Exit>,
}

impl Rank {
    /// The same process, as if it had never been asked to stop.
    pub(super) fn fresh(self) -> Rank {
        Rank { boundary: None, told: false, excused: false, ..self }
    }
}

/// A stop under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stop {
    pub(super) cause: Cause,
    /// Its processes were told; not before they all exist.
    pub(super) begun: bool,
    /// Whether the server was told where the ranks here could stop.
    pub(super) asked: bool,
    /// Before which step all ranks stop.
    pub(super) at: Option<u64>,
    /// When waiting for others to agree ends.
    pub(super) hurry: Option<Time>,
    /// When it is killed.
    pub(super) kill: Time,
}

/// What the agent runs of one job under one lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) start: Start,
    pub(super) phase: Phase,
    /// Those here, by their distance from the first.
    pub(super) ranks: Vec<Rank>,
    pub(super) stop: Option<Stop>,
    /// A port for the gang to meet at, once one was found.
    pub(super) port: Option<u16>,
    /// The first rank that failed before anybody was told to stop.
    pub(super) failed: Option<Exit>,
    /// Why its processes are of no use any more, where that is not their fault.
    pub(super) lost: Option<String>,
    /// It did not exit within its grace.
    pub(super) killed: bool,
    /// The part under which its processes had been stopped.
    pub(super) was: Option<PartId>,
    /// When its time is used up.
    pub(super) expires: Option<Time>,
    /// When progress was last told, and whether there is news since.
    pub(super) told: Time,
    pub(super) untold: bool,
    /// Safe steps as last told.
    pub(super) safe_told: Option<u64>,
    /// What it holds on its cards, or held when it was last frozen.
    pub(super) bytes: Option<u64>,
    /// What freezing it would take, as last guessed for the server.
    pub(super) guessed: Option<u64>,
    /// Since when it has run, or has been safe.
    pub(super) since: Time,
    /// What it did before that and would lose with its processes.
    pub(super) unsafe_before: Span,
    /// Why the last try to freeze it failed.
    pub(super) unfrozen: Option<String>,
    /// Whether it is stuck, as last told.
    pub(super) stuck: Option<bool>,
}

/// A job whose processes lie stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Frozen {
    pub(super) part: PartId,
    pub(super) start: Start,
    pub(super) ranks: Vec<Rank>,
    /// Whether the driver moved what it had on cards to the host's memory, from where it must be moved back.
    pub(super) deep: bool,
    /// How much that is.
    pub(super) bytes: u64,
    /// How long it ran since it was last safe: what is lost with its processes.
    pub(super) loss: Span,
}

impl Frozen {
    pub(super) fn rank(&mut self, rank: u32) -> Option<&mut Rank> {
        let at = rank.checked_sub(self.start.ranks.first)?;
        self.ranks.get_mut(at as usize)
    }

    /// Whether its processes are just what this order asks for.
    pub(super) fn fits(&self, start: &Start) -> bool {
        let count = |start: &Start| -> u32 { start.devices.iter().map(|held| held.mask.count_ones()).sum() };
        self.start.ranks == start.ranks
            && count(&self.start) == count(start)
            && (!start.card || self.start.devices == start.devices)
    }
}

impl Part {
    pub(super) fn new(start: Start, phase: Phase) -> Part {
        Part {
            phase,
            ranks: vec![Rank::default(); start.ranks.count as usize],
            stop: None,
            port: None,
            failed: None,
            lost: None,
            killed: false,
            was: None,
            expires: None,
            told: Time::ZERO,
            untold: false,
            safe_told: None,
            bytes: None,
            guessed: None,
            since: Time::NEVER,
            unsafe_before: Span::ZERO,
            unfrozen: None,
            stuck: None,
            start,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        !matches!(self.phase, Phase::Ended(_))
    }

    /// Whether it has processes, or may have.
    pub(super) fn has_processes(&self) -> bool {
        matches!(self.phase, Phase::Spawning | Phase::Thawing | Phase::Running | Phase::Freezing)
    }

    pub(super) fn rank(&mut self, rank: u32) -> Option<&mut Rank> {
        let at = rank.checked_sub(self.start.ranks.first)?;
        self.ranks.get_mut(at as usize)
    }

    /// The job's numbers of the ranks here that are alive and of which this holds.
    pub(super) fn alive(&self, which: impl Fn(&Rank) -> bool) -> Vec<u32> {
        let ranks = self.ranks.iter().zip(self.start.ranks.first..);
        ranks.filter(|(rank, _)| rank.exit.is_none() && which(rank)).map(|(_, number)| number).collect()
    }

    /// Steps that are safe: what every rank that saves at all has saved.
    pub(super) fn safe(&self) -> Option<u64> {
        self.ranks.iter().filter_map(|rank| rank.safe).min()
    }

    /// How far it has come, by its first rank that says so.
    pub(super) fn came(&self) -> Option<(u64, Option<u64>)> {
        self.ranks.iter().find_map(|rank| Some((rank.step?, rank.total)))
    }

    /// Its processes run from now on.
    pub(super) fn run(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        (self.phase, self.since) = (Phase::Running, now);
        self.expires = self.start.limit.map(|limit| now + limit);
        out.push(Act::Tell { part: id, told: Told::Started });
    }

    pub(super) fn tell_progress(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        (self.told, self.untold) = (now, false);
        let told = self.came().map(|(step, total)| Told::Progress { step, total });
        out.extend(told.map(|told| Act::Tell { part: id, told }));
    }

    /// How long it ran since it was last safe: what is lost if its processes are.
    pub(super) fn loss(&self, now: Time) -> Span {
        self.unsafe_before + (now - self.since)
    }

    /// When it is killed, should it not be over by then. However long its grace, never later after the node's lease
    /// than a lapsed lease allows: the server gives it to others then.
    pub(super) fn kill_at(&self, valid_until: Time) -> Option<Time> {
        let last = if self.killed { Time::NEVER } else { valid_until + self.start.lapsed_grace() };
        self.stop.map(|stop| stop.kill.min(last))
    }

    /// When it next wants a tick.
    pub(super) fn deadline(&self, valid_until: Time) -> Option<Time> {
        let tell = self.untold.then(|| self.told + PROGRESS_EVERY);
        let hurry = |stop: &Stop| stop.hurry.filter(|_| stop.begun).unwrap_or(Time::NEVER);
        let hurry = self.stop.as_ref().map(hurry);
        let kill = self.kill_at(valid_until);
        let expires = self.expires.filter(|_| self.stop.is_none());
        [tell, hurry, kill, expires].into_iter().flatten().min()
    }

    /// What the server should know, oldest first.
    pub(super) fn facts(&self) -> Vec<Told> {
        if let Phase::Ended(ending) = &self.phase {
            return vec![Told::Ended(ending.clone())];
        }
        let mut facts = vec![Told::Accepted];
        facts.extend(self.port.map(|port| Told::Ready { port }));
        if matches!(self.phase, Phase::Running | Phase::Freezing) {
            facts.push(Told::Started);
            facts.extend(self.stuck.map(Told::Stuck));
            facts.extend(self.safe().map(|step| Told::Checkpointed { step, took: Span::ZERO }));
            facts.extend(self.came().map(|(step, total)| Told::Progress { step, total }));
        }
        if self.stop.is_some_and(|stop| stop.asked) {
            facts.push(Told::Boundary { step: self.boundary() });
        }
        facts
    }

    /// The first step before which all ranks here can stop.
    pub(super) fn boundary(&self) -> u64 {
        self.ranks.iter().filter_map(|rank| rank.boundary).max().unwrap_or(0)
    }
}
