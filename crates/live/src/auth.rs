//! Who may do what: tokens, and how often they may be tried. A token is `yard_` and 80 hexadecimal digits, the first
//! 16 its public number, the rest 256 random bits of which only the hash is kept. All tokens are in memory, so a
//! request costs one hash and no query, and a revoked token is refused from that moment on.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use crate::clock::{now_us, seconds};
use crate::entitlements::{Entitlements, Grant};
use crate::handle::Who;
use crate::store::certificates::{BarredCertificate, Issued};
use crate::store::tokens::{Audit, AuditFilter, Scope, TokenRow, TokenStore, TokensError};
use crate::views::{AuditView, NewToken, TokenView};

const PREFIX: &str = "yard_";
const JOIN_PREFIX: &str = "yard-join_";
const ID_DIGITS: usize = 16;
const SECRET_DIGITS: usize = 64;

/// How often a token that expires is looked at while an answer goes on.
const LOOK_US: u64 = 500_000;

/// How long the first join token is good.
const FIRST_JOIN_US: u64 = 86_400_000_000;

/// Wrong tokens that one address may try at once; one more each second.
const FAILURES: f64 = 20.0;
/// Addresses whose failures are remembered.
const PEERS_MAX: usize = 10_000;

/// Somebody with a valid token.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub who: Who,
    /// What their token allows.
    pub scope: Scope,
    token: Arc<Token>,
}

impl Caller {
    /// What the user may ask for; none: there is no limit.
    pub fn limits(&self) -> Option<&Entitlements> {
        self.token.row.grant.limits.as_ref()
    }

    /// The public number of their token.
    pub fn token_id(&self) -> &str {
        &self.token.row.id
    }

    /// Waits until their token is revoked or expires, for answers that go on for long.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let token = self.token.clone();
        async move {
            while !token.expired(now_us()) {
                // Looked at again in between, because clocks are set.
                let left = token.row.expires_us.map(|end| end.saturating_sub(now_us()).min(LOOK_US));
                match left {
                    Some(left) => {
                        let sleep = tokio::time::sleep(Duration::from_micros(left));
                        if token.ended.run_until_cancelled(sleep).await.is_none() {
                            return;
                        }
                    }
                    None => return token.ended.cancelled().await,
                }
            }
        }
    }

    /// Whether their token would still be taken, for answers that go on for long.
    pub fn still_good(&self) -> bool {
        !self.token.revoked.load(Ordering::Acquire) && !self.token.expired(now_us())
    }
}

/// Why a token was not good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Denied {
    /// It is none of ours, or revoked.
    Unknown,
    /// It has ended.
    Expired,
    /// Too many wrong ones came from this address; seconds to wait.
    TooMany(f64),
}

/// A join token that is good for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// Its public number.
    pub id: String,
    /// Who it speaks for.
    pub user: String,
    /// Patterns of the names that machines may join under.
    pub nodes: Vec<String>,
}

/// What the first start makes, to be written where only the owner can read it.
#[derive(Clone, Debug)]
pub struct FirstTokens {
    /// For the one who started it.
    pub admin: NewToken,
    /// For agents.
    pub join: NewToken,
}

/// All tokens.
#[derive(Debug)]
pub struct Tokens {
    store: TokenStore,
    tokens: RwLock<BTreeMap<String, Arc<Token>>>,
    failures: Mutex<BTreeMap<IpAddr, Bucket>>,
}

#[derive(Debug)]
struct Token {
    row: TokenRow,
    revoked: AtomicBool,
    used_us: AtomicU64,
    /// Of `used_us`, what is in the store.
    kept_us: AtomicU64,
    /// Ends answers that go on.
    ended: CancellationToken,
    /// How often machines have joined with it since this was read.
    joined: AtomicU64,
}

impl Tokens {
    /// Reads the tokens of a database file.
    pub fn open(path: &Path) -> Result<Tokens, TokensError> {
        let store = TokenStore::open(path)?;
        let tokens = store.all()?.into_iter().map(|row| (row.id.clone(), Token::new(row))).collect();
        Ok(Tokens { store, tokens: RwLock::new(tokens), failures: Mutex::default() })
    }

    /// Makes the first tokens where there are none. `ca` is the fingerprint of the authority that agents pin.
    pub fn first(&self, user: &str, ca: &str) -> Result<Option<FirstTokens>, TokensError> {
        if !self.map().is_empty() {
            return Ok(None);
        }
        let admin = self.create(user, Scope::Admin, None, user, ca)?;
        let join = self.create(user, Scope::Join, Some(now_us() + FIRST_JOIN_US), user, ca)?;
        Ok(Some(FirstTokens { admin, join }))
    }

    /// Makes a token that is good for what is usual of its scope.
    pub fn create(
        &self,
        user: &str,
        scope: Scope,
        expires_us: Option<u64>,
        by: &str,
        ca: &str,
    ) -> Result<NewToken, TokensError> {
        self.create_with(user, scope, Grant::usual(scope), expires_us, by, ca)
    }

    /// Makes a token. Its secret is in the answer and nowhere else.
    pub fn create_with(
        &self,
        user: &str,
        scope: Scope,
        grant: Grant,
        expires_us: Option<u64>,
        by: &str,
        ca: &str,
    ) -> Result<NewToken, TokensError> {
        let digits = random_hex(ID_DIGITS + SECRET_DIGITS);
        let id = digits[..ID_DIGITS].to_owned();
        let row = TokenRow {
            id: id.clone(),
            user: user.to_owned(),
            scope,
            hash: Sha256::digest(&digits).into(),
            created_us: now_us(),
            expires_us,
            revoked: false,
            used_us: None,
            grant,
        };
        let what = format!("token create {} for {user}", scope.name());
        self.store.insert(&row, Audit { time_us: row.created_us, user: by, what: &what, target: &id })?;
        let token = Token::new(row);
        let view = token.view();
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).insert(id, token);
        let secret = match scope {
            Scope::Join => format!("{JOIN_PREFIX}{ca}_{digits}"),
            _ => format!("{PREFIX}{digits}"),
        };
        Ok(NewToken { token: view, secret })
    }

    /// Whether somebody may revoke a token: their own that allows no more than the one they show, and an admin any.
    /// None: they have no such token.
    pub fn may_revoke(&self, caller: &Caller, id: &str) -> Option<bool> {
        let map = self.map();
        let row = &map.get(id).filter(|token| caller.who.admin || token.row.user == caller.who.user)?.row;
        Some(caller.who.admin || row.id == caller.token_id() || caller.scope.allows(row.scope))
    }

    /// Revokes a token; whether there was one. `user`: only if it is theirs.
    pub fn revoke(&self, id: &str, user: Option<&str>, by: &str) -> Result<bool, TokensError> {
        let found = self.map().get(id).cloned();
        let Some(token) = found.filter(|token| user.is_none_or(|user| token.row.user == user)) else {
            return Ok(false);
        };
        if token.revoked.load(Ordering::Acquire) {
            return Ok(true);
        }
        self.store.revoke(id, Audit { time_us: now_us(), user: by, what: "token revoke", target: id })?;
        token.revoked.store(true, Ordering::Release);
        token.ended.cancel();
        Ok(true)
    }

    /// All tokens, or those of one user, oldest first.
    pub fn list(&self, user: Option<&str>) -> Vec<TokenView> {
        let map = self.map();
        let mut tokens: Vec<_> =
            map.values().filter(|token| user.is_none_or(|user| token.row.user == user)).collect();
        tokens.sort_by_key(|token| (token.row.created_us, &token.row.id));
        tokens.into_iter().map(|token| token.view()).collect()
    }

    /// Whose token this is. Wrong ones count against the address they came from.
    pub fn check(&self, presented: &str, peer: IpAddr) -> Result<Caller, Denied> {
        self.find(presented).map_err(|denied| self.failed(peer).err().map_or(denied, Denied::TooMany))
    }

    /// Which join token a secret is, if it is a good one.
    pub fn check_join(&self, presented: &str, peer: IpAddr) -> Result<JoinToken, Denied> {
        let caller = self.check(presented, peer)?;
        if caller.scope != Scope::Join {
            return Err(Denied::Unknown);
        }
        let row = &caller.token.row;
        Ok(JoinToken { id: row.id.clone(), user: row.user.clone(), nodes: row.grant.nodes.clone() })
    }

    /// Records the certificate of a machine that joins, and one use of the token.
    pub fn join(&self, issued: Issued<'_>, token: &JoinToken) -> Result<(), BarredCertificate> {
        let audit = Audit { time_us: now_us(), user: &token.user, what: "join", target: issued.node };
        self.store.join(issued, &token.id, audit)?;
        let known = self.map().get(&token.id).cloned();
        known.into_iter().for_each(|known| _ = known.joined.fetch_add(1, Ordering::Relaxed));
        Ok(())
    }

    /// The tables, for nodes' certificates.
    pub fn store(&self) -> &TokenStore {
        &self.store
    }

    /// Writes down that somebody did something to something.
    pub fn audit(&self, user: &str, what: &str, target: &str) -> Result<(), TokensError> {
        self.store.audit(Audit { time_us: now_us(), user, what, target })
    }

    /// Who did what, the newest first.
    pub fn audits(&self, filter: &AuditFilter) -> Result<Vec<AuditView>, TokensError> {
        self.store.audits(filter)
    }

    /// Keeps when tokens were last used. To be called now and then, and at the end.
    pub fn flush(&self) -> Result<(), TokensError> {
        let fresh: Vec<_> = self.map().values().filter_map(Token::fresh_use).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let uses: Vec<_> = fresh.iter().map(|(token, us)| (token.row.id.clone(), *us)).collect();
        self.store.used(&uses)?;
        fresh.iter().for_each(|(token, us)| token.kept_us.store(*us, Ordering::Relaxed));
        Ok(())
    }

    fn find(&self, presented: &str) -> Result<Caller, Denied> {
        let digits = digits_of(presented).ok_or(Denied::Unknown)?;
        let token = self.map().get(&digits[..ID_DIGITS]).cloned().ok_or(Denied::Unknown)?;
        let hash: [u8; 32] = Sha256::digest(digits).into();
        let same: bool = hash.ct_eq(&token.row.hash).into();
        if !same || token.revoked.load(Ordering::Acquire) {
            return Err(Denied::Unknown);
        }
        let now = now_us();
        if token.expired(now) {
            return Err(Denied::Expired);
        }
        token.used_us.store(now, Ordering::Relaxed);
        let scope = token.row.scope;
        let who = Who { user: token.row.user.clone(), admin: scope == Scope::Admin };
        Ok(Caller { who, scope, token })
    }

    fn failed(&self, peer: IpAddr) -> Result<(), f64> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= PEERS_MAX && !failures.contains_key(&peer) {
            failures.pop_first();
        }
        failures.entry(peer).or_insert_with(|| Bucket::new(FAILURES, 1.0)).take(now_us())
    }

    fn map(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<Token>>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Token {
    fn new(row: TokenRow) -> Arc<Token> {
        let (revoked, used) = (row.revoked.into(), row.used_us.unwrap_or(0));
        let ended = CancellationToken::new();
        let (used_us, kept_us, joined) = (used.into(), used.into(), AtomicU64::new(0));
        Arc::new(Token { row, revoked, used_us, kept_us, ended, joined })
    }

    fn expired(&self, now: u64) -> bool {
        self.row.expires_us.is_some_and(|end| end <= now)
    }

    /// When it was last used, if that is not yet in the store.
    fn fresh_use(self: &Arc<Token>) -> Option<(Arc<Token>, u64)> {
        let us = self.used_us.load(Ordering::Relaxed);
        (us > self.kept_us.load(Ordering::Relaxed)).then(|| (self.clone(), us))
    }

    fn view(&self) -> TokenView {
        let used = self.used_us.load(Ordering::Relaxed);
        TokenView {
            id: self.row.id.clone(),
            user: self.row.user.clone(),
            scope: self.row.scope.name().to_owned(),
            created_at: seconds(self.row.created_us),
            expires_at: self.row.expires_us.map(seconds),
            revoked: self.revoked.load(Ordering::Acquire),
            last_used_at: (used > 0).then(|| seconds(used)),
            limits: self.row.grant.limits.clone(),
            nodes: self.row.grant.nodes.clone(),
            uses_left: self
                .row
                .grant
                .uses
                .map(|uses| uses.saturating_sub(self.joined.load(Ordering::Relaxed))),
        }
    }
}

/// A bucket of credits that fills at a constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    credits: f64,
    most: f64,
    per_second: f64,
    last_us: u64,
}

impl Bucket {
    pub(crate) fn new(most: f64, per_second: f64) -> Bucket {
        Bucket { credits: most, most, per_second, last_us: 0 }
    }

    /// Takes one credit, or says how many seconds until there is one.
    pub(crate) fn take(&mut self, now_us: u64) -> Result<(), f64> {
        let passed = seconds(now_us.saturating_sub(self.last_us));
        self.last_us = self.last_us.max(now_us);
        self.credits = (self.credits + passed * self.per_second).min(self.most);
        if self.credits < 1.0 {
            return Err((1.0 - self.credits) / self.per_second);
        }
        self.credits -= 1.0;
        Ok(())
    }
}

/// The part of a secret that says which it is and proves it, of a token or of a join token.
fn digits_of(presented: &str) -> Option<&str> {
    let digits = match presented.strip_prefix(JOIN_PREFIX) {
        Some(rest) => rest.split_once('_')?.1,
        None => presented.strip_prefix(PREFIX)?,
    };
    let right =
        digits.len() == ID_DIGITS + SECRET_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    right.then_some(digits)
}

/// The fingerprint of the authority that a join token tells an agent to trust.
pub fn join_fingerprint(token: &str) -> Option<&str> {
    let (ca, _) = token.trim().strip_prefix(JOIN_PREFIX)?.split_once('_')?;
    digits_of(token.trim()).map(|_| ca)
}

fn random_hex(digits: usize) -> String {
    let mut bytes = vec![0; digits / 2];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    hex(&bytes)
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes what is written");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn tokens() -> (Tokens, crate::scratch::Scratch) {
        let scratch = crate::scratch::Scratch::new();
        (Tokens::open(&scratch.path().join("yard.db")).unwrap(), scratch)
    }

    #[test]
    fn a_token_is_good_until_it_is_revoked_also_over_restarts() {
        let (tokens, scratch) = tokens();
        let first = tokens.first("ada", "aa").unwrap().unwrap();
        assert!(tokens.first("ada", "aa").unwrap().is_none(), "the first tokens are made once");
        let caller = tokens.check(&first.admin.secret, PEER).unwrap();
        assert_eq!((caller.who.user.as_str(), caller.who.admin), ("ada", true));
        assert_eq!(tokens.check_join(&first.join.secret, PEER).unwrap().user, "ada");
        let end = first.join.token.expires_at.unwrap();
        assert!(end > seconds(now_us()) && end <= seconds(now_us() + FIRST_JOIN_US), "it is good for a day");
        assert_eq!(tokens.check_join(&first.admin.secret, PEER), Err(Denied::Unknown));
        assert_eq!(join_fingerprint(&first.join.secret), Some("aa"));

        tokens.flush().unwrap();
        let again = Tokens::open(&scratch.path().join("yard.db")).unwrap();
        assert_eq!(again.list(None), tokens.list(None));
        assert!(again.check(&first.admin.secret, PEER).is_ok());
        assert!(again.revoke(&first.admin.token.id, None, "ada").unwrap());
        assert_eq!(again.check(&first.admin.secret, PEER).unwrap_err(), Denied::Unknown);
        let third = Tokens::open(&scratch.path().join("yard.db")).unwrap();
        assert_eq!(third.check(&first.admin.secret, PEER).unwrap_err(), Denied::Unknown);
        let audit = third.store.last_audit().unwrap().unwrap();
        assert_eq!(audit, ("ada".into(), "token revoke".into(), first.admin.token.id));
    }

    #[test]
    fn secrets_are_not_stored() {
        let (tokens, scratch) = tokens();
        let token = tokens.create("ada", Scope::Read, None, "ada", "").unwrap();
        drop(tokens);
        let secret = token.secret.as_bytes()[PREFIX.len() + ID_DIGITS..].to_vec();
        for file in std::fs::read_dir(scratch.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret));
        }
    }

    #[test]
    fn an_expired_or_damaged_token_is_refused() {
        let (tokens, _scratch) = tokens();
        let old = tokens.create("ada", Scope::Read, Some(now_us() - 1), "ada", "").unwrap();
        assert_eq!(tokens.check(&old.secret, PEER).unwrap_err(), Denied::Expired);
        let good = tokens.create("ada", Scope::Read, Some(now_us() + 60_000_000), "ada", "").unwrap().secret;
        assert!(tokens.check(&good, PEER).is_ok());
        let flipped = if good.ends_with('0') { '1' } else { '0' };
        let wrong = [good[..good.len() - 1].to_owned() + &flipped.to_string(), format!("{good}0")];
        let wrong = wrong.iter().map(String::as_str).chain(["", "yard_", "yard_é", "yard-join__", "Bearer"]);
        for wrong in wrong {
            assert_eq!(tokens.check(wrong, PEER).unwrap_err(), Denied::Unknown, "{wrong}");
        }
    }

    #[test]
    fn wrong_tokens_are_counted_by_address_and_good_ones_go_on() {
        let (tokens, _scratch) = tokens();
        let good = tokens.create("ada", Scope::Read, None, "ada", "").unwrap().secret;
        let denied: Vec<_> = (0..30).map(|_| tokens.check("yard_no", PEER).unwrap_err()).collect();
        assert_eq!(denied[0], Denied::Unknown);
        assert!(matches!(denied[29], Denied::TooMany(wait) if wait > 0.0 && wait <= 1.0));
        assert!(tokens.check(&good, PEER).is_ok());
        let other = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(tokens.check("yard_no", other).unwrap_err(), Denied::Unknown);
    }

    #[test]
    fn scopes_contain_each_other_but_for_join() {
        use Scope::{Admin, Join, Read, Submit};
        for (has, needs, allowed) in
            [(Admin, Read, true), (Submit, Read, true), (Read, Submit, false), (Submit, Admin, false)]
        {
            assert_eq!(has.allows(needs), allowed, "{has:?} {needs:?}");
        }
        assert!(Join.allows(Join) && !Admin.allows(Join) && !Join.allows(Read));
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(3.0, 2.0);
        let taken = |bucket: &mut Bucket, us| (0..10).filter(|_| bucket.take(us).is_ok()).count();
        assert_eq!(taken(&mut bucket, 1_000_000), 3);
        assert_eq!(taken(&mut bucket, 2_000_000), 2);
        assert_eq!(taken(&mut bucket, 1_000_000), 0, "a clock that goes back gives nothing");
        assert_eq!(bucket.take(2_000_000), Err(0.5));
    }
}
