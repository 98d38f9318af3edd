//! Inputs that made the scheduler fail when they were replayed. They stay in the journal, are replayed as something
//! harmless, and are listed here with the reason, for `yard repair`.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::params;
use serde::Serialize;

use super::{Store, StoreError, reader};
use crate::clock::{now_us, seconds};

/// An input that was set aside. Times are seconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AsideInput {
    /// Its number in the journal.
    pub seq: u64,
    /// When it happened.
    pub time: f64,
    /// When it was set aside.
    pub set_aside_at: f64,
    /// The input, as JSON.
    pub input: String,
    /// What the scheduler said when it failed.
    pub reason: String,
    /// Whether it is still in the journal, so that it can be tried again.
    pub in_journal: bool,
}

impl Store {
    /// Sets an input of the journal aside; 0 where there is none of this number.
    pub fn set_aside(&mut self, seq: u64, reason: &str) -> Result<usize, StoreError> {
        let insert =
            "INSERT OR REPLACE INTO set_aside SELECT seq, time_us, ?2, input, ?3 FROM journal WHERE seq = ?1";
        self.sql(self.db.execute(insert, params![seq as i64, now_us() as i64, reason]))
    }

    /// The numbers of all inputs that were set aside.
    pub fn numbers_aside(&self) -> Result<BTreeSet<u64>, StoreError> {
        let mut query = self.sql(self.db.prepare("SELECT seq FROM set_aside"))?;
        let numbers = query.query_map([], |row| row.get::<_, i64>(0)).and_then(Iterator::collect);
        Ok(self.sql::<Vec<i64>>(numbers)?.into_iter().map(|seq| seq as u64).collect())
    }

    /// Has inputs tried again at the next start, or forgets those that the journal does not hold any more; how many.
    pub fn retry_aside(&mut self, seq: Option<u64>) -> Result<usize, StoreError> {
        let delete = "DELETE FROM set_aside WHERE ?1 IS NULL OR seq = ?1";
        self.sql(self.db.execute(delete, [seq.map(|seq| seq as i64)]))
    }
}

/// All that was set aside in a data folder. A server may be running.
pub fn list_aside(data: &Path) -> Result<Vec<AsideInput>, StoreError> {
    let db = reader(data)?;
    let text = "SELECT seq, time_us, aside_us, input, reason, seq IN (SELECT seq FROM journal) FROM set_aside ORDER BY seq";
    let read = || {
        let mut query = db.prepare(text)?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(AsideInput {
                seq: row.get::<_, i64>(0)? as u64,
                time: seconds(row.get::<_, i64>(1)? as u64),
                set_aside_at: seconds(row.get::<_, i64>(2)? as u64),
                input: row.get(3)?,
                reason: row.get(4)?,
                in_journal: row.get(5)?,
            })
        };
        query.query_map([], row)?.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|source| StoreError::sql(&data.join(super::FILE), source))
}
