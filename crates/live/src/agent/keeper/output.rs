//! A rank's output on its way to our logs: the rank writes to a pipe, and a task of the keeper moves that to the file.
//! The file cannot be outrun: the task rotates it itself, and reads no faster than `RATE` after a burst, so a job that
//! writes faster waits. Files are written on other threads, because a disk that hangs must not hang the keeper.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::unistd::{Gid, Uid, fchown};
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log_file::LogFile;
use super::words::RunAs;

/// Bytes taken at once.
const PIECE: usize = 64 << 10;

/// Bytes a second that a stream may write for long.
const RATE: f64 = (32 << 20) as f64;

/// Bytes that it may write faster than that.
const BURST: f64 = (64 << 20) as f64;

/// Bytes taken at a rank's end: as much as a pipe can hold, since nothing writes to it any more.
const LAST: usize = 1 << 20;

/// How long a rank's end waits for a disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way of a stream to its file: its end in the keeper.
pub(super) struct Stream {
    pipe: PipeReader,
    log: LogFile,
    whole: Option<Whole>,
}

/// The log of a rank that gets what all its streams carry, as it arrives.
pub(super) type Whole = Arc<Mutex<LogFile>>;

/// What is between a rank and its logs.
#[derive(Default)]
pub(super) struct Output {
    over: CancellationToken,
    /// Streams that are not done.
    open: Rc<Cell<usize>>,
    /// A line that is written after all the rank wrote.
    last: Rc<RefCell<Option<String>>>,
    asked: Option<Instant>,
}

impl Stream {
    /// A pipe to a log: the job's end, which is its user's own so that it can open `/dev/stdout`, and ours.
    pub(super) fn to(
        log: LogFile,
        whole: Option<Whole>,
        user: Option<&RunAs>,
    ) -> io::Result<(OwnedFd, Stream)> {
        let (pipe, job) = io::pipe()?;
        let job = OwnedFd::from(job);
        if let Some(user) = user {
            fchown(&job, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))?;
        }
        Ok((job, Stream { pipe, log, whole }))
    }
}

impl Output {
    /// Begins to move the streams of a rank; `done` is called as each is done. The last one gets the last line.
    pub(super) fn begin(streams: Vec<Stream>, done: impl Fn() + Clone + 'static) -> io::Result<Output> {
        let output = Output::default();
        let count = streams.len();
        for (stream, number) in streams.into_iter().zip(1..) {
            let pipe = Receiver::from_owned_fd(stream.pipe.into())?;
            let (over, open, done) = (output.over.clone(), output.open.clone(), done.clone());
            let last = if number == count { output.last.clone() } else { Rc::default() };
            open.set(open.get() + 1);
            tokio::task::spawn_local(async move {
                let writer = Writer { log: Some(stream.log), whole: stream.whole, buffer: vec![0; PIECE] };
                move_all(pipe, writer, over, last).await;
                open.set(open.get() - 1);
                done();
            });
        }
        Ok(output)
    }

    /// A line to be written at the very end.
    pub(super) fn say_last(&self, line: String) {
        self.last.replace(Some(line));
    }

    /// Nothing of the rank is left: whether all it wrote is on file. A disk that hangs is not waited for long.
    pub(super) fn finish(&mut self) -> bool {
        self.over.cancel();
        let since = *self.asked.get_or_insert_with(Instant::now);
        self.open.get() == 0 || since.elapsed() > PATIENCE
    }
}

/// Moves a stream to its log until the rank is over.
async fn move_all(
    pipe: Receiver,
    mut writer: Writer,
    over: CancellationToken,
    last: Rc<RefCell<Option<String>>>,
) {
    move_paced(&pipe, &mut writer, &over).await;
    over.cancelled().await;
    // Not through the runtime, which may not know yet what there is to read.
    if let Ok(rest) = pipe.into_nonblocking_fd() {
        let mut rest = File::from(rest);
        let mut left = LAST;
        while left > 0
            && let Ok(length @ 1..) = rest.read(&mut writer.buffer)
        {
            writer.append(length).await;
            left = left.saturating_sub(length);
        }
    }
    let line = last.take();
    if let Some(line) = line {
        writer.buffer = format!("{line}\n").into_bytes();
        writer.append(writer.buffer.len()).await;
    }
}

/// Until nobody can write to it any more, or the rank is over.
async fn move_paced(pipe: &Receiver, writer: &mut Writer, over: &CancellationToken) {
    let mut pace = OutputPace { left: BURST, at: Instant::now() };
    while let Some(Ok(())) = over.run_until_cancelled(pipe.readable()).await {
        match pipe.try_read(&mut writer.buffer) {
            Ok(0) => return,
            Ok(length) => {
                writer.append(length).await;
                let wait = pace.spend(length, Instant::now());
                over.run_until_cancelled(tokio::time::sleep(wait)).await;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// A log, and what is to be written to it.
struct Writer {
    /// None only where a write never came back.
    log: Option<LogFile>,
    whole: Option<Whole>,
    buffer: Vec<u8>,
}

impl Writer {
    /// Appends the first so many bytes of the buffer, on another thread.
    async fn append(&mut self, length: usize) {
        let Some(mut log) = self.log.take() else { return };
        let buffer = std::mem::take(&mut self.buffer);
        let whole = self.whole.clone();
        let written = tokio::task::spawn_blocking(move || {
            log.append(&buffer[..length]);
            if let Some(whole) = whole {
                whole.lock().unwrap_or_else(PoisonError::into_inner).append(&buffer[..length]);
            }
            (log, buffer)
        });
        if let Ok((log, buffer)) = written.await {
            (self.log, self.buffer) = (Some(log), buffer);
        }
    }
}

/// How fast a stream is read.
struct OutputPace {
    /// Bytes that may be read at once.
    left: f64,
    at: Instant,
}

impl OutputPace {
    /// So many bytes were read: how long to wait before the next.
    fn spend(&mut self, bytes: usize, now: Instant) -> Duration {
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * RATE;
        self.left = (self.left + earned).min(BURST) - bytes as f64;
        self.at = now;
        Duration::from_secs_f64((-self.left / RATE).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_slowed_after_a_burst_and_may_burst_again_later() {
        let start = Instant::now();
        let mut pace = OutputPace { left: BURST, at: start };
        assert_eq!(pace.spend(64 << 20, start), Duration::ZERO);
        assert_eq!(pace.spend(32 << 20, start), Duration::from_secs(1));
        assert_eq!(pace.spend(32 << 20, start + Duration::from_secs(1)), Duration::from_secs(1));
        assert_eq!(pace.spend(64 << 20, start + Duration::from_secs(60)), Duration::ZERO);
    }
}
