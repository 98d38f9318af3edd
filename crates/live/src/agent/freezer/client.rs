//! The agent's end of its freezer: starts one when it is first needed, and again after one died.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::words::{Failure, FreezerAnswer, FreezerWhat, Moved, Request, line};

/// How long moving may take: eight cards of 140 GB at 2 GB/s, and some time to spare.
const MOVE_MAX: Duration = Duration::from_secs(900);

/// How long it may take to say what it can: the driver starts within a second where it starts at all.
const PROBE_MAX: Duration = Duration::from_secs(30);

type WaitingCall = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Result<Moved, Failure>>>>>;

/// Asks a freezer.
#[derive(Clone)]
pub(crate) struct Freezer {
    /// How it is started; none where there are no cards, so that there is nothing to move.
    command: Option<Arc<Vec<String>>>,
    running: Arc<Mutex<Option<Running>>>,
}

/// A freezer that runs. It is killed when this is dropped.
struct Running {
    asks: mpsc::UnboundedSender<Vec<u8>>,
    waiting: WaitingCall,
    asked: u64,
    _child: Child,
}

impl Freezer {
    /// The freezer of a node without cards: nothing need be moved.
    pub(crate) fn idle() -> Freezer {
        Freezer { command: None, running: Arc::default() }
    }

    /// One that this command runs, in this folder.
    pub(crate) fn new(command: &[String], folder: PathBuf, fake: bool) -> Freezer {
        let mut words = command.to_vec();
        words.extend(["--dir".to_owned(), folder.to_string_lossy().into_owned()]);
        words.extend(fake.then(|| "--fake".to_owned()));
        Freezer { command: Some(Arc::new(words)), running: Arc::default() }
    }

    /// Why nothing can be frozen here, where that is so.
    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        self.request(&FreezerWhat::Probe {}, PROBE_MAX).await.unwrap_or_else(|| Err(died())).map(drop)
    }

    /// Moves what these processes have on cards to the host's memory: all or none. A freezer that dies over it is
    /// followed by one that goes on, and should that die too, by one that undoes what was done.
    pub(crate) async fn freeze(&self, pids: Vec<i32>) -> Result<Moved, Failure> {
        let done = self.twice(&FreezerWhat::Freeze { pids: pids.clone() }).await;
        if done.is_none() {
            let undone = self.request(&FreezerWhat::Thaw { pids }, MOVE_MAX).await;
            tracing::warn!(?undone, "the freezer died over a job twice");
        }
        done.unwrap_or_else(|| Err(died()))
    }

    /// Moves it back.
    pub(crate) async fn thaw(&self, pids: Vec<i32>) -> Result<Moved, Failure> {
        self.twice(&FreezerWhat::Thaw { pids }).await.unwrap_or_else(|| Err(died()))
    }

    async fn twice(&self, what: &FreezerWhat) -> Option<Result<Moved, Failure>> {
        match self.request(what, MOVE_MAX).await {
            Some(done) => Some(done),
            None => self.request(what, MOVE_MAX).await,
        }
    }

    /// What it says; nothing where it died, or said nothing for so long that it was killed.
    async fn request(&self, what: &FreezerWhat, limit: Duration) -> Option<Result<Moved, Failure>> {
        let Some(command) = &self.command else { return Some(Ok(Moved::default())) };
        let answer = match self.send(command, what) {
            Ok(answer) => answer,
            Err(error) => {
                let reason = format!("the freezer cannot be started with {command:?}: {error}");
                return Some(Err(Failure { reason, forever: false }));
            }
        };
        let answer = tokio::time::timeout(limit, answer).await;
        if !matches!(answer, Ok(Ok(_))) {
            self.running().take();
        }
        answer.ok()?.ok()
    }

    fn send(
        &self,
        command: &[String],
        what: &FreezerWhat,
    ) -> io::Result<oneshot::Receiver<Result<Moved, Failure>>> {
        let mut running = self.running();
        let current = match running.take().filter(|running| !running.asks.is_closed()) {
            Some(current) => running.insert(current),
            None => running.insert(start(command)?),
        };
        let (sender, answer) = oneshot::channel();
        current.asked += 1;
        lock(&current.waiting).insert(current.asked, sender);
        if current.asks.send(line(&Request { id: current.asked, what: what.clone() })).is_err() {
            lock(&current.waiting).remove(&current.asked); // It is gone by now.
        }
        Ok(answer)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        lock(&self.running)
    }
}

fn died() -> Failure {
    Failure { reason: "the freezer died or hung over it".into(), forever: false }
}

/// Nothing that holds these locks can leave what they guard half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(command: &[String]) -> io::Result<Running> {
    let Some((program, args)) = command.split_first() else {
        return Err(io::Error::other("there is no command for it"));
    };
    let mut child = Command::new(program)
        .args(args)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("it has no input or no output"));
    };
    let (asks, lines) = mpsc::unbounded_channel();
    let waiting = WaitingCall::default();
    tokio::spawn(converse(stdin, stdout, lines, waiting.clone()));
    Ok(Running { asks, waiting, asked: 0, _child: child })
}

/// Until either end is closed; whoever still waits then hears that it died.
async fn converse(
    mut stdin: ChildStdin,
    stdout: ChildStdout,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    waiting: WaitingCall,
) {
    let write = async {
        while let Some(line) = lines.recv().await {
            if stdin.write_all(&line).await.is_err() {
                break;
            }
        }
    };
    let read = async {
        let mut answers = BufReader::new(stdout).lines();
        while let Ok(Some(text)) = answers.next_line().await {
            match serde_json::from_str::<FreezerAnswer>(&text) {
                Ok(answer) => {
                    let asker = lock(&waiting).remove(&answer.id);
                    asker.into_iter().for_each(|asker| drop(asker.send(answer.done.clone())));
                }
                Err(error) => tracing::error!(%error, "the freezer said what is no answer"),
            }
        }
    };
    tokio::select! { () = write => {}, () = read => {} }
    drop(lines);
    lock(&waiting).clear();
}
