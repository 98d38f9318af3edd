//! The tables of tokens, and the audit rows of what the API does by itself (tokens, certificates). Only hashes of
//! secrets are stored. The connection is its own: writes are rare, and WAL lets them wait for the driver's.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use super::certificates;
use crate::clock::{now_us, seconds};
use crate::entitlements::Grant;
use crate::views::AuditView;

/// How long a write waits for the driver's: it commits many times a second.
const BUSY: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS tokens(
    id TEXT PRIMARY KEY, user TEXT NOT NULL, scope TEXT NOT NULL, hash BLOB NOT NULL, created_us INTEGER NOT NULL,
    expires_us INTEGER, revoked INTEGER NOT NULL, used_us INTEGER, limits TEXT, nodes TEXT, uses_left INTEGER)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS audit(
    id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, user TEXT NOT NULL, what TEXT NOT NULL,
    target TEXT NOT NULL, outcome TEXT NOT NULL);
";

/// Columns that tokens did not have at first. A join token from then is good for any name and for a day.
const ADDED: &str = "
ALTER TABLE tokens ADD COLUMN limits TEXT;
ALTER TABLE tokens ADD COLUMN nodes TEXT;
ALTER TABLE tokens ADD COLUMN uses_left INTEGER;
";
const DAY_US: u64 = 86_400_000_000;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// A machine may become a node; nothing else.
    Join,
    /// See one's own jobs, the nodes and the events.
    Read,
    /// And submit and cancel one's own jobs.
    Submit,
    /// And everything of everybody.
    Admin,
}

impl Scope {
    /// Whether a token of this scope is good for what needs `needed`.
    pub fn allows(self, needed: Scope) -> bool {
        self == needed || (self != Scope::Join && needed != Scope::Join && self > needed)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Join => "join",
            Scope::Read => "read",
            Scope::Submit => "submit",
            Scope::Admin => "admin",
        }
    }

    fn named(name: &str) -> Option<Scope> {
        [Scope::Join, Scope::Read, Scope::Submit, Scope::Admin].into_iter().find(|scope| scope.name() == name)
    }
}

/// Why tokens could not be read or written.
#[derive(Debug, Error)]
#[error("the tokens in {path} cannot be read or written ({source}); check the disk and the file's owner")]
pub struct TokensError {
    path: PathBuf,
    source: rusqlite::Error,
}

/// A token as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRow {
    /// Its public number.
    pub id: String,
    /// Who it speaks for.
    pub user: String,
    /// What it allows.
    pub scope: Scope,
    /// SHA-256 of its secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_us: u64,
    /// When it ends.
    pub expires_us: Option<u64>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// When it was last used, to the minute.
    pub used_us: Option<u64>,
    /// What it is good for beyond its scope.
    pub grant: Grant,
}

/// Who did what.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    /// When.
    pub time_us: u64,
    /// Who.
    pub user: &'a str,
    /// What: a few words.
    pub what: &'a str,
    /// To what.
    pub target: &'a str,
}

/// Which of the audit rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those with lower numbers.
    pub before: Option<i64>,
    /// Only what this user did.
    pub user: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// The tables.
#[derive(Debug)]
pub struct TokenStore {
    path: PathBuf,
    db: Mutex<Connection>,
}

impl TokenStore {
    /// Opens the tables in a database file; makes them where they are missing.
    pub fn open(path: &Path) -> Result<TokenStore, TokensError> {
        let error = |source| TokensError { path: path.to_owned(), source };
        let mut db = Connection::open(path).map_err(error)?;
        db.busy_timeout(BUSY).map_err(error)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(error)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(error)?;
        db.execute_batch(SCHEMA).and_then(|()| db.execute_batch(certificates::SCHEMA)).map_err(error)?;
        add_columns(&mut db).map_err(error)?;
        Ok(TokenStore { path: path.to_owned(), db: Mutex::new(db) })
    }

    /// All tokens.
    pub fn all(&self) -> Result<Vec<TokenRow>, TokensError> {
        let db = self.db();
        let read = || {
            let mut query = db.prepare("SELECT * FROM tokens ORDER BY created_us, id")?;
            query.query_map([], token)?.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|source| self.error(source))
    }

    /// Adds a token.
    pub fn insert(&self, row: &TokenRow, audit: Audit<'_>) -> Result<(), TokensError> {
        self.change(audit, |db| {
            db.execute(
                "INSERT INTO tokens(id, user, scope, hash, created_us, expires_us, revoked, used_us, limits, nodes,
                    uses_left) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    row.id,
                    row.user,
                    row.scope.name(),
                    row.hash,
                    row.created_us as i64,
                    row.expires_us.map(|us| us as i64),
                    row.revoked,
                    row.used_us.map(|us| us as i64),
                    row.grant.limits.as_ref().map(json),
                    json(&row.grant.nodes),
                    row.grant.uses.map(|uses| uses as i64)
                ],
            )
        })
    }

    /// Revokes a token.
    pub fn revoke(&self, id: &str, audit: Audit<'_>) -> Result<(), TokensError> {
        self.change(audit, |db| db.execute("UPDATE tokens SET revoked = 1 WHERE id = ?1", [id]))
    }

    /// Keeps when tokens were last used.
    pub fn used(&self, uses: &[(String, u64)]) -> Result<(), TokensError> {
        let mut db = self.db();
        let mut write = || {
            let change = db.transaction()?;
            for (id, us) in uses {
                change.execute("UPDATE tokens SET used_us = ?2 WHERE id = ?1", params![id, *us as i64])?;
            }
            change.commit()
        };
        write().map_err(|source| self.error(source))
    }

    /// Writes down who did what, where nothing else is written.
    pub fn audit(&self, audit: Audit<'_>) -> Result<(), TokensError> {
        self.change(audit, |_| Ok(0))
    }

    /// Who did what, the newest first.
    pub fn audits(&self, filter: &AuditFilter) -> Result<Vec<AuditView>, TokensError> {
        let rows = "SELECT id, time_us, user, what, target, outcome FROM audit
            WHERE (?1 IS NULL OR id < ?1) AND (?2 IS NULL OR user = ?2) ORDER BY id DESC LIMIT ?3";
        self.read(|db| {
            let mut query = db.prepare_cached(rows)?;
            query.query_map(params![filter.before, filter.user, filter.limit as i64], entry)?.collect()
        })
    }

    /// The newest audit row, as `(user, what, target)`.
    pub fn last_audit(&self) -> Result<Option<(String, String, String)>, TokensError> {
        let newest = "SELECT user, what, target FROM audit ORDER BY id DESC LIMIT 1";
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        self.db().query_row(newest, [], row).optional().map_err(|source| self.error(source))
    }

    fn change(
        &self,
        audit: Audit<'_>,
        change: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> Result<(), TokensError> {
        self.change_if(audit, |transaction| change(transaction).map(|_| true))
    }

    /// Changes something if that finds that it may, and writes down who did it.
    pub(super) fn change_if(
        &self,
        audit: Audit<'_>,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<bool>,
    ) -> Result<(), TokensError> {
        let mut db = self.db();
        let write = || {
            // What is checked first must still be so when it is written.
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if !change(&transaction)? {
                return Ok(());
            }
            transaction.execute(
                "INSERT INTO audit(time_us, user, what, target, outcome) VALUES (?1, ?2, ?3, ?4, 'done')",
                params![audit.time_us as i64, audit.user, audit.what, audit.target],
            )?;
            transaction.commit()
        };
        write().map_err(|source| self.error(source))
    }

    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, TokensError> {
        read(&self.db()).map_err(|source| self.error(source))
    }

    /// A panic while it was held left no half-written row: SQLite rolls back.
    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, source: rusqlite::Error) -> TokensError {
        TokensError { path: self.path.clone(), source }
    }
}

/// A scope that this version does not know allows nothing: the row is kept, revoked.
fn token(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    let scope = Scope::named(&row.get::<_, String>("scope")?);
    let usual = Grant::usual(scope.unwrap_or(Scope::Join));
    let limits: Option<String> = row.get("limits")?;
    let nodes: Option<String> = row.get("nodes")?;
    let grant = Grant {
        // Limits that cannot be read are the usual ones, never none.
        limits: limits.and_then(|text| serde_json::from_str(&text).ok()).or(usual.limits),
        nodes: nodes.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        uses: row.get::<_, Option<i64>>("uses_left")?.map(|uses| uses.max(0) as u64),
    };
    Ok(TokenRow {
        grant,
        id: row.get("id")?,
        user: row.get("user")?,
        scope: scope.unwrap_or(Scope::Join),
        hash: row.get("hash")?,
        created_us: row.get::<_, i64>("created_us")? as u64,
        expires_us: row.get::<_, Option<i64>>("expires_us")?.map(|us| us as u64),
        revoked: row.get::<_, bool>("revoked")? || scope.is_none(),
        used_us: row.get::<_, Option<i64>>("used_us")?.map(|us| us as u64),
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditView> {
    Ok(AuditView {
        id: row.get("id")?,
        time: seconds(row.get::<_, i64>("time_us")? as u64),
        user: row.get("user")?,
        what: row.get("what")?,
        target: row.get("target")?,
        outcome: row.get("outcome")?,
    })
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("names and finite numbers are JSON")
}

/// Brings a table of an older version up to date.
fn add_columns(db: &mut Connection) -> rusqlite::Result<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let there = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('tokens') WHERE name = 'uses_left')";
    if change.query_row(there, [], |row| row.get(0))? {
        return Ok(());
    }
    change.execute_batch(ADDED)?;
    let (any, until) = (json(&Grant::usual(Scope::Join).nodes), (now_us() + DAY_US) as i64);
    let shorten = "UPDATE tokens SET nodes = ?1, expires_us = min(coalesce(expires_us, ?2), ?2)
        WHERE scope = 'join'";
    change.execute(shorten, params![any, until])?;
    change.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entitlements::Entitlements;
    use crate::scratch::Scratch;

    #[test]
    fn tokens_of_an_older_version_get_limits_and_their_join_tokens_end() {
        let scratch = Scratch::new();
        let path = scratch.path().join("yard.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(
            "CREATE TABLE tokens(id TEXT PRIMARY KEY, user TEXT NOT NULL, scope TEXT NOT NULL, hash BLOB NOT NULL,
                created_us INTEGER NOT NULL, expires_us INTEGER, revoked INTEGER NOT NULL, used_us INTEGER)
                WITHOUT ROWID;",
        )
        .unwrap();
        for (id, scope, expires) in
            [("a", "admin", None), ("j", "join", None), ("k", "join", Some(5)), ("s", "submit", None)]
        {
            let row = params![id, "ada", scope, [0u8; 32], 1, expires, false, None::<i64>];
            old.execute("INSERT INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", row).unwrap();
        }
        drop(old);
        for _ in 0..2 {
            let rows = TokenStore::open(&path).unwrap().all().unwrap();
            let row = |id: &str| rows.iter().find(|row| row.id == id).unwrap();
            assert_eq!(row("a").grant, Grant::default(), "admins have no limits");
            assert_eq!(row("s").grant.limits, Some(Entitlements::default()));
            assert_eq!(row("j").grant, Grant::usual(Scope::Join));
            let end = row("j").expires_us.unwrap();
            assert!(end > now_us() && end <= now_us() + DAY_US);
            assert_eq!(row("k").expires_us, Some(5), "never later than it was to end");
        }
    }
}
