//! A log of ours on disk: it is appended to, and moved aside when it is full, so that at most twice its size is ever
//! there. It lies in a folder of the keeper's own user. A disk that is full costs output, never the job.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::libc::O_NOFOLLOW;

use super::words::Sink;
use crate::agent::logs::rotated;

/// One log.
pub(super) struct LogFile {
    path: PathBuf,
    max: u64,
    /// None after it could not be opened; that is tried again.
    file: Option<File>,
    size: u64,
    /// Whether what was written ends within a line.
    within: bool,
    /// The last write failed, and that was said.
    failing: bool,
}

impl LogFile {
    /// Opens a log, and writes its header.
    pub(super) fn open(sink: &Sink, max: u64) -> io::Result<LogFile> {
        let mut log =
            LogFile { path: sink.path.clone(), max, file: None, size: 0, within: false, failing: false };
        log.reopen()?;
        if let Some(header) = &sink.header {
            log.append(format!("{header}\n").as_bytes());
        }
        Ok(log)
    }

    /// Appends. What cannot be written is dropped, and the keeper's log says so once.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        match self.write(bytes) {
            Ok(()) => self.failing = false,
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(%error, path = %self.path.display(), "output of a job is dropped");
                }
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(self.fitting(bytes));
            self.write_here(now)?;
            bytes = later;
            if !bytes.is_empty() {
                self.rotate()?;
            }
        }
        Ok(())
    }

    /// How much goes into this file, without cutting a line in two if that can be had.
    fn fitting(&self, bytes: &[u8]) -> usize {
        let room = self.max.saturating_sub(self.size) as usize;
        if bytes.len() <= room {
            return bytes.len();
        }
        let cut = if self.within || self.size == 0 { room } else { 0 };
        bytes[..room].iter().rposition(|byte| *byte == b'\n').map_or(cut, |end| end + 1)
    }

    fn write_here(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.reopen()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_all(bytes);
        self.within = bytes.last().map_or(self.within, |last| *last != b'\n');
        self.size = match &written {
            Ok(()) => self.size + bytes.len() as u64,
            Err(_) => file.metadata()?.len(),
        };
        written
    }

    fn rotate(&mut self) -> io::Result<()> {
        std::fs::rename(&self.path, rotated(&self.path))?;
        self.file = None;
        self.reopen()
    }

    fn reopen(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).custom_flags(O_NOFOLLOW).open(&self.path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::Folder;

    fn sink(folder: &Folder, header: Option<&str>) -> Sink {
        Sink { path: folder.path().join("rank-0.out"), theirs: false, header: header.map(str::to_owned) }
    }

    #[test]
    fn a_full_log_is_moved_aside_between_two_lines() {
        let folder = Folder::new();
        let mut log = LogFile::open(&sink(&folder, Some("--- start 2 ---")), 40).unwrap();
        log.append(b"one\ntwo\n");
        log.append(b"three three three\nfour\n");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("rank-0.out.1"), "--- start 2 ---\none\ntwo\n");
        assert_eq!(read("rank-0.out"), "three three three\nfour\n");
        log.append("x".repeat(100).as_bytes());
        assert_eq!((read("rank-0.out.1").len(), read("rank-0.out").len()), (40, 20));
    }

    #[test]
    fn what_the_disk_does_not_take_is_dropped_and_the_next_is_tried() {
        let folder = Folder::new();
        let mut log = LogFile::open(&sink(&folder, None), 8).unwrap();
        log.append(b"1234567\n");
        // A folder in the way of the rename.
        let aside = folder.path().join("rank-0.out.1");
        std::fs::create_dir_all(aside.join("full")).unwrap();
        log.append(b"lost\n");
        assert!(log.failing);
        std::fs::remove_dir_all(&aside).unwrap();
        log.append(b"kept\n");
        assert!(!log.failing);
        assert_eq!(std::fs::read(folder.path().join("rank-0.out")).unwrap(), b"kept\n");
    }
}
