//! The API against a scripted driver and a history in memory.

mod access;
mod audit;
mod bodies;
mod document;
mod entitlements;
mod events;
mod flood;
mod grid;
mod jobs;
mod kept_secrets;
mod limits;
mod membership;
mod replay;
mod revoked;
mod secrets;
mod tls;
mod watch;
mod web;
mod what_if;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use yard_core::units::Time;

use super::{ApiSite, EventFilter, HistoryQuery, JobFilter, TraceFilter, router};
use crate::auth::Tokens;
use crate::board::Board;
use crate::ca::Authority;
use crate::changes::Changes;
use crate::clock::now_us;
use crate::exec::Incoming;
use crate::exec::agents::AgentCall;
use crate::handle::{Ask, Handle, LogStream, Refusal};
use crate::listen::PeerAddress;
use crate::metrics::Metrics;
use crate::request::JobRequest;
use crate::scratch::Scratch;
use crate::secrets::Secrets;
use crate::store::JobRow;
use crate::store::tokens::Scope;
use crate::views::{DeviceView, EventView, Explanation, JobView, NodeView, StatusView};
use crate::wire::{FromAgent, LOG_CREDIT, LOG_PIECE, ToAgent};

/// A server without sockets: ada and bob have tokens, ada has job 1 (over, in the history) and 2 (running).
struct World {
    site: Arc<ApiSite>,
    router: Router,
    admin: String,
    ada: String,
    bob: String,
    looker: String,
    join: String,
    past: Arc<Past>,
    heard: Arc<Mutex<Vec<String>>>,
    scratch: Scratch,
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn field(&self) -> Option<String> {
        self.json()["field"].as_str().map(str::to_owned)
    }
}

impl World {
    fn new() -> World {
        let scratch = Scratch::new();
        let authority = Arc::new(Authority::open(&scratch.path().join("ca"), now_us()).unwrap());
        let tokens = Arc::new(Tokens::open(&scratch.path().join("yard.db")).unwrap());
        let first = tokens.first("root", &authority.fingerprint()).unwrap().unwrap();
        let make = |user, scope| tokens.create(user, scope, None, "root", "").unwrap().secret;
        let (ada, bob, looker) =
            (make("ada", Scope::Submit), make("bob", Scope::Submit), make("ada", Scope::Read));
        let past = Arc::new(Past::default());
        past.jobs.lock().unwrap().push(job(1, "ada", "succeeded"));
        let heard = Arc::default();
        let handle = driver(board(), Arc::clone(&heard), past.clone());
        let site = Arc::new(ApiSite {
            handle,
            history: past.clone(),
            tokens,
            secrets: Arc::new(Secrets::open(scratch.path()).unwrap()),
            authority,
            metrics: Metrics::new(),
            stall: Duration::from_secs(10),
            patience: Duration::from_secs(20),
            asking: Default::default(),
            quota: Default::default(),
            replayer: Arc::new(crate::replay::testing::Still),
            stop: CancellationToken::new(),
        });
        let (router, admin, join) = (router(site.clone()), first.admin.secret, first.join.secret);
        World { site, router, admin, ada, bob, looker, join, past, heard, scratch }
    }

    async fn call(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answered {
        let request = Request::builder().method(method).uri(path);
        let request = token
            .into_iter()
            .fold(request, |request, token| request.header("authorization", format!("Bearer {token}")));
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    async fn get(&self, path: &str, token: &str) -> Answered {
        self.call("GET", path, Some(token), "").await
    }

    async fn send(&self, request: Request) -> Answered {
        let (status, headers, body) = self.begin(request).await;
        let bytes = axum::body::to_bytes(body, 16 << 20).await.unwrap();
        Answered { status, headers, body: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    async fn begin(&self, mut request: Request) -> (StatusCode, HeaderMap, Body) {
        request.extensions_mut().insert(PeerAddress::new(SocketAddr::from(([127, 0, 0, 1], 9)), None));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, body)
    }
}

/// The rank whose log has as many pieces as an agent may send, and does not end.
const FULL_LOG: u32 = 7;

/// A history in memory.
#[derive(Default)]
struct Past {
    jobs: Mutex<Vec<JobView>>,
    events: Mutex<Vec<EventView>>,
    requests: Mutex<BTreeMap<u64, JobRequest>>,
}

fn page<T>(found: Vec<T>, after: Option<u64>, limit: usize) -> Vec<T> {
    let skip = if after.is_some() { 0 } else { found.len().saturating_sub(limit) };
    found.into_iter().skip(skip).take(limit).collect()
}

impl HistoryQuery for Past {
    fn jobs(&self, filter: &JobFilter) -> Result<Vec<JobView>, Refusal> {
        let wanted = |job: &&JobView| {
            filter.user.as_ref().is_none_or(|user| job.user == *user)
                && filter.state.as_ref().is_none_or(|state| job.state == *state)
                && filter.after.is_none_or(|after| job.id > after)
                && filter.before.is_none_or(|before| job.id < before)
                && filter.name.as_ref().is_none_or(|name| crate::pattern::matches(name, &job.name))
        };
        let found = self.jobs.lock().unwrap().iter().filter(wanted).cloned().collect();
        Ok(page(found, filter.after, filter.limit))
    }

    fn job(&self, id: u64) -> Result<Option<JobView>, Refusal> {
        Ok(self.jobs.lock().unwrap().iter().find(|job| job.id == id).cloned())
    }

    fn request(&self, id: u64) -> Result<Option<JobRequest>, Refusal> {
        Ok(self.requests.lock().unwrap().get(&id).cloned())
    }

    fn events(&self, filter: &EventFilter) -> Result<Vec<EventView>, Refusal> {
        let theirs = |event: &EventView| {
            filter.viewer.is_none() || event.user.is_none() || event.user == filter.viewer
        };
        let wanted = |event: &&EventView| {
            theirs(event)
                && filter.after.is_none_or(|after| event.id > after)
                && filter.before.is_none_or(|before| event.id < before)
                && filter.job.is_none_or(|job| event.job == Some(job))
        };
        let found = self.events.lock().unwrap().iter().filter(wanted).cloned().collect();
        Ok(page(found, filter.after, filter.limit))
    }

    fn recorded(&self, from: Time, to: Time, limit: usize) -> Result<Vec<JobRow>, Refusal> {
        Ok(replay::recorded(&self.jobs.lock().unwrap(), from, to, limit))
    }

    fn trace(&self, filter: &TraceFilter) -> Result<String, Refusal> {
        let jobs = self.jobs.lock().unwrap();
        let theirs = jobs.iter().filter(|job| filter.user.as_ref().is_none_or(|user| job.user == *user));
        Ok(theirs.fold("job_id,user\n".to_owned(), |csv, job| csv + &format!("{},{}\n", job.id, job.user)))
    }
}

fn job(id: u64, user: &str, state: &str) -> JobView {
    JobView {
        id,
        name: format!("job-{id}"),
        user: user.into(),
        tenant: None,
        state: state.into(),
        reason: None,
        held_by: None,
        gpus: 1,
        kind: None,
        nodes: Vec::new(),
        frozen: Vec::new(),
        priority: 0,
        deadline: None,
        promise: None,
        at_risk: false,
        earliest: None,
        submitted_at: 0.0,
        started_at: None,
        ended_at: None,
        executed_s: 0.0,
        idle_s: None,
        step: None,
        steps: None,
        checkpointed: None,
        rate: None,
        starts: 0,
        preemptions: 0,
        migrations: 0,
        failures: 0,
        exit_code: None,
        length: None,
        estimate: None,
        request: None,
        log_end: None,
        warnings: Vec::new(),
    }
}

fn event(id: u64, user: Option<&str>) -> EventView {
    let (event, user) = ("submitted".to_owned(), user.map(str::to_owned));
    EventView { id, time: 0.0, event, job: Some(id), node: None, detail: Value::Null, user }
}

fn board() -> Board {
    let device = |index, jobs: &[u64]| DeviceView {
        kind: "h100".into(),
        index,
        name: "Fake <H100>".into(),
        jobs: jobs.to_vec(),
        idle_jobs: jobs.to_vec(),
        busy: Some(0.25),
        memory_used_mib: Some(2),
        ..DeviceView::default()
    };
    let node = NodeView {
        name: "node-1".into(),
        state: "up".into(),
        reason: Some("<script>alert(1)</script>".into()),
        address: "127.0.0.1".into(),
        devices: vec![device(0, &[2]), device(1, &[])],
        resources: Vec::new(),
        domains: Default::default(),
        heard_s: None,
    };
    let status = StatusView {
        version: "0".into(),
        policy: "max-min".into(),
        round_s: 60.0,
        pending: 0,
        running: 1,
        ended: 1,
        nodes_up: 1,
        set_aside: 0,
        devices: 2,
        devices_held: 1,
        prices: BTreeMap::new(),
        rounds: 0,
        plans: 0,
    };
    let jobs = BTreeMap::from([(2, Arc::new(job(2, "ada", "running")))]);
    let (nodes, status) = (BTreeMap::from([("node-1".into(), Arc::new(node))]), Some(status));
    let mut changes = Changes::default();
    changes.begin(now_us());
    Board { jobs, paces: BTreeMap::new(), nodes, status, alive: now_us(), changes }
}

/// A driver that answers as a real one would, without deciding anything.
fn driver(board: Board, heard: Arc<Mutex<Vec<String>>>, past: Arc<Past>) -> Handle {
    let (asks, mut inbox) = mpsc::channel(16);
    let handle = Handle { asks, board: Arc::new(RwLock::new(board)), events: broadcast::Sender::new(4) };
    let board = handle.board.clone();
    tokio::spawn(async move {
        let mut links = Vec::new();
        while let Some(ask) = inbox.recv().await {
            answer(ask, &board, &heard, &past, &mut links);
        }
    });
    handle
}

fn answer(
    ask: Ask,
    board: &RwLock<Board>,
    heard: &Mutex<Vec<String>>,
    past: &Past,
    links: &mut Vec<mpsc::Sender<ToAgent>>,
) {
    let mut board = board.write().unwrap();
    let say = |what: String| heard.lock().unwrap().push(what);
    match ask {
        Ask::Submit { who, request, key, reply, .. } => {
            say(format!("submit {} {key:?}", who.user));
            let refused = request.command.first().is_some_and(|word| word == "disk-full");
            let too_many = request.command.first().is_some_and(|word| word == "too-many");
            let id = board.jobs.last_key_value().map_or(1, |(id, _)| id + 1);
            past.requests.lock().unwrap().insert(id, *request);
            let job = job(id, &who.user, "pending");
            let full = || Refusal::Unavailable("the disk is full".into());
            let many = || Refusal::TooMany("ada has 2 jobs, and may have 2".into());
            let _ = reply.send(match (refused, too_many) {
                (true, _) => Err(full()),
                (_, true) => Err(many()),
                _ => Ok(job.clone()),
            });
            board.put_job(job);
        }
        Ask::Cancel { who, job, reason, force, reply } => {
            let how = if force { "kill" } else { "cancel" };
            say(format!("{how} {} {job} {reason:?}", who.user));
            let found = board.jobs.get_mut(&job.0).map(|job| {
                Arc::make_mut(job).state = "cancelled".into();
                JobView::clone(job)
            });
            let _ = reply.send(found.ok_or(Refusal::Conflict("it is over".into())));
        }
        Ask::Steer { who, job, steering, reply } => {
            say(format!("{} {job} {steering:?}", who.user));
            let known = board.jobs.get(&job.0).map(|known| JobView::clone(known));
            let _ = reply.send(known.ok_or_else(|| Refusal::NotFound("there is no such job".into())));
        }
        Ask::Drain { node, drain, reply, .. } => {
            let found = board.nodes.get_mut(&node);
            let changed =
                found.map(|node| Arc::make_mut(node).state = if drain { "draining" } else { "up" }.into());
            let _ = reply.send(changed.ok_or(Refusal::NotFound(format!("there is no node {node}"))));
        }
        Ask::Cheapest { count, reply, .. } => {
            let names = board.nodes.keys().take(count as usize).cloned().collect();
            let _ = reply.send(Ok(names));
        }
        Ask::Explain { job, reply } => {
            let (state, reason, text) = ("running".into(), "running".into(), "it runs".into());
            let _ = reply.send(Ok(Explanation {
                job: job.0,
                state,
                reason,
                text,
                numbers: BTreeMap::new(),
                ahead: Vec::new(),
                remedies: Vec::new(),
                prices: BTreeMap::new(),
                ways: Vec::new(),
                length: None,
                estimate: None,
            }));
        }
        Ask::WhatIf { who, asked, reply } => {
            let _ = reply.send(what_if::question(&who, &asked));
        }
        Ask::Present { reply } => {
            let _ = reply.send(Ok(crate::replay::testing::present()));
        }
        Ask::Logs { log, reply, .. } if log.rank == FULL_LOG => {
            let (to, pieces) = mpsc::channel(LOG_CREDIT as usize + 1);
            (0..LOG_CREDIT).for_each(|_| to.try_send(Ok("x".repeat(LOG_PIECE))).unwrap());
            // It goes on: the sender is kept.
            tokio::spawn(async move { to.closed().await });
            let _ = reply.send(Ok(LogStream { request: 1, pieces }));
        }
        Ask::Logs { log, reply, .. } => {
            let (to, pieces_end) = mpsc::channel(4);
            let pieces = match log.rank {
                0 => vec![Ok("one\n".to_owned()), Ok("two\n".to_owned())],
                1 => vec![Err("rank 1 has no log".to_owned())],
                _ => vec![Ok("one\n".to_owned()), Err("the agent went away".to_owned())],
            };
            pieces.into_iter().for_each(|piece| to.try_send(piece).unwrap());
            let _ = reply.send(Ok(LogStream { request: 1, pieces: pieces_end }));
        }
        Ask::Exec(Incoming::Agents(AgentCall::Connect { hello, link, reply })) => {
            say(format!("connect {}", hello.name));
            link.try_send(ToAgent::Welcome { lease_s: 60.0, beat_s: 2.0 }).unwrap();
            links.push(link);
            let _ = reply.send(Ok(links.len() as u64 - 1));
        }
        Ask::Exec(Incoming::Agents(AgentCall::From {
            connection, message: FromAgent::Beat { seq }, ..
        })) => {
            links[connection as usize].try_send(ToAgent::Beat { seq }).unwrap();
        }
        Ask::Sever { node, reply } => {
            say(format!("sever {node}"));
            links.clear();
            let _ = reply.send(Ok(()));
        }
        Ask::Remove { node, reply, .. } => {
            say(format!("remove {node}"));
            let found = board.nodes.remove(&node).map(drop);
            let _ = reply.send(found.ok_or(Refusal::NotFound(format!("there is no node {node}"))));
        }
        Ask::Exec(Incoming::Agents(AgentCall::Disconnect { connection })) => {
            say(format!("disconnect {connection}"))
        }
        Ask::LogsMore { pieces, .. } => say(format!("more {pieces}")),
        Ask::View { .. } | Ask::Exec(_) | Ask::Shutdown { .. } => {}
    }
}

fn train(name: &str) -> String {
    let request =
        JobRequest { name: Some(name.into()), command: vec!["true".into()], ..JobRequest::default() };
    serde_json::to_string(&request).unwrap()
}
