//! What a backend has to say: of hosts, of jobs, and pieces of logs.

use yard_core::ids::{JobId, LeaseId};
use yard_core::job::Usage;
use yard_core::message::Outcome;
use yard_core::units::Span;

use super::host::{HostId, HostOffer, HostReach};
pub use crate::wire::Trained;

/// What a backend has to say.
#[derive(Debug, PartialEq)]
pub enum Notice {
    /// A host wants to be used. The answer is `Directive::Admit` or `Directive::Decline`.
    Offer {
        /// The number of the offer, for the answer.
        ticket: u64,
        /// What it offers.
        offer: HostOffer,
    },
    /// A host can be reached, or cannot.
    Reach {
        /// Which.
        host: HostId,
        /// Whether it can.
        reach: HostReach,
    },
    /// A host was out of reach for so long that nothing runs there any more. Its jobs have been reported as lost.
    Lost {
        /// Which.
        host: HostId,
    },
    /// A device is out of service, or back in it.
    Device {
        /// Whose.
        host: HostId,
        /// Which of its groups.
        group: u32,
        /// Which device.
        device: u32,
        /// What is wrong with it; none when it is well again.
        problem: Option<String>,
    },
    /// How a host's cards are doing.
    Cards {
        /// Whose.
        host: HostId,
        /// Each card that answers.
        cards: Vec<CardReport>,
    },
    /// News of a job under a lease.
    Job {
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// The news.
        news: JobNews,
    },
    /// A piece of a log.
    Log {
        /// Who sent it.
        host: HostId,
        /// Which request.
        request: u64,
        /// The text.
        text: String,
        /// Whether nothing more will come.
        end: bool,
        /// Why there is nothing, where that is so.
        error: Option<String>,
    },
}

/// News of a job under a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum JobNews {
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
    /// What it does to its devices.
    Usage(Usage),
    /// How long its steps take.
    Trained(Trained),
    /// It is stopped for a moment because it slows a guaranteed job, or goes on.
    Hushed(bool),
    /// It is over under this lease, and its devices are free. Said once; `Directive::Forget` follows.
    Ended(RunEnd),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// How.
    pub outcome: Outcome,
    /// Steps that are safe, where it knows.
    pub step: Option<u64>,
    /// The exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What people should know of it.
    pub message: Option<String>,
}

/// How a card is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardReport {
    /// Which of the host's groups.
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
    /// Memory errors that were corrected, and those that were not.
    pub ecc: Option<(u64, u64)>,
    /// The part of the time in which each job on it computes, where that is known.
    pub jobs: Vec<(JobId, Option<f64>)>,
}

/// A text that is no longer than so many bytes, and ends with `…` where it was.
pub fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        let most = most - '…'.len_utf8();
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}
