//! The keeper: the parent of all job processes on a node. It is a process of its own, started by the agent in a
//! session of its own, so that jobs live on and their exits are known whatever happens to the agent. It decides
//! nothing but one thing: should the node's lease lapse while no agent is there, the server will give the jobs to
//! others, so the keeper ends them.
//!
//! It is small, and one thread does everything but read marks: what a job can hold up must not hold up the rest. Orphans of jobs come to it (it is a child subreaper) and are ended with their
//! job. It exits by itself when it has had no processes and no agent for a while.

mod client;
mod group;
mod launch;
mod log_file;
mod marks;
mod output;
mod record;
mod secrets;
mod start;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::setsid;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

pub(crate) use self::client::Keeper;
pub use self::launch::launch_main;
use self::marks::Marks;
use self::record::KeeperRecord;
pub(crate) use self::secrets::secrets_base;
pub(crate) use self::start::{Orders, Unstartable, start};
use self::table::{FoundProcess, KeptTable};
pub(crate) use self::words::{
    Confine, KeeperAsk, ProcessExit, RankSpec, RunAs, Say, SecretFiles, Sink, StartPart, line,
};
use crate::agent::clock;
use crate::agent::inherited::keep_from_children;

/// How long it stays with nothing to do.
const IDLE: Duration = Duration::from_secs(30);

/// How often it looks at the lease, and again at processes that do not go.
const LOOK: Duration = Duration::from_millis(500);

/// How long it may look for processes of a keeper before it. An agent waits longer for it to come up.
const LEFTOVERS: Duration = Duration::from_secs(6);

/// How much longer than a part's grace an agent that is there may take to stop it, in microseconds.
const AGENT_MARGIN: u64 = 3_000_000;

/// Longest request; a job's environment is in it, for each of its ranks.
const LINE_MAX: usize = 256 << 20;

/// Open files that it wants to be able to have.
const FILES: u64 = 65_536;

/// What may wait to be said to an agent. One that does not read is cut off; the next asks for all of it.
const SAYS_MAX: usize = 4_096;

/// What an agent may ask before the first of it is done; the rest waits in its socket.
const NEWS_MAX: usize = 1_024;

/// Runs the keeper of this folder until it is of no use any more. Returns at once where another one has it.
pub fn keeper_main(dir: &Path) -> anyhow::Result<()> {
    keep_from_children();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).context("the keeper's folder")?;
    let Some(_lock) = lock(&dir.join("lock"))? else { return Ok(()) };
    raise_files();
    let _leader = setsid(); // Refused to who leads a group already, which is as good.
    set_child_subreaper(true).context("orphans cannot be kept")?;
    let id = identity(&dir.join("id"))?;
    end_leftovers(&id);
    secrets::remove_files(&secrets_base(dir));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(dir.to_owned(), id))
}

/// Each rank takes a few open files: its pipes and its logs.
fn raise_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(FILES)), hard));
    if let Err(error) = raised {
        tracing::debug!(%error, "the number of open files stays as it is");
    }
}

/// Where the keeper of a folder listens.
fn socket(dir: &Path) -> PathBuf {
    dir.join("sock")
}

fn lock(path: &Path) -> anyhow::Result<Option<File>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).context("the keeper's lock"),
    }
}

/// A name that the processes of this folder's keepers share.
fn identity(path: &Path) -> anyhow::Result<String> {
    if let Ok(id) = std::fs::read_to_string(path)
        && id.len() == 16
    {
        return Ok(id);
    }
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(path, &id)?;
    Ok(id)
}

/// Processes of a keeper that died: nobody can know how they end, and the agent will count them as lost.
fn end_leftovers(id: &str) {
    let mut marks = Marks::new(Path::new("/proc"));
    marks.look(LEFTOVERS);
    let ours = |pid: &i32| marks.mark(*pid).is_some_and(|mark| mark.starts_with(id));
    tree::pids().filter(ours).for_each(|pid| tree::send(pid, Signal::SIGKILL));
}

/// What happens to a keeper.
enum KeeperNews {
    Connected(UnixStream),
    Asked(u64, KeeperAsk),
    Closed(u64),
    /// Children may have exited.
    Child,
    Found(FoundProcess),
    /// Somebody wants it to go.
    Terminated,
    Look,
}

struct Server {
    table: KeptTable,
    record: KeeperRecord,
    /// The connection in use.
    agent: Option<Connection>,
    connections: u64,
    news: mpsc::Sender<KeeperNews>,
    /// Until when this node may run anything, in microseconds since boot.
    lease: Option<u64>,
    /// No agent will come, or none should be waited for.
    leaving: bool,
    idle: Duration,
}

/// An agent's connection. It is closed when this is dropped.
struct Connection {
    number: u64,
    lines: mpsc::Sender<Vec<u8>>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(dir: PathBuf, id: String) -> anyhow::Result<()> {
    let path = socket(&dir);
    let _old = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).with_context(|| format!("listening at {}", path.display()))?;
    let mut child = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut look = tokio::time::interval(LOOK);
    let (news, mut inbox) = mpsc::channel(NEWS_MAX);
    let (found, mut findings) = mpsc::unbounded_channel();
    let record = KeeperRecord::open(dir.join("exits")).context("the record of exits")?;
    let table = KeptTable::new(format!("{id}:{}", nix::unistd::getpid()), found);
    let (agent, lease, idle) = (None, None, Duration::ZERO);
    let mut server = Server { table, record, agent, connections: 0, news, lease, leaving: false, idle };
    while !server.is_done() {
        let news = tokio::select! {
            Ok((stream, _)) = listener.accept() => KeeperNews::Connected(stream),
            Some(news) = inbox.recv() => news,
            Some(found) = findings.recv() => KeeperNews::Found(found),
            _ = child.recv() => KeeperNews::Child,
            _ = terminate.recv() => KeeperNews::Terminated,
            _ = look.tick() => KeeperNews::Look,
        };
        server.take(news);
    }
    server.table.leave();
    Ok(())
}

impl Server {
    fn is_done(&self) -> bool {
        let unused = self.table.is_empty() && self.agent.is_none();
        unused && (self.leaving || self.idle >= IDLE)
    }

    fn take(&mut self, news: KeeperNews) {
        match news {
            KeeperNews::Connected(stream) => self.connect(stream),
            KeeperNews::Asked(connection, ask) if self.is_current(connection) => self.asked(ask),
            KeeperNews::Closed(connection) if self.is_current(connection) => self.agent = None,
            KeeperNews::Asked(..) | KeeperNews::Closed(_) => {}
            KeeperNews::Child | KeeperNews::Found(FoundProcess::Written) => self.reap(),
            KeeperNews::Found(FoundProcess::Launched(mark, answer)) => {
                let said = self.table.launched(&mark, answer);
                said.iter().for_each(|say| self.say(say));
                self.reap();
            }
            KeeperNews::Terminated => {
                (self.leaving, self.agent, self.lease) = (true, None, Some(clock::since_boot()));
                self.look();
            }
            KeeperNews::Look => self.look(),
        }
    }

    fn is_current(&self, connection: u64) -> bool {
        self.agent.as_ref().is_some_and(|current| current.number == connection)
    }

    /// The newest agent is the one that counts: an older one's connection is closed.
    fn connect(&mut self, stream: UnixStream) {
        let peer = stream.peer_cred().map(|peer| peer.uid());
        if peer.ok() != Some(nix::unistd::geteuid().as_raw()) {
            return tracing::warn!("somebody else tried to speak to the keeper");
        }
        self.connections += 1;
        let (number, (lines, unsaid)) = (self.connections, mpsc::channel(SAYS_MAX));
        let task =
            tokio::task::spawn_local(converse(number, stream, unsaid, self.news.clone())).abort_handle();
        self.agent = Some(Connection { number, lines, task });
    }

    fn say(&mut self, say: &Say) {
        let full = |agent: &Connection| agent.lines.try_send(line(say)).is_err();
        if self.agent.as_ref().is_some_and(full) {
            tracing::warn!("the agent does not listen; it must connect again");
            self.agent = None;
        }
    }

    fn asked(&mut self, ask: KeeperAsk) {
        match ask {
            KeeperAsk::Start(start) => self.start(*start),
            KeeperAsk::Signal { part, ranks, signal } => self.table.signal(part, &ranks, signal),
            KeeperAsk::Kill { part } => self.table.kill(part),
            KeeperAsk::Freeze { part } => self.table.freeze(part, true),
            KeeperAsk::Thaw { part, as_part } => {
                self.table.rename(part, as_part);
                self.table.freeze(as_part, false);
            }
            KeeperAsk::Hush { part, hushed } => self.table.hush(part, hushed),
            KeeperAsk::Pids { part } => {
                let pids = self.table.processes(part).into_iter().collect();
                self.say(&Say::Pids { part, pids });
            }
            KeeperAsk::Memory { part, max } => self.table.limit_memory(part, max),
            KeeperAsk::Lease { until } => {
                self.lease = Some(until);
                self.table.renewed();
            }
            KeeperAsk::List => {
                let (alive, exits) = (self.table.alive(), self.record.all());
                self.say(&Say::Parts { alive, exits, lease: self.lease });
            }
            KeeperAsk::Forget { part } => self.note(|record| record.forget(part)),
            KeeperAsk::Leave => self.leaving = true,
        }
    }

    fn start(&mut self, start: StartPart) {
        let said = self.table.start(start);
        said.iter().for_each(|say| self.say(say));
    }

    fn reap(&mut self) {
        let gone = self.table.reap();
        if gone.is_empty() {
            return;
        }
        self.note(|record| record.add(&gone));
        for (part, rank, exit) in gone {
            self.say(&Say::Exited { part, rank, exit });
        }
    }

    /// Changes the record. A disk that is full must not stop jobs: the exits are still in memory.
    fn note(&mut self, change: impl FnOnce(&mut KeeperRecord) -> std::io::Result<()>) {
        if let Err(error) = change(&mut self.record) {
            tracing::error!(%error, "exits are not on file until the disk takes them again");
        }
    }

    fn look(&mut self) {
        let unused = self.table.is_empty() && self.agent.is_none();
        self.idle = if unused { self.idle + LOOK } else { Duration::ZERO };
        let now = clock::since_boot();
        if let Some(until) = self.lease.filter(|until| now >= *until) {
            let margin = if self.agent.is_some() { AGENT_MARGIN } else { 0 };
            self.table.lapse(now - until, self.agent.is_none(), margin);
        }
        self.reap();
    }
}

/// One agent's connection: what it asks goes to the keeper, what the keeper says to it. Ends when either closes.
async fn converse(
    number: u64,
    stream: UnixStream,
    mut lines: mpsc::Receiver<Vec<u8>>,
    news: mpsc::Sender<KeeperNews>,
) {
    let (reader, mut writer) = stream.into_split();
    let write = async {
        while let Some(line) = lines.recv().await {
            if writer.write_all(&line).await.is_err() {
                break;
            }
        }
    };
    let read = async {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line).await, Ok(length) if length > 0 && length < LINE_MAX)
        {
            match serde_json::from_slice(&line) {
                Ok(ask) => drop(news.send(KeeperNews::Asked(number, ask)).await),
                Err(error) => tracing::error!(%error, "an agent said what is no request"),
            }
            line.clear();
        }
    };
    tokio::select! { () = write => {}, () = read => {} }
    let _over = news.send(KeeperNews::Closed(number)).await;
}
