use axum::body::Bytes;
use futures_util::{SinkExt, StreamExt};
use h2::client::SendRequest;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::auth::join_fingerprint;
use crate::ca::{self, SERVER_NAME};
use crate::enroll::{EnrollError, enroll};
use crate::listen::{ListenLimits, serve};
use crate::views::{JoinReply, JoinRequest};
use crate::wire::{Hello, WIRE_VERSION};

/// A world with a port.
pub(super) struct Port {
    pub(super) world: World,
    pub(super) address: String,
}

impl Port {
    pub(super) async fn open() -> Port {
        Port::with(ListenLimits::default()).await
    }

    pub(super) async fn with(limits: ListenLimits) -> Port {
        let world = World::new();
        let identity = world.site.authority.server(&["cluster.example".into()], now_us()).unwrap();
        let tls = crate::tls::server(&world.site.authority, identity).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(serve(listener, tls, world.router.clone(), limits, world.site.stop.clone()));
        Port { world, address }
    }

    /// A key, and a certificate for it by the join token.
    async fn node(&self, name: &str) -> (String, JoinReply) {
        let (key, csr) = ca::request(name).unwrap();
        let request = JoinRequest { name: name.into(), token: Some(self.world.join.clone()), csr };
        (key, enroll(&self.address, self.stranger(), &request).await.unwrap())
    }

    /// What a machine knows that has a join token only.
    pub(super) fn stranger(&self) -> Arc<ClientConfig> {
        crate::tls::client(join_fingerprint(&self.world.join).unwrap(), None).unwrap()
    }

    async fn http_2(&self, builder: &h2::client::Builder) -> (SendRequest<Bytes>, JoinHandle<()>) {
        let mut config = (*self.stranger()).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = self.tls(Arc::new(config)).await.unwrap();
        let (client, connection) = builder.handshake(stream).await.unwrap();
        (client, tokio::spawn(async { _ = connection.await }))
    }

    pub(super) async fn tls(&self, config: Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(SERVER_NAME).unwrap();
        TlsConnector::from(config).connect(name, TcpStream::connect(&self.address).await?).await
    }
}

async fn http(
    stream: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin),
    token: &str,
) -> String {
    let head = format!(
        "GET /v1/status HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub(super) fn client_of(key: &str, joined: &JoinReply) -> Arc<ClientConfig> {
    let fingerprint = crate::tls::fingerprint_of_pem(&joined.ca).unwrap();
    crate::tls::client(&fingerprint, Some((&joined.certificate, key))).unwrap()
}

#[tokio::test]
async fn one_port_speaks_plain_http_to_this_machine_and_tls() {
    let port = Port::open().await;
    let mut plain = TcpStream::connect(&port.address).await.unwrap();
    assert!(http(&mut plain, &port.world.ada).await.starts_with("HTTP/1.1 200"));
    let mut secure = port.tls(port.stranger()).await.unwrap();
    assert!(http(&mut secure, &port.world.ada).await.starts_with("HTTP/1.1 200"));
    let mut secure = port.tls(port.stranger()).await.unwrap();
    assert!(http(&mut secure, "yard_wrong").await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn people_trust_the_authority_by_name_as_usual() {
    let port = Port::open().await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(port.world.site.authority.certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(versions.with_root_certificates(roots).with_no_client_auth());
    for (name, good) in
        [("127.0.0.1", true), ("localhost", true), ("cluster.example", true), ("other.example", false)]
    {
        let stream = TcpStream::connect(&port.address).await.unwrap();
        let name = ServerName::try_from(name).unwrap();
        assert_eq!(
            TlsConnector::from(config.clone()).connect(name.clone(), stream).await.is_ok(),
            good,
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn an_agent_trusts_only_the_authority_of_its_join_token() {
    let port = Port::open().await;
    let other = crate::tls::client(&"0".repeat(64), None).unwrap();
    let (_, csr) = ca::request("node-7").unwrap();
    let request = JoinRequest { name: "node-7".into(), token: Some(port.world.join.clone()), csr };
    let refused = enroll(&port.address, other, &request).await;
    assert!(matches!(refused, Err(EnrollError::Connect { .. })), "{refused:?}");
    assert!(port.world.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn joining_needs_a_good_token_and_a_good_name_and_renewing_the_certificate() {
    let port = Port::open().await;
    let (key, joined) = port.node("node-7").await;
    let (_, csr) = ca::request("x").unwrap();
    let refuse = async |config: Arc<ClientConfig>, name: &str, token: Option<&str>| {
        let request = JoinRequest { name: name.into(), token: token.map(str::to_owned), csr: csr.clone() };
        enroll(&port.address, config, &request).await.unwrap_err().to_string()
    };
    assert!(refuse(port.stranger(), "node-8", None).await.contains("join token"));
    assert!(refuse(port.stranger(), "node-8", Some(&port.world.admin)).await.contains("unknown"));
    assert!(refuse(port.stranger(), "../x", Some(&port.world.join)).await.contains("name"));
    assert!(
        refuse(client_of(&key, &joined), "node-8", None).await.contains("join token"),
        "no node for another"
    );

    let renew = JoinRequest { name: "node-7".into(), token: None, csr: csr.clone() };
    let renewed = enroll(&port.address, client_of(&key, &joined), &renew).await.unwrap();
    assert_ne!(renewed.certificate, joined.certificate);
    assert_eq!(renewed.ca, joined.ca);
}

pub(super) fn hello(name: &str, version: u32) -> Message {
    let hello = Hello {
        version,
        name: name.into(),
        address: "127.0.0.1".into(),
        groups: Vec::new(),
        parts: Vec::new(),
        paused: Vec::new(),
        abilities: Default::default(),
        host: String::new(),
        resources: std::collections::BTreeMap::new(),
        domains: yard_core::cluster::DomainPath::default(),
    };
    Message::text(serde_json::to_string(&FromAgent::Hello(hello)).unwrap())
}

async fn first_words(port: &Port, config: Arc<ClientConfig>, hello: Message) -> ToAgent {
    let url = format!("wss://{SERVER_NAME}/v1/agent");
    let stream = port.tls(config).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    socket.send(hello).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap();
    serde_json::from_str(answer.to_text().unwrap()).unwrap()
}

#[tokio::test]
async fn an_agent_connects_as_the_node_of_its_certificate_only() {
    let port = Port::open().await;
    let (key, joined) = port.node("node-7").await;
    let config = client_of(&key, &joined);
    let url = format!("wss://{SERVER_NAME}/v1/agent");
    let stream = port.tls(config.clone()).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(&url, stream).await.unwrap();
    socket.send(hello("node-7", WIRE_VERSION)).await.unwrap();
    let beat = serde_json::to_string(&FromAgent::Beat { seq: 7 }).unwrap();
    socket.send(Message::text(beat)).await.unwrap();
    for expected in [ToAgent::Welcome { lease_s: 60.0, beat_s: 2.0 }, ToAgent::Beat { seq: 7 }] {
        let frame = socket.next().await.unwrap().unwrap();
        assert_eq!(serde_json::from_str::<ToAgent>(frame.to_text().unwrap()).unwrap(), expected);
    }
    socket.close(None).await.unwrap();
    while socket.next().await.is_some_and(|frame| frame.is_ok()) {}

    let impostor = first_words(&port, config.clone(), hello("node-8", WIRE_VERSION)).await;
    assert!(matches!(impostor, ToAgent::Refused { reason } if reason.contains("node-8")));
    let old = first_words(&port, config.clone(), hello("node-7", WIRE_VERSION + 1)).await;
    assert!(matches!(old, ToAgent::Refused { reason } if reason.contains("version")));
    let nonsense = first_words(&port, config, Message::text("{}")).await;
    assert!(matches!(nonsense, ToAgent::Refused { .. }));
    assert_eq!(port.world.heard.lock().unwrap().join(", "), "connect node-7, disconnect 0");

    let stream = port.tls(port.stranger()).await.unwrap();
    let refused = tokio_tungstenite::client_async(&url, stream).await.err().unwrap().to_string();
    assert!(refused.contains("401"), "{refused}");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_worth_nothing() {
    let (port, other) = (Port::open().await, Port::open().await);
    let (key, joined) = other.node("node-7").await;
    let ours = port.world.site.authority.fingerprint();
    let forged = crate::tls::client(&ours, Some((&joined.certificate, &key))).unwrap();
    // In TLS 1.3 the client learns of the refusal when it first reads.
    let used = async {
        let mut stream = port.tls(forged).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await?;
        stream.read_u8().await
    };
    assert!(used.await.is_err());
}

#[tokio::test]
async fn plain_http_from_elsewhere_is_told_to_use_https() {
    let world = World::new();
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let outward = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr());
    let ours = outward.ok().filter(|ours| !ours.ip().is_loopback());
    // Sandboxes of continuous integration may be without a network.
    if !yard_needs::needs_if_any("an address other than loopback", ours.is_some()) {
        return;
    }
    let ours = ours.unwrap();
    let identity = world.site.authority.server(&[], now_us()).unwrap();
    let tls = crate::tls::server(&world.site.authority, identity).unwrap();
    let listener = TcpListener::bind((ours.ip(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(
        listener,
        tls,
        world.router.clone(),
        ListenLimits::default(),
        world.site.stop.clone(),
    ));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let answer = http(&mut stream, &world.ada).await;
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("https"), "{answer}");
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_asked_for_and_ends_when_idle() {
    let port = Port::with(ListenLimits { idle: Duration::from_millis(500), ..ListenLimits::default() }).await;
    let (mut client, connection) = port.http_2(&h2::client::Builder::new()).await;
    let request = axum::http::Request::get("https://x/v1/status");
    let request = request.header("authorization", format!("Bearer {}", port.world.ada)).body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    let ended = tokio::time::timeout(Duration::from_secs(60), connection).await;
    assert!(ended.is_ok(), "who asks nothing more leaves");
}

/// Requests to join whose bodies do not come: an address has so many, and the others are told so at once.
#[tokio::test]
async fn bodies_without_a_token_that_do_not_come_are_few() {
    let port = Port::open().await;
    let (mut answers, mut waiting, mut clients) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        let (mut client, _) = port.http_2(&h2::client::Builder::new()).await;
        for _ in 0..8 {
            client = client.ready().await.unwrap();
            let request = axum::http::Request::post("https://x/v1/join").header("content-length", "1");
            let (answer, body) = client.send_request(request.body(()).unwrap(), false).unwrap();
            answers.push(answer);
            waiting.push(body);
        }
        clients.push(client);
    }
    let mut told = Vec::new();
    let all = async {
        for answer in answers {
            told.push(answer.await.unwrap().status());
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("nobody is waited for without end");
    let refused = told.iter().filter(|status| **status == StatusCode::TOO_MANY_REQUESTS).count();
    let late = told.iter().filter(|status| **status == StatusCode::REQUEST_TIMEOUT).count();
    assert!(late <= 64 && refused >= 80 - 64 && late + refused == 80, "{late} late and {refused} refused");
    assert!(clients.iter().all(|client| client.current_max_send_streams() <= 32));
    let (_key, joined) = port.node("node-7").await;
    assert!(!joined.certificate.is_empty(), "the room is given back");
}

/// A guest that takes no byte of its answers would keep them all in memory.
#[tokio::test]
async fn a_guest_that_reads_no_answers_leaves() {
    let port = Port::open().await;
    let ask = async |token: Option<&str>| {
        let (mut client, connection) = port.http_2(h2::client::Builder::new().initial_window_size(0)).await;
        let mut answers = Vec::new();
        for _ in 0..20 {
            let Ok(ready) = client.clone().ready().await else { break };
            client = ready;
            let request = axum::http::Request::get("https://x/v1/openapi.json");
            let request = token.into_iter().fold(request, |request, token| {
                request.uri("https://x/v1/me").header("authorization", format!("Bearer {token}"))
            });
            answers.push(client.send_request(request.body(()).unwrap(), true));
        }
        (connection, answers, client)
    };
    let (connection, _answers, _client) = ask(None).await;
    tokio::time::timeout(Duration::from_secs(20), connection).await.expect("it leaves").unwrap();
    let (connection, answers, _client) = ask(Some(&port.world.ada)).await;
    for answer in answers {
        assert_eq!(answer.unwrap().0.await.unwrap().status(), StatusCode::OK);
    }
    assert!(!connection.is_finished(), "who is known may ask more at once");
}
