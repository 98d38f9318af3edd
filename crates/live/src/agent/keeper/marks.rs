//! Reads marks without waiting for the processes that have them. The system needs a process's memory to show its
//! environment, and a process can hold that up for ever, with a file system of its own for one. So a thread reads,
//! and is waited for only so long. A process that is too slow counts as one that hides its mark.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::tree;
use crate::agent::clock;

/// How long one process may take.
const WAIT: Duration = Duration::from_millis(250);

/// How long all processes of one look may take together; the rest count as hidden this time.
pub(super) const LOOK_MAX: Duration = Duration::from_secs(1);

/// Threads that may be stuck at once. Once there are as many, all marks count as hidden.
const STUCK_MAX: usize = 16;

/// Reads them.
pub(super) struct Marks {
    /// Where the system shows processes.
    proc: PathBuf,
    reader: Option<MarkReader>,
    /// Every reader's thread has a copy until it ends.
    threads: Arc<()>,
    /// Processes that were too slow, with when they started. They are not read again.
    slow: BTreeSet<(i32, u64)>,
    /// What is left of the time for this look.
    left: Duration,
}

/// A thread that reads. It ends when this is dropped and the system has answered it.
struct MarkReader {
    pids: Sender<i32>,
    marks: Receiver<Option<String>>,
}

impl Marks {
    /// None read yet.
    pub(super) fn new(proc: &Path) -> Marks {
        let (proc, slow) = (proc.to_owned(), BTreeSet::new());
        Marks { proc, reader: None, threads: Arc::new(()), slow, left: LOOK_MAX }
    }

    /// Begins another look, which may take so long in all.
    pub(super) fn look(&mut self, time: Duration) {
        self.left = time;
        self.slow.retain(|(pid, start)| tree::started(&self.proc, *pid) == Some(*start));
    }

    /// The mark of a process, where it shows one in time.
    pub(super) fn mark(&mut self, pid: i32) -> Option<String> {
        let process = (pid, tree::started(&self.proc, pid)?);
        if self.left < WAIT || self.slow.contains(&process) {
            return None;
        }
        let reader = self.reader.take().or_else(|| self.begin())?;
        let began = clock::since_boot();
        let answer = reader.pids.send(pid).map_err(|_| RecvTimeoutError::Disconnected);
        let answer = answer.and_then(|()| reader.marks.recv_timeout(WAIT));
        let took = clock::since_boot().saturating_sub(began);
        self.left = self.left.saturating_sub(Duration::from_micros(took));
        match answer {
            Ok(mark) => {
                self.reader = Some(reader);
                mark
            }
            Err(error) => {
                tracing::warn!(pid, %error, "a process does not let its environment be read");
                self.slow.insert(process);
                None
            }
        }
    }

    /// Another thread, unless too many are stuck.
    fn begin(&self) -> Option<MarkReader> {
        if Arc::strong_count(&self.threads) > STUCK_MAX {
            return None;
        }
        let ((pids, asked), (answers, marks)) = (channel(), channel());
        let (proc, held) = (self.proc.clone(), self.threads.clone());
        let read = move || {
            let _held = held;
            while let Ok(pid) = asked.recv()
                && answers.send(tree::mark(&proc, pid)).is_ok()
            {}
        };
        let started = thread::Builder::new().name("marks".into()).spawn(read);
        started.inspect_err(|error| tracing::warn!(%error, "marks cannot be read")).ok()?;
        Some(MarkReader { pids, marks })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::stat::Mode;

    use super::*;
    use crate::agent::testing::Folder;

    /// A process whose environment can be read, or whose reader waits for ever: a named pipe has no end.
    fn process(proc: &Path, pid: i32, environment: Option<&str>) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        start_at(proc, pid, 77);
        match environment {
            Some(text) => fs::write(folder.join("environ"), text).unwrap(),
            None => nix::unistd::mkfifo(&folder.join("environ"), Mode::from_bits_truncate(0o600)).unwrap(),
        }
    }

    fn start_at(proc: &Path, pid: i32, start: u64) {
        let stat = format!("{pid} (a) b) S 1 {}{start} 0 0\n", "0 ".repeat(17));
        fs::write(proc.join(pid.to_string()).join("stat"), stat).unwrap();
    }

    /// Lets the threads go that wait for a process.
    fn release(proc: &Path, pid: i32) {
        fs::write(proc.join(pid.to_string()).join("environ"), "YARD_KEEPER=late\0").unwrap();
    }

    #[test]
    fn a_process_that_holds_up_its_reader_is_hidden_and_not_read_again() {
        let folder = Folder::new();
        let mut marks = Marks::new(folder.path());
        process(folder.path(), 1, Some("PATH=/bin\0YARD_KEEPER=a:1\0"));
        process(folder.path(), 2, None);
        assert_eq!(marks.mark(1).as_deref(), Some("a:1"));
        assert_eq!(marks.mark(2), None);
        let left = marks.left;
        assert_eq!(marks.mark(2), None);
        assert_eq!(marks.left, left, "nobody waits for it twice");
        assert_eq!(marks.mark(1).as_deref(), Some("a:1"), "others are read by another thread");
        // Another process with the same number is another process.
        release(folder.path(), 2);
        start_at(folder.path(), 2, 78);
        fs::remove_file(folder.path().join("2/environ")).unwrap();
        process(folder.path(), 2, Some("YARD_KEEPER=a:2\0"));
        start_at(folder.path(), 2, 78);
        marks.look(LOOK_MAX);
        assert_eq!(marks.mark(2).as_deref(), Some("a:2"));
        assert_eq!((marks.mark(3), marks.slow.len()), (None, 0));
    }

    #[test]
    fn only_so_many_threads_get_stuck_and_one_look_takes_only_so_long() {
        let folder = Folder::new();
        let mut marks = Marks::new(folder.path());
        process(folder.path(), 1, Some("YARD_KEEPER=a:1\0"));
        (2..40).for_each(|pid| process(folder.path(), pid, None));
        assert!((2..40).all(|pid| marks.mark(pid).is_none()));
        assert!((1..=4).contains(&marks.slow.len()), "{} in one look", marks.slow.len());
        marks.look(Duration::from_secs(3600));
        assert!((2..40).all(|pid| marks.mark(pid).is_none()));
        assert_eq!((marks.slow.len(), marks.mark(1)), (STUCK_MAX, None));
        let stuck: Vec<i32> = marks.slow.iter().map(|(pid, _)| *pid).collect();
        stuck.into_iter().for_each(|pid| release(folder.path(), pid));
        while marks.mark(1).is_none() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
