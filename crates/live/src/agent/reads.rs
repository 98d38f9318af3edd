//! Logs that people read: each request on a thread of its own, because files may lie on disks that hang, and nothing
//! else should.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use yard_core::ids::JobId;

use super::logs::{POLL, Reader};
use crate::wire::FromAgent;

/// Most logs that are read at once.
const READS_MAX: usize = 64;

/// The requests under way.
pub(crate) struct Reads {
    out: mpsc::Sender<FromAgent>,
    open: BTreeMap<u64, CancellationToken>,
    live: Live,
}

/// The jobs that run here: a log that is followed ends with its job.
#[derive(Clone, Default)]
struct Live(Arc<Mutex<BTreeSet<JobId>>>);

impl Live {
    fn with<T>(&self, look: impl FnOnce(&mut BTreeSet<JobId>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reads {
    /// No requests. Answers go there.
    pub(crate) fn new(out: mpsc::Sender<FromAgent>) -> Reads {
        Reads { out, open: BTreeMap::new(), live: Live::default() }
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
        self.open.retain(|_, token| !token.is_cancelled());
        let token = CancellationToken::new();
        let read =
            Read { request, job, out: self.out.clone(), token: token.clone(), live: self.live.clone() };
        if self.open.len() >= READS_MAX {
            let message = "too many logs of this node are being read; try again later".to_owned();
            drop(tokio::spawn(async move { read.out.send(read.last(Some(message))).await }));
            return;
        }
        self.open.insert(request, token);
        tokio::task::spawn_blocking(move || {
            let error = read.run(&path, tail, follow).err();
            let _gone = read.out.blocking_send(read.last(error));
            read.token.cancel();
        });
    }

    /// Nobody reads on.
    pub(crate) fn end(&mut self, request: u64) {
        if let Some(token) = self.open.remove(&request) {
            token.cancel();
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.open.values().for_each(CancellationToken::cancel);
    }
}

/// One request.
struct Read {
    request: u64,
    job: JobId,
    out: mpsc::Sender<FromAgent>,
    token: CancellationToken,
    live: Live,
}

impl Read {
    /// Sends what there is; goes on for as long as the job lives, where it is followed.
    fn run(&self, path: &Path, tail: Option<u64>, follow: bool) -> Result<(), String> {
        let mut reader = Reader::open(path, tail).map_err(|error| {
            format!(
                "node has no log {} of job {}: {error}",
                path.file_name().unwrap_or_default().display(),
                self.job
            )
        })?;
        loop {
            // Before the last look, so that nothing that was written before the end is missed.
            let lives = follow && self.live.with(|jobs| jobs.contains(&self.job));
            while let Some(text) = reader.next().map_err(|error| error.to_string())? {
                let piece = FromAgent::Logs { request: self.request, text, end: false, error: None };
                if self.token.is_cancelled() || self.out.blocking_send(piece).is_err() {
                    return Ok(());
                }
            }
            if !lives || self.token.is_cancelled() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
    }

    fn last(&self, error: Option<String>) -> FromAgent {
        FromAgent::Logs { request: self.request, text: String::new(), end: true, error }
    }
}
