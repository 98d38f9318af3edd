//! The table of users' secrets. Only sealed values come here; the key is in a file of its own, so that whoever steals
//! the database alone reads nothing. The connection is its own, as that of the tokens.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

/// How long a write waits for the driver's: it commits many times a second.
const BUSY: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS secrets(
    user TEXT NOT NULL, name TEXT NOT NULL, nonce BLOB NOT NULL, sealed BLOB NOT NULL, bytes INTEGER NOT NULL,
    set_us INTEGER NOT NULL, PRIMARY KEY(user, name)) WITHOUT ROWID;
";

/// A secret as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedRow {
    /// Whose it is.
    pub(crate) user: String,
    /// What they call it.
    pub(crate) name: String,
    /// Used for this value alone.
    pub(crate) nonce: [u8; 12],
    /// The value, encrypted, with its tag.
    pub(crate) sealed: Vec<u8>,
    /// How long the value is.
    pub(crate) bytes: u64,
    /// When it was set.
    pub(crate) set_us: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct SecretStore {
    path: PathBuf,
    db: Mutex<Connection>,
}

/// What was done, and where.
type Done<T> = Result<T, (PathBuf, rusqlite::Error)>;

impl SecretStore {
    /// Opens the table in a database file; makes it where it is missing.
    pub(crate) fn open(path: &Path) -> Done<SecretStore> {
        let error = |source| (path.to_owned(), source);
        let db = Connection::open(path).map_err(error)?;
        db.busy_timeout(BUSY).map_err(error)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(error)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(error)?;
        db.execute_batch(SCHEMA).map_err(error)?;
        Ok(SecretStore { path: path.to_owned(), db: Mutex::new(db) })
    }

    /// Keeps a secret, in place of one of the same name; whether there was room: a user has at most `most`.
    pub(crate) fn put(&self, row: &SealedRow, most: usize) -> Done<bool> {
        let mut db = self.db();
        let mut write = || {
            // At once for writing: one that begins to write after it has read is refused where the driver wrote in between.
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let others = "SELECT count(*) FROM secrets WHERE user = ?1 AND name <> ?2";
            let others: i64 = change.query_row(others, [&row.user, &row.name], |row| row.get(0))?;
            if others >= most as i64 {
                return Ok(false);
            }
            let SealedRow { user, name, nonce, sealed, bytes, set_us } = row;
            change.execute(
                "INSERT OR REPLACE INTO secrets VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                params![user, name, nonce, sealed, *bytes as i64, *set_us as i64],
            )?;
            change.commit().map(|()| true)
        };
        write().map_err(|source| self.error(source))
    }

    /// All of one user, by name.
    pub(crate) fn of_user(&self, user: &str) -> Done<Vec<SealedRow>> {
        let db = self.db();
        let read = || {
            let mut query = db.prepare_cached("SELECT * FROM secrets WHERE user = ?1 ORDER BY name")?;
            query.query_map([user], row)?.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|source| self.error(source))
    }

    /// One.
    pub(crate) fn get(&self, user: &str, name: &str) -> Done<Option<SealedRow>> {
        let db = self.db();
        let read = || {
            let mut query = db.prepare_cached("SELECT * FROM secrets WHERE user = ?1 AND name = ?2")?;
            query.query_row([user, name], row).optional()
        };
        read().map_err(|source| self.error(source))
    }

    /// Takes one away; whether there was one.
    pub(crate) fn remove(&self, user: &str, name: &str) -> Done<bool> {
        let gone = self.db().execute("DELETE FROM secrets WHERE user = ?1 AND name = ?2", [user, name]);
        gone.map(|rows| rows > 0).map_err(|source| self.error(source))
    }

    /// A panic while it was held left no half-written row: SQLite rolls back.
    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, source: rusqlite::Error) -> (PathBuf, rusqlite::Error) {
        (self.path.clone(), source)
    }
}

fn row(row: &Row<'_>) -> rusqlite::Result<SealedRow> {
    Ok(SealedRow {
        user: row.get("user")?,
        name: row.get("name")?,
        nonce: row.get("nonce")?,
        sealed: row.get("sealed")?,
        bytes: row.get::<_, i64>("bytes")? as u64,
        set_us: row.get::<_, i64>("set_us")? as u64,
    })
}
