//! Logs that people read: each request on a thread of its own, because files may lie on disks that hang, and nothing
//! else should. A request sends no more pieces than the server asked for: one whose reader stands still waits here and
//! holds up neither the others nor the agent's news.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use yard_core::ids::JobId;

use super::logs::{LogReader, POLL};
use crate::wire::{FromAgent, LOG_CREDIT};

/// Most logs that are read at once. One whose disk hangs counts until it comes back.
const READS_MAX: usize = 64;

/// The requests under way.
pub(crate) struct Reads {
    out: mpsc::Sender<FromAgent>,
    open: BTreeMap<u64, Arc<Credit>>,
    live: Live,
    places: Arc<Semaphore>,
}

/// The jobs that run here: a log that is followed ends with its job.
#[derive(Clone, Default)]
struct Live(Arc<Mutex<BTreeSet<JobId>>>);

impl Live {
    fn with<T>(&self, look: impl FnOnce(&mut BTreeSet<JobId>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How many pieces a request may still send, and whether anybody wants them.
#[derive(Debug)]
struct Credit {
    left: Mutex<Option<u32>>,
    changed: Condvar,
}

impl Credit {
    fn new() -> Arc<Credit> {
        Arc::new(Credit { left: Mutex::new(Some(LOG_CREDIT)), changed: Condvar::new() })
    }

    fn add(&self, pieces: u32) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.map(|left| left.saturating_add(pieces).min(LOG_CREDIT));
        self.changed.notify_all();
    }

    fn end(&self) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_all();
    }

    fn is_ended(&self) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Waits until a piece may be sent; whether anybody still wants it.
    fn take(&self) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(left, |left| *left == Some(0));
        let mut left = waited.unwrap_or_else(PoisonError::into_inner);
        *left = left.map(|left| left - 1);
        left.is_some()
    }

    /// Waits until it is worth looking at the file again, or nobody wants it any more.
    fn rest(&self) {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(left, POLL, |left| left.is_some()));
    }
}

impl Reads {
    /// No requests. Answers go there.
    pub(crate) fn new(out: mpsc::Sender<FromAgent>) -> Reads {
        let places = Arc::new(Semaphore::new(READS_MAX));
        Reads { out, open: BTreeMap::new(), live: Live::default(), places }
    }

    /// A job runs here, or does not any more.
    pub(crate) fn live(&self, job: JobId, lives: bool) {
        self.live.with(|jobs| if lives { jobs.insert(job) } else { jobs.remove(&job) });
    }

    /// The jobs that run here.
    pub(crate) fn set_live(&self, jobs: impl Iterator<Item = JobId>) {
        self.live.with(|live| *live = jobs.collect());
    }

    /// Begins to send a log.
    pub(crate) fn begin(&mut self, request: u64, job: JobId, path: PathBuf, tail: Option<u64>, follow: bool) {
        self.open.retain(|_, credit| !credit.is_ended());
        let (credit, out, live) = (Credit::new(), self.out.clone(), self.live.clone());
        let read = Read { request, job, out, credit: credit.clone(), live };
        match self.places.clone().try_acquire_owned() {
            Ok(place) => {
                self.open.insert(request, credit);
                tokio::task::spawn_blocking(move || read.serve(&path, tail, follow, place));
            }
            Err(_) => {
                let message = "too many logs are being read from this node; try again later".to_owned();
                drop(tokio::spawn(async move { read.out.send(read.last(Some(message))).await }));
            }
        }
    }

    /// The reader took pieces and wants as many more.
    pub(crate) fn more(&mut self, request: u64, pieces: u32) {
        if let Some(credit) = self.open.get(&request) {
            credit.add(pieces);
        }
    }

    /// Nobody reads on.
    pub(crate) fn end(&mut self, request: u64) {
        if let Some(credit) = self.open.remove(&request) {
            credit.end();
        }
    }

    /// The server is gone, and with it whoever read. They ask again.
    pub(crate) fn end_all(&mut self) {
        std::mem::take(&mut self.open).values().for_each(|credit| credit.end());
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// One request.
struct Read {
    request: u64,
    job: JobId,
    out: mpsc::Sender<FromAgent>,
    credit: Arc<Credit>,
    live: Live,
}

impl Read {
    fn serve(self, path: &Path, tail: Option<u64>, follow: bool, place: OwnedSemaphorePermit) {
        let error = self.run(path, tail, follow).err();
        drop(place);
        if !self.credit.is_ended() {
            let _gone = self.out.blocking_send(self.last(error));
        }
        self.credit.end();
    }

    /// Sends what there is; goes on for as long as the job lives, where it is followed.
    fn run(&self, path: &Path, tail: Option<u64>, follow: bool) -> Result<(), String> {
        let mut reader = LogReader::open(path, tail).map_err(|error| {
            format!(
                "there is no log {} of job {} on its node: {error}",
                path.file_name().unwrap_or_default().display(),
                self.job
            )
        })?;
        loop {
            // Before the last look, so that nothing that was written before the end is missed.
            let lives = follow && self.live.with(|jobs| jobs.contains(&self.job));
            while self.credit.take() {
                let Some(text) = reader.next().map_err(|error| error.to_string())? else {
                    self.credit.add(1);
                    break;
                };
                let piece = FromAgent::Logs { request: self.request, text, end: false, error: None };
                if self.out.blocking_send(piece).is_err() {
                    return Ok(());
                }
            }
            if !lives || self.credit.is_ended() {
                return Ok(());
            }
            self.credit.rest();
        }
    }

    fn last(&self, error: Option<String>) -> FromAgent {
        FromAgent::Logs { request: self.request, text: String::new(), end: true, error }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::agent::testing::Folder;
    use crate::wire::LOG_PIECE;

    const PIECES: usize = 100;
    const EVENTUALLY: Duration = Duration::from_secs(60);

    fn log(folder: &Folder) -> PathBuf {
        let path = folder.path().join("0.out");
        std::fs::write(&path, vec![b'x'; PIECES * LOG_PIECE]).unwrap();
        path
    }

    async fn pieces(out: &mut mpsc::Receiver<FromAgent>, request: u64, count: usize) {
        let mut seen = 0;
        while seen < count {
            let piece = tokio::time::timeout(EVENTUALLY, out.recv()).await.expect("a piece comes").unwrap();
            let FromAgent::Logs { request: of, end: false, .. } = piece else { panic!("{piece:?}") };
            seen += usize::from(of == request);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_log_is_sent_no_faster_than_it_is_read_and_holds_up_no_other() {
        let folder = Folder::new();
        let path = log(&folder);
        // Room for everything: what is not sent is not sent for want of credit.
        let (out, mut sent) = mpsc::channel(4 * PIECES);
        let mut reads = Reads::new(out);
        reads.begin(1, JobId(1), path.clone(), None, false);
        pieces(&mut sent, 1, LOG_CREDIT as usize).await;
        reads.begin(2, JobId(1), path, None, false);
        for _ in 0..PIECES / LOG_CREDIT as usize {
            pieces(&mut sent, 2, LOG_CREDIT as usize).await;
            reads.more(2, LOG_CREDIT);
        }
        pieces(&mut sent, 2, PIECES % LOG_CREDIT as usize).await;
        let last = tokio::time::timeout(EVENTUALLY, sent.recv()).await.unwrap().unwrap();
        assert!(matches!(last, FromAgent::Logs { request: 2, end: true, error: None, .. }), "{last:?}");
        assert!(sent.try_recv().is_err(), "the first waits for its reader");
        reads.more(1, 3);
        pieces(&mut sent, 1, 3).await;
        assert!(sent.try_recv().is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn readers_who_stand_still_are_counted_and_their_places_come_back() {
        let folder = Folder::new();
        let path = log(&folder);
        let (out, mut sent) = mpsc::channel(READS_MAX * LOG_CREDIT as usize + 1);
        let mut reads = Reads::new(out);
        for request in 0..=READS_MAX as u64 {
            reads.begin(request, JobId(1), path.clone(), None, false);
        }
        let refused = async {
            loop {
                if let Some(FromAgent::Logs { error: Some(error), request, .. }) = sent.recv().await {
                    break (request, error);
                }
            }
        };
        let (request, error) = tokio::time::timeout(EVENTUALLY, refused).await.expect("one is refused");
        assert!(request == READS_MAX as u64 && error.contains("too many logs"), "{error}");
        reads.end_all();
        let free = async {
            while reads.places.available_permits() < READS_MAX {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(EVENTUALLY, free).await.expect("threads end with their readers");
    }
}
