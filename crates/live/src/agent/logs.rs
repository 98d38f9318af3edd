//! The output of jobs: rotation, and reading it for people: the last lines, the whole, and what is being written.
//! A job that writes to files of its own naming is read there, if they are its user's own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A log larger than this is copied away and begun anew.
pub(crate) const LOG_MAX: u64 = 64 << 20;

/// Bytes of a log in one message.
const PIECE: usize = 64 << 10;

/// How often a log that is followed is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(200);

/// Copies a log that has grown too large away and begins it anew. Writers append, so they go on at its new end;
/// what they write between the copy and the cut is lost, which is why this is done at this size and not sooner.
pub(crate) fn rotate(path: &Path, max: u64) -> io::Result<bool> {
    if std::fs::metadata(path).map_or(0, |file| file.len()) <= max {
        return Ok(false);
    }
    std::fs::copy(path, old(path))?;
    File::options().write(true).open(path)?.set_len(0)?;
    Ok(true)
}

/// Where a log is kept that was copied away.
fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Files that a job's user named for its output, instead of ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// Who must own them.
    pub(crate) uid: u32,
    /// By the name that our file would have.
    pub(crate) files: BTreeMap<String, PathBuf>,
}

impl Named {
    fn path(job: &Path) -> PathBuf {
        job.join("named.json")
    }

    /// Those of a job.
    pub(crate) fn load(job: &Path) -> Named {
        let text = std::fs::read(Named::path(job)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Keeps them.
    pub(crate) fn save(&self, job: &Path) -> io::Result<()> {
        std::fs::write(Named::path(job), serde_json::to_vec(self)?)
    }
}

/// Reads one log from its beginning or from its last lines on, over rotations.
pub(crate) struct Reader {
    path: PathBuf,
    /// Who must own the file, where it is not ours.
    owner: Option<u32>,
    /// What was copied away, until it is read.
    old: Option<File>,
    file: Option<File>,
    /// Bytes of a character whose rest has not come yet.
    rest: Vec<u8>,
}

impl Reader {
    /// The log at this path in a job's folder. `tail`: only so many of its last lines.
    pub(crate) fn open(path: &Path, tail: Option<u64>) -> io::Result<Reader> {
        let (path, owner) = resolve(path);
        let mut file = open(&path, owner)?;
        let kept = if owner.is_none() { File::open(old(&path)).ok() } else { None };
        let old = match tail {
            None => kept,
            Some(lines) => {
                let start = tail_start(&mut file, lines)?;
                file.seek(SeekFrom::Start(start))?;
                None
            }
        };
        Ok(Reader { path, owner, old, file: Some(file), rest: Vec::new() })
    }

    /// The next piece; none at the end, for now. A file that was cut begins anew.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = vec![0; PIECE];
        let mut length = 0;
        if let Some(old) = &mut self.old {
            length = old.read(&mut bytes)?;
        }
        if length == 0 {
            self.old = None;
            length = self.read_current(&mut bytes)?;
        }
        bytes.truncate(length);
        if length == 0 { Ok(None) } else { Ok(Some(self.text(&bytes))) }
    }

    fn read_current(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = open(&self.path, self.owner).ok();
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        if file.metadata()?.len() < file.stream_position()? {
            file.seek(SeekFrom::Start(0))?;
        }
        file.read(bytes)
    }

    /// Bytes as text. A character that is cut in two waits for its rest.
    fn text(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let cut = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len() - partial(&self.rest),
        };
        let rest = self.rest.split_off(cut);
        let whole = std::mem::replace(&mut self.rest, rest);
        String::from_utf8_lossy(&whole).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character, after something that is no text.
fn partial(bytes: &[u8]) -> usize {
    let starts = |length: usize| {
        let end = &bytes[bytes.len() - length..];
        std::str::from_utf8(end).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=bytes.len().min(3)).rev().find(|length| starts(*length)).unwrap_or(0)
}

/// Where a log really is, and who must own it.
fn resolve(path: &Path) -> (PathBuf, Option<u32>) {
    let named = path.parent().map(Named::load).unwrap_or_default();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match named.files.get(&name) {
        Some(theirs) => (theirs.clone(), Some(named.uid)),
        None => (path.to_owned(), None),
    }
}

/// Opens a log. The agent may have more rights than the job's user, who may have put a link there: so what was
/// opened must be a file of that user.
fn open(path: &Path, owner: Option<u32>) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if owner.is_some_and(|owner| !found.is_file() || found.uid() != owner) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file of the job's user"));
    }
    Ok(file)
}

/// Where the last so many lines begin.
fn tail_start(file: &mut File, lines: u64) -> io::Result<u64> {
    let mut at = file.metadata()?.len();
    let (mut seen, mut block, end) = (0, vec![0; PIECE], at);
    while at > 0 {
        let length = at.min(PIECE as u64);
        at -= length;
        file.seek(SeekFrom::Start(at))?;
        let block = &mut block[..length as usize];
        file.read_exact(block)?;
        for (offset, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let next = at + offset as u64 + 1;
            // The line break that ends the file begins no line.
            seen += u64::from(next < end);
            if seen == lines && next <= end && (lines > 0 || next == end) {
                return Ok(if lines == 0 { end } else { next });
            }
        }
    }
    Ok(if lines == 0 { end } else { 0 })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::agent::testing::Folder;

    fn append(path: &Path, text: &[u8]) {
        File::options().create(true).append(true).open(path).unwrap().write_all(text).unwrap();
    }

    fn all(reader: &mut Reader) -> String {
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    #[test]
    fn the_last_lines_are_found_from_the_end() {
        let folder = Folder::new();
        let path = folder.path().join("rank-0.out");
        append(&path, b"one\ntwo\nthree\n");
        let tail = |lines| all(&mut Reader::open(&path, Some(lines)).unwrap());
        assert_eq!((tail(0), tail(1), tail(2)), (String::new(), "three\n".into(), "two\nthree\n".into()));
        assert_eq!(tail(9), "one\ntwo\nthree\n");
        append(&path, b"unfinished");
        assert_eq!(tail(2), "three\nunfinished");
        let long = folder.path().join("long");
        append(&long, format!("{}\n{}\n", "x".repeat(3 * PIECE), "y".repeat(2 * PIECE)).as_bytes());
        assert_eq!(all(&mut Reader::open(&long, Some(1)).unwrap()).len(), 2 * PIECE + 1);
    }

    #[test]
    fn a_reader_goes_on_over_growth_rotation_and_cut_characters() {
        let folder = Folder::new();
        let path = folder.path().join("rank-0.out");
        append(&path, "first é".as_bytes());
        let mut reader = Reader::open(&path, None).unwrap();
        assert_eq!(all(&mut reader), "first é");
        let euro = "€".as_bytes();
        append(&path, &euro[..2]);
        assert_eq!(all(&mut reader), "");
        append(&path, &euro[2..]);
        assert_eq!(all(&mut reader), "€");
        assert!(!rotate(&path, 100).unwrap());
        assert!(rotate(&path, 5).unwrap());
        assert_eq!(all(&mut reader), "");
        append(&path, b"new");
        assert_eq!(all(&mut reader), "new");
        assert_eq!(all(&mut Reader::open(&path, None).unwrap()), "first é€new");
        append(&path, b"\xff!");
        assert_eq!(all(&mut reader), "\u{fffd}!");
    }

    #[test]
    fn a_named_file_must_be_the_users_own() {
        let folder = Folder::new();
        let (path, theirs) = (folder.path().join("rank-0.out"), folder.path().join("theirs"));
        append(&theirs, b"hello\n");
        let own = nix::unistd::geteuid().as_raw();
        let mut named = Named { uid: own, files: [("rank-0.out".to_owned(), theirs.clone())].into() };
        named.save(folder.path()).unwrap();
        assert_eq!(all(&mut Reader::open(&path, None).unwrap()), "hello\n");
        named.uid = own + 1;
        named.save(folder.path()).unwrap();
        assert!(Reader::open(&path, None).is_err());
        assert!(Reader::open(&folder.path().join("rank-1.out"), None).is_err());
    }
}
