//! What the driver wants of a backend.

use yard_core::ids::{JobId, LeaseId};
use yard_core::message::Why;
use yard_core::training::Batch;

use super::host::HostId;
use super::launch::JobLaunch;
use crate::handle::{LogRequest, Refusal};
pub use crate::wire::{LOG_CREDIT, LOG_PIECE};

/// What the driver wants. What concerns a job or a host that the backend does not know is no longer so: it is dropped.
#[derive(Debug)]
pub enum Directive {
    /// A host that offered itself is on record, under this number.
    Admit {
        /// Which offer.
        ticket: u64,
        /// Its number from now on.
        host: HostId,
    },
    /// A host that offered itself is not taken in.
    Decline {
        /// Which offer.
        ticket: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The host's right to be here is void: break off with it. What runs there is lost as if it had fallen silent.
    Sever {
        /// Which.
        host: HostId,
    },
    /// The same, because an administrator removes it.
    Remove {
        /// Which.
        host: HostId,
    },
    /// A host that was removed runs nothing any more; its name is free.
    Removed {
        /// Which.
        host: HostId,
    },
    /// Run these jobs under a lease.
    Grant {
        /// The lease.
        lease: LeaseId,
        /// The jobs.
        launches: Vec<JobLaunch>,
    },
    /// Have jobs of a lease give their devices back, and say how that ended.
    Revoke {
        /// The lease.
        lease: LeaseId,
        /// Which jobs.
        jobs: Vec<JobId>,
        /// What for.
        why: Why,
    },
    /// Have a job make steps of another size. Should it not hear of that, it is told at its next start.
    Tune {
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// What its steps are made of.
        batch: Batch,
    },
    /// How a job ended under a lease is durable: nothing of it need be remembered.
    Forget {
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
    },
    /// A job is over for good: processes of it that lie stopped are not wanted any more.
    Over {
        /// The job.
        job: JobId,
    },
    /// Send what a rank of a job wrote: at first `LOG_CREDIT` pieces at most.
    ReadLog {
        /// Who has it.
        host: HostId,
        /// The number of the request, for the answers.
        request: u64,
        /// Which log.
        log: LogRequest,
    },
    /// Send as many further pieces of a log.
    ReadMore {
        /// Who has it.
        host: HostId,
        /// Which request.
        request: u64,
        /// How many.
        pieces: u32,
    },
    /// Send no more of a log.
    StopReading {
        /// Who has it.
        host: HostId,
        /// Which request.
        request: u64,
    },
}
