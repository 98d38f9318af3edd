//! The words between the server and its agents about running jobs. A *part* is what one agent runs of one job
//! under one lease: the whole job, or some ranks of a gang. Orders may be repeated and news may come again after
//! a broken connection; both are harmless, because a part is named by its lease and leases only grow.

use std::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::cluster::Mask;
use crate::ids::{JobId, LeaseId};
use crate::job::Claim;
use crate::job::Why;
use crate::units::Span;

/// The most time that a job has to stop once its node's lease has lapsed, whatever its grace. Agents keep to it and the
/// server counts on it, so that one job's grace cannot hold a dead node for longer.
pub const LAPSED_GRACE: Span = Span::from_whole_secs(30);

/// What one agent runs of one job under one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartId {
    /// The lease.
    pub lease: LeaseId,
    /// The job.
    pub job: JobId,
    /// Which start of the job it is: a job may leave a group that runs on under the same lease, and come back.
    pub instance: u32,
}

/// How a job gives its devices back while it is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pause {
    /// As suits it: it saves if it talks to the agent, else it is stopped where it uses no card, else it is frozen.
    #[default]
    Auto,
    /// It saves its progress and exits.
    Checkpoint,
    /// Its processes stop where they are and stay in memory.
    Stop,
    /// Its processes stop where they are, and the driver moves what they have on cards to the host's memory.
    Freeze,
    /// It keeps its devices until it is done.
    Never,
}

/// Which ranks of the job a part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranks {
    /// The first rank here.
    pub first: u32,
    /// How many are here; the others follow the first.
    pub count: u32,
    /// How many there are in all.
    pub world: u32,
    /// Which of the job's nodes this is.
    pub node_rank: u32,
    /// How many nodes the job is on.
    pub nodes: u32,
}

impl Ranks {
    /// The ranks of a job with so many on each of its nodes, in order.
    pub fn split(counts: &[u32]) -> Vec<Ranks> {
        let (world, nodes) = (counts.iter().sum(), counts.len() as u32);
        let mut first = 0;
        let mut ranks = Vec::with_capacity(counts.len());
        for (node_rank, count) in counts.iter().enumerate() {
            ranks.push(Ranks { first, count: *count, world, node_rank: node_rank as u32, nodes });
            first += count;
        }
        ranks
    }
}

/// Where the ranks of a job meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Master {
    /// The address of the first rank's node.
    pub address: String,
    /// A port that was free there.
    pub port: u16,
}

/// Devices of one of an agent's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Which of the groups that the agent offered.
    pub group: u32,
    /// Which of its devices.
    pub mask: Mask,
}

/// Whether any device is in both.
pub(crate) fn overlap(some: &[Held], others: &[Held]) -> bool {
    let shared = |held: &Held, other: &Held| held.group == other.group && held.mask & other.mask != 0;
    some.iter().any(|held| others.iter().any(|other| shared(held, other)))
}

/// What is needed to run a part, as far as decisions go; what its processes are is no matter here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The part.
    pub part: PartId,
    /// The devices.
    pub devices: SmallVec<[Held; 1]>,
    /// The ranks.
    pub ranks: Ranks,
    /// How it gives its devices back.
    pub pause: Pause,
    /// How long it may take to save and stop before it is killed.
    pub grace: Span,
    /// How long it may still run, over all its starts.
    pub limit: Option<Span>,
    /// Whether the devices are cards, which processes would keep to themselves where they lie stopped.
    pub card: bool,
    /// Whether the job's processes lie stopped on this agent and should go on.
    pub thaw: bool,
    /// How firm its claim on the devices is.
    pub claim: Claim,
    /// The part of its speed alone that it may lose to others, where it is guaranteed.
    pub loss_max: f64,
}

impl Start {
    /// How long it may take to stop once the node's lease has lapsed.
    pub fn lapsed_grace(&self) -> Span {
        self.grace.min(LAPSED_GRACE)
    }

    /// Whether other agents run parts of the job as well, so that all must be ready before any starts.
    pub fn is_gang(&self) -> bool {
        self.ranks.nodes > 1
    }
}

/// What the server wants of an agent. An order for a lease that the agent knows to be over is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Run this. In a gang: make ready, say so, and wait for `Go`.
    Start(Start),
    /// The whole gang is ready.
    Go {
        /// The part.
        part: PartId,
        /// Where its ranks meet.
        master: Master,
    },
    /// Save, stop and say how it ended.
    Stop {
        /// The part.
        part: PartId,
        /// What for.
        why: Why,
    },
    /// All ranks of the gang stop before this step.
    StopAt {
        /// The part.
        part: PartId,
        /// The step.
        step: u64,
    },
    /// How the part ended is durable; nothing of it need be kept.
    Forget {
        /// The part.
        part: PartId,
    },
    /// The job went on elsewhere or is over: its stopped processes are not wanted any more.
    Discard {
        /// The job.
        job: JobId,
    },
}

/// News of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The order to start came, and nothing stands against it.
    Accepted,
    /// A part of a gang could start now.
    Ready {
        /// A port for the ranks to meet at, should this be the first node.
        port: u16,
    },
    /// Its processes run.
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
    /// It was told to stop, and its ranks could do so before this step.
    Boundary {
        /// The step.
        step: u64,
    },
    /// What freezing and thawing it costs: measured, or guessed from what it holds on its cards.
    Cost {
        /// To freeze it.
        save: Option<Span>,
        /// To thaw it.
        load: Option<Span>,
        /// Host memory it takes while it is frozen.
        bytes: u64,
    },
    /// Whether it can neither be frozen where it runs nor save by itself, so that a pause would lose all it did.
    Stuck(bool),
    /// It is over here, and its devices are free.
    Ended(Ending),
}

/// What processes had of their node's memory when the kernel ended them because there was no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starved {
    /// What they might use, where that was limited.
    pub limit_mib: Option<u64>,
    /// The most they used, where that is known.
    pub used_mib: Option<u64>,
}

impl fmt::Display for Starved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit_mib {
            Some(limit) => write!(f, "it ran out of memory at its limit of {limit} MiB")?,
            None => write!(f, "its node ran out of memory")?,
        }
        self.used_mib.map_or(Ok(()), |used| write!(f, " (most used: {used} MiB)"))
    }
}

/// How a part ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// How.
    pub how: How,
    /// Steps that are safe, where it knows.
    pub step: Option<u64>,
    /// The exit code of the first rank that did not exit with 0, else 0; none where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What people should know of it.
    pub message: Option<String>,
}

/// How a part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Every rank exited with 0, and nobody had told it to stop or it had done all its steps.
    Finished,
    /// It was told to stop and did, or had to be killed: not its fault, and what is safe is what it saved.
    Saved,
    /// It was told to stop; its processes lie stopped here.
    Paused,
    /// A rank failed.
    Crashed,
    /// It used up the time it was given.
    Expired,
    /// It never started: the order was too old, or the node could not.
    Refused,
    /// The agent lost it, through no fault of the job.
    Lost,
}
