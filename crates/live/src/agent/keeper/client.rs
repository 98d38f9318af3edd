//! The agent's end of its keeper: finds the one that runs, or starts one, and asks it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::words::{KeeperAsk, Say, line};

/// How long a new keeper may take to listen.
const START: Duration = Duration::from_secs(15);

/// How often that is tried.
const RETRY: Duration = Duration::from_millis(10);

/// Asks a keeper. What it says goes to the channel given to `find`, and `None` once it is gone.
pub(crate) struct Keeper {
    asks: mpsc::UnboundedSender<Vec<u8>>,
    tasks: [JoinHandle<()>; 2],
}

impl Keeper {
    /// The keeper of this folder; where there is none, it is started by this command.
    pub(crate) async fn find(
        dir: &Path,
        command: &[String],
        says: mpsc::UnboundedSender<Option<Say>>,
    ) -> anyhow::Result<Keeper> {
        let socket = super::socket(dir);
        if let Ok(stream) = UnixStream::connect(&socket).await {
            return Ok(Keeper::over(stream, says));
        }
        start(dir, command).with_context(|| format!("starting the keeper with {command:?}"))?;
        let tries = START.as_millis() / RETRY.as_millis();
        for _ in 0..tries {
            tokio::time::sleep(RETRY).await;
            if let Ok(stream) = UnixStream::connect(&socket).await {
                return Ok(Keeper::over(stream, says));
            }
        }
        bail!("the keeper did not come up within {START:?}; its log is {}", dir.join("log").display())
    }

    fn over(stream: UnixStream, says: mpsc::UnboundedSender<Option<Say>>) -> Keeper {
        let (reader, mut writer) = stream.into_split();
        let (asks, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let write = async move {
            while let Some(line) = lines.recv().await {
                if writer.write_all(&line).await.is_err() {
                    break;
                }
            }
        };
        let read = async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str(&line) {
                    Ok(say) => drop(says.send(Some(say))),
                    Err(error) => tracing::error!(%error, "the keeper said what is no answer"),
                }
            }
            let _over = says.send(None);
        };
        Keeper { asks, tasks: [tokio::spawn(write), tokio::spawn(read)] }
    }

    /// Asks for something. A keeper that is gone is found out by its last word, `None`.
    pub(crate) fn ask(&self, ask: &KeeperAsk) {
        let _gone = self.asks.send(line(ask));
    }

    /// Tells it that no agent will come back, and waits until that is said.
    pub(crate) async fn leave(mut self) {
        self.ask(&KeeperAsk::Leave);
        self.asks = mpsc::unbounded_channel().0;
        let _said = (&mut self.tasks[0]).await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Starts a keeper. It takes itself out of this process's session, and is cleared away should it end before us.
fn start(dir: &Path, command: &[String]) -> io::Result<()> {
    let Some((program, args)) = command.split_first() else {
        return Err(io::Error::other("there is no command for it"));
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(dir.join("log"))?;
    let mut command = Command::new(program);
    command.args(args).arg("--dir").arg(dir).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().map(drop)
}
