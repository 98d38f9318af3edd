//! Where a job's processes talk to the agent: a Unix socket for each part, JSON lines both ways. The folder belongs to
//! the agent and the socket in it to the job's user: nobody else may connect, and who does is asked for anyway. What
//! is malformed or too long ends the connection, not the agent; who talks too much waits.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::bucket::TokenBucket;
use super::opendir::{FileOwner, OpenDir};
use super::seldom::Seldom;
use crate::wire::Trained;

/// The socket in its folder.
const NAME: &str = "s";

/// Longest line that a process may say.
const LINE_MAX: u64 = 4 << 10;

/// Most connections of one part at once: some for each rank, and some for tools.
const CONNECTIONS_OF_RANK: usize = 4;
const CONNECTIONS_MORE: usize = 16;

/// Lines a second that a part may say for each of its ranks, and how many at once after a silence.
const LINES_OF_RANK: u32 = 200;
const LINES_AT_ONCE: u32 = 400;

/// What may wait to be told to a rank. One that does not read is cut off.
const TELLINGS_MAX: usize = 64;

/// How long a process may take to say hello, and to take a line.
const HELLO_MAX: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });
const TAKE_MAX: Duration = Duration::from_secs(10);

/// How long a socket rests after it refused a connection.
const REFUSED: Duration = Duration::from_millis(20);

/// News of all sockets that wait for the agent. When so many do, connections are read no further.
pub(crate) const NEWS_MAX: usize = 256;

/// What a process says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Saying {
    /// The first line.
    Hello { rank: u32 },
    /// How far it has come.
    Progress { step: u64, total: Option<u64> },
    /// What is safe.
    Checkpointed { step: u64, seconds: Option<f64> },
    /// The answer to `Hold`.
    Boundary { step: u64 },
    /// How long its steps take.
    Trained(Trained),
}

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Telling {
    /// Say before which step you could stop, and wait there.
    Hold {},
    /// Make steps of so many examples on each device, and accumulate so often, from now on.
    Batch { local: u32, extra: u32 },
    /// Do not begin step `at`; save and exit with 0.
    Stop { at: Option<u64>, why: String, grace_s: f64 },
}

/// News of a socket.
#[derive(Debug)]
pub(crate) enum SocketNews {
    /// A rank said hello; what it should be told goes there.
    Joined { rank: u32, tell: mpsc::Sender<Vec<u8>> },
    /// A rank said something.
    Said { rank: u32, saying: Saying },
    /// A rank closed its connection.
    Left { rank: u32 },
}

/// Where news of sockets go, each with its socket's number.
pub(crate) type NewsSender = mpsc::Sender<(u64, SocketNews)>;

/// Whose socket it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Users {
    /// The job's user, where that is not the agent's own.
    pub(crate) owner: Option<FileOwner>,
    /// How many ranks its part has on this node.
    pub(crate) ranks: u32,
}

/// The socket of one part. Closed and removed when dropped.
pub(crate) struct Socket {
    folder: PathBuf,
    listens: JoinHandle<()>,
    ranks: BTreeMap<u32, mpsc::Sender<Vec<u8>>>,
}

impl Socket {
    /// Listens at `folder/s`. News come with the number given.
    pub(crate) fn open(folder: &Path, users: Users, number: u64, news: NewsSender) -> io::Result<Socket> {
        let dir = claim(folder)?;
        // The folder is the agent's by now, and so is the one above it: this path leads nowhere else.
        let listener = UnixListener::bind(folder.join(NAME))?;
        dir.give_entry(OsStr::new(NAME), users.owner)?;
        let listens = tokio::spawn(listen(listener, users, number, news));
        Ok(Socket { folder: folder.to_owned(), listens, ranks: BTreeMap::new() })
    }

    /// Takes note of who can be told, and gives what was said, if anything.
    pub(crate) fn take(&mut self, news: SocketNews) -> (u32, Option<Saying>) {
        match news {
            SocketNews::Joined { rank, tell } => {
                self.ranks.insert(rank, tell);
                (rank, Some(Saying::Hello { rank }))
            }
            SocketNews::Said { rank, saying } => (rank, Some(saying)),
            SocketNews::Left { rank } => {
                self.ranks.retain(|known, tell| *known != rank || !tell.is_closed());
                (rank, None)
            }
        }
    }

    /// The folder it is in.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Whether a rank is connected.
    pub(crate) fn speaks(&self, rank: u32) -> bool {
        self.ranks.contains_key(&rank)
    }

    /// Tells some ranks. The connection of one that has not read for long is closed.
    pub(crate) fn tell(&mut self, ranks: &[u32], telling: &Telling) {
        let mut line = serde_json::to_vec(telling).expect("a telling is plain data");
        line.push(b'\n');
        for rank in ranks {
            let told = self.ranks.get(rank).map(|tell| tell.try_send(line.clone()));
            if let Some(Err(mpsc::error::TrySendError::Full(_))) = told {
                self.ranks.remove(rank);
                tracing::warn!(rank, "a rank does not read what it is told; its connection is closed");
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.listens.abort();
        remove(&self.folder);
    }
}

/// Makes a socket's folder, or takes back and empties the one that is there: an older version left it to the job's user,
/// who may have put anything in it.
fn claim(folder: &Path) -> io::Result<OpenDir> {
    match std::fs::DirBuilder::new().mode(0o711).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let dir = OpenDir::open(folder)?;
    dir.take_back()?;
    dir.clear()?;
    Ok(dir)
}

/// Removes a socket that nobody listens at any more.
pub(crate) fn remove(folder: &Path) {
    let emptied = OpenDir::open(folder).and_then(|dir| {
        dir.take_back()?;
        dir.clear()
    });
    // A link is no folder, so that neither of these follows one.
    if let Err(error) = emptied.and_then(|()| std::fs::remove_dir(folder))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.display(), "the folder of a socket stays");
    }
}

async fn listen(listener: UnixListener, users: Users, number: u64, news: NewsSender) {
    let most = CONNECTIONS_OF_RANK * users.ranks as usize + CONNECTIONS_MORE;
    let pace = SocketPace::new(users.ranks);
    let (mut connections, mut complaints) = (JoinSet::new(), Seldom::default());
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if !may_speak(&stream, users.owner) => {
                    complaints.say(|times| tracing::warn!(times, "another user connected to a job's socket"));
                    refuse(stream).await;
                }
                Ok((stream, _)) if connections.len() < most => {
                    let (news, pace) = (Outbox { number, news: news.clone() }, pace.clone());
                    connections.spawn(converse(stream, news, pace));
                }
                Ok((stream, _)) => {
                    complaints.say(|times| tracing::warn!(times, most, "a job opens too many connections"));
                    refuse(stream).await;
                }
                Err(error) => {
                    complaints.say(|times| tracing::warn!(times, %error, "a job's connection was not accepted"));
                    tokio::time::sleep(REFUSED).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Closes a connection, and takes no other for a moment: a job may try again as fast as it can.
async fn refuse(stream: UnixStream) {
    drop(stream);
    tokio::time::sleep(REFUSED).await;
}

/// Whether who connected is the job's user, or the agent's.
fn may_speak(stream: &UnixStream, owner: Option<FileOwner>) -> bool {
    let own = geteuid().as_raw();
    let user = owner.map_or(own, |(user, _)| user);
    stream.peer_cred().is_ok_and(|peer| peer.uid() == user || peer.uid() == own)
}

/// How fast a part is listened to: all its connections together.
#[derive(Clone)]
struct SocketPace(Arc<Mutex<TokenBucket>>);

impl SocketPace {
    fn new(ranks: u32) -> SocketPace {
        let ranks = ranks.max(1);
        let bucket =
            TokenBucket::new(LINES_OF_RANK.saturating_mul(ranks), LINES_AT_ONCE.saturating_mul(ranks));
        SocketPace(Arc::new(Mutex::new(bucket)))
    }

    /// Waits until another line may be read. Who waits has its turn in order.
    async fn wait(&self) {
        self.0.lock().await.take().await;
    }
}

/// Where one socket's news go.
struct Outbox {
    number: u64,
    news: NewsSender,
}

impl Outbox {
    /// Waits until there is room; whether anybody listens.
    async fn send(&self, news: SocketNews) -> bool {
        self.news.send((self.number, news)).await.is_ok()
    }
}

/// One process, from its hello until it goes.
async fn converse(stream: UnixStream, news: Outbox, pace: SocketPace) {
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::with_capacity(LINE_MAX as usize, reader);
    let hello = async {
        pace.wait().await;
        hear(&mut reader).await
    };
    let Ok(Some(Saying::Hello { rank })) = timeout(HELLO_MAX, hello).await else { return };
    let (tell, lines) = mpsc::channel(TELLINGS_MAX);
    if !news.send(SocketNews::Joined { rank, tell }).await {
        return;
    }
    tokio::select! {
        () = hear_all(&mut reader, rank, &news, &pace) => {}
        () = tell_all(writer, lines) => {}
    }
    news.send(SocketNews::Left { rank }).await;
}

async fn hear_all(reader: &mut BufReader<OwnedReadHalf>, rank: u32, news: &Outbox, pace: &SocketPace) {
    loop {
        pace.wait().await;
        let Some(saying) = hear(reader).await else { return };
        if !news.send(SocketNews::Said { rank, saying }).await {
            return;
        }
    }
}

/// Until the process takes no more, or is to be told no more.
async fn tell_all(mut writer: OwnedWriteHalf, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if !matches!(timeout(TAKE_MAX, writer.write_all(&line)).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// The next line; none at the end, or where it is not what was agreed on.
async fn hear(reader: &mut BufReader<OwnedReadHalf>) -> Option<Saying> {
    let mut line = Vec::new();
    reader.take(LINE_MAX).read_until(b'\n', &mut line).await.ok().filter(|_| line.ends_with(b"\n"))?;
    let saying = serde_json::from_slice(&line);
    if let Err(error) = &saying {
        tracing::debug!(%error, "a job said something that its agent does not understand; its connection ends");
    }
    saying.ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::agent::testing::{Folder, LinkAttack, NOBODY, is_root, owner_and_mode};

    const ONE: Users = Users { owner: None, ranks: 1 };

    async fn next(
        news: &mut mpsc::Receiver<(u64, SocketNews)>,
        socket: &mut Socket,
    ) -> (u32, Option<Saying>) {
        let (number, news) = news.recv().await.unwrap();
        assert_eq!(number, 9);
        socket.take(news)
    }

    #[tokio::test]
    async fn a_rank_says_hello_reports_and_is_told_to_stop() {
        let folder = Folder::new();
        let run = folder.path().join("run");
        let (tx, mut news) = mpsc::channel(NEWS_MAX);
        let mut socket = Socket::open(&run, ONE, 9, tx).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&run), mode(&run.join("s"))), (0o711, 0o600));
        let mut job = UnixStream::connect(run.join("s")).await.unwrap();
        let lines = "{\"hello\":{\"rank\":2,\"pid\":77,\"token\":null}}\n{\"progress\":{\"step\":5,\"total\":null}}\n\
            {\"checkpointed\":{\"step\":4,\"seconds\":0.5}}\n{\"boundary\":{\"step\":6}}\n";
        let (first, rest) = lines.split_at(70); // In the middle of a line.
        job.write_all(first.as_bytes()).await.unwrap();
        assert_eq!(next(&mut news, &mut socket).await, (2, Some(Saying::Hello { rank: 2 })));
        assert!(socket.speaks(2) && !socket.speaks(1));
        socket.tell(&[1, 2], &Telling::Hold {});
        job.write_all(rest.as_bytes()).await.unwrap();
        assert_eq!(next(&mut news, &mut socket).await, (2, Some(Saying::Progress { step: 5, total: None })));
        let saved = Saying::Checkpointed { step: 4, seconds: Some(0.5) };
        assert_eq!(next(&mut news, &mut socket).await, (2, Some(saved)));
        assert_eq!(next(&mut news, &mut socket).await, (2, Some(Saying::Boundary { step: 6 })));
        socket.tell(&[2], &Telling::Stop { at: Some(6), why: "moved".into(), grace_s: 30.0 });
        let mut heard = BufReader::new(&mut job).lines();
        assert_eq!(heard.next_line().await.unwrap().unwrap(), "{\"hold\":{}}");
        let stop = heard.next_line().await.unwrap().unwrap();
        assert_eq!(stop, "{\"stop\":{\"at\":6,\"why\":\"moved\",\"grace_s\":30.0}}");
        drop(job);
        assert_eq!(next(&mut news, &mut socket).await, (2, None));
        assert!(!socket.speaks(2));
        drop(socket);
        assert!(!run.exists());
    }

    #[tokio::test]
    async fn nonsense_and_endless_lines_end_only_the_connection() {
        let folder = Folder::new();
        let (tx, mut news) = mpsc::channel(NEWS_MAX);
        let mut socket = Socket::open(folder.path(), ONE, 9, tx).unwrap();
        for nonsense in
            [b"{\"stop\":{}}\n".to_vec(), b"\xff\xfe\n".to_vec(), vec![b'['; LINE_MAX as usize + 9]]
        {
            let mut job = UnixStream::connect(folder.path().join("s")).await.unwrap();
            let _cut = job.write_all(&nonsense).await;
            assert_eq!(job.read(&mut [0; 8]).await.unwrap_or(0), 0);
        }
        let mut job = UnixStream::connect(folder.path().join("s")).await.unwrap();
        job.write_all(b"{\"hello\":{\"rank\":0}}\n").await.unwrap();
        assert_eq!(next(&mut news, &mut socket).await, (0, Some(Saying::Hello { rank: 0 })));
    }

    /// As an agent that is killed leaves it: nobody listens, and the folder is still there.
    fn leave(socket: Socket) {
        socket.listens.abort();
        std::mem::forget(socket);
    }

    #[tokio::test]
    async fn in_500_restarts_a_job_that_plants_links_in_its_folder_gets_nothing_of_roots() {
        if !is_root("only root opens sockets of other users") {
            return;
        }
        let folder = Folder::new();
        let (run, victim) = (folder.path().join("7-3-1"), folder.path().join("victim"));
        std::fs::write(&victim, "").unwrap();
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o600)).unwrap();
        let before = owner_and_mode(&victim);
        let users = Users { owner: Some(NOBODY), ranks: 1 };
        let (tx, _news) = mpsc::channel(NEWS_MAX);
        std::fs::create_dir(&run).unwrap();
        let attack = LinkAttack::begin(&run, &["s"], &victim);
        for round in 0..500 {
            // As an older version left it: the folder is the job's user's.
            std::os::unix::fs::chown(&run, Some(NOBODY.0), Some(NOBODY.1)).unwrap();
            for _ in 0..round % 3 {
                tokio::time::sleep(Duration::from_millis(1)).await; // Some time for the attacker.
            }
            let socket = Socket::open(&run, users, 9, tx.clone()).unwrap();
            assert_eq!(owner_and_mode(&run), (0, 0, 0o40_711));
            assert_eq!(owner_and_mode(&run.join("s")), (NOBODY.0, NOBODY.1, 0o140_600));
            let entries = run.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
            assert_eq!(entries.collect::<Vec<_>>(), ["s"], "nobody but the agent makes anything there");
            leave(socket);
        }
        let (rounds, made) = attack.end();
        assert!(rounds > 500 && made > 100, "the attack ran: {rounds} rounds, {made} links");
        assert_eq!(owner_and_mode(&victim), before);
    }

    #[tokio::test]
    async fn a_folder_that_is_a_link_is_refused_and_a_folder_in_place_of_the_socket_is_removed() {
        let folder = Folder::new();
        let (tx, _news) = mpsc::channel(NEWS_MAX);
        let victim = folder.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("s"), "kept").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("link")).unwrap();
        assert!(Socket::open(&folder.path().join("link"), ONE, 9, tx.clone()).is_err());
        remove(&folder.path().join("link"));
        assert_eq!(std::fs::read(victim.join("s")).unwrap(), b"kept");
        std::fs::create_dir_all(folder.path().join("7-3-1/s/deep")).unwrap();
        Socket::open(&folder.path().join("7-3-1"), ONE, 9, tx).unwrap();
    }

    #[tokio::test]
    async fn other_users_are_not_listened_to() {
        let stranger = Some((geteuid().as_raw() + 1, 1));
        let (one, other) = UnixStream::pair().unwrap();
        assert!(may_speak(&one, None) && may_speak(&other, stranger), "the agent's own user may");
        if !is_root("only root can try as another user") {
            return;
        }
        let folder = Folder::new();
        let (tx, mut news) = mpsc::channel(NEWS_MAX);
        let run = folder.path().join("7-3-1");
        let _socket = Socket::open(&run, Users { owner: Some(NOBODY), ranks: 1 }, 9, tx).unwrap();
        let say = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
            s.sendall(b'{\"hello\":{\"rank\":0}}\\n'); s.recv(1)";
        let connect = |uid: u32| {
            use std::os::unix::process::CommandExt;
            let mut command = std::process::Command::new("/usr/bin/python3");
            command.args(["-c", say]).arg(run.join("s")).uid(uid).gid(uid).current_dir("/");
            command.stderr(std::process::Stdio::null()).spawn().unwrap()
        };
        assert!(!connect(65_533).wait().unwrap().success(), "the system refuses them");
        std::fs::set_permissions(run.join("s"), std::fs::Permissions::from_mode(0o666)).unwrap();
        let mut others = [connect(65_533), connect(NOBODY.0)];
        let (_, joined) = news.recv().await.unwrap();
        assert!(matches!(joined, SocketNews::Joined { rank: 0, .. }));
        while others[0].try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await; // It is dropped by the agent.
        }
        assert!(news.try_recv().is_err(), "one of them was heard");
        others.iter_mut().for_each(|child| drop((child.kill(), child.wait())));
    }

    async fn connect(path: &Path, rank: u32) -> UnixStream {
        let mut job = UnixStream::connect(path).await.unwrap();
        job.write_all(format!("{{\"hello\":{{\"rank\":{rank}}}}}\n").as_bytes()).await.unwrap();
        job
    }

    #[tokio::test]
    async fn a_flood_waits_in_the_jobs_own_buffers_and_another_parts_message_gets_through() {
        let folder = Folder::new();
        let (tx, mut news) = mpsc::channel(NEWS_MAX);
        let loud = Socket::open(&folder.path().join("1-1-1"), ONE, 1, tx.clone()).unwrap();
        let _calm = Socket::open(&folder.path().join("2-2-1"), ONE, 2, tx.clone()).unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        for rank in 0..8 {
            let mut job = connect(&loud.folder().join("s"), rank).await;
            let stop = stop.clone();
            tokio::spawn(async move {
                let lines = b"{\"progress\":{\"step\":1,\"total\":null}}\n".repeat(256);
                while !stop.is_cancelled() && job.write_all(&lines).await.is_ok() {}
            });
        }
        // Nobody takes anything in for a while: what waits is bounded.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(tx.capacity(), 0, "they wait");
        let mut other = connect(&folder.path().join("2-2-1/s"), 0).await;
        other.write_all(b"{\"progress\":{\"step\":7,\"total\":null}}\n").await.unwrap();
        let (mut of_loud, mut heard) = (0, 0);
        while heard < 2 {
            match news.recv().await.unwrap() {
                (2, _) => heard += 1,
                _ => of_loud += 1,
            }
        }
        assert!(of_loud <= 4 * NEWS_MAX, "{of_loud} messages were in its way");
        // From now on as fast as they are taken: no faster than agreed on.
        let began = tokio::time::Instant::now();
        let mut heard = 0_u32;
        while began.elapsed() < Duration::from_secs(3) {
            if timeout(Duration::from_millis(50), news.recv()).await.is_ok() {
                heard += 1;
            }
        }
        let most = LINES_AT_ONCE as f64 + f64::from(LINES_OF_RANK) * (began.elapsed().as_secs_f64() + 1.0);
        assert!(f64::from(heard) <= most, "{heard} lines in {:?}", began.elapsed());
        stop.cancel();
    }

    #[tokio::test]
    async fn a_rank_that_does_not_read_is_cut_off_and_too_many_connections_are_refused() {
        let folder = Folder::new();
        let (tx, mut news) = mpsc::channel(NEWS_MAX);
        let mut socket = Socket::open(folder.path(), ONE, 9, tx).unwrap();
        let deaf = connect(&folder.path().join("s"), 0).await;
        next(&mut news, &mut socket).await;
        let why = "x".repeat(64 << 10); // More than a socket's buffer holds.
        let stop = Telling::Stop { at: None, why, grace_s: 1.0 };
        let told = (0..10 * TELLINGS_MAX).take_while(|_| {
            socket.tell(&[0], &stop);
            socket.speaks(0)
        });
        assert!(told.count() <= TELLINGS_MAX, "no more waits for it");
        drop(deaf);
        let most = CONNECTIONS_OF_RANK + CONNECTIONS_MORE;
        let mut open = Vec::new();
        for rank in 0..most as u32 {
            open.push(connect(&folder.path().join("s"), rank).await);
        }
        let mut more = connect(&folder.path().join("s"), 99).await;
        assert_eq!(more.read(&mut [0; 8]).await.unwrap_or(0), 0, "it is closed");
    }

    #[tokio::test]
    async fn who_says_no_hello_is_not_waited_for() {
        let folder = Folder::new();
        let (tx, _news) = mpsc::channel(NEWS_MAX);
        let _socket = Socket::open(folder.path(), ONE, 9, tx).unwrap();
        let mut silent = UnixStream::connect(folder.path().join("s")).await.unwrap();
        assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
