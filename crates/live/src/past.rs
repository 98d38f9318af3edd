//! The stored history as the API asks for it.

use yard_core::ids::JobId;
use yard_core::units::Time;

use crate::api::{self, EventFilter, JobFilter, TraceFilter};
use crate::handle::Refusal;
use crate::history::{History, RECORDED_BYTES_MAX};
use crate::request::JobRequest;
use crate::store::{JobRow, StoreError};
use crate::views::{EventView, JobView};

impl api::HistoryQuery for History {
    fn jobs(&self, filter: &JobFilter) -> Result<Vec<JobView>, Refusal> {
        History::jobs(self, filter).map_err(unreadable)
    }

    fn job(&self, id: u64) -> Result<Option<JobView>, Refusal> {
        History::job(self, JobId(id)).map_err(unreadable)
    }

    fn request(&self, id: u64) -> Result<Option<JobRequest>, Refusal> {
        History::request(self, JobId(id)).map_err(unreadable)
    }

    fn events(&self, filter: &EventFilter) -> Result<Vec<EventView>, Refusal> {
        History::events(self, filter).map_err(unreadable)
    }

    fn trace(&self, filter: &TraceFilter) -> Result<String, Refusal> {
        let from = filter.from.map_or(Time::ZERO, Time::from_secs);
        let to = filter.to.map_or(Time::NEVER, Time::from_secs);
        History::trace(self, from, to, filter.user.as_deref()).map_err(unreadable)
    }

    fn recorded(&self, from: Time, to: Time, limit: usize) -> Result<Vec<JobRow>, Refusal> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let found = History::recorded(self, from, to, limit).map_err(unreadable)?;
        found.ok_or_else(|| {
            let mib = RECORDED_BYTES_MAX >> 20;
            let message = format!(
                "the jobs of that period need more than {mib} MiB of memory, the limit of one question; choose \
                 a shorter period, or simulate them yourself: yard trace export, then yard sim"
            );
            Refusal::Invalid { field: Some("history_s".into()), message }
        })
    }
}

fn unreadable(error: StoreError) -> Refusal {
    Refusal::Unavailable(format!("the history cannot be read: {error}"))
}
