//! How a machine becomes a node: it makes a key, shows a join token (or the certificate it has) and gets a
//! certificate. One request by hand, because an agent needs no HTTP client for anything else.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::ca::SERVER_NAME;
use crate::views::{ErrorView, JoinReply, JoinRequest};

const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_MAX: u64 = 1 << 20;

/// Why a machine did not become a node.
#[derive(Debug, Error)]
pub enum EnrollError {
    /// Nobody answered, or not the one who should.
    #[error(
        "cannot get a certificate from {server}: {source}; check the address, and that the join token belongs \
         to this cluster"
    )]
    Connect {
        /// Who was asked.
        server: String,
        /// What went wrong.
        source: std::io::Error,
    },
    /// It said no.
    #[error("{reason}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// In a sentence, with the remedy.
        reason: String,
    },
    /// What it said makes no sense.
    #[error("{0} sent something other than a certificate; is it a Switchyard server of this version?")]
    Answer(String),
}

/// Asks a server (`host:port`) for a certificate.
pub async fn enroll(
    server: &str,
    tls: Arc<ClientConfig>,
    request: &JoinRequest,
) -> Result<JoinReply, EnrollError> {
    let connect = |source| EnrollError::Connect { server: server.to_owned(), source };
    let asked = tokio::time::timeout(PATIENCE, ask(server, tls, request)).await;
    let answer = asked.map_err(|_| connect(std::io::ErrorKind::TimedOut.into()))?.map_err(connect)?;
    let nonsense = || EnrollError::Answer(server.to_owned());
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(nonsense)?;
    let status: u16 = head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(nonsense)?;
    if status == 200 {
        return serde_json::from_str(body).map_err(|_| nonsense());
    }
    let refused: ErrorView = serde_json::from_str(body).map_err(|_| nonsense())?;
    Err(EnrollError::Refused { status, reason: refused.error })
}

async fn ask(server: &str, tls: Arc<ClientConfig>, request: &JoinRequest) -> std::io::Result<String> {
    let name = ServerName::try_from(SERVER_NAME).map_err(std::io::Error::other)?;
    let mut stream = TlsConnector::from(tls).connect(name, TcpStream::connect(server).await?).await?;
    let body = serde_json::to_string(request)?;
    let length = body.len();
    let head = format!(
        "POST /v1/join HTTP/1.1\r\nhost: {SERVER_NAME}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes()).await?;
    let mut answer = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut answer).await?;
    Ok(answer)
}
