//! Where a job's processes talk to the agent: a Unix socket for each part, JSON lines both ways. Its folder belongs
//! to the job's user and nobody else may enter it, so who connects is the job. What is malformed or too long ends
//! the connection, not the agent.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::wire::Trained;

/// Longest line that a process may say.
const LINE_MAX: u64 = 64 << 10;

/// Most connections of one part at once.
const CONNECTIONS_MAX: usize = 8_192;

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
    Joined { rank: u32, tell: mpsc::UnboundedSender<Vec<u8>> },
    /// A rank said something.
    Said { rank: u32, saying: Saying },
    /// A rank closed its connection.
    Left { rank: u32 },
}

/// The socket of one part. Closed and removed when dropped.
pub(crate) struct Socket {
    path: PathBuf,
    listens: JoinHandle<()>,
    ranks: BTreeMap<u32, mpsc::UnboundedSender<Vec<u8>>>,
}

impl Socket {
    /// Listens at `folder/s`. News come with the number given.
    pub(crate) fn open(
        folder: &Path,
        owner: Option<(u32, u32)>,
        number: u64,
        news: mpsc::UnboundedSender<(u64, SocketNews)>,
    ) -> io::Result<Socket> {
        let path = folder.join("s");
        let _old = std::fs::remove_file(&path);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let listener = UnixListener::bind(&path)?;
        if let Some((user, group)) = owner {
            chown(&path, Some(user), Some(group))?;
            chown(folder, Some(user), Some(group))?;
        }
        let listens = tokio::spawn(listen(listener, number, news));
        Ok(Socket { path, listens, ranks: BTreeMap::new() })
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
        self.path.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// Whether a rank is connected.
    pub(crate) fn speaks(&self, rank: u32) -> bool {
        self.ranks.contains_key(&rank)
    }

    /// Tells some ranks.
    pub(crate) fn tell(&self, ranks: &[u32], telling: &Telling) {
        let mut line = serde_json::to_vec(telling).expect("a telling is plain data");
        line.push(b'\n');
        for tell in ranks.iter().filter_map(|rank| self.ranks.get(rank)) {
            let _gone = tell.send(line.clone());
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.listens.abort();
        remove(&self.folder());
    }
}

/// Removes a socket that nobody listens at any more.
pub(crate) fn remove(folder: &Path) {
    let _gone = std::fs::remove_file(folder.join("s"));
    let _gone = std::fs::remove_dir(folder);
}

async fn listen(listener: UnixListener, number: u64, news: mpsc::UnboundedSender<(u64, SocketNews)>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS_MAX => {
                    let news = news.clone();
                    connections.spawn(converse(stream, move |said| drop(news.send((number, said)))));
                }
                Ok(_) => tracing::warn!("a job opens too many connections to its agent"),
                Err(error) => {
                    tracing::warn!(%error, "a job's connection was not accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One process, from its hello until it goes.
async fn converse(stream: UnixStream, news: impl Fn(SocketNews)) {
    let (reader, mut writer) = stream.into_split();
    let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
    let Some(Saying::Hello { rank }) = hear(&mut reader, &mut line).await else { return };
    let (tell, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
    news(SocketNews::Joined { rank, tell });
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) if writer.write_all(&line).await.is_ok() => {}
                _ => break,
            },
            saying = hear(&mut reader, &mut line) => match saying {
                Some(saying) => news(SocketNews::Said { rank, saying }),
                None => break,
            },
        }
    }
    drop(lines);
    news(SocketNews::Left { rank });
}

/// The next line; none at the end, or where it is not what was agreed on. What was read of a line stays in `line`
/// when the wait is given up.
async fn hear(reader: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> Option<Saying> {
    let room = LINE_MAX.saturating_sub(line.len() as u64);
    reader.take(room).read_until(b'\n', line).await.ok().filter(|_| line.ends_with(b"\n"))?;
    let saying = serde_json::from_slice(line);
    line.clear();
    if let Err(error) = &saying {
        tracing::warn!(%error, "a job said something that its agent does not understand; it is heard no more");
    }
    saying.ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::agent::testing::Folder;

    async fn next(
        news: &mut mpsc::UnboundedReceiver<(u64, SocketNews)>,
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
        let (tx, mut news) = mpsc::unbounded_channel();
        let mut socket = Socket::open(&run, None, 9, tx).unwrap();
        assert_eq!(run.metadata().unwrap().permissions().mode() & 0o777, 0o700);
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
        let (tx, mut news) = mpsc::unbounded_channel();
        let mut socket = Socket::open(folder.path(), None, 9, tx).unwrap();
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
}
