//! The table of nodes' certificates: which certificate speaks for which node. A name belongs to the machine that joined
//! under it until an admin releases it. A join token's use is counted in the transaction that records the certificate,
//! so that two machines never come in through one use.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use thiserror::Error;

use super::tokens::{Audit, TokenStore, TokensError};

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS certificates(
    fingerprint TEXT PRIMARY KEY, node TEXT NOT NULL, issued_us INTEGER NOT NULL, by TEXT NOT NULL,
    revoked_us INTEGER, released_us INTEGER);
CREATE INDEX IF NOT EXISTS certificates_node ON certificates(node);
";

/// Old certificates of a node that are remembered. One that is forgotten is refused all the same: it is not on record.
const REMEMBERED: i64 = 16;

/// Why a machine may not be a node.
#[derive(Debug, Error)]
pub enum BarredCertificate {
    /// Its certificate was revoked.
    #[error(
        "the certificate of node {0} was revoked. To let this machine in again, an administrator frees the name with `yard nodes rm {0}` and makes a join token; then delete node.pem in the agent's folder and start the agent with --join-token"
    )]
    Revoked(String),
    /// Its certificate is not the one that the node has.
    #[error(
        "the server has no record of this certificate of node {0}. Delete node.pem in the agent's folder and join again with a new join token (`yard token create --scope join`)"
    )]
    Unknown(String),
    /// The name belongs to another machine.
    #[error(
        "node {0} has joined already. If this is the same machine, start its agent with the folder it had (--data). To give the name to another machine: yard nodes rm {0}"
    )]
    Taken(String),
    /// The join token has been used as often as it may be.
    #[error(
        "this join token has been used; create another with `yard token create --scope join`, or one for many \
         machines with --nodes"
    )]
    UsedUp,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] TokensError),
}

/// A certificate that was signed.
#[derive(Clone, Copy, Debug)]
pub struct Issued<'a> {
    /// The node it speaks for.
    pub node: &'a str,
    /// SHA-256 of it.
    pub fingerprint: &'a str,
}

impl TokenStore {
    /// Records the certificate of a machine that joins, and one use of its token.
    pub fn join(&self, issued: Issued<'_>, token: &str, audit: Audit<'_>) -> Result<(), BarredCertificate> {
        self.certify(audit, |change| {
            if is_held(change, issued.node)? {
                return Ok(Err(BarredCertificate::Taken(issued.node.to_owned())));
            }
            let used = "UPDATE tokens SET uses_left = uses_left - 1
                WHERE id = ?1 AND revoked = 0 AND (uses_left IS NULL OR uses_left > 0)";
            if change.execute(used, [token])? == 0 {
                return Ok(Err(BarredCertificate::UsedUp));
            }
            insert(change, issued, audit).map(Ok)
        })
    }

    /// Records the certificate that a node got for the one it showed. Of others that it got so before and never
    /// connected with, none is good any more.
    pub fn renew(&self, issued: Issued<'_>, shown: &str, audit: Audit<'_>) -> Result<(), BarredCertificate> {
        self.certify(audit, |change| {
            // It was looked at before the new one was signed, and may have been revoked since.
            match is_good(change, Issued { fingerprint: shown, ..issued })? {
                Some(true) => {}
                Some(false) => return Ok(Err(BarredCertificate::Revoked(issued.node.to_owned()))),
                None => return Ok(Err(BarredCertificate::Unknown(issued.node.to_owned()))),
            }
            revoke_but(change, issued.node, shown, audit.time_us)?;
            insert(change, issued, audit)?;
            let old = "DELETE FROM certificates WHERE node = ?1 AND revoked_us IS NOT NULL AND rowid NOT IN
                (SELECT rowid FROM certificates WHERE node = ?1 ORDER BY rowid DESC LIMIT ?2)";
            change.execute(old, params![issued.node, REMEMBERED]).map(|_| Ok(()))
        })
    }

    /// Whether a certificate may speak for its node. `known`: the node is one of this cluster's. One that joined before
    /// certificates were recorded keeps the first that it shows.
    pub fn admit(&self, shown: Issued<'_>, known: bool, time_us: u64) -> Result<(), BarredCertificate> {
        let node = shown.node;
        match self.read(|db| is_good(db, shown))? {
            Some(true) => Ok(()),
            Some(false) => Err(BarredCertificate::Revoked(node.to_owned())),
            None if known && !self.read(|db| has_record(db, node))? => self.adopt(shown, time_us),
            None => Err(BarredCertificate::Unknown(node.to_owned())),
        }
    }

    /// Records the first certificate that a node shows, unless something was recorded of the node in the meantime.
    fn adopt(&self, shown: Issued<'_>, time_us: u64) -> Result<(), BarredCertificate> {
        let audit = Audit { time_us, user: shown.node, what: "adopt certificate", target: shown.node };
        self.certify(audit, |change| {
            if has_record(change, shown.node)? {
                return Ok(Err(BarredCertificate::Unknown(shown.node.to_owned())));
            }
            insert(change, shown, audit).map(Ok)
        })
    }

    /// A node is connected with this certificate: it needs no older one any more.
    pub fn settle(&self, shown: Issued<'_>, time_us: u64) -> Result<(), TokensError> {
        let older = "node = ?1 AND revoked_us IS NULL
            AND rowid < (SELECT rowid FROM certificates WHERE fingerprint = ?2)";
        self.read(|db| {
            // Most have none, and a write would wait for the driver's.
            let any = format!("SELECT EXISTS (SELECT 1 FROM certificates WHERE {older})");
            if !db.query_row(&any, [shown.node, shown.fingerprint], |row| row.get(0))? {
                return Ok(());
            }
            let revoke = format!("UPDATE certificates SET revoked_us = ?3 WHERE {older}");
            db.execute(&revoke, params![shown.node, shown.fingerprint, time_us as i64]).map(drop)
        })
    }

    /// Whether a name belongs to a machine.
    pub fn is_taken(&self, node: &str) -> Result<bool, TokensError> {
        self.read(|db| is_held(db, node))
    }

    /// Makes all certificates of a node void; the name stays taken.
    pub fn revoke_node(&self, node: &str, audit: Audit<'_>) -> Result<(), BarredCertificate> {
        self.certify(audit, |change| revoke_all(change, node, audit).map(Ok))
    }

    /// The same, and the name is free.
    pub fn release_node(&self, node: &str, audit: Audit<'_>) -> Result<(), BarredCertificate> {
        self.certify(audit, |change| {
            revoke_all(change, node, audit)?;
            let free = "UPDATE certificates SET released_us = ?2 WHERE node = ?1 AND released_us IS NULL";
            change.execute(free, params![node, audit.time_us as i64]).map(|_| Ok(()))
        })
    }

    /// The name is that of the machine that the server itself runs on, which needs no certificate.
    pub fn hold_local(&self, node: &str, time_us: u64) -> Result<(), BarredCertificate> {
        let own = local(node);
        let audit = Audit { time_us, user: "server", what: "local node", target: node };
        self.certify(audit, |change| {
            let others = "SELECT EXISTS (SELECT 1 FROM certificates
                WHERE node = ?1 AND fingerprint != ?2 AND released_us IS NULL)";
            if change.query_row(others, [node, &own], |row| row.get(0))? {
                return Ok(Err(BarredCertificate::Taken(node.to_owned())));
            }
            change.execute("DELETE FROM certificates WHERE fingerprint = ?1", [&own])?;
            insert(change, Issued { node, fingerprint: &own }, audit).map(Ok)
        })
    }

    /// Whether a name is that of the server's own machine.
    pub fn is_local(&self, node: &str) -> Result<bool, TokensError> {
        self.read(|db| {
            let held = "SELECT EXISTS (SELECT 1 FROM certificates
                WHERE fingerprint = ?1 AND released_us IS NULL)";
            db.query_row(held, [local(node)], |row| row.get(0))
        })
    }

    /// Runs a change that may find that it must not be, with its audit row.
    fn certify(
        &self,
        audit: Audit<'_>,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<(), BarredCertificate>>,
    ) -> Result<(), BarredCertificate> {
        let mut barred = Ok(());
        let written = self.change_if(audit, |transaction| {
            barred = change(transaction)?;
            Ok(barred.is_ok())
        });
        written.map_err(BarredCertificate::from).and(barred)
    }
}

/// What stands for a certificate where a node needs none.
fn local(node: &str) -> String {
    format!("local:{node}")
}

/// Whether a certificate is good; none: it is not on record.
fn is_good(db: &Connection, shown: Issued<'_>) -> rusqlite::Result<Option<bool>> {
    let good = "SELECT revoked_us IS NULL AND released_us IS NULL FROM certificates
        WHERE fingerprint = ?1 AND node = ?2";
    db.query_row(good, [shown.fingerprint, shown.node], |row| row.get(0)).optional()
}

fn has_record(db: &Connection, node: &str) -> rusqlite::Result<bool> {
    let any = "SELECT EXISTS (SELECT 1 FROM certificates WHERE node = ?1)";
    db.query_row(any, [node], |row| row.get(0))
}

fn is_held(db: &Connection, node: &str) -> rusqlite::Result<bool> {
    let held = "SELECT EXISTS (SELECT 1 FROM certificates WHERE node = ?1 AND released_us IS NULL)";
    db.query_row(held, [node], |row| row.get(0))
}

fn insert(change: &Connection, issued: Issued<'_>, audit: Audit<'_>) -> rusqlite::Result<()> {
    change
        .execute(
            "INSERT INTO certificates VALUES (?1, ?2, ?3, ?4, NULL, NULL)",
            params![issued.fingerprint, issued.node, audit.time_us as i64, audit.user],
        )
        .map(drop)
}

/// A certificate from before they were recorded is not to be adopted afterwards, so that something is on record.
fn revoke_all(change: &Connection, node: &str, audit: Audit<'_>) -> rusqlite::Result<()> {
    revoke_but(change, node, "", audit.time_us)?;
    let none = "INSERT OR IGNORE INTO certificates SELECT ?1, ?2, ?3, ?4, ?3, NULL
        WHERE NOT EXISTS (SELECT 1 FROM certificates WHERE node = ?2)";
    let placeholder = format!("none:{node}");
    change.execute(none, params![placeholder, node, audit.time_us as i64, audit.user]).map(drop)
}

fn revoke_but(change: &Connection, node: &str, spared: &str, time_us: u64) -> rusqlite::Result<()> {
    let revoke = "UPDATE certificates SET revoked_us = ?3
        WHERE node = ?1 AND fingerprint != ?2 AND revoked_us IS NULL";
    change.execute(revoke, params![node, spared, time_us as i64]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entitlements::Grant;
    use crate::scratch::Scratch;
    use crate::store::tokens::{Scope, TokenRow};

    const AUDIT: Audit<'_> = Audit { time_us: 7, user: "root", what: "test", target: "n1" };

    fn store() -> (TokenStore, Scratch) {
        let scratch = Scratch::new();
        (TokenStore::open(&scratch.path().join("yard.db")).unwrap(), scratch)
    }

    fn of(fingerprint: &str) -> Issued<'_> {
        Issued { node: "n1", fingerprint }
    }

    fn token(store: &TokenStore, uses: Option<u64>) -> &'static str {
        let row = TokenRow {
            id: "t".into(),
            user: "root".into(),
            scope: Scope::Join,
            hash: [0; 32],
            created_us: 0,
            expires_us: None,
            revoked: false,
            used_us: None,
            grant: Grant { uses, ..Grant::usual(Scope::Join) },
        };
        store.insert(&row, AUDIT).unwrap();
        "t"
    }

    #[test]
    fn one_use_lets_one_machine_in_also_at_the_same_time() {
        let (store, _scratch) = store();
        let token = token(&store, Some(1));
        let join = |at: usize| {
            let (node, fingerprint) = (format!("n{at}"), format!("f{at}"));
            store.join(Issued { node: &node, fingerprint: &fingerprint }, token, AUDIT)
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8).map(|at| scope.spawn(move || join(at))).collect();
            tries.into_iter().map(|tried| tried.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        assert!(
            results
                .iter()
                .filter_map(|result| result.as_ref().err())
                .all(|e| matches!(e, BarredCertificate::UsedUp))
        );
        assert_eq!(store.all().unwrap()[0].grant.uses, Some(0));
    }

    #[test]
    fn a_name_belongs_to_its_machine_until_it_is_released() {
        let (store, _scratch) = store();
        let token = token(&store, None);
        store.join(of("a"), token, AUDIT).unwrap();
        assert!(matches!(store.join(of("b"), token, AUDIT), Err(BarredCertificate::Taken(_))));
        store.revoke_node("n1", AUDIT).unwrap();
        assert!(matches!(store.admit(of("a"), true, 8), Err(BarredCertificate::Revoked(_))));
        assert!(
            matches!(store.join(of("b"), token, AUDIT), Err(BarredCertificate::Taken(_))),
            "the name stays taken"
        );
        store.release_node("n1", AUDIT).unwrap();
        store.join(of("b"), token, AUDIT).unwrap();
        assert!(store.admit(of("b"), true, 8).is_ok());
        assert!(matches!(store.admit(of("a"), true, 8), Err(BarredCertificate::Revoked(_))));
    }

    #[test]
    fn a_certificate_speaks_for_its_own_node_only() {
        let (store, _scratch) = store();
        store.join(of("a"), token(&store, None), AUDIT).unwrap();
        let other = Issued { node: "n2", fingerprint: "a" };
        assert!(matches!(store.admit(other, false, 8), Err(BarredCertificate::Unknown(_))));
    }

    #[test]
    fn renewing_leaves_the_shown_one_good_until_the_new_one_has_connected() {
        let (store, _scratch) = store();
        store.join(of("a"), token(&store, None), AUDIT).unwrap();
        store.renew(of("lost"), "a", AUDIT).unwrap();
        store.renew(of("b"), "a", AUDIT).unwrap();
        assert!(matches!(store.admit(of("lost"), true, 8), Err(BarredCertificate::Revoked(_))));
        assert!(store.admit(of("a"), true, 8).is_ok() && store.admit(of("b"), true, 8).is_ok());
        store.settle(of("a"), 9).unwrap();
        assert!(store.admit(of("b"), true, 10).is_ok(), "an older one that connects harms no newer one");
        store.settle(of("b"), 11).unwrap();
        assert!(matches!(store.admit(of("a"), true, 12), Err(BarredCertificate::Revoked(_))));
        for at in 0..100 {
            store.renew(of(&format!("flood-{at}")), "b", AUDIT).unwrap();
        }
        let rows = store.read(|db| db.query_row("SELECT count(*) FROM certificates", [], |row| row.get(0)));
        let rows: i64 = rows.unwrap();
        assert!(rows <= REMEMBERED + 2, "a node that renews without end fills no disk: {rows}");
        assert!(store.admit(of("b"), true, 13).is_ok());
    }

    /// The order in which a renewal and a revocation at the same time can come to the store.
    #[test]
    fn nothing_is_renewed_or_adopted_after_the_revocation() {
        for put_out in [TokenStore::revoke_node, TokenStore::release_node] {
            let (store, _scratch) = store();
            store.join(of("a"), token(&store, None), AUDIT).unwrap();
            assert!(store.admit(of("a"), true, 8).is_ok(), "it is looked at, and the new one is signed");
            put_out(&store, "n1", AUDIT).unwrap();
            let late = store.renew(of("b"), "a", AUDIT);
            assert!(matches!(late, Err(BarredCertificate::Revoked(_))), "{late:?}");
            assert!(
                matches!(store.admit(of("b"), true, 9), Err(BarredCertificate::Unknown(_))),
                "it is on no record"
            );
            assert!(matches!(store.renew(of("b"), "forged", AUDIT), Err(BarredCertificate::Unknown(_))));

            let (store, _scratch) = self::store();
            put_out(&store, "n1", AUDIT).unwrap();
            let late = store.adopt(of("a"), 8);
            assert!(matches!(late, Err(BarredCertificate::Unknown(_))), "{late:?}");
            assert!(store.admit(of("a"), true, 9).is_err());
        }
    }

    #[test]
    fn a_node_from_before_keeps_the_first_certificate_it_shows() {
        let (store, _scratch) = store();
        assert!(
            matches!(store.admit(of("a"), false, 8), Err(BarredCertificate::Unknown(_))),
            "it is no node of ours"
        );
        assert!(store.admit(of("a"), true, 8).is_ok());
        assert!(matches!(store.admit(of("b"), true, 8), Err(BarredCertificate::Unknown(_))));
        for free_the_name in [false, true] {
            let (store, _scratch) = self::store();
            let put_out = if free_the_name { TokenStore::release_node } else { TokenStore::revoke_node };
            put_out(&store, "n1", AUDIT).unwrap();
            let late = store.admit(of("a"), true, 8);
            assert!(
                matches!(late, Err(BarredCertificate::Unknown(_))),
                "put out before it was seen: {late:?}"
            );
        }
    }

    #[test]
    fn the_servers_own_machine_keeps_its_name() {
        let (store, _scratch) = store();
        let token = token(&store, None);
        store.hold_local("n1", 1).unwrap();
        store.hold_local("n1", 2).unwrap();
        assert!(store.is_local("n1").unwrap() && store.is_taken("n1").unwrap());
        assert!(matches!(store.join(of("a"), token, AUDIT), Err(BarredCertificate::Taken(_))));
        store.join(Issued { node: "n2", fingerprint: "b" }, token, AUDIT).unwrap();
        assert!(matches!(store.hold_local("n2", 3), Err(BarredCertificate::Taken(_))));
    }
}
