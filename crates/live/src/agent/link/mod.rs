//! The agent's end of its connection to the server. It is kept up for ever: whatever breaks it, it is tried again with
//! growing pauses. Only where the server says that this node may not come in at all, it ends. The agent hears when it is up and then says hello; what it said before that is dropped, because
//! the hello says it all again.

mod dial;
mod identity;
mod local;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

pub use self::dial::Dial;
use crate::agent::beats::Beats;
use crate::handle::Handle;
use crate::wire::{FromAgent, ToAgent};

/// The first pause before another try, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(15));

/// Log pieces on their way at once: who reads slowly holds the reading up, not the news.
const LOGS_MAX: usize = 16;

/// Where the server is.
#[derive(Clone, Debug)]
pub enum LinkServer {
    /// At an address.
    Dial(Dial),
    /// In this process.
    Local(Handle),
}

/// What a link tells the agent.
#[derive(Debug)]
pub(crate) enum LinkHeard {
    /// There is a connection: say hello.
    Up,
    /// The server said something.
    Said(Box<ToAgent>),
    /// The connection is gone.
    Down,
    /// The server does not let this node in, and will not: why, and what to do about it.
    Barred(String),
}

/// The agent's side of a link.
pub(crate) struct ServerLink {
    /// What is to be said. News before logs.
    pub(crate) news: mpsc::UnboundedSender<FromAgent>,
    /// Pieces of logs.
    pub(crate) logs: mpsc::Sender<FromAgent>,
    /// What happens.
    pub(crate) heard: mpsc::UnboundedReceiver<LinkHeard>,
    /// Whether hello was said on the connection there is.
    pub(crate) up: bool,
    /// When the server was last spoken to, and when it is again.
    pub(crate) beats: Beats,
    keeps: tokio::task::JoinHandle<()>,
}

/// The server does not let this node in, however often it tries.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Barred(String);

/// The link's side.
struct Ends {
    news: mpsc::UnboundedReceiver<FromAgent>,
    logs: mpsc::Receiver<FromAgent>,
    heard: mpsc::UnboundedSender<LinkHeard>,
    /// Whether the server let this node stay: only then it may come back at once.
    welcomed: bool,
}

impl ServerLink {
    /// Keeps a link of this node to the server up until it is dropped. Its certificate is in the folder.
    pub(crate) fn keep(server: LinkServer, name: String, folder: PathBuf) -> ServerLink {
        let (news, news_end) = mpsc::unbounded_channel();
        let (logs, logs_end) = mpsc::channel(LOGS_MAX);
        let (heard_end, heard) = mpsc::unbounded_channel();
        let ends = Ends { news: news_end, logs: logs_end, heard: heard_end, welcomed: false };
        let keeps = tokio::spawn(keep(server, name, folder, ends));
        ServerLink { news, logs, heard, up: false, beats: Beats::new(), keeps }
    }
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        self.keeps.abort();
    }
}

async fn keep(server: LinkServer, name: String, folder: PathBuf, mut ends: Ends) {
    let mut pause = PAUSE.0;
    loop {
        let ended = match &server {
            LinkServer::Dial(dial) => dial::converse(dial, &name, &folder, &mut ends).await,
            LinkServer::Local(handle) => local::converse(handle, &mut ends).await,
        };
        match ended {
            Err(error) if error.is::<Barred>() => {
                let _over = ends.heard.send(LinkHeard::Barred(format!("{error:#}")));
                return;
            }
            Ok(()) => tracing::info!("the connection to the server ended"),
            Err(error) => tracing::warn!(error = format!("{error:#}"), "no connection to the server"),
        }
        let _over = ends.heard.send(LinkHeard::Down);
        if std::mem::take(&mut ends.welcomed) {
            pause = PAUSE.0;
        }
        ends.rest(pause + jitter(pause)).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// A part of a pause, so that a thousand agents do not come back at once.
fn jitter(pause: Duration) -> Duration {
    let mut byte = [0];
    getrandom::fill(&mut byte).map_or(Duration::ZERO, |()| pause * u32::from(byte[0]) / 256)
}

impl Ends {
    /// Tells the agent that there is a connection, and waits for its hello.
    async fn hello(&mut self) -> anyhow::Result<FromAgent> {
        self.heard.send(LinkHeard::Up)?;
        loop {
            match self.news.recv().await {
                Some(hello @ FromAgent::Hello(_)) => return Ok(hello),
                Some(_) => {}
                None => anyhow::bail!("the agent is gone"),
            }
        }
    }

    /// Waits, and drops what the agent says meanwhile: its hello says it all again.
    async fn rest(&mut self, pause: Duration) {
        let drop_all = async {
            while self.next().await.is_some() {}
            std::future::pending::<()>().await;
        };
        let _over = tokio::time::timeout(pause, drop_all).await;
    }

    /// The next thing to say.
    async fn next(&mut self) -> Option<FromAgent> {
        tokio::select! {
            biased;
            news = self.news.recv() => news,
            Some(piece) = self.logs.recv() => Some(piece),
        }
    }

    fn hear(&mut self, said: ToAgent) {
        self.welcomed |= matches!(said, ToAgent::Welcome { .. });
        let _over = self.heard.send(LinkHeard::Said(Box::new(said)));
    }
}
