//! The journal: every input of the engine in order, written before it is stepped. What follows from inputs (events,
//! how a job ended) is written one transaction later, with the number of the last input it covers, so that a
//! recovery knows which of it is missing and makes it again.

use std::sync::Arc;

use rusqlite::{Transaction, params};
use yard_core::ids::JobId;
use yard_core::message::Input;
use yard_core::state::{STATE_VERSION, STATE_VERSIONS};
use yard_core::units::Time;

use super::{AuditRow, EndedJob, Facts, NewJob, NodeRow, Store, StoreError};
use crate::request::JobRequest;
use crate::views::EventView;

/// Everything that one transaction makes durable.
#[derive(Debug, Default)]
pub struct Write<'a> {
    /// The number of the first input; the others follow.
    pub first: u64,
    /// When all of it happens.
    pub time: Time,
    /// When the first input happens, where that is before the others.
    pub first_time: Option<Time>,
    /// Inputs, as JSON.
    pub inputs: &'a [&'a str],
    /// Jobs that the inputs submit.
    pub jobs: &'a [NewJob],
    /// What became known of jobs.
    pub facts: &'a [(JobId, Facts)],
    /// Jobs that ask for something else from now on.
    pub requests: &'a [(JobId, Arc<JobRequest>)],
    /// Nodes that joined or changed.
    pub nodes: &'a [NodeRow],
    /// Names of nodes that are forgotten.
    pub forgotten: &'a [String],
    /// Who did what.
    pub audit: &'a [AuditRow],
}

/// What followed from inputs that were stepped.
#[derive(Debug, Default)]
pub struct Derived {
    /// The last input that this covers.
    pub seq: u64,
    /// Facts for people.
    pub events: Vec<Arc<EventView>>,
    /// Jobs that are over.
    pub ended: Vec<EndedJob>,
}

impl Derived {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.ended.is_empty()
    }
}

/// A journaled input.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// Its number.
    pub seq: u64,
    /// When it happened.
    pub time: Time,
    /// The input.
    pub input: Input,
}

const DERIVED: &str = "derived";

impl Store {
    /// Writes a batch, and what followed from the batches before it. All of it is on disk when this returns, or
    /// none.
    pub fn write(&mut self, batch: &Write<'_>, derived: &Derived) -> Result<(), StoreError> {
        let written = write_all(&mut self.db, batch, derived);
        self.sql(written)
    }

    /// Writes what followed from inputs. It need not be on disk when this returns: it can be made again.
    pub fn write_derived(&mut self, derived: &Derived) -> Result<(), StoreError> {
        let relaxed = self.db.pragma_update(None, "synchronous", "NORMAL");
        let written = relaxed.and_then(|()| write_all(&mut self.db, &Write::default(), derived));
        let strict = self.db.pragma_update(None, "synchronous", "FULL");
        self.sql(written.and(strict))
    }

    /// The last input whose consequences are written.
    pub fn derived(&self) -> Result<u64, StoreError> {
        let query = "SELECT coalesce(max(value), 0) FROM meta WHERE key = ?1";
        self.sql(self.db.query_row(query, [DERIVED], |row| row.get::<_, i64>(0))).map(|seq| seq as u64)
    }

    /// Hands over all inputs after `after`, in order.
    pub fn replay(&self, after: u64, mut each: impl FnMut(JournalEntry)) -> Result<(), StoreError> {
        let text = "SELECT seq, time_us, version, input FROM journal WHERE seq > ?1 ORDER BY seq";
        let mut query = self.sql(self.db.prepare(text))?;
        let mut rows = self.sql(query.query([after as i64]))?;
        let mut expected = after + 1;
        while let Some(row) = self.sql(rows.next())? {
            let read = (|| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))();
            let (seq, time, version, input): (i64, i64, u32, String) = self.sql(read)?;
            let seq = seq as u64;
            if seq != expected {
                return Err(self.damaged(expected, format!("the next one there is {seq}")));
            }
            if !STATE_VERSIONS.contains(&version) {
                let (path, known) = (self.path.clone(), STATE_VERSION);
                return Err(StoreError::OtherScheduler { path, found: version, known });
            }
            let input = serde_json::from_str(&input).map_err(|error| self.damaged(seq, error.to_string()))?;
            each(JournalEntry { seq, time: Time(time as u64), input });
            expected += 1;
        }
        Ok(())
    }

    fn damaged(&self, seq: u64, reason: String) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), what: format!("input {seq} of the journal"), reason }
    }
}

fn write_all(db: &mut rusqlite::Connection, batch: &Write<'_>, derived: &Derived) -> rusqlite::Result<()> {
    let change = db.transaction()?;
    write_inputs(&change, batch)?;
    write_rows(&change, batch)?;
    write_consequences(&change, derived)?;
    change.commit()
}

fn write_inputs(change: &Transaction<'_>, batch: &Write<'_>) -> rusqlite::Result<()> {
    let mut insert = change.prepare_cached("INSERT INTO journal VALUES(?1, ?2, ?3, ?4)")?;
    let times = batch.first_time.into_iter().chain(std::iter::repeat(batch.time));
    for ((seq, input), time) in (batch.first..).zip(batch.inputs).zip(times) {
        insert.execute(params![seq as i64, time.0 as i64, STATE_VERSION, input])?;
    }
    let text = "INSERT INTO jobs(id, user, key, request, submitted_us) VALUES(?1, ?2, ?3, ?4, ?5)";
    let mut insert = change.prepare_cached(text)?;
    for job in batch.jobs {
        let request = to_json(&*job.request)?;
        insert.execute(params![job.id.0 as i64, job.user, job.key, request, batch.time.0 as i64])?;
    }
    Ok(())
}

fn write_rows(change: &Transaction<'_>, batch: &Write<'_>) -> rusqlite::Result<()> {
    let mut update = change.prepare_cached("UPDATE jobs SET facts = ?2 WHERE id = ?1")?;
    for (job, facts) in batch.facts {
        update.execute(params![job.0 as i64, to_json(facts)?])?;
    }
    let mut update = change.prepare_cached("UPDATE jobs SET request = ?2 WHERE id = ?1")?;
    for (job, request) in batch.requests {
        update.execute(params![job.0 as i64, to_json(&**request)?])?;
    }
    let mut delete = change.prepare_cached("DELETE FROM nodes WHERE name = ?1")?;
    for name in batch.forgotten {
        delete.execute([name])?;
    }
    let mut replace = change.prepare_cached("INSERT OR REPLACE INTO nodes VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
    for node in batch.nodes {
        let (user, reason) = node.drain.clone().unzip();
        let groups = to_json(&node.groups)?;
        let audience = node.audience.as_ref().map(to_json).transpose()?;
        replace.execute(params![node.name, node.address, groups, reason.flatten(), user, audience])?;
    }
    let mut insert = change.prepare_cached("INSERT INTO audit VALUES(NULL, ?1, ?2, ?3, ?4, ?5)")?;
    for row in batch.audit {
        insert.execute(params![batch.time.0 as i64, row.user, row.what, row.target, row.outcome])?;
    }
    Ok(())
}

fn write_consequences(change: &Transaction<'_>, derived: &Derived) -> rusqlite::Result<()> {
    if derived.is_empty() {
        return Ok(());
    }
    let mut insert =
        change.prepare_cached("INSERT OR IGNORE INTO events VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for event in &derived.events {
        let time = Time::from_secs(event.time).0 as i64;
        let job = event.job.map(|job| job as i64);
        let detail = event.detail.to_string();
        insert.execute(params![event.id as i64, time, event.event, job, event.node, event.user, detail])?;
    }
    let text = "UPDATE jobs SET state = ?2, summary = ?3, ended_us = ?4 WHERE id = ?1";
    let mut update = change.prepare_cached(text)?;
    for EndedJob { ended, view } in &derived.ended {
        update.execute(params![view.id as i64, view.state, to_json(view)?, ended.0 as i64])?;
    }
    let mut set = change.prepare_cached("INSERT OR REPLACE INTO meta VALUES(?1, ?2)")?;
    set.execute(params![DERIVED, derived.seq as i64])?;
    Ok(())
}

fn to_json<T: serde::Serialize + ?Sized>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
