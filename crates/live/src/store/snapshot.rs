//! Snapshots of the engine's state, so that a recovery need not begin at the first input. Two are kept: should the
//! newer one be unreadable, the older one and the journal behind it still tell everything.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use yard_core::forecast::record::Record;
use yard_core::state::{STATE_VERSION, STATE_VERSIONS, State};

use super::{Store, StoreError};

/// How many are kept.
const KEPT: u32 = 2;

/// A state as it is stored, or the record of estimates that goes with it.
pub(crate) fn pack(known: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut out, known)?;
    out.flush()?;
    out.finish()
}

fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut text = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

impl Store {
    /// Keeps a packed state that holds all inputs up to `seq`, and drops what is not needed any more: older
    /// snapshots, the journal that even the older one of those kept covers, and all but the newest events.
    pub fn write_snapshot(&mut self, seq: u64, state: &[u8], events_max: u64) -> Result<(), StoreError> {
        let written = (|| {
            let change = self.db.transaction()?;
            let insert = "INSERT OR REPLACE INTO snapshots VALUES(?1, ?2, ?3)";
            change.execute(insert, params![seq as i64, STATE_VERSION, state])?;
            let kept = "SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?1";
            change.execute(&format!("DELETE FROM snapshots WHERE seq NOT IN ({kept})"), [KEPT])?;
            let covered = "SELECT min(seq) FROM snapshots HAVING count(*) = ?1";
            change.execute(&format!("DELETE FROM journal WHERE seq <= ({covered})"), [KEPT])?;
            let oldest = "SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?1";
            change.execute(&format!("DELETE FROM events WHERE id <= ({oldest})"), [events_max as i64])?;
            change.commit()
        })();
        self.sql(written)
    }

    /// Keeps the packed record of how estimates turned out, instead of the last one.
    pub fn write_estimates(&mut self, record: &[u8]) -> Result<(), StoreError> {
        let insert = "INSERT OR REPLACE INTO estimates VALUES(0, ?1)";
        self.sql(self.db.execute(insert, [record]).map(drop))
    }

    /// The record of how estimates turned out. None where none was kept, or by a version that kept another.
    pub fn estimates(&self) -> Result<Option<Record>, StoreError> {
        let kept = self.db.query_row("SELECT record FROM estimates", [], |row| row.get::<_, Vec<u8>>(0));
        let Some(bytes) = self.sql(kept.optional())? else { return Ok(None) };
        let record = unpack(&bytes);
        if let Err(error) = &record {
            tracing::warn!(error, "how estimates turned out cannot be read; that is learned anew");
        }
        Ok(record.ok())
    }

    /// The newest state that can be read, with the number of the last input it holds. None where none was saved.
    pub fn snapshot(&self) -> Result<Option<(u64, State)>, StoreError> {
        let text = "SELECT seq, version, state FROM snapshots ORDER BY seq DESC";
        let mut query = self.sql(self.db.prepare(text))?;
        let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?)));
        let rows: Vec<(u64, u32, Vec<u8>)> = self.sql(self.sql(rows)?.collect())?;
        let mut reason = None;
        for (seq, found, state) in rows {
            if !STATE_VERSIONS.contains(&found) {
                let (path, known) = (self.path.clone(), STATE_VERSION);
                return Err(StoreError::OtherScheduler { path, found, known });
            }
            match unpack::<State>(&state) {
                Ok(state) => return Ok(Some((seq, state))),
                Err(error) => {
                    tracing::warn!(seq, error, "a snapshot cannot be read; trying the one before");
                    reason = Some(error);
                }
            }
        }
        let damaged =
            |reason| StoreError::Damaged { path: self.path.clone(), what: "every snapshot".into(), reason };
        reason.map_or(Ok(None), |reason| Err(damaged(reason)))
    }
}
