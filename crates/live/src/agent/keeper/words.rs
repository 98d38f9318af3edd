//! What an agent and its keeper say to each other: JSON lines on a Unix socket in the keeper's folder, which only
//! their user can enter. Requests may be repeated after an agent's restart; none of them does harm twice.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use yard_core::part::{PartId, Starved};

use crate::wire::SecretValue;

/// From the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeeperAsk {
    /// Start all ranks of a part, or none. Answered with `Started` or `Failed`.
    Start(Box<StartPart>),
    /// Send a signal to the process groups of some ranks.
    Signal { part: PartId, ranks: Vec<u32>, signal: i32 },
    /// Kill a part's processes, wherever they hide.
    Kill { part: PartId },
    /// Stop a part's processes where they are.
    Freeze { part: PartId },
    /// Let stopped processes go on under another name.
    Thaw { part: PartId, as_part: PartId },
    /// Stop a part's processes for a moment, or let them go on: it runs, and others only take turns with it.
    Hush { part: PartId, hushed: bool },
    /// Which processes are a part's? Answered with `Pids`.
    Pids { part: PartId },
    /// How much memory a part may use from now on, where it has a control group; none: as much as there is.
    Memory { part: PartId, max: Option<u64> },
    /// Until when this node may run anything, in microseconds since boot. Guards against an agent that is gone.
    Lease { until: u64 },
    /// What is there? Answered with `Parts`.
    List,
    /// Nothing of the part need be remembered.
    Forget { part: PartId },
    /// No agent will come back: exit as soon as nothing is left.
    Leave,
}

/// A part to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartPart {
    /// Its name.
    pub(crate) part: PartId,
    /// Its processes.
    pub(crate) ranks: Vec<RankSpec>,
    /// Who runs it, where that is not the keeper's own user.
    pub(crate) user: Option<RunAs>,
    /// What holds its processes in.
    pub(crate) confine: Confine,
    /// The signal that asks it to stop, should the agent be gone when the node's lease lapses.
    pub(crate) stop_signal: i32,
    /// How long it then has, in microseconds.
    pub(crate) grace: u64,
    /// The size in bytes at which a log of ours is rotated.
    pub(crate) log_max: u64,
}

/// What holds a part's processes in. All of it is done before the first instruction of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Confine {
    /// The control group of the part, where there is one.
    pub(crate) cgroup: Option<PathBuf>,
    /// Device files that it must not be able to open: each is tried first, and one that opens fails the part.
    pub(crate) closed: Vec<PathBuf>,
    /// Secrets that it finds as files.
    pub(crate) secrets: Option<SecretFiles>,
    /// The command that does the last steps before the job: see `launch`.
    pub(crate) launcher: Vec<String>,
}

/// Secrets that a job finds as files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SecretFiles {
    /// Where the job finds them.
    pub(crate) folder: PathBuf,
    /// Whether a file system is mounted there for each rank alone. Otherwise the folder is made on a file system in
    /// memory, and removed with the part.
    pub(crate) mounted: bool,
    /// Their names, and what is in them.
    pub(crate) files: Vec<(String, SecretValue)>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankSpec {
    /// Its rank.
    pub(crate) rank: u32,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Its whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Where it runs.
    pub(crate) cwd: PathBuf,
    /// Where its output goes.
    pub(crate) stdout: Sink,
    /// Where its standard error goes; with the output where nothing is said.
    pub(crate) stderr: Option<Sink>,
}

/// A file to append to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sink {
    /// The file.
    pub(crate) path: PathBuf,
    /// Whether the job's user named it, so that it is opened with their rights and no others.
    pub(crate) theirs: bool,
    /// A line that is written first.
    pub(crate) header: Option<String>,
}

/// A user to run as, and the command that becomes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunAs {
    /// Its name, by which its groups are found.
    pub(crate) name: String,
    /// Its number.
    pub(crate) uid: u32,
    /// Its first group.
    pub(crate) gid: u32,
    /// The command that drops rights and becomes the job: see `launch`.
    pub(crate) launcher: Vec<String>,
}

/// From the keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Say {
    /// Every rank has a process.
    Started { part: PartId },
    /// No process of the part is left. `code` as a shell would say it, where it is the job's own fault.
    Failed { part: PartId, code: Option<i32>, message: String },
    /// A rank and all it started are gone.
    Exited { part: PartId, rank: u32, exit: ProcessExit },
    /// All processes of a part, wherever they hide; none where there is no such part.
    Pids { part: PartId, pids: Vec<i32> },
    /// All that is there: processes, exits that were not yet forgotten, and the lease as it was last told.
    Parts { alive: Vec<(PartId, u32)>, exits: Vec<(PartId, u32, ProcessExit)>, lease: Option<u64> },
}

/// How a process ended: one of the two is there, unless nobody saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessExit {
    /// Its code.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Whether that was for want of memory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) starved: Option<Starved>,
}

/// A message as a line.
pub(crate) fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("the keeper's words are plain data");
    line.push(b'\n');
    line
}
