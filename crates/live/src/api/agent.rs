//! An agent's connection: a WebSocket on which both sides speak the words of `wire`. The agent's certificate says
//! which node it is, must not be revoked, and its first frame must agree.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::tokens::blocking;
use super::{ApiProblem, ApiSite};
use crate::clock::now_us;
use crate::exec::agents::AgentCall;
use crate::listen::PeerAddress;
use crate::store::certificates::{BarredCertificate, Issued};
use crate::store::tokens::TokenStore;
use crate::views::ErrorView;
use crate::wire::{FRAME_MAX, FromAgent, Hello, ORDERS_MAX, ToAgent, WIRE_VERSION, WIRE_VERSIONS};

/// How long the first frame may take, and how long a frame may take to be sent.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an agent may be silent before its connection is taken for broken. It beats every few seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// What an agent said and the driver has not taken up yet: two of the largest frames.
const WAITING_KIB: usize = 2 * (FRAME_MAX >> 10) + 2;

#[utoipa::path(get, path = "/v1/agent",
    responses((status = 101, description = "A WebSocket for agents; needs a node's certificate"),
        (status = 401, body = ErrorView),
        (status = 403, body = ErrorView, description = "The certificate was revoked"),
        (status = 429, body = ErrorView, description = "The node has too many connections")))]
pub(super) async fn connect(
    State(site): State<Arc<ApiSite>>,
    peer: PeerAddress,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiProblem> {
    let error = "this is for agents: connect with the certificate that `yard agent --join-token FILE` got";
    let unknown = || ApiProblem::new(StatusCode::UNAUTHORIZED, error);
    let (node, fingerprint) = peer.node.clone().zip(peer.certificate.clone()).ok_or_else(unknown)?;
    let shown = Shown { node, fingerprint };
    shown.admitted(&site).await?;
    let upgrade = upgrade.map_err(|error| ApiProblem::new(error.status(), error.body_text()))?;
    let upgrade = upgrade.max_message_size(FRAME_MAX).max_frame_size(FRAME_MAX);
    let place = site.quota.node(&shown.node)?;
    peer.known();
    Ok(upgrade.on_upgrade(async move |socket| {
        let _place = place;
        talk(site, shown, socket).await;
    }))
}

/// The certificate that a connection showed.
#[derive(Clone)]
struct Shown {
    node: String,
    fingerprint: String,
}

impl Shown {
    /// Whether it may speak for its node now.
    async fn admitted(&self, site: &Arc<ApiSite>) -> Result<(), ApiProblem> {
        let known = site.board().nodes.contains_key(&self.node);
        self.ask(site, move |store, shown| store.admit(shown, known, now_us())).await
    }

    /// The node is connected with it and needs no older one.
    async fn settle(&self, site: &Arc<ApiSite>) {
        let settled = self.ask(site, |store, shown| Ok(store.settle(shown, now_us())?)).await;
        if let Err(problem) = settled {
            tracing::warn!(node = self.node, error = problem.view.error, "older certificates stay good");
        }
    }

    async fn ask(
        &self,
        site: &Arc<ApiSite>,
        ask: impl FnOnce(&TokenStore, Issued<'_>) -> Result<(), BarredCertificate> + Send + 'static,
    ) -> Result<(), ApiProblem> {
        let (shown, tokens) = (self.clone(), site.tokens.clone());
        let asked = move || {
            let issued = Issued { node: &shown.node, fingerprint: &shown.fingerprint };
            ask(tokens.store(), issued)
        };
        Ok(blocking(asked).await??)
    }
}

async fn talk(site: Arc<ApiSite>, shown: Shown, mut socket: WebSocket) {
    let node = &shown.node;
    let hello = match hello(&mut socket, node).await {
        Ok(hello) => hello,
        Err(reason) => return refuse(socket, reason).await,
    };
    let (link, orders) = mpsc::channel(ORDERS_MAX);
    let hello = Box::new(hello);
    match site.handle.ask(|reply| AgentCall::Connect { hello, link, reply }.into()).await {
        Ok(connection) => {
            // It may have been revoked while it connected, before the driver knew of it.
            match shown.admitted(&site).await {
                Ok(()) => {
                    shown.settle(&site).await;
                    carry(&site, connection, socket, orders).await;
                }
                Err(problem) => refuse(socket, problem.view.error).await,
            }
            let _ = site.handle.asks.send(AgentCall::Disconnect { connection }.into()).await;
            tracing::info!(node, "agent disconnected");
        }
        Err(refusal) => refuse(socket, refusal.to_string()).await,
    }
}

/// The first frame, if it is what it should be.
async fn hello(socket: &mut WebSocket, node: &str) -> Result<Hello, String> {
    let Ok(Some(Ok(Message::Text(text)))) = timeout(PATIENCE, socket.recv()).await else {
        return Err("the first frame must be a hello, in text".into());
    };
    let Ok(FromAgent::Hello(hello)) = serde_json::from_str(&text) else {
        return Err(format!(
            "the hello is not understood; this server speaks version {WIRE_VERSION}, update the agent"
        ));
    };
    if !WIRE_VERSIONS.contains(&hello.version) {
        let (theirs, before) = (hello.version, WIRE_VERSIONS.start());
        return Err(format!(
            "the agent speaks version {theirs} and the server {before} and {WIRE_VERSION}; update the older one"
        ));
    }
    if hello.name != node {
        return Err(format!(
            "the certificate is of node {node}, the hello of {}; join again as that node",
            hello.name
        ));
    }
    Ok(hello)
}

/// Carries frames both ways until either side ends it.
async fn carry(site: &ApiSite, connection: u64, socket: WebSocket, mut orders: mpsc::Receiver<ToAgent>) {
    let (mut to, mut from) = socket.split();
    let waiting = Arc::new(Semaphore::new(WAITING_KIB));
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(order) = order else { break };
                if !send(&mut to, &order).await {
                    return;
                }
            }
            frame = timeout(SILENCE, from.next()) => {
                let Ok(Some(Ok(frame))) = frame else { return };
                if !receive(site, connection, frame, &waiting).await {
                    break;
                }
            }
            () = site.stop.cancelled() => break,
        }
    }
    let _ = timeout(PATIENCE, to.close()).await;
}

/// Whether to go on.
async fn receive(site: &ApiSite, connection: u64, frame: Message, waiting: &Arc<Semaphore>) -> bool {
    let text = match frame {
        Message::Text(text) => text,
        Message::Ping(_) | Message::Pong(_) => return true,
        Message::Binary(_) | Message::Close(_) => return false,
    };
    // Whoever says more than is taken up waits, and no other node does.
    let kib = (text.len() >> 10) as u32 + 1;
    let Ok(room) = waiting.clone().acquire_many_owned(kib).await else { return false };
    let Ok(message) = serde_json::from_str::<FromAgent>(&text) else {
        tracing::warn!(connection, "an agent sent what is not understood; its connection is closed");
        return false;
    };
    let ask = AgentCall::From { connection, message, room: Some(room) }.into();
    site.handle.asks.send(ask).await.is_ok()
}

async fn send(to: &mut SplitSink<WebSocket, Message>, order: &ToAgent) -> bool {
    let text = serde_json::to_string(order).expect("an order is JSON");
    matches!(timeout(PATIENCE, to.send(Message::text(text))).await, Ok(Ok(())))
}

async fn refuse(mut socket: WebSocket, reason: String) {
    tracing::warn!(reason, "an agent was refused");
    let text = serde_json::to_string(&ToAgent::Refused { reason }).expect("an order is JSON");
    let _ = timeout(PATIENCE, socket.send(Message::text(text))).await;
    let _ = timeout(PATIENCE, socket.send(Message::Close(None))).await;
}
