//! How much one user, one token and everybody together may have under way at once: open streams, bytes of requests
//! that are read or wait, requests a second. Whoever asks for more is told what the limit is, how much of it is used
//! and who can change it, and everybody else goes on.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::{Stream, StreamExt};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::ApiProblem;
use crate::auth::{Bucket, Caller};
use crate::clock::now_us;

/// Requests a second that a token of scope admin may make, and as many at once.
const ADMIN_REQUESTS: f64 = 5_000.0;
/// How many seconds' worth of requests may come at once.
const BURST_S: f64 = 5.0;
/// The largest body of somebody who has not shown a token: a request to join is small.
pub(crate) const GUEST_BODY_MAX: usize = 64 << 10;
/// Bytes of such bodies from one address that are read at once, and from all.
const GUEST_WAITING: usize = 256 << 10;
const GUESTS_WAITING: usize = 8 << 20;
/// What each of them counts for at least, because a request that waits takes room too: so one address has 64.
const GUEST_LEAST: usize = 4 << 10;
/// Connections of one node's agent. It needs one, and a few more while it finds that an old one is broken.
const NODE_CONNECTIONS: usize = 8;
/// Machines that join with one token, at once and a second.
const JOINS: (f64, f64) = (100.0, 10.0);
/// Renewals of a node's certificate at once, and a second: two, because the answer to the first may be lost.
const RENEWALS: (f64, f64) = (2.0, 1.0 / 60.0);
/// Changes of what a user keeps here that are written down, with one token, at once and a second.
const NOTES: (f64, f64) = (200.0, 10.0);
/// Tokens or nodes whose pace is remembered.
const PACED_MAX: usize = 10_000;

/// What is not exceeded.
#[derive(Clone, Debug)]
pub struct QuotaLimits {
    /// Connections of one user.
    pub user_connections: usize,
    /// Streams of one user: watch, events and logs.
    pub user_streams: usize,
    /// Streams in all.
    pub streams: usize,
    /// Logs that one user reads.
    pub user_logs: usize,
    /// Logs that are read in all.
    pub logs: usize,
    /// Requests a second for each token that is not an admin's.
    pub token_requests: f64,
    /// Bytes of one user's requests that are read or wait.
    pub user_waiting: usize,
    /// The same of everybody.
    pub waiting: usize,
    /// Bytes of large answers to one user that have not left.
    pub user_answers: usize,
    /// The same of everybody.
    pub answers: usize,
    /// Questions to the history that are answered at once.
    pub reads: usize,
    /// How long the body of somebody who has not shown a token may take.
    pub guest_body: Duration,
}

impl Default for QuotaLimits {
    fn default() -> QuotaLimits {
        QuotaLimits {
            user_connections: 512,
            user_streams: 64,
            streams: 4_096,
            user_logs: 16,
            logs: 512,
            token_requests: 200.0,
            user_waiting: 8 << 20,
            waiting: 64 << 20,
            user_answers: 24 << 20,
            answers: 512 << 20,
            reads: 32,
            guest_body: Duration::from_secs(5),
        }
    }
}

/// Counts what is under way, and refuses what is too much.
#[derive(Debug)]
pub struct Quota {
    token_requests: f64,
    connections: Arc<Tally>,
    streams: Arc<Tally>,
    logs: Arc<Tally>,
    waiting: Arc<Tally>,
    /// By address.
    guests: Arc<Tally>,
    answers: Arc<Tally>,
    reads: Semaphore,
    /// Connections of nodes.
    nodes: Arc<Tally>,
    joins: RequestPace,
    renewals: RequestPace,
    notes: RequestPace,
    /// How long the body of somebody who has not shown a token may take.
    pub(crate) guest_body: Duration,
    /// By the public number of a token; admins make those, so there are not many.
    requests: Mutex<BTreeMap<String, Bucket>>,
}

impl Default for Quota {
    fn default() -> Quota {
        Quota::new(QuotaLimits::default())
    }
}

impl Quota {
    /// Nothing is under way.
    pub fn new(limits: QuotaLimits) -> Quota {
        Quota {
            token_requests: limits.token_requests,
            // All together are counted where they are accepted.
            connections: Tally::new(limits.user_connections, usize::MAX),
            streams: Tally::new(limits.user_streams, limits.streams),
            logs: Tally::new(limits.user_logs, limits.logs),
            waiting: Tally::new(limits.user_waiting, limits.waiting),
            guests: Tally::new(GUEST_WAITING, GUESTS_WAITING),
            answers: Tally::new(limits.user_answers, limits.answers),
            reads: Semaphore::new(limits.reads),
            nodes: Tally::new(NODE_CONNECTIONS, usize::MAX),
            joins: RequestPace::new(JOINS),
            renewals: RequestPace::new(RENEWALS),
            notes: RequestPace::new(NOTES),
            guest_body: limits.guest_body,
            requests: Mutex::default(),
        }
    }

    /// One request more with this token.
    pub(crate) fn request(&self, caller: &Caller) -> Result<(), ApiProblem> {
        let (rate, most) = match caller.who.admin {
            true => (ADMIN_REQUESTS, ADMIN_REQUESTS),
            false => (self.token_requests, self.token_requests * BURST_S),
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if !requests.contains_key(caller.token_id()) {
            requests.insert(caller.token_id().to_owned(), Bucket::new(most.max(1.0), rate));
        }
        let bucket = requests.get_mut(caller.token_id()).expect("it was put there");
        let flag = if caller.who.admin { "" } else { "; an admin can raise it with --token-requests" };
        bucket.take(now_us()).map_err(|wait| {
            let error =
                format!("too many requests with this token, which may make {rate} per second; slow down");
            ApiProblem::later(wait, error + flag)
        })
    }

    /// One connection more of a user.
    pub(crate) fn connection(&self, user: &str) -> Result<QuotaPlace, ApiProblem> {
        self.connections.take(user, 1).map_err(|full| {
            let (Full::User { used, most } | Full::All { used, most }) = full;
            ApiProblem::later(
                1.0,
                format!("{user} has {used} of at most {most} connections open; close some first"),
            )
        })
    }

    /// One connection more of a node's agent.
    pub(crate) fn node(&self, node: &str) -> Result<QuotaPlace, ApiProblem> {
        self.nodes.take(node, 1).map_err(|_| {
            let error = format!(
                "node {node} has {NODE_CONNECTIONS} connections open, the maximum; is its agent running twice?"
            );
            ApiProblem::later(1.0, error)
        })
    }

    /// One machine more that joins with this token.
    pub(crate) fn join(&self, token: &str) -> Result<(), ApiProblem> {
        self.joins.take(token).map_err(|wait| {
            ApiProblem::later(
                wait,
                format!("at most {} machines per second may join with one token; try again shortly", JOINS.1),
            )
        })
    }

    /// One renewal more of a node's certificate.
    pub(crate) fn renewal(&self, node: &str) -> Result<(), ApiProblem> {
        self.renewals.take(node).map_err(|wait| {
            let error =
                format!("node {node} renewed its certificate less than a minute ago; try again later");
            ApiProblem::later(wait, error)
        })
    }

    /// One change more that is written down.
    pub(crate) fn note(&self, caller: &Caller) -> Result<(), ApiProblem> {
        self.notes.take(caller.token_id()).map_err(|wait| {
            ApiProblem::later(
                wait,
                format!("at most {} such changes per second with one token; slow down", NOTES.1),
            )
        })
    }

    /// One stream more of a user.
    pub(crate) fn stream(&self, user: &str) -> Result<QuotaPlace, ApiProblem> {
        self.streams.take(user, 1).map_err(|full| match full {
            Full::User { used, most } => ApiProblem::later(
                1.0,
                format!(
                    "{user} has {used} of at most {most} streams open (watch, events, logs); close one, or ask an admin \
                     to raise --user-streams-max"
                ),
            ),
            Full::All { used, most } => {
                ApiProblem::later(1.0, format!("{used} of at most {most} streams are open on this server; try again later"))
            }
        })
    }

    /// One log more that a user reads.
    pub(crate) fn log(&self, user: &str) -> Result<(QuotaPlace, QuotaPlace), ApiProblem> {
        let stream = self.stream(user)?;
        let log = self.logs.take(user, 1).map_err(|full| match full {
            Full::User { used, most } => ApiProblem::later(
                1.0,
                format!("{user} is reading {used} of at most {most} logs at once; close one first"),
            ),
            Full::All { used, most } => ApiProblem::later(
                1.0,
                format!("{used} of at most {most} logs are being read on this server; try again later"),
            ),
        })?;
        Ok((stream, log))
    }

    /// Room for a user's body of so many bytes, until what it asks for is taken up.
    pub(crate) fn room(&self, user: &str, bytes: usize) -> Result<QuotaPlace, ApiProblem> {
        self.waiting.take(user, bytes).map_err(|full| no_room(user, full))
    }

    /// The same for somebody who has not shown a token.
    pub(crate) fn guest_room(&self, address: IpAddr, bytes: usize) -> Result<QuotaPlace, ApiProblem> {
        let address = address.to_string();
        self.guests.take(&address, bytes.max(GUEST_LEAST)).map_err(|full| no_room(&address, full))
    }

    /// Room for an answer of so many bytes, until it has left.
    pub(crate) fn answer(&self, user: &str, bytes: usize) -> Result<QuotaPlace, ApiProblem> {
        self.answers.take(user, bytes).map_err(|full| {
            let (whose, used, most) = match full {
                Full::User { used, most } => (user, used, most),
                Full::All { used, most } => ("all users", used, most),
            };
            let error = format!(
                "this answer has {bytes} bytes, and answers to {whose} with {used} of at most {most} bytes are \
                 still being sent; read those first, or request less, for example with limit"
            );
            ApiProblem::later(1.0, error)
        })
    }

    /// Waits for the turn to ask the history.
    pub(crate) async fn read(&self) -> Option<SemaphorePermit<'_>> {
        self.reads.acquire().await.ok()
    }
}

fn no_room(whose: &str, full: Full) -> ApiProblem {
    let (status, error) = match full {
        Full::User { used, most } => (
            StatusCode::TOO_MANY_REQUESTS,
            format!("{used} bytes of requests of {whose} are queued, of at most {most}; send fewer at once"),
        ),
        Full::All { used, most } => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{used} bytes of requests are queued, of at most {most}; try again in a moment"),
        ),
    };
    ApiProblem { retry_s: Some(1.0), ..ApiProblem::new(status, error) }
}

/// How often each of some may do something.
#[derive(Debug)]
struct RequestPace {
    burst: f64,
    per_second: f64,
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl RequestPace {
    fn new((burst, per_second): (f64, f64)) -> RequestPace {
        RequestPace { burst, per_second, buckets: Mutex::default() }
    }

    /// Once more, or the seconds until then.
    fn take(&self, whose: &str) -> Result<(), f64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= PACED_MAX && !buckets.contains_key(whose) {
            buckets.pop_first();
        }
        let new = || Bucket::new(self.burst, self.per_second);
        buckets.entry(whose.to_owned()).or_insert_with(new).take(now_us())
    }
}

/// How much users have of something there is only so much of.
#[derive(Debug)]
struct Tally {
    /// The most for one user.
    each: usize,
    /// The most in all.
    most: usize,
    taken: Mutex<QuotaTaken>,
}

#[derive(Debug, Default)]
struct QuotaTaken {
    all: usize,
    by_user: BTreeMap<String, usize>,
}

/// Why there is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    User { used: usize, most: usize },
    All { used: usize, most: usize },
}

impl Tally {
    fn new(each: usize, most: usize) -> Arc<Tally> {
        Arc::new(Tally { each, most, taken: Mutex::default() })
    }

    fn take(self: &Arc<Self>, user: &str, count: usize) -> Result<QuotaPlace, Full> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let used = taken.by_user.get(user).copied().unwrap_or(0);
        if used.saturating_add(count) > self.each {
            return Err(Full::User { used, most: self.each });
        }
        if taken.all.saturating_add(count) > self.most {
            return Err(Full::All { used: taken.all, most: self.most });
        }
        taken.all += count;
        taken.by_user.insert(user.to_owned(), used + count);
        Ok(QuotaPlace { tally: self.clone(), user: user.to_owned(), count })
    }
}

/// What somebody took, until it is dropped.
#[derive(Debug)]
pub struct QuotaPlace {
    tally: Arc<Tally>,
    user: String,
    count: usize,
}

impl QuotaPlace {
    /// A stream that keeps the place until it ends or nobody reads it any more.
    pub(crate) fn hold<S: Stream>(self, stream: S) -> impl Stream<Item = S::Item> {
        stream.map(move |item| {
            let _kept = &self;
            item
        })
    }
}

impl Drop for QuotaPlace {
    fn drop(&mut self) {
        let mut taken = self.tally.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= self.count;
        let left = taken.by_user.get_mut(&self.user).map(|used| {
            *used -= self.count;
            *used
        });
        if left == Some(0) {
            taken.by_user.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_only_so_much_and_gives_it_back() {
        let tally = Tally::new(2, 3);
        let ann = [tally.take("ann", 1).unwrap(), tally.take("ann", 1).unwrap()];
        assert_eq!(tally.take("ann", 1).unwrap_err(), Full::User { used: 2, most: 2 });
        let bob = tally.take("bob", 1).unwrap();
        assert_eq!(tally.take("bob", 1).unwrap_err(), Full::All { used: 3, most: 3 });
        drop(ann);
        assert!(tally.take("bob", 1).is_ok(), "places fall free");
        drop(bob);
        let taken = tally.taken.lock().unwrap();
        assert!(
            taken.by_user.is_empty() && taken.all == 0,
            "nothing is remembered of who has gone: {taken:?}"
        );
    }

    #[test]
    fn sizes_that_overflow_do_not_fit() {
        assert!(matches!(Tally::new(8, 8).take("ann", usize::MAX), Err(Full::User { used: 0, most: 8 })));
    }

    #[tokio::test]
    async fn a_stream_keeps_its_place_until_it_is_dropped() {
        let tally = Tally::new(1, 1);
        let held = tally.take("ann", 1).unwrap().hold(futures_util::stream::pending::<()>());
        assert!(tally.take("ann", 1).is_err());
        drop(held);
        assert!(tally.take("ann", 1).is_ok());
    }
}
