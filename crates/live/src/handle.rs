//! The one way to the driver: a message for each thing that may be asked of it, and a handle that asks. An answer
//! to a request that changes something leaves only after the change is durable.

use std::sync::{Arc, RwLock};

use thiserror::Error;
use tokio::sync::{broadcast, mpsc, oneshot};
use yard_core::ids::JobId;
use yard_core::view::View;

use crate::board::Board;
use crate::exec::Incoming;
use crate::quota::QuotaPlace;
use crate::replay::Present;
use crate::request::JobRequest;
use crate::request::edit::JobEdit;
use crate::views::{EventView, Explanation, JobView};
use crate::what_if::{WhatIf, WhatIfQuestion};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The user.
    pub user: String,
    /// Whether they may touch what others own.
    pub admin: bool,
}

/// Why something was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The request is wrong.
    #[error("{message}")]
    Invalid {
        /// The field that is wrong.
        field: Option<String>,
        /// In a sentence.
        message: String,
    },
    /// There is no such thing, or it is not theirs to see.
    #[error("{0}")]
    NotFound(String),
    /// It is theirs to see, but not to touch.
    #[error("{0}")]
    Forbidden(String),
    /// It contradicts what is: a key used twice for different jobs, a job that is over.
    #[error("{0}")]
    Conflict(String),
    /// It is more than this user may have; others are not refused.
    #[error("{0}")]
    TooMany(String),
    /// It cannot be made durable now, or too much waits already.
    #[error("{0}")]
    Unavailable(String),
}

/// The answer to a request.
pub type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// What becomes of a job that is not over.
#[derive(Clone, Debug, PartialEq)]
pub enum Steering {
    /// It gets no devices until it is released; where it runs, it is paused.
    Hold {
        /// What for.
        reason: Option<String>,
    },
    /// It waits for devices again.
    Release,
    /// It gives its devices back and starts again from its last checkpoint.
    Requeue,
    /// It asks for something else.
    Edit(Box<JobEdit>),
}

/// What may be asked of the driver.
#[derive(Debug)]
pub enum Ask {
    /// Run a job.
    Submit {
        /// Who.
        who: Who,
        /// What.
        request: Box<JobRequest>,
        /// A key that makes a repeated request harmless.
        key: Option<String>,
        /// The room that its body takes among those that wait, given back once it is taken up.
        room: Option<QuotaPlace>,
        /// The job, once it is durable; a rejected job is an answer too.
        reply: Reply<JobView>,
    },
    /// Withdraw a job.
    Cancel {
        /// Who.
        who: Who,
        /// Which.
        job: JobId,
        /// What for.
        reason: Option<String>,
        /// Whether it is killed at once, without time to save.
        force: bool,
        /// The job as it is then.
        reply: Reply<JobView>,
    },
    /// Hold a job, release it, have it start again, or change what it asks for.
    Steer {
        /// Who.
        who: Who,
        /// Which.
        job: JobId,
        /// What.
        steering: Steering,
        /// The job as it is then.
        reply: Reply<JobView>,
    },
    /// A node takes nothing new, or takes jobs again.
    Drain {
        /// Who.
        who: Who,
        /// The node's name.
        node: String,
        /// Take nothing new, or take jobs again.
        drain: bool,
        /// Whether what runs there is asked to save and go on elsewhere.
        evict: bool,
        /// What for.
        reason: Option<String>,
        /// Done.
        reply: Reply<()>,
    },
    /// Which nodes with devices of a kind are the cheapest to do without.
    Cheapest {
        /// The kind.
        kind: String,
        /// How many.
        count: u32,
        /// Their names; as many as there are that take jobs.
        reply: Reply<Vec<String>>,
    },
    /// Why a job does not run, or why it runs where it does.
    Explain {
        /// Which.
        job: JobId,
        /// Why, in words and numbers.
        reply: Reply<Explanation>,
    },
    /// What would become of a job, or of all if a node went; nothing happens.
    WhatIf {
        /// Who.
        who: Who,
        /// What.
        asked: Box<WhatIf>,
        /// A copy of all that is needed to answer it.
        reply: Reply<WhatIfQuestion>,
    },
    /// How things are, to run the past again.
    Present {
        /// A copy of what that needs.
        reply: Reply<Present>,
    },
    /// What the policy would see now.
    View {
        /// The view.
        reply: Reply<View>,
    },
    /// Something came in for the backend.
    Exec(Incoming),
    /// Close a node's connection: its certificate is void. It is lost like any node that falls silent.
    Sever {
        /// The node's name.
        node: String,
        /// Done.
        reply: Reply<()>,
    },
    /// Forget a node, once nothing runs there any more.
    Remove {
        /// Who.
        who: Who,
        /// The node's name.
        node: String,
        /// It is being removed; where nothing ran there, it is gone.
        reply: Reply<()>,
    },
    /// Read a job's log from the node that has it. Pieces arrive in order; the channel closes at the end.
    Logs {
        /// Who.
        who: Who,
        /// Which log.
        log: LogRequest,
        /// The pieces.
        reply: Reply<LogStream>,
    },
    /// The reader of a log has taken pieces and wants as many more.
    LogsMore {
        /// Which request.
        request: u64,
        /// How many pieces.
        pieces: u32,
    },
    /// Stop: ask local jobs to save where `leave` names nodes that go away, write a snapshot, end.
    Shutdown {
        /// Nodes that go away with this process.
        leave: Vec<String>,
        /// Done.
        reply: Reply<()>,
    },
}

/// A log on its way. No more pieces come than `wire::LOG_CREDIT` beyond those that were asked for with `Ask::LogsMore`.
#[derive(Debug)]
pub struct LogStream {
    /// The number of the request.
    pub request: u64,
    /// Its pieces; the last may say why there are no more.
    pub pieces: mpsc::Receiver<Result<String, String>>,
}

/// Which of the things that a rank writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogOf {
    /// Standard output and standard error, in order of arrival.
    #[default]
    Both,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Which log, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// The job.
    pub job: JobId,
    /// The rank.
    pub rank: u32,
    /// Which of what it writes.
    pub of: LogOf,
    /// Only so many of its last lines.
    pub tail: Option<u64>,
    /// Whether to go on with what is written.
    pub follow: bool,
}

/// Asks the driver. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    /// To the driver. Bounded: who asks too much, waits.
    pub asks: mpsc::Sender<Ask>,
    /// What there is to see, kept up to date by the driver.
    pub board: Arc<RwLock<Board>>,
    /// What happens, as it happens.
    pub events: broadcast::Sender<Arc<EventView>>,
}

impl Handle {
    /// Whether there is a driver that could answer.
    pub fn is_alive(&self) -> bool {
        !self.asks.is_closed()
    }

    /// Sends a request and waits for the answer.
    pub async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> Ask) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        let gone = || Refusal::Unavailable("the scheduler is shutting down; try again in a moment".into());
        self.asks.send(make(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
