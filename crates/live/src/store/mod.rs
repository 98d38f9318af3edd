//! The server's memory on disk: one SQLite file that people can look into. The driver is its only writer, so that
//! one transaction can hold everything a batch of inputs needs to be durable before anybody is answered. Readers
//! open connections of their own (`history`) and never wait for the writer.

mod aside;
pub mod certificates;
mod error;
mod journal;
mod rows;
mod schema;
pub(crate) mod secrets;
mod snapshot;
pub mod tokens;

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use rusqlite::Connection;

pub use aside::{AsideInput, list_aside};
pub use error::StoreError;
pub use journal::{Derived, JournalEntry, Write};
pub(crate) use rows::job_row;
pub use rows::{AuditRow, EndedJob, Facts, HeldBy, JobRow, NewJob, NodeRow, Ran};
pub(crate) use snapshot::pack;

/// The name of the file in the data folder.
const FILE: &str = "yard.db";

/// How long a statement waits for a reader that is in its way.
const BUSY: Duration = Duration::from_secs(5);

/// The writer's end.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    path: PathBuf,
    /// Held as long as the store is open: two servers on one folder would contradict each other.
    _lock: Flock<File>,
}

impl Store {
    /// Opens the store in a data folder, both made if need be.
    pub fn open(data: &Path) -> Result<Store, StoreError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Io { path, source }
        };
        make_folder(data).map_err(io(data))?;
        let lock = lock(&data.join("yard.lock"))?;
        let path = data.join(FILE);
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(io(&path))?;
        let mut db = connect(&path)?;
        let sql = |source| StoreError::sql(&path, source);
        db.pragma_update(None, "journal_mode", "WAL").map_err(sql)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(sql)?;
        db.set_prepared_statement_cache_capacity(64);
        schema::migrate(&mut db, &path)?;
        Ok(Store { db, path, _lock: lock })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|source| StoreError::sql(&self.path, source))
    }

    /// The connection, for tests that break it.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.db
    }
}

/// A connection to the file of a data folder, for those who only read.
pub(crate) fn reader(data: &Path) -> Result<Connection, StoreError> {
    let path = data.join(FILE);
    let db = connect(&path)?;
    db.pragma_update(None, "query_only", true).map_err(|source| StoreError::sql(&path, source))?;
    Ok(db)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let sql = |source| StoreError::sql(path, source);
    let db = Connection::open(path).map_err(sql)?;
    db.busy_timeout(BUSY).map_err(sql)?;
    Ok(db)
}

/// Makes the data folder. Nobody else can list it, and what is in it is its owner's alone. Where that is root, others may
/// pass through to what is theirs: jobs of other users have their folders below the agent's, in there.
fn make_folder(data: &Path) -> std::io::Result<()> {
    let root = nix::unistd::geteuid().is_root();
    DirBuilder::new().recursive(true).mode(if root { 0o711 } else { 0o700 }).create(data)?;
    let found = std::fs::metadata(data)?;
    let (mode, own) = (found.mode() & 0o7777, found.uid() == 0);
    if root && own && mode & 0o011 != 0o011 {
        std::fs::set_permissions(data, Permissions::from_mode(mode | 0o011))?;
    }
    Ok(())
}

fn lock(path: &Path) -> Result<Flock<File>, StoreError> {
    let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = open.map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| StoreError::Locked { path: path.to_owned() })
}

#[cfg(test)]
pub(crate) mod tests;
