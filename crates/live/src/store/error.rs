//! What can be wrong with the store. Each sentence names the file and what to do about it.

use std::path::{Path, PathBuf};

use thiserror::Error;
use yard_core::state::STATE_VERSIONS;

use crate::secrets::SecretsError;

/// Why the store cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Somebody else writes to it.
    #[error("{path}: another server uses this data folder; stop it, or choose another with --data")]
    Locked {
        /// The lock's file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error(
        "{path}: a newer version of yard wrote this data folder (tables of version {found}; this yard reads up to {known}). Nothing was changed. Start the newer version again, or restore the backup from before the upgrade"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that is known here.
        known: u32,
    },
    /// What an older or newer scheduler wrote into it.
    #[error("{path}: {}", other_scheduler(*found, *known))]
    OtherScheduler {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// A row that does not say what it should.
    #[error("{path}: {what} cannot be read ({reason}); restore the file from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which row.
        what: String,
        /// Why.
        reason: String,
    },
    /// A file or folder cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The secrets of users cannot be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// SQLite cannot do what it should.
    #[error("{path}: {source}{}", remedy(source))]
    Sql {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl StoreError {
    pub(crate) fn sql(path: &Path, source: rusqlite::Error) -> StoreError {
        StoreError::Sql { path: path.to_owned(), source }
    }
}

/// What to do about a folder of another version, which depends on which of the two is newer.
fn other_scheduler(found: u32, known: u32) -> String {
    let reads = format!("this yard reads versions {} to {known}", STATE_VERSIONS.start());
    if found > known {
        return format!(
            "a newer version of yard wrote this data folder (jobs of version {found}; {reads}). Nothing was changed. Start the newer version again, or restore the backup from before the upgrade"
        );
    }
    format!(
        "a much older version of yard wrote this data folder (jobs of version {found}; {reads}). Upgrade one version at a time, or name another folder with --data"
    )
}

/// What to do about the errors that people can do something about.
fn remedy(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DiskFull, NotADatabase, PermissionDenied, ReadOnly};
    match error.sqlite_error_code() {
        Some(DiskFull) => "; make room on its disk",
        Some(ReadOnly | PermissionDenied) => "; make it writable",
        Some(NotADatabase) => "; restore it from a backup, or name another folder with --data",
        _ => "",
    }
}
