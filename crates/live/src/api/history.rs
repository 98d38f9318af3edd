//! What the API asks of the past. The board holds what is going on; this has the rest, and may wait for a disk.

use yard_core::units::Time;

use crate::handle::Refusal;
use crate::request::JobRequest;
use crate::store::JobRow;
use crate::views::{EventView, JobView};

/// Which jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only this user's.
    pub user: Option<String>,
    /// Only in this state.
    pub state: Option<String>,
    /// Only names like this: `*` stands for any characters, `?` for one.
    pub name: Option<String>,
    /// Only with higher numbers; the first `limit` of them. Without it: the newest `limit`.
    pub after: Option<u64>,
    /// Only with lower numbers.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only those that this user may see: about their own jobs, or about nobody's.
    pub viewer: Option<String>,
    /// Only those about this job.
    pub job: Option<u64>,
    /// Only with higher numbers; the first `limit` of them. Without it: the newest `limit`.
    pub after: Option<u64>,
    /// Only with lower numbers.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// Which part of the history, as a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceFilter {
    /// Only this user's jobs.
    pub user: Option<String>,
    /// Only jobs submitted from then on: seconds since 1970, UTC.
    pub from: Option<f64>,
    /// Only jobs submitted before: seconds since 1970, UTC.
    pub to: Option<f64>,
}

/// The past.
pub trait HistoryQuery: Send + Sync {
    /// Jobs, those with the lowest numbers first, without what was submitted.
    fn jobs(&self, filter: &JobFilter) -> Result<Vec<JobView>, Refusal>;
    /// One job, with what was submitted.
    fn job(&self, id: u64) -> Result<Option<JobView>, Refusal>;
    /// What was submitted of a job, whether it is over or not.
    fn request(&self, id: u64) -> Result<Option<JobRequest>, Refusal>;
    /// Events, oldest first, with whose job they are about.
    fn events(&self, filter: &EventFilter) -> Result<Vec<EventView>, Refusal>;
    /// A trace in the native format, as CSV.
    fn trace(&self, filter: &TraceFilter) -> Result<String, Refusal>;
    /// Jobs that were submitted before `to` and were not over at `from`, at most so many, in order of submission.
    fn recorded(&self, from: Time, to: Time, limit: usize) -> Result<Vec<JobRow>, Refusal>;
}
