//! What the server and an agent say to each other: JSON in WebSocket text frames on one TLS connection that the
//! agent opens. Everything that matters is said again after a reconnect (`Hello` lists all parts, ended ones
//! until they are forgotten), so a lost frame loses nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use yard_core::cluster::DomainPath;
use yard_core::ids::JobId;
use yard_core::part::{Order, PartId, Told};
use yard_core::training::Batch;

/// The version of this protocol.
pub const WIRE_VERSION: u32 = 5;

/// The versions of agents that a server takes: its own and the one before.
pub const WIRE_VERSIONS: std::ops::RangeInclusive<u32> = WIRE_VERSION - 1..=WIRE_VERSION;

/// Largest frame either end accepts.
pub const FRAME_MAX: usize = 4 << 20;

/// Pieces of a log that an agent may send before it is asked for more.
pub const LOG_CREDIT: u32 = 16;

/// Bytes of a log that one piece is read from. Its text may be three times as long: a byte that is no text is replaced.
pub const LOG_PIECE: usize = 64 << 10;

/// Orders that may wait for an agent. One that takes none for so long is disconnected and says hello again.
pub const ORDERS_MAX: usize = 10_000;

/// From an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// The first frame of a connection.
    Hello(Hello),
    /// It is alive. The lease of the whole node runs from when the agent sent the last beat that was answered.
    Beat {
        /// Grows.
        seq: u64,
    },
    /// News of a part.
    Told {
        /// The part.
        part: PartId,
        /// The news.
        told: Told,
    },
    /// A device is out of service, or back in it.
    Health {
        /// Which of its groups.
        group: u32,
        /// Which device.
        device: u32,
        /// What is wrong with it; none when it is well again.
        problem: Option<String>,
    },
    /// How its cards are doing, now and then. Nothing is decided by it and nothing kept.
    Looked {
        /// Each card that answers.
        cards: Vec<CardNow>,
    },
    /// What a part does to its devices, where that has changed.
    Used {
        /// The part.
        part: PartId,
        /// The part of the time in which it computes, from 0 to 1.
        busy: f64,
        /// Memory it holds on each device.
        memory_mib: u32,
    },
    /// How long the steps of a part take, where it says so.
    Trained {
        /// The part.
        part: PartId,
        /// What it says.
        said: Trained,
    },
    /// A part is stopped for a moment because it slows a guaranteed one, or goes on. Nothing is decided by it.
    Hushed {
        /// The part.
        part: PartId,
        /// Whether it is.
        hushed: bool,
    },
    /// Part of the answer to `ToAgent::Logs`.
    Logs {
        /// Which request.
        request: u64,
        /// Bytes of the log, as text; what is no UTF-8 is replaced.
        text: String,
        /// Whether nothing more will come.
        end: bool,
        /// Why there is nothing, where that is so.
        error: Option<String>,
    },
}

/// What a job says of its steps, and of how noisy its gradients are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// Examples on each device at once.
    pub local: u32,
    /// Seconds to compute the gradient of those.
    pub grad_s: f64,
    /// Seconds of a step without accumulation.
    pub step_s: f64,
    /// The square of the mean gradient's norm, and the trace of its covariance, at the submitted batch size.
    pub noise: Option<(f64, f64)>,
    /// The loss, where it says so.
    #[serde(default)]
    pub loss: Option<f64>,
}

/// Who an agent is, what it offers and what it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// `WIRE_VERSION`.
    pub version: u32,
    /// The node's name.
    pub name: String,
    /// Where other nodes' ranks reach its ranks.
    pub address: String,
    /// Its devices, one group for each kind. The order is kept over restarts.
    pub groups: Vec<GroupOnWire>,
    /// All parts it knows, each with its last news: ended ones too, until they are forgotten.
    pub parts: Vec<(PartId, Told)>,
    /// Jobs whose processes lie stopped here.
    pub paused: Vec<JobId>,
    /// What it can do beyond starting and stopping.
    pub abilities: WireAbilities,
    /// Tells machines apart that claim the same name: it is the same for each start of an agent on one boot of one
    /// machine with one folder.
    #[serde(default)]
    pub host: String,
    /// What there is of its host by name: `cores` in thousandths, `memory` in MiB, and whatever else is counted. Nothing
    /// is counted of an agent that does not say.
    #[serde(default)]
    pub resources: BTreeMap<String, u32>,
    /// Where it is, as whoever started it says.
    #[serde(default)]
    pub domains: DomainPath,
}

/// What a node can do beyond starting and stopping jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireAbilities {
    /// Why it cannot freeze processes that use cards; none: it can.
    pub no_freeze: Option<String>,
    /// Why it cannot limit what a job takes of a card; none: it can.
    pub no_limits: Option<String>,
    /// Host memory that frozen jobs may hold, in MiB.
    pub freeze_room_mib: u64,
    /// Whose jobs alone it runs, where it cannot run everybody's.
    #[serde(default)]
    pub only_user: Option<OnlyUser>,
}

/// The one user whose jobs a node runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnlyUser {
    /// The user's name.
    pub name: String,
    /// Why nobody else's: a clause, such as `its agent does not run as root`.
    pub why: String,
}

/// Who a node runs jobs for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// All users.
    Everybody,
    /// One user.
    One(OnlyUser),
}

/// How a card is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CardNow {
    /// Which of the node's groups.
    pub group: u32,
    /// Which device.
    pub device: u32,
    /// The part of the time in which it computed, from 0 to 1.
    pub busy: Option<f64>,
    /// Memory in use.
    pub memory_used_mib: Option<u64>,
    /// Degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn.
    pub power_w: Option<f64>,
    /// Why its clocks are held back, where they are.
    pub throttled: Option<String>,
    /// Memory errors that were corrected, and those that were not, since the driver was loaded.
    pub ecc: Option<(u64, u64)>,
    /// What each part on it does: the part of the time in which it computes, where it is known, and memory.
    pub parts: Vec<(PartId, Option<f64>, u64)>,
}

/// Devices of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupOnWire {
    /// The kind.
    pub kind: String,
    /// The devices; at most `NODE_DEVICES_MAX`.
    pub devices: Vec<Device>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// What people call it: the card's model, or what stands in for one.
    pub name: String,
    /// Its unique number, where it has one.
    pub uuid: Option<String>,
    /// Its memory.
    pub memory_mib: Option<u64>,
    /// Why it is out of service, where it is.
    pub problem: Option<String>,
    /// Whether it is split into instances (MIG), which are then not offered.
    #[serde(default)]
    pub split: bool,
    /// How it is linked to the node's other devices of its group, by their numbers: `nvlink`, `pcie`, `numa` or
    /// `system`, nearest first in that order. For placement.
    #[serde(default)]
    pub links: Vec<(u32, String)>,
}

/// To an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// The answer to `Hello`.
    Welcome {
        /// How long an agent may go on without an answer to a beat before it must stop its jobs.
        lease_s: f64,
        /// How often it should send a beat.
        beat_s: f64,
    },
    /// It cannot stay: why, and what to do about it.
    Refused {
        /// In a sentence.
        reason: String,
    },
    /// The answer to a beat.
    Beat {
        /// Which.
        seq: u64,
    },
    /// An order.
    Order {
        /// The order.
        order: Order,
        /// What to run, with `Order::Start`.
        task: Option<Box<Task>>,
    },
    /// Have a part make steps of another size from now on.
    Tune {
        /// The part.
        part: PartId,
        /// What its steps are made of.
        batch: Batch,
    },
    /// Send a log: at first `LOG_CREDIT` pieces at most.
    Logs {
        /// The request's number, for the answers.
        request: u64,
        /// The job.
        job: JobId,
        /// The rank.
        rank: u32,
        /// Standard error rather than output.
        stderr: bool,
        /// Both, in order of arrival; servers before it never ask for that.
        #[serde(default)]
        both: bool,
        /// Only so many of its last lines.
        tail: Option<u64>,
        /// Whether to go on sending what is written.
        follow: bool,
    },
    /// Send up to so many further pieces of a log; it is sent no faster than it is read.
    LogsMore {
        /// Which request.
        request: u64,
        /// How many pieces.
        pieces: u32,
    },
    /// Send no more of a log.
    LogsEnd {
        /// Which request.
        request: u64,
    },
}

/// What a part's processes are. One process for each rank, all alike but for their environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The job's name.
    pub name: String,
    /// Who submitted it; its processes run as this user where the agent may choose.
    pub user: String,
    /// The program and its arguments. No shell is involved.
    pub command: Vec<String>,
    /// What is added to the environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub workdir: PathBuf,
    /// Where it keeps its checkpoints; the agent's own folder for the job where none is given.
    pub checkpoint_dir: Option<PathBuf>,
    /// What tells it to stop, such as `TERM`.
    pub stop_signal: String,
    /// Where output goes instead of the agent's folder: `%j` job, `%x` name, `%t` rank, `%n` node rank.
    pub output: Option<String>,
    /// The same for standard error; joined with the output where only that is given.
    pub error: Option<String>,
    /// The batch size to train with, where that is the scheduler's choice.
    pub batch_size: Option<u32>,
    /// How often gradients are kept and added up before the step, where that is the scheduler's choice.
    #[serde(default)]
    pub accumulation: Option<u32>,
    /// Memory the part may use, where the node can limit it.
    pub memory_mib: Option<u64>,
    /// Processor cores the part may use, where the node can limit it.
    pub cpus: Option<f64>,
    /// Memory that is set aside for the part, where it did not say how much it needs.
    #[serde(default)]
    pub memory_part_mib: Option<u64>,
    /// Kind of the devices held, by group of the order's devices.
    pub kind: String,
    /// What it may take of each card, through MPS; none: it runs without.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// What its processes are given and nobody else may see. Never written to a file.
    #[serde(default)]
    pub secrets: Vec<TaskSecret>,
}

/// A secret on its way to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSecret {
    /// Its name: that of the variable, or of the file.
    pub name: String,
    /// How the job finds it.
    pub handed: Handed,
    /// What it is.
    pub value: SecretValue,
}

/// How a job finds a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Handed {
    /// As a variable of its environment.
    #[default]
    Env,
    /// As a file in the folder that `YARD_SECRETS_DIR` names.
    File,
}

/// The content of a secret. It is not shown by `{:?}`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValue(pub String);

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

/// What a job may take of each of its cards while it shares them through MPS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The part of its processors, from 0 to 1.
    pub compute: f64,
    /// Memory.
    pub memory_mib: Option<u64>,
}
