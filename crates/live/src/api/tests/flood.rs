use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::listen::{ListenLimits, serve};

/// Long enough for any machine; nothing is asserted about how long it takes.
const EVENTUALLY: Duration = Duration::from_secs(60);

async fn open(limits: ListenLimits) -> (World, SocketAddr, tokio::task::JoinHandle<()>) {
    let world = World::new();
    let identity = world.site.authority.server(&[], now_us()).unwrap();
    let tls = crate::tls::server(&world.site.authority, identity).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(serve(listener, tls, world.router.clone(), limits, world.site.stop.clone()));
    (world, address, served)
}

async fn healthy(address: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer.starts_with("HTTP/1.1 200")
}

/// Whether the other end closed it, in whatever way.
async fn closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(EVENTUALLY, stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_idle_connections_lock_nobody_out_and_are_closed() {
    let limits = ListenLimits { handshake: Duration::from_secs(3), ..ListenLimits::for_process() };
    let count = 2_000.min(limits.connections / 3);
    let (_world, address, _) = open(ListenLimits { guests: count / 2, ..limits }).await;
    let mut idle = Vec::new();
    for _ in 0..count {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(healthy(address).await, "one more is served at once");
    for stream in idle {
        assert!(closed(stream).await);
    }
    assert!(healthy(address).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_have_an_end_and_give_their_places_back() {
    let short = Duration::from_millis(300);
    let limits =
        ListenLimits { connections: 8, guests: 8, handshake: short, idle: short, ..ListenLimits::default() };
    let (_world, address, _) = open(limits).await;
    for _ in 0..3 {
        let mut full = Vec::new();
        for _ in 0..20 {
            full.push(TcpStream::connect(address).await.unwrap());
        }
        for stream in full {
            assert!(closed(stream).await);
        }
    }
    let again = async {
        while !healthy(address).await {
            tokio::time::sleep(short).await;
        }
    };
    timeout(EVENTUALLY, again).await.expect("places fall free");
}

/// A head, a body and a handshake that come a byte at a time, and a connection that stays after its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_dawdles_is_cut_off() {
    let short = Duration::from_millis(500);
    let (world, address, _) =
        open(ListenLimits { handshake: short, idle: short, ..ListenLimits::default() }).await;
    let dawdle = async |start: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.into_split();
        let slowly = async {
            while to.write_all(b"a").await.is_ok() {
                tokio::time::sleep(short / 10).await;
            }
        };
        let mut answer = Vec::new();
        timeout(EVENTUALLY, async {
            tokio::select! { _ = from.read_to_end(&mut answer) => {}, () = slowly => {} }
        })
        .await
        .expect("it is cut off");
        String::from_utf8_lossy(&answer).into_owned()
    };
    dawdle("GET /healthz HTTP/1.1\r\nx: ").await;
    dawdle("\u{16}").await;
    dawdle("PRI * HT").await;
    let mut stays = TcpStream::connect(address).await.unwrap();
    stays.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(closed(stays).await, "who says nothing more leaves");
    drop(world);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::new();
    let site = ApiSite { patience: Duration::from_millis(100), ..quick(&world) };
    let router = router(Arc::new(site));
    let never = Body::from_stream(futures_util::stream::pending::<Result<&[u8], std::io::Error>>());
    let mut request = Request::builder().method("POST").uri("/v1/jobs");
    request = request.header("authorization", format!("Bearer {}", world.ada));
    let mut request = request.body(never).unwrap();
    request.extensions_mut().insert(PeerAddress::new(SocketAddr::from(([127, 0, 0, 1], 9)), None));
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}

pub(super) fn quick(world: &World) -> ApiSite {
    let site = &world.site;
    ApiSite {
        handle: site.handle.clone(),
        history: site.history.clone(),
        tokens: site.tokens.clone(),
        secrets: site.secrets.clone(),
        authority: site.authority.clone(),
        metrics: site.metrics.clone(),
        stall: site.stall,
        patience: site.patience,
        asking: Default::default(),
        quota: Default::default(),
        replayer: site.replayer.clone(),
        stop: site.stop.clone(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_is_refused_over_the_wire_too() {
    let (world, address, _) = open(ListenLimits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = 100 << 20;
    let token = &world.ada;
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 413", "refused before it is sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_stops_when_told_also_with_streams_open() {
    let (world, address, served) = open(ListenLimits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", world.ada);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    world.site.stop.cancel();
    timeout(EVENTUALLY, served).await.expect("it stops").unwrap();
    assert!(closed(stream).await);
}
