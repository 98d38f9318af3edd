//! What one user may have at once: more is refused with what and how much, and everybody else goes on.

use axum::body::BodyDataStream;
use futures_util::StreamExt;

use super::*;
use crate::quota::{Quota, QuotaLimits};

async fn stream(world: &World, token: &str, path: &str) -> (StatusCode, BodyDataStream) {
    let request = Request::builder().uri(path).header("authorization", format!("Bearer {token}"));
    let (status, _, body) = world.begin(request.body(Body::empty()).unwrap()).await;
    (status, body.into_data_stream())
}

async fn text(stream: BodyDataStream) -> String {
    let pieces: Vec<_> = stream.map(|piece| piece.unwrap().to_vec()).collect().await;
    String::from_utf8(pieces.concat()).unwrap()
}

#[tokio::test]
async fn a_user_has_only_so_many_streams() {
    let world = World::new();
    let mut open = Vec::new();
    for number in 0..64 {
        let path = if number % 2 == 0 { "/v1/watch" } else { "/v1/events" };
        // Two tokens of one user are one user.
        let token = if number % 3 == 0 { &world.looker } else { &world.ada };
        let (status, body) = stream(&world, token, path).await;
        assert_eq!(status, StatusCode::OK);
        open.push(body);
    }
    for path in ["/v1/watch", "/v1/events", "/v1/jobs/2/logs"] {
        let (status, body) = stream(&world, &world.ada, path).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        let error = text(body).await;
        assert!(
            error.contains("64 of at most 64 streams") && error.contains("--user-streams-max"),
            "{error}"
        );
    }
    assert_eq!(stream(&world, &world.bob, "/v1/watch").await.0, StatusCode::OK, "others are not held up");
    assert_eq!(world.get("/v1/jobs", &world.ada).await.status, StatusCode::OK, "nor their other requests");
    open.pop();
    assert_eq!(stream(&world, &world.ada, "/v1/watch").await.0, StatusCode::OK, "one that is closed is free");
}

#[tokio::test]
async fn all_users_together_have_only_so_many_streams_and_logs() {
    let world = World::new();
    let limits = QuotaLimits { streams: 3, user_logs: 1, ..QuotaLimits::default() };
    let router = router(Arc::new(ApiSite { quota: Quota::new(limits), ..flood::quick(&world) }));
    let world = World { router, ..world };
    let log = format!("/v1/jobs/2/logs?rank={FULL_LOG}");
    let first = stream(&world, &world.ada, &log).await;
    assert_eq!(first.0, StatusCode::OK);
    let (status, body) = stream(&world, &world.ada, &log).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(text(body).await.contains("is reading 1 of at most 1 logs"));
    let _more =
        [stream(&world, &world.ada, "/v1/watch").await, stream(&world, &world.bob, "/v1/watch").await];
    let (status, body) = stream(&world, &world.admin, "/v1/events").await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(text(body).await.contains("3 of at most 3 streams"));
    drop(first);
    assert_eq!(stream(&world, &world.admin, "/v1/events").await.0, StatusCode::OK);
}

/// Before, the server took whatever the agent sent and kept it for the reader.
#[tokio::test]
async fn a_log_is_taken_from_its_agent_no_faster_than_it_is_read() {
    let world = World::new();
    let (status, mut body) = stream(&world, &world.ada, &format!("/v1/jobs/2/logs?rank={FULL_LOG}")).await;
    assert_eq!(status, StatusCode::OK);
    let more =
        || world.heard.lock().unwrap().iter().filter(|said| said.starts_with("more")).cloned().collect();
    // The answer has begun, and whatever can be taken without a reader has been.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let asked: Vec<String> = more();
    assert_eq!(asked, [""; 0], "nobody reads, so nothing more is asked for");
    for _ in 0..LOG_CREDIT {
        assert_eq!(body.next().await.unwrap().unwrap().len(), LOG_PIECE);
    }
    let asks = async {
        while Vec::<String>::len(&more()) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asks).await.expect("more is asked for");
    let asked: Vec<String> = more();
    assert_eq!(asked, ["more 8", "more 8"], "as much as was read");
}

#[tokio::test]
async fn a_user_who_has_too_much_is_told_so_and_not_that_the_server_is_down() {
    let world = World::new();
    let refused = world.call("POST", "/v1/jobs", Some(&world.ada), r#"{"command":["too-many"]}"#).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.json()["error"], "ada has 2 jobs, and may have 2");
    let long = format!(r#"{{"command":["{}"]}}"#, "x".repeat(64 << 10));
    let refused = world.call("POST", "/v1/jobs", Some(&world.ada), &long).await;
    assert_eq!((refused.status, refused.field().as_deref()), (StatusCode::BAD_REQUEST, Some("command")));
    assert!(refused.body.contains("more than 65536"), "{}", refused.body);
}

fn submission(token: &str, length: usize, body: Body) -> Request {
    let request = Request::builder().method("POST").uri("/v1/jobs").header("content-length", length);
    request.header("authorization", format!("Bearer {token}")).body(body).unwrap()
}

/// Eight bodies of one user that do not come take all the room of that user, and of nobody else.
#[tokio::test]
async fn bodies_that_are_read_have_only_so_much_room() {
    let world = Arc::new(World::new());
    let never = || Body::from_stream(futures_util::stream::pending::<Result<&[u8], std::io::Error>>());
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let (world, request) = (world.clone(), submission(&world.ada, super::super::BODY_MAX, never()));
            tokio::spawn(async move { world.begin(request).await.0 })
        })
        .collect();
    let refused = async {
        loop {
            let told = world.call("POST", "/v1/jobs", Some(&world.ada), &train("one")).await;
            if told.status == StatusCode::TOO_MANY_REQUESTS {
                break told;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let refused =
        tokio::time::timeout(Duration::from_secs(20), refused).await.expect("there is no more room");
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(refused.body.contains("8388608 bytes of requests of ada"), "{}", refused.body);
    let other = world.call("POST", "/v1/jobs", Some(&world.bob), &train("one")).await;
    assert_eq!(other.status, StatusCode::CREATED);
    slow.iter().for_each(tokio::task::JoinHandle::abort);
    for task in slow {
        let _aborted = task.await;
    }
    let again = world.call("POST", "/v1/jobs", Some(&world.ada), &train("one")).await;
    assert_eq!(again.status, StatusCode::CREATED, "who goes away gives the room back");
}

/// A driver that does not take what it is asked: the room stays taken, though whoever asked has been sent away.
#[tokio::test]
async fn requests_that_wait_for_the_driver_keep_their_room() {
    let world = World::new();
    let (asks, _inbox) = mpsc::channel(1_000);
    let handle = Handle { asks, ..world.site.handle.clone() };
    let patience = Duration::from_millis(50);
    let router = router(Arc::new(ApiSite { handle, patience, ..flood::quick(&world) }));
    let world = World { router, ..world };
    let padded = train("one") + &" ".repeat((1 << 20) - train("one").len());
    let submit = async || {
        let request = submission(&world.ada, padded.len(), Body::from(padded.clone()));
        world.send(request).await
    };
    for _ in 0..8 {
        assert_eq!(submit().await.status, StatusCode::SERVICE_UNAVAILABLE, "it takes too long");
    }
    let refused = submit().await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.body);
}

#[tokio::test]
async fn a_machine_without_a_token_has_little_room() {
    let world = World::new();
    let large = format!(r#"{{"name":"n","csr":"{}"}}"#, "x".repeat(65 << 10));
    let refused = world.call("POST", "/v1/join", None, &large).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(refused.body.contains("larger than 65536"), "{}", refused.body);
}

#[tokio::test]
async fn a_body_without_a_token_has_little_time() {
    let world = World::new();
    let limits = QuotaLimits { guest_body: Duration::from_millis(50), ..QuotaLimits::default() };
    let patience = Duration::from_secs(3_600);
    let router = router(Arc::new(ApiSite { quota: Quota::new(limits), patience, ..flood::quick(&world) }));
    let world = World { router, ..world };
    let never = Body::from_stream(futures_util::stream::pending::<Result<&[u8], std::io::Error>>());
    let request = Request::builder().method("POST").uri("/v1/join").body(never).unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), world.send(request)).await.expect("it ends");
    assert_eq!(told.status, StatusCode::REQUEST_TIMEOUT, "{}", told.body);
}

/// Each is written down and waits for the disk.
#[tokio::test]
async fn a_token_changes_secrets_only_so_often() {
    let world = World::new();
    let body = r#"{"value":"x"}"#;
    let set = || {
        let request = Request::put("/v1/secrets/key").header("content-length", body.len());
        let request = request.header("authorization", format!("Bearer {}", world.ada));
        world.send(request.body(Body::from(body)).unwrap())
    };
    let answers = futures_util::future::join_all((0..300).map(|_| set())).await;
    let told = answers.iter().find(|told| told.status == StatusCode::TOO_MANY_REQUESTS).expect("too often");
    assert!(told.headers.contains_key("retry-after") && told.body.contains("one token"), "{}", told.body);
    let other = world.call("PUT", "/v1/secrets/key", Some(&world.bob), body).await;
    assert_eq!(other.status, StatusCode::NO_CONTENT, "others are not held up");
}

/// Over real sockets: connections that are kept open count for the user whose token they showed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_only_so_many_connections() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    let world = World::new();
    let limits = QuotaLimits { user_connections: 3, ..QuotaLimits::default() };
    let router = router(Arc::new(ApiSite { quota: Quota::new(limits), ..flood::quick(&world) }));
    let identity = world.site.authority.server(&[], now_us()).unwrap();
    let tls = crate::tls::server(&world.site.authority, identity).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(crate::listen::serve(listener, tls, router, Default::default(), world.site.stop.clone()));
    let ask = async |stream: &mut TcpStream, token: &str| {
        let head = format!("GET /v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4_096];
        let count = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[9..count]).into_owned()
    };
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        for _ in 0..2 {
            assert!(ask(&mut stream, &world.ada).await.starts_with("200"), "it counts once");
        }
        open.push(stream);
    }
    let mut fourth = TcpStream::connect(address).await.unwrap();
    let refused = ask(&mut fourth, &world.looker).await;
    assert!(
        refused.starts_with("429") && refused.contains("ada has 3 of at most 3 connections"),
        "{refused}"
    );
    assert!(ask(&mut fourth, &world.bob).await.starts_with("200"), "others connect");
    drop(open);
    let mut again = TcpStream::connect(address).await.unwrap();
    let free = async {
        while !ask(&mut again, &world.ada).await.starts_with("200") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), free).await.expect("places fall free");
}

/// Before, each answer stayed in memory until its reader took it, and a user could have a thousand of them.
#[tokio::test]
async fn answers_that_nobody_reads_have_only_so_much_room() {
    let world = World::new();
    for id in 10..400 {
        world.site.handle.board.write().unwrap().put_job(job(id, "ada", "pending"));
    }
    let limits = QuotaLimits { user_answers: 300_000, ..QuotaLimits::default() };
    let router = router(Arc::new(ApiSite { quota: Quota::new(limits), ..flood::quick(&world) }));
    let world = World { router, ..world };
    let (status, mut unread) = stream(&world, &world.ada, "/v1/jobs").await;
    assert_eq!(status, StatusCode::OK);
    let (status, refused) = stream(&world, &world.looker, "/v1/jobs").await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "another token of the same user");
    let error = text(refused).await;
    assert!(error.contains("answers to ada with") && error.contains("of at most 300000 bytes"), "{error}");
    assert_eq!(
        world.get("/v1/jobs?limit=5", &world.ada).await.status,
        StatusCode::OK,
        "what is small is answered"
    );
    assert_eq!(stream(&world, &world.admin, "/v1/jobs").await.0, StatusCode::OK, "others are");
    let bytes = unread.next().await.unwrap().unwrap();
    drop(unread);
    let still = stream(&world, &world.ada, "/v1/jobs").await.0;
    assert_eq!(still, StatusCode::TOO_MANY_REQUESTS, "bytes that wait to be sent count");
    drop(bytes);
    assert_eq!(stream(&world, &world.ada, "/v1/jobs").await.0, StatusCode::OK);
}
