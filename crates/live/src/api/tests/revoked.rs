//! Revoked means revoked: answers that go on, over real sockets, end with their token.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::listen::{ListenLimits, serve};
use crate::replay::testing::Endless;

/// Long enough for any machine. That it is about a second is what `auth` promises: it waits for a notice, and looks at
/// the clock twice a second.
const EVENTUALLY: Duration = Duration::from_secs(20);

async fn open(world: &World) -> SocketAddr {
    let identity = world.site.authority.server(&[], now_us()).unwrap();
    let tls = crate::tls::server(&world.site.authority, identity).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(
        listener,
        tls,
        world.router.clone(),
        ListenLimits::default(),
        world.site.stop.clone(),
    ));
    address
}

/// A stream that has begun.
async fn begun(address: SocketAddr, path: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    timeout(EVENTUALLY, stream.read_exact(&mut first)).await.expect("it is answered").unwrap();
    assert_eq!(String::from_utf8_lossy(&first), "HTTP/1.1 200", "{path}");
    stream
}

/// Reads until the other end closes; how much came.
async fn rest(mut stream: TcpStream) -> Option<usize> {
    let mut bytes = Vec::new();
    timeout(EVENTUALLY, stream.read_to_end(&mut bytes)).await.ok().map(|_| bytes.len())
}

const STREAMS: [&str; 3] = ["/v1/events", "/v1/watch", "/v1/jobs/2/logs?rank=7&follow=true"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_their_token_is_revoked() {
    let world = World::new();
    let address = open(&world).await;
    let token = world.site.tokens.create("ada", Scope::Read, None, "root", "").unwrap();
    let mut open = Vec::new();
    let mut stay = Vec::new();
    for path in STREAMS {
        open.push((path, begun(address, path, &token.secret).await));
        stay.push(begun(address, path, &world.ada).await);
    }
    world.site.tokens.revoke(&token.token.id, None, "root").unwrap();
    for (path, stream) in open {
        assert!(rest(stream).await.is_some(), "{path} goes on");
    }
    for mut other in stay {
        let mut bytes = vec![0; 4 << 20];
        let goes_on = async {
            // What there is to read ends at some time; the connection does not.
            while other.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
        };
        assert!(
            timeout(Duration::from_millis(300), goes_on).await.is_err(),
            "another token's stream goes on"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_their_token_expires() {
    let world = World::new();
    let address = open(&world).await;
    let soon = now_us() + 2_000_000;
    let token = world.site.tokens.create("ada", Scope::Read, Some(soon), "root", "").unwrap().secret;
    let mut open = Vec::new();
    for path in STREAMS {
        open.push((path, begun(address, path, &token).await));
    }
    for (path, stream) in open {
        assert!(rest(stream).await.is_some(), "{path} goes on");
    }
    assert!(now_us() >= soon, "not before");
}

/// The answer to a log is broken off, not ended, so that nobody takes it for the whole.
#[tokio::test]
async fn a_log_that_is_cut_short_does_not_look_whole() {
    use futures_util::StreamExt;
    let world = World::new();
    let token = world.site.tokens.create("ada", Scope::Read, None, "root", "").unwrap();
    let path = format!("/v1/jobs/2/logs?rank={FULL_LOG}&follow=true");
    let request = Request::builder().uri(path).header("authorization", format!("Bearer {}", token.secret));
    let (status, _, body) = world.begin(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    world.site.tokens.revoke(&token.token.id, None, "root").unwrap();
    let mut pieces: Vec<_> = timeout(EVENTUALLY, body.into_data_stream().collect()).await.expect("it ends");
    assert!(pieces.pop().unwrap().is_err());
    assert!(pieces.len() <= LOG_CREDIT as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_being_answered_ends_with_its_token() {
    let world = replay::world();
    let token = world.site.tokens.create("ada", Scope::Read, None, "root", "").unwrap();
    let site = Arc::new(ApiSite {
        patience: Duration::from_secs(600),
        replayer: Arc::new(Endless),
        ..flood::quick(&world)
    });
    let world = Arc::new(World { router: router(site.clone()), ..world });
    let (asked, secret) = (world.clone(), token.secret.clone());
    let answer = tokio::spawn(async move {
        let body = r#"{"history_s":3600,"alternatives":[{"policy":"srtf"}]}"#;
        asked.call("POST", "/v1/what-if/history", Some(&secret), body).await
    });
    let working = async {
        while site.asking.of("ada") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(EVENTUALLY, working).await.expect("it is being answered");
    world.site.tokens.revoke(&token.token.id, None, "root").unwrap();
    let told = timeout(EVENTUALLY, answer).await.expect("it ends").unwrap();
    assert_eq!(told.status, StatusCode::UNAUTHORIZED, "{}", told.body);
    let free = async {
        while site.asking.of("ada") > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(EVENTUALLY, free).await.expect("and the work stops");
}
