//! Jobs, nodes, and who did what: the rows beside the journal.

use rusqlite::{OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use yard_core::ids::JobId;
use yard_core::units::{Span, Time};

use super::{Store, StoreError};
use crate::request::JobRequest;
use crate::views::JobView;
use crate::wire::{Audience, GroupOnWire};

/// A job as it was submitted.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its number.
    pub id: JobId,
    /// Who submitted it.
    pub user: String,
    /// The key that makes a repeated request harmless.
    pub key: Option<String>,
    /// What was asked for.
    pub request: std::sync::Arc<JobRequest>,
}

/// What is known of a job beside what the engine knows. Agents forget it once it is durable here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Its last exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it last.
    pub signal: Option<i32>,
    /// What people should know of how it ended last.
    pub message: Option<String>,
    /// Steps that it wants to do in all, by its own account.
    pub total: Option<u64>,
    /// Steps that are safe in a checkpoint.
    pub checkpointed: Option<u64>,
    /// The longest that saving took.
    pub save: Span,
    /// Whether it ever said how far it is.
    pub talks: bool,
    /// Who withdrew it, and what for.
    pub cancelled: Option<(String, Option<String>)>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldBy>,
    /// Where it ran last.
    pub ran: Vec<Ran>,
}

/// Who holds a job, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    /// The user.
    pub user: String,
    /// Whether it is somebody else's job, so that only an administrator releases it.
    pub admin: bool,
    /// What for.
    pub reason: Option<String>,
}

/// Where some ranks of a job ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The node.
    pub node: String,
    /// The first rank there.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// A job that is over.
#[derive(Clone, Debug)]
pub struct EndedJob {
    /// When.
    pub ended: Time,
    /// How it looked then.
    pub view: JobView,
}

/// A job as it is stored.
#[derive(Clone, Debug)]
pub struct JobRow {
    /// Its number.
    pub id: JobId,
    /// Who submitted it.
    pub user: String,
    /// When.
    pub submitted: Time,
    /// What was asked for.
    pub request: JobRequest,
    /// What is known of it.
    pub facts: Facts,
    /// How it looked when it was over.
    pub summary: Option<JobView>,
}

/// A node that joined at some time.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Where its ranks are reached.
    pub address: String,
    /// Its devices.
    pub groups: Vec<GroupOnWire>,
    /// Who drained it, and what for.
    pub drain: Option<(String, Option<String>)>,
    /// Who it runs jobs for; none where no version that keeps it has seen the node.
    pub audience: Option<Audience>,
}

/// Somebody did something.
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// Who.
    pub user: String,
    /// What.
    pub what: &'static str,
    /// To what.
    pub target: String,
    /// What came of it.
    pub outcome: String,
}

const JOB: &str = "SELECT id, user, submitted_us, request, facts, summary FROM jobs";

impl Store {
    /// All jobs whose end is not recorded, oldest first.
    pub fn open_jobs(&self) -> Result<Vec<JobRow>, StoreError> {
        let mut query = self.sql(self.db.prepare(&format!("{JOB} WHERE ended_us IS NULL ORDER BY id")))?;
        let rows = self.sql(query.query_map([], job_row))?;
        self.sql(rows.collect())
    }

    /// The newest jobs, whether they are over or not, oldest first.
    pub fn newest_jobs(&self, limit: usize) -> Result<Vec<JobRow>, StoreError> {
        let mut query = self.sql(self.db.prepare(&format!("{JOB} ORDER BY id DESC LIMIT ?1")))?;
        let rows = self.sql(query.query_map([limit as i64], job_row))?;
        let mut jobs: Vec<JobRow> = self.sql(rows.collect())?;
        jobs.reverse();
        Ok(jobs)
    }

    /// A job.
    pub fn job(&self, id: JobId) -> Result<Option<JobRow>, StoreError> {
        let query = self.db.prepare_cached(&format!("{JOB} WHERE id = ?1"));
        let mut query = self.sql(query)?;
        self.sql(query.query_row([id.0 as i64], job_row).optional())
    }

    /// The job that a user submitted under a key.
    pub fn job_of_key(&self, user: &str, key: &str) -> Result<Option<JobRow>, StoreError> {
        let mut query = self.sql(self.db.prepare_cached(&format!("{JOB} WHERE user = ?1 AND key = ?2")))?;
        self.sql(query.query_row([user, key], job_row).optional())
    }

    /// All nodes that ever joined, by name.
    pub fn nodes(&self) -> Result<Vec<NodeRow>, StoreError> {
        let text =
            "SELECT name, address, groups, drain_user, drain_reason, audience FROM nodes ORDER BY name";
        let mut query = self.sql(self.db.prepare(text))?;
        let rows = query.query_map([], |row| {
            let user: Option<String> = row.get(3)?;
            let reason = row.get(4)?;
            let drain = user.map(|user| (user, reason));
            let audience: Option<String> = row.get(5)?;
            let audience = audience.map(|text| parse(5, &text)).transpose()?;
            Ok(NodeRow { name: row.get(0)?, address: row.get(1)?, groups: json(row, 2)?, drain, audience })
        });
        self.sql(self.sql(rows)?.collect())
    }
}

/// A row of the columns in `JOB`.
pub(crate) fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let facts: Option<String> = row.get(4)?;
    let summary: Option<String> = row.get(5)?;
    Ok(JobRow {
        id: JobId(row.get::<_, i64>(0)? as u64),
        user: row.get(1)?,
        submitted: Time(row.get::<_, i64>(2)? as u64),
        request: json(row, 3)?,
        facts: facts.map_or_else(|| Ok(Facts::default()), |text| parse(4, &text))?,
        summary: summary.map(|text| parse(5, &text)).transpose()?,
    })
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    parse(column, &row.get::<_, String>(column)?)
}

fn parse<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}
