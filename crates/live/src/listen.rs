//! Connections. One port speaks TLS and plain HTTP: the first byte decides, and plain HTTP is for this machine only.
//! Whoever is not known yet is a *guest*: a guest must speak soon, may not stay idle, and when one address has too
//! many of them the oldest leaves. So a flood of idle connections costs little and locks nobody out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::api::ApiProblem;
use crate::ca::{fingerprint, node_of};
use crate::quota::QuotaPlace;

/// The first byte of a TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// Files kept free for the database, logs and the rest of the process.
const FILES_RESERVED: u64 = 256;
/// Bytes of a stream of HTTP/2 that wait on either side; a connection has four times as many from its peer.
const WINDOW: u32 = 64 << 10;
/// Requests of a connection of HTTP/2 at once. A browser needs a few for each of its tabs.
const STREAMS: u32 = 32;
/// Of these, those of a guest; the dashboard loads four files before it shows its token. More would be many answers
/// that wait in memory for somebody who does not read them.
const GUEST_REQUESTS: usize = 8;
const USE_HTTPS: &str = "plain HTTP is for this machine only; use https\n";

/// What is not exceeded.
#[derive(Clone, Copy, Debug)]
pub struct ListenLimits {
    /// Connections at once.
    pub connections: usize,
    /// Of these, guests of one address.
    pub guests: usize,
    /// How long a guest may take for its first byte and for the TLS handshake.
    pub handshake: Duration,
    /// How long a connection may take to send a request's head, and how long it may stay without a request.
    pub idle: Duration,
    /// How long requests may go on once the server stops.
    pub drain: Duration,
}

impl Default for ListenLimits {
    fn default() -> ListenLimits {
        let second = Duration::from_secs;
        ListenLimits {
            connections: 16_384,
            guests: 1_024,
            handshake: second(10),
            idle: second(30),
            drain: second(5),
        }
    }
}

impl ListenLimits {
    /// The usual limits, as far as this process may open files; asks the system for as many as it gives.
    pub fn for_process() -> ListenLimits {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let usual = ListenLimits::default();
        let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return usual };
        let wanted = hard.min(usual.connections as u64 + FILES_RESERVED).max(soft);
        let files = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_or(soft, |()| wanted);
        let connections = files.saturating_sub(FILES_RESERVED).clamp(16, usual.connections as u64) as usize;
        ListenLimits { connections, guests: usual.guests.min(connections / 2), ..usual }
    }
}

/// Who is at the other end of a request's connection.
#[derive(Clone, Debug)]
pub struct PeerAddress {
    /// From where.
    pub address: SocketAddr,
    /// The node whose certificate it showed.
    pub node: Option<String>,
    /// The fingerprint of that certificate.
    pub certificate: Option<String>,
    guest: Arc<Mutex<Option<Guest>>>,
    /// The place of this connection among those of the user who first used it.
    owner: Arc<Mutex<Option<QuotaPlace>>>,
}

impl PeerAddress {
    /// A peer that nobody counts, where there is no connection.
    pub fn new(address: SocketAddr, node: Option<String>) -> PeerAddress {
        PeerAddress { address, node, certificate: None, guest: Arc::default(), owner: Arc::default() }
    }

    /// Counts the connection for a user, if it is not counted yet.
    pub(crate) fn count_for(
        &self,
        take: impl FnOnce() -> Result<QuotaPlace, ApiProblem>,
    ) -> Result<(), ApiProblem> {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if owner.is_none() {
            *owner = Some(take()?);
        }
        Ok(())
    }

    /// It showed who it is, and is no guest any more.
    pub fn known(&self) {
        self.guest.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Closes the connection of somebody who has not shown who they are.
    fn leave_if_guest(&self) {
        if let Some(guest) = &*self.guest.lock().unwrap_or_else(PoisonError::into_inner) {
            guest.leave.cancel();
        }
    }
}

/// Serves connections until `stop`.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    limits: ListenLimits,
    stop: CancellationToken,
) {
    let guests = Arc::new(Guests::new(limits));
    let hall = Arc::new(Hall { tls: TlsAcceptor::from(tls), router, limits, guests, stop: stop.clone() });
    let places = Arc::new(Semaphore::new(limits.connections));
    let open = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, address)) => {
                let Ok(place) = places.clone().try_acquire_owned() else {
                    tracing::debug!(%address, "too many connections");
                    continue;
                };
                open.spawn(hall.clone().welcome(stream, address, place));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    open.close();
    if timeout(limits.drain, open.wait()).await.is_err() {
        tracing::info!(open = open.len(), "connections were cut off at the end");
    }
}

/// What all connections share.
struct Hall {
    tls: TlsAcceptor,
    router: Router,
    limits: ListenLimits,
    guests: Arc<Guests>,
    stop: CancellationToken,
}

impl Hall {
    async fn welcome(self: Arc<Self>, stream: TcpStream, address: SocketAddr, place: OwnedSemaphorePermit) {
        let guest = self.guests.enter(network(address.ip()));
        let leave = guest.leave.clone();
        leave.run_until_cancelled(self.talk(stream, address, place, guest)).await;
    }

    /// Whoever does not speak, or not as it should, is left without a word.
    async fn talk(&self, stream: TcpStream, address: SocketAddr, place: OwnedSemaphorePermit, guest: Guest) {
        let mut first = [0];
        let spoke = timeout(self.limits.handshake, stream.peek(&mut first)).await;
        if !matches!(spoke, Ok(Ok(1))) || stream.set_nodelay(true).is_err() {
            return;
        }
        let stream = Counted { stream, _place: place };
        let peer =
            PeerAddress { guest: Arc::new(Mutex::new(Some(guest))), ..PeerAddress::new(address, None) };
        if first == [TLS_HANDSHAKE] {
            self.secure(stream, peer).await;
        } else if address.ip().to_canonical().is_loopback() {
            self.http(stream, peer, false).await;
        } else {
            refuse(stream).await;
        }
    }

    /// A certificate makes nobody known: it may have been revoked, which is looked up where agents connect.
    async fn secure(&self, stream: Counted, mut peer: PeerAddress) {
        let Ok(Ok(stream)) = timeout(self.limits.handshake, self.tls.accept(stream)).await else { return };
        let session = stream.get_ref().1;
        let shown = session.peer_certificates().and_then(|shown| shown.first());
        (peer.node, peer.certificate) = (shown.and_then(node_of), shown.map(fingerprint));
        let two = session.alpn_protocol() == Some(b"h2");
        self.http(stream, peer, two).await;
    }

    async fn http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: PeerAddress,
        two: bool,
    ) {
        let busy = Arc::new(Activity::default());
        let (router, activity) = (self.router.clone(), busy.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            let (answer, busy) = (router.clone().oneshot(request.map(Body::new)), Busy::begin(&activity));
            let peer = peer.clone();
            async move {
                let answer = answer.await;
                if busy.requests() > GUEST_REQUESTS {
                    peer.leave_if_guest();
                }
                answer.map(|answer| answer.map(|body| HeldConnection { body, _busy: busy }))
            }
        });
        let builder = self.builder();
        let builder = if two { builder.http2_only() } else { builder.http1_only() };
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = busy.idle(self.limits.idle) => None,
            () = self.stop.cancelled() => None,
        };
        if ended.is_none() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(self.limits.drain, connection).await;
        }
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.limits.idle).max_buf_size(64 << 10);
        let mut two = builder.http2();
        two.timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_header_list_size(64 << 10);
        two.keep_alive_interval(self.limits.idle).keep_alive_timeout(self.limits.idle);
        two.initial_stream_window_size(WINDOW).initial_connection_window_size(4 * WINDOW);
        two.max_send_buf_size(WINDOW as usize);
        builder
    }
}

async fn refuse(mut stream: Counted) {
    let length = USE_HTTPS.len();
    let answer = format!(
        "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{USE_HTTPS}"
    );
    let _ = timeout(Duration::from_secs(1), stream.write_all(answer.as_bytes())).await;
    let _ = stream.shutdown().await;
}

/// Guests by address, each with what makes it leave.
#[derive(Debug)]
struct Guests {
    /// The most of one address.
    each: usize,
    /// The most in all: the other places are for those who are known.
    all: usize,
    numbers: AtomicU64,
    inside: Mutex<ConnectionInside>,
}

/// The oldest has the lowest number.
#[derive(Debug, Default)]
struct ConnectionInside {
    count: usize,
    by_address: BTreeMap<IpAddr, BTreeMap<u64, CancellationToken>>,
}

/// A connection that has not shown who it is.
#[derive(Debug)]
struct Guest {
    guests: Arc<Guests>,
    address: IpAddr,
    number: u64,
    leave: CancellationToken,
}

impl Guests {
    fn new(limits: ListenLimits) -> Guests {
        let all = (limits.connections - limits.connections / 4).max(1);
        Guests { each: limits.guests, all, numbers: AtomicU64::default(), inside: Mutex::default() }
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> Guest {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let leave = CancellationToken::new();
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.count += 1;
        let here = inside.by_address.entry(address).or_default();
        here.insert(number, leave.clone());
        if here.len() > self.each {
            inside.oldest_leaves(address);
        } else if inside.count > self.all
            && let Some(fullest) = inside.fullest()
        {
            inside.oldest_leaves(fullest);
        }
        Guest { guests: self.clone(), address, number, leave }
    }
}

impl ConnectionInside {
    /// The address with most guests. Looked for only when there are too many in all.
    fn fullest(&self) -> Option<IpAddr> {
        self.by_address.iter().max_by_key(|(_, here)| here.len()).map(|(address, _)| *address)
    }

    fn oldest_leaves(&mut self, address: IpAddr) {
        let oldest = self.by_address.get(&address).and_then(|here| here.keys().next().copied());
        let oldest = oldest.and_then(|number| self.remove(address, number));
        oldest.into_iter().for_each(|leave| leave.cancel());
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<CancellationToken> {
        let here = self.by_address.get_mut(&address)?;
        let leave = here.remove(&number)?;
        if here.is_empty() {
            self.by_address.remove(&address);
        }
        self.count -= 1;
        Some(leave)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut inside = self.guests.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.remove(self.address, self.number);
    }
}

/// What is counted as one address: of IPv6, all that one machine is usually given.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(long) => IpAddr::V6((long.to_bits() >> 64 << 64).into()),
        short => short,
    }
}

/// How many requests of a connection are being answered, and how many there have been.
#[derive(Debug, Default)]
struct Activity {
    now: AtomicUsize,
    ever: AtomicU64,
}

impl Activity {
    /// Until there was no request for so long.
    async fn idle(&self, limit: Duration) {
        loop {
            let before = self.ever.load(Ordering::Relaxed);
            tokio::time::sleep(limit).await;
            if self.now.load(Ordering::Relaxed) == 0 && self.ever.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// A request that is being answered.
struct Busy(Arc<Activity>);

impl Busy {
    fn begin(activity: &Arc<Activity>) -> Busy {
        activity.now.fetch_add(1, Ordering::Relaxed);
        activity.ever.fetch_add(1, Ordering::Relaxed);
        Busy(activity.clone())
    }

    /// How many requests of its connection are being answered.
    fn requests(&self) -> usize {
        self.0.now.load(Ordering::Relaxed)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body whose request counts as being answered until its end.
struct HeldConnection {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for HeldConnection {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that gives its place back when it closes, also after it became a WebSocket.
struct Counted {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_of_many_addresses_do_not_put_out_one_of_another() {
        let limits = ListenLimits { connections: 8, guests: 4, ..ListenLimits::default() };
        let guests = Arc::new(Guests::new(limits));
        let from = |last| guests.enter(IpAddr::from([127, 0, 0, last]));
        let admin = from(9);
        let many: Vec<_> = (0..40).map(|number| from(number % 2)).collect();
        assert_eq!(many.iter().filter(|guest| !guest.leave.is_cancelled()).count(), 5, "six in all");
        assert!(!admin.leave.is_cancelled());
        assert!(many[0].leave.is_cancelled() && !many[39].leave.is_cancelled(), "the oldest leave");
        drop((admin, many));
        let inside = guests.inside.lock().unwrap();
        assert!(inside.count == 0 && inside.by_address.is_empty(), "{inside:?}");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::7"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
