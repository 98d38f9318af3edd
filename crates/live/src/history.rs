//! What happened, for who asks: jobs that are over, events, and a trace of it all that `yard sim` can run again
//! under another policy. Reads the store through connections of its own and never waits for the driver.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use yard_core::ids::JobId;
use yard_core::units::{Span, Time};

use crate::api::{EventFilter, JobFilter};
use crate::pattern;
use crate::request::JobRequest;
use crate::store::{JobRow, StoreError, job_row, reader};
use crate::views::{EventView, JobView};

/// Connections that are kept for the next to ask.
const IDLE_MAX: usize = 8;

/// Bytes of what was submitted that one question about the past may read.
pub const RECORDED_BYTES_MAX: usize = 256 << 20;

/// Reads what happened. Cheap to share.
#[derive(Debug)]
pub struct History {
    data: PathBuf,
    round: Span,
    idle: Mutex<Vec<Connection>>,
}

impl History {
    /// The history in a data folder, whose store exists. `round` is what the times of a trace are aligned to.
    pub fn open(data: &Path, round: Span) -> Result<History, StoreError> {
        let first = reader(data)?;
        Ok(History { data: data.to_owned(), round, idle: Mutex::new(vec![first]) })
    }

    /// Jobs that are over, oldest first.
    pub fn jobs(&self, filter: &JobFilter) -> Result<Vec<JobView>, StoreError> {
        let order = if filter.after.is_some() { "ASC" } else { "DESC" };
        let text = format!(
            "SELECT CASE WHEN :named THEN json_extract(summary, '$.name') END, summary FROM jobs
             WHERE ended_us IS NOT NULL AND id > :after AND id < :before AND (:user IS NULL OR user = :user)
             AND (:state IS NULL OR state = :state) ORDER BY id {order}"
        );
        let params = named_params! {
            ":named": filter.name.is_some(), ":after": since(filter.after), ":before": until(filter.before),
            ":user": filter.user, ":state": filter.state
        };
        let wanted = |row: &Row<'_>| -> rusqlite::Result<bool> {
            let Some(pattern) = &filter.name else { return Ok(true) };
            Ok(pattern::matches(pattern, &row.get::<_, String>(0)?))
        };
        // Names are compared here, row by row: no pattern makes the database take long over one.
        let mut jobs = self.with(|db| {
            let (mut query, mut jobs) = (db.prepare_cached(&text)?, Vec::new());
            let mut rows = query.query(params)?;
            while jobs.len() < filter.limit
                && let Some(row) = rows.next()?
            {
                if wanted(row)? {
                    jobs.push(json(&row.get::<_, String>(1)?)?);
                }
            }
            Ok(jobs)
        })?;
        if filter.after.is_none() {
            jobs.reverse();
        }
        Ok(jobs)
    }

    /// A job that is over, with what was asked for.
    pub fn job(&self, id: JobId) -> Result<Option<JobView>, StoreError> {
        let text = "SELECT id, user, submitted_us, request, facts, summary FROM jobs WHERE id = ?1";
        let row = self.with(|db| db.prepare_cached(text)?.query_row([id.0 as i64], job_row).optional())?;
        let ended = |row: JobRow| Some(JobView { request: Some(row.request), ..row.summary? });
        Ok(row.and_then(ended))
    }

    /// What was asked for, whether the job is over or not.
    pub fn request(&self, id: JobId) -> Result<Option<JobRequest>, StoreError> {
        let text = "SELECT request FROM jobs WHERE id = ?1";
        let read = |row: &Row<'_>| json(&row.get::<_, String>(0)?);
        self.with(|db| db.prepare_cached(text)?.query_row([id.0 as i64], read).optional())
    }

    /// Events after one, the oldest of them, or the newest of all; oldest first.
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<EventView>, StoreError> {
        let order = if filter.after.is_some() { "ASC" } else { "DESC" };
        let job = if filter.job.is_some() { "job = :job" } else { ":job IS NULL" };
        let text = format!(
            "SELECT id, time_us, event, job, node, detail, user FROM events
             WHERE {job} AND id > :after AND id < :before AND (:user IS NULL OR user IS NULL OR user = :user)
             ORDER BY id {order} LIMIT :limit"
        );
        let params = named_params! {
            ":job": filter.job.map(|job| job.min(i64::MAX as u64) as i64), ":after": since(filter.after),
            ":before": until(filter.before), ":user": filter.viewer,
            ":limit": i64::try_from(filter.limit).unwrap_or(i64::MAX)
        };
        let mut events = self.list(&text, params, event)?;
        if filter.after.is_none() {
            events.reverse();
        }
        Ok(events)
    }

    /// The number of the newest event.
    pub fn last_event(&self) -> Result<u64, StoreError> {
        let text = "SELECT coalesce(max(id), 0) FROM events";
        self.with(|db| db.query_row(text, [], |row| row.get::<_, i64>(0))).map(|id| id as u64)
    }

    /// Jobs that were submitted from `from` until before `to` and have run and ended, as a native trace. Times count
    /// from a multiple of the round, so that a simulation has its rounds at the same instants.
    pub fn trace(&self, from: Time, to: Time, user: Option<&str>) -> Result<String, StoreError> {
        let text = "SELECT id, user, submitted_us, request, facts, summary FROM jobs
             WHERE ended_us IS NOT NULL AND submitted_us >= :from AND submitted_us < :to
             AND (:user IS NULL OR user = :user) ORDER BY submitted_us, id";
        let params = named_params! { ":from": micros(from), ":to": micros(to), ":user": user };
        // One row at a time: what was submitted of all of them together may be more than there is memory.
        self.with(|db| {
            let mut trace = TraceText::new(self.round);
            for job in db.prepare_cached(text)?.query_map(params, job_row)? {
                trace.add(&job?);
            }
            Ok(trace.done())
        })
    }

    /// Jobs that were submitted before `to` and were not over at `from`, at most so many, in order of submission, without
    /// their environments. None where they take more memory than one question may.
    pub fn recorded(&self, from: Time, to: Time, limit: u32) -> Result<Option<Vec<JobRow>>, StoreError> {
        let text = "SELECT id, user, submitted_us, request, facts, summary FROM jobs
             WHERE submitted_us < :to AND (ended_us IS NULL OR ended_us > :from) ORDER BY submitted_us, id LIMIT :limit";
        let params = named_params! { ":from": micros(from), ":to": micros(to), ":limit": limit };
        self.with(|db| {
            let (mut jobs, mut bytes) = (Vec::new(), 0);
            for job in db.prepare_cached(text)?.query_map(params, job_row)? {
                let mut job = job?;
                job.request.env.clear();
                bytes += job.request.footprint();
                if bytes > RECORDED_BYTES_MAX {
                    return Ok(None);
                }
                jobs.push(job);
            }
            Ok(Some(jobs))
        })
    }

    fn list<T>(
        &self,
        text: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.with(|db| db.prepare_cached(text)?.query_map(params, read)?.collect())
    }

    fn with<T>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = idle.map_or_else(|| reader(&self.data), Ok)?;
        let answer = ask(&db).map_err(|source| StoreError::sql(&self.data, source))?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(db);
        }
        Ok(answer)
    }
}

/// The number above which something is wanted, as the database has it.
fn since(after: Option<u64>) -> i64 {
    after.map_or(-1, |after| after.min(i64::MAX as u64) as i64)
}

/// The number below which something is wanted.
fn until(before: Option<u64>) -> i64 {
    before.map_or(i64::MAX, |before| before.min(i64::MAX as u64) as i64)
}

fn micros(time: Time) -> i64 {
    time.0.min(i64::MAX as u64) as i64
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

fn event(row: &Row<'_>) -> rusqlite::Result<EventView> {
    Ok(EventView {
        id: row.get::<_, i64>(0)? as u64,
        time: Time(row.get::<_, i64>(1)? as u64).secs(),
        event: row.get(2)?,
        job: row.get::<_, Option<i64>>(3)?.map(|job| job as u64),
        node: row.get(4)?,
        detail: json(&row.get::<_, String>(5)?)?,
        user: row.get(6)?,
    })
}

/// The columns of a trace, in order.
const COLUMNS: [&str; 14] = [
    "job_id",
    "submit_s",
    "gpus",
    "duration_s",
    "model",
    "batch_size",
    "user",
    "tenant",
    "weight",
    "priority",
    "deadline_s",
    "min_gpus",
    "max_gpus",
    "kinds",
];

/// A trace as it is written.
struct TraceText {
    round: Span,
    /// What times count from, once there is a job.
    base: Option<Time>,
    out: csv::Writer<Vec<u8>>,
}

impl TraceText {
    fn new(round: Span) -> TraceText {
        // Writing to memory cannot fail.
        let mut out = csv::WriterBuilder::new().comment(Some(b'#')).from_writer(Vec::new());
        let _ = out.write_record(COLUMNS);
        TraceText { round, base: None, out }
    }

    /// Adds a job, if it has run.
    fn add(&mut self, job: &JobRow) {
        if job.summary.as_ref().is_none_or(|view| view.executed_s <= 0.0) {
            return;
        }
        let first = job.submitted.0;
        let base = *self.base.get_or_insert(Time(first - first.checked_rem(self.round.0).unwrap_or(0)));
        let _ = self.out.write_record(fields(job, base));
    }

    fn done(self) -> String {
        self.out.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

fn fields(job: &JobRow, base: Time) -> [String; 14] {
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    let request = &job.request;
    let gpus = request.gpus.or(request.min_gpus).unwrap_or(1);
    let kinds = if gpus == 0 { vec![crate::translate::CPU.to_owned()] } else { request.kinds.clone() };
    let executed = job.summary.as_ref().map_or(0.0, |view| view.executed_s);
    // One that was past before the job came is no deadline to a simulation.
    let deadline = request.deadline.map(Time::from_secs).filter(|time| *time > job.submitted);
    [
        job.id.to_string(),
        (job.submitted - base).secs().to_string(),
        gpus.max(1).to_string(),
        executed.to_string(),
        text(request.model.as_ref()),
        text(request.batch_size),
        job.user.clone(),
        text(request.tenant.as_ref()),
        request.weight.unwrap_or(1.0).to_string(),
        request.priority.to_string(),
        text(deadline.map(|time| (time - base).secs())),
        text(request.min_gpus.filter(|_| gpus > 0)),
        text(request.max_gpus.filter(|_| gpus > 0)),
        kinds.join("|"),
    ]
}
