//! The tables, as a list of steps from one version to the next. A file of an older version is brought up to date
//! when it is opened; one of a newer version is refused.

use std::path::Path;

use rusqlite::Connection;

use super::StoreError;

/// What makes version n + 1 of version n. Never change a line: add one.
const STEPS: [&str; 4] = ["
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE journal(
    seq INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, version INTEGER NOT NULL, input TEXT NOT NULL);
CREATE TABLE snapshots(seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL);
CREATE TABLE jobs(
    id INTEGER PRIMARY KEY, user TEXT NOT NULL, key TEXT, request TEXT NOT NULL, submitted_us INTEGER NOT NULL,
    facts TEXT, state TEXT, summary TEXT, ended_us INTEGER);
CREATE UNIQUE INDEX jobs_key ON jobs(user, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_open ON jobs(id) WHERE ended_us IS NULL;
CREATE INDEX jobs_user ON jobs(user, id);
CREATE TABLE events(
    id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, event TEXT NOT NULL, job INTEGER, node TEXT, user TEXT,
    detail TEXT NOT NULL);
CREATE INDEX events_job ON events(job, id) WHERE job IS NOT NULL;
CREATE TABLE nodes(
    name TEXT PRIMARY KEY, address TEXT NOT NULL, groups TEXT NOT NULL, drain_reason TEXT, drain_user TEXT)
    WITHOUT ROWID;
CREATE TABLE audit(
    id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, user TEXT NOT NULL, what TEXT NOT NULL,
    target TEXT NOT NULL, outcome TEXT NOT NULL);
", "
CREATE TABLE estimates(only INTEGER PRIMARY KEY CHECK(only = 0), record BLOB NOT NULL);
", "
CREATE TABLE set_aside(
    seq INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, aside_us INTEGER NOT NULL, input TEXT NOT NULL,
    reason TEXT NOT NULL);
", "
ALTER TABLE nodes ADD COLUMN audience TEXT;
"];

pub(super) fn migrate(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sql = |source| StoreError::sql(path, source);
    let known = STEPS.len() as u32;
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sql)?;
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    for (version, step) in (1..).zip(STEPS).skip(found as usize) {
        let change = db.transaction().map_err(sql)?;
        change.execute_batch(step).map_err(sql)?;
        change.pragma_update(None, "user_version", version).map_err(sql)?;
        change.commit().map_err(sql)?;
    }
    Ok(())
}
