//! A server at an address: WebSocket over TLS, with the node's certificate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::Ends;
use crate::ca::SERVER_NAME;
use crate::wire::FRAME_MAX;

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that says nothing for so long is gone: it answers beats every few seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// Messages in one go.
const BATCH: usize = 256;
