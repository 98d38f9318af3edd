//! The dialled link against the API's own listener: joining, connecting, and coming back.

use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use yard_core::units::Time;

use super::{Dial, LinkHeard, LinkServer, ServerLink};
use crate::agent::testing::Folder;
use crate::api::{ApiSite, EventFilter, HistoryQuery, JobFilter, TraceFilter, router};
use crate::auth::Tokens;
use crate::board::Board;
use crate::ca::Authority;
use crate::clock::now_us;
use crate::exec::Incoming;
use crate::exec::agents::AgentCall;
use crate::handle::{Ask, Handle, Refusal};
use crate::listen::{ListenLimits, serve};
use crate::metrics::Metrics;
use crate::secrets::Secrets;
use crate::store::JobRow;
use crate::store::tokens::Audit;
use crate::views::{EventView, JobView};
use crate::wire::{FromAgent, Hello, ToAgent, WIRE_VERSION};

struct NoHistory;

impl HistoryQuery for NoHistory {
    fn jobs(&self, _: &JobFilter) -> Result<Vec<JobView>, Refusal> {
        Ok(Vec::new())
    }
    fn job(&self, _: u64) -> Result<Option<JobView>, Refusal> {
        Ok(None)
    }
    fn request(&self, _: u64) -> Result<Option<crate::request::JobRequest>, Refusal> {
        Ok(None)
    }
    fn events(&self, _: &EventFilter) -> Result<Vec<EventView>, Refusal> {
        Ok(Vec::new())
    }
    fn trace(&self, _: &TraceFilter) -> Result<String, Refusal> {
        Ok(String::new())
    }
    fn recorded(&self, _: Time, _: Time, _: usize) -> Result<Vec<JobRow>, Refusal> {
        Ok(Vec::new())
    }
}

/// The API with a driver that the test plays: its address, a join token, what is asked, and what stops it.
async fn server(folder: &Folder) -> (SocketAddr, String, mpsc::Receiver<Ask>, CancellationToken) {
    let authority = Arc::new(Authority::open(&folder.path().join("ca"), now_us()).unwrap());
    let tls = crate::tls::server(&authority, authority.server(&[], now_us()).unwrap()).unwrap();
    let tokens = Arc::new(Tokens::open(&folder.path().join("yard.db")).unwrap());
    let join = tokens.first("ada", &authority.fingerprint()).unwrap().unwrap().join.secret;
    let (tx, asks) = mpsc::channel(16);
    let (board, events) = (Arc::new(RwLock::new(Board::default())), broadcast::channel(4).0);
    let stop = CancellationToken::new();
    let site = ApiSite {
        handle: Handle { asks: tx, board, events },
        history: Arc::new(NoHistory),
        tokens,
        secrets: Arc::new(Secrets::open(folder.path()).unwrap()),
        authority,
        metrics: Metrics::new(),
        stall: Duration::from_secs(60),
        patience: Duration::from_secs(60),
        asking: Default::default(),
        quota: Default::default(),
        replayer: Arc::new(crate::replay::testing::Still),
        stop: stop.clone(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, tls, router(Arc::new(site)), ListenLimits::for_process(), stop.clone()));
    (address, join, asks, stop)
}

/// Says hello when the link is up, and gives what the server was asked then.
async fn connect(link: &mut ServerLink, asks: &mut mpsc::Receiver<Ask>) -> mpsc::Sender<ToAgent> {
    while !matches!(link.heard.recv().await.unwrap(), LinkHeard::Up) {}
    let hello = Hello {
        version: WIRE_VERSION,
        name: "n1".into(),
        address: "127.0.0.1".into(),
        groups: Vec::new(),
        parts: Vec::new(),
        paused: Vec::new(),
        abilities: Default::default(),
        host: String::new(),
        resources: std::collections::BTreeMap::new(),
        domains: yard_core::cluster::DomainPath::default(),
    };
    link.news.send(FromAgent::Beat { seq: 99 }).unwrap(); // Too early: it is dropped.
    link.news.send(FromAgent::Hello(hello.clone())).unwrap();
    loop {
        match asks.recv().await.unwrap() {
            Ask::Exec(Incoming::Agents(AgentCall::Connect { hello: heard, link, reply })) => {
                assert_eq!(*heard, hello);
                reply.send(Ok(5)).unwrap();
                return link;
            }
            Ask::Exec(Incoming::Agents(AgentCall::Disconnect { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn link(folder: &Folder, address: SocketAddr, join_token: Option<String>) -> ServerLink {
    let dial = Dial { address: address.to_string(), join_token };
    ServerLink::keep(LinkServer::Dial(dial), "n1".into(), folder.path().join("identity"))
}

#[tokio::test]
async fn a_machine_joins_talks_and_comes_back_with_its_certificate() {
    let folder = Folder::new();
    let (address, join, mut asks, _stop) = server(&folder).await;
    let mut first = link(&folder, address, Some(join));
    let to_agent = connect(&mut first, &mut asks).await;
    first.news.send(FromAgent::Beat { seq: 1 }).unwrap();
    let Ask::Exec(Incoming::Agents(AgentCall::From {
        connection: 5,
        message: FromAgent::Beat { seq: 1 },
        ..
    })) = asks.recv().await.unwrap()
    else {
        panic!("no beat")
    };
    to_agent.send(ToAgent::Beat { seq: 1 }).await.unwrap();
    let LinkHeard::Said(said) = first.heard.recv().await.unwrap() else { panic!("no answer") };
    assert_eq!(*said, ToAgent::Beat { seq: 1 });
    drop(to_agent); // The server ends the connection; the link makes another.
    connect(&mut first, &mut asks).await;
    drop(first);
    let mut second = link(&folder, address, None);
    connect(&mut second, &mut asks).await;
}

#[tokio::test]
async fn without_a_token_or_with_another_clusters_nobody_joins() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (address, ..) = server(&folder).await;
    let (_, wrong, ..) = server(&other).await;
    let link_of = |token| link(&folder, address, token);
    let mut elsewhere = link_of(Some(wrong));
    assert!(
        matches!(elsewhere.heard.recv().await.unwrap(), LinkHeard::Down),
        "it may be another server for a moment"
    );
    for token in [None, Some("nonsense".to_owned())] {
        assert!(barred(link_of(token)).await.contains("join token"));
    }
    assert!(!folder.path().join("identity/node.pem").exists());
}

/// The first that is heard, which must be that there is no way in; then the link is over.
async fn barred(mut link: ServerLink) -> String {
    let Some(LinkHeard::Barred(reason)) = link.heard.recv().await else {
        panic!("it is let in, or tries again")
    };
    assert!(link.heard.recv().await.is_none(), "it does not try again");
    reason
}

#[tokio::test]
async fn a_token_or_certificate_that_is_not_good_ends_the_link_with_the_remedy() {
    let folder = Folder::new();
    let (address, join, mut asks, _stop) = server(&folder).await;
    let tokens = Tokens::open(&folder.path().join("yard.db")).unwrap();
    let mut first = link(&folder, address, Some(join.clone()));
    connect(&mut first, &mut asks).await;
    drop(first);
    // The same name from a machine without its folder.
    let other = |token: &str| {
        let dial = Dial { address: address.to_string(), join_token: Some(token.to_owned()) };
        ServerLink::keep(LinkServer::Dial(dial), "n1".into(), folder.path().join("other"))
    };
    let taken = barred(other(&join)).await;
    assert!(taken.contains("node n1 has joined already") && taken.contains("yard nodes rm n1"), "{taken}");
    let flipped = join[..join.len() - 1].to_owned() + if join.ends_with('0') { "1" } else { "0" };
    assert!(barred(other(&flipped)).await.contains("unknown"));
    let audit = Audit { time_us: now_us(), user: "ada", what: "revoke node", target: "n1" };
    tokens.store().revoke_node("n1", audit).unwrap();
    let revoked = barred(link(&folder, address, None)).await;
    assert!(revoked.contains("revoked") && revoked.contains("yard nodes rm n1"), "{revoked}");
}
