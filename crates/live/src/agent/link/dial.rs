//! A server at an address: WebSocket over TLS, with the node's certificate.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{Barred, Ends, identity};
use crate::ca::SERVER_NAME;
use crate::views::ErrorView;
use crate::wire::{FRAME_MAX, FromAgent};

/// How long a connection may take to be made, and a frame to be sent.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that says nothing for so long is gone: it answers beats every few seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// A server at an address.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Host and port.
    pub address: String,
    /// What makes this machine a node, the first time.
    pub join_token: Option<String>,
}

type DialSocket = WebSocketStream<TlsStream<TcpStream>>;

/// Connects, and passes on what either side says until the connection is gone.
pub(super) async fn converse(dial: &Dial, name: &str, folder: &Path, ends: &mut Ends) -> anyhow::Result<()> {
    let connected = timeout(PATIENCE, connect(dial, name, folder)).await;
    let mut socket = connected.with_context(|| format!("{} does not answer", dial.address))??;
    send(&mut socket, &ends.hello().await?).await?;
    loop {
        tokio::select! {
            frame = timeout(SILENCE, socket.next()) => match frame.context("the server is silent")? {
                Some(Ok(Message::Text(text))) => {
                    ends.hear(serde_json::from_str(&text).context("the server is of another version")?);
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_) | Message::Binary(_))) | None => return Ok(()),
                Some(Err(error)) => return Err(error.into()),
            },
            message = ends.next() => match message {
                Some(message) => send(&mut socket, &message).await?,
                None => return Ok(()),
            },
        }
    }
}

async fn connect(dial: &Dial, name: &str, folder: &Path) -> anyhow::Result<DialSocket> {
    let config = identity::config(dial, name, folder).await?;
    let tcp = TcpStream::connect(&dial.address).await.with_context(|| dial.address.clone())?;
    tcp.set_nodelay(true)?;
    let tls = TlsConnector::from(config).connect(ServerName::try_from(SERVER_NAME)?, tcp).await?;
    let limits = WebSocketConfig::default().max_message_size(Some(FRAME_MAX)).max_frame_size(Some(FRAME_MAX));
    let url = format!("wss://{SERVER_NAME}/v1/agent");
    let (socket, _) = client_async_with_config(url, tls, Some(limits)).await.map_err(refused)?;
    Ok(socket)
}

/// A certificate that the server does not take will not be taken the next time either.
fn refused(error: WsError) -> anyhow::Error {
    let WsError::Http(answer) = &error else { return error.into() };
    if answer.status() != StatusCode::FORBIDDEN {
        return error.into();
    }
    let said = answer.body().as_ref().and_then(|body| serde_json::from_slice::<ErrorView>(body).ok());
    let reason = said.map_or_else(
        || "the server rejects this node's certificate: it was revoked, or the node was removed".into(),
        |said| said.error,
    );
    Barred(reason).into()
}

async fn send(socket: &mut DialSocket, message: &FromAgent) -> anyhow::Result<()> {
    let text = serde_json::to_string(message)?;
    if text.len() > FRAME_MAX {
        bail!("a message of {} bytes is larger than the server accepts", text.len());
    }
    timeout(PATIENCE, socket.send(Message::text(text))).await.context("the server takes nothing")??;
    Ok(())
}
