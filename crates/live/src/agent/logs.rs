//! The output of jobs, read for people: the last lines, the whole, and what is being written. The keeper writes it, and
//! moves a full log aside. A job that writes to files of its own naming is read there, as its user.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keeper::RunAs;
use super::theirs::open_theirs;
use crate::wire::LOG_PIECE as PIECE;

/// A log larger than this is moved aside, and what was aside before is gone: so much twice is kept of a stream.
pub(crate) const LOG_MAX: u64 = 64 << 20;

/// What the name of a log ends in that has output and standard error in order of arrival.
pub(crate) const WHOLE: &str = "log";

/// How often a log that is followed is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(200);

/// Where a log is that was moved aside.
pub(crate) fn rotated(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Files that a job's user named for its output, instead of ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NamedLog {
    /// Who must own them.
    pub(crate) uid: u32,
    /// Who to become to open them, where that is not the agent's own user.
    #[serde(default)]
    pub(crate) user: Option<RunAs>,
    /// By the name that our file would have.
    pub(crate) files: BTreeMap<String, PathBuf>,
}

impl NamedLog {
    fn path(job: &Path) -> PathBuf {
        job.join("named.json")
    }

    /// Those of a job.
    pub(crate) fn load(job: &Path) -> NamedLog {
        let text = std::fs::read(NamedLog::path(job)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Keeps them.
    pub(crate) fn save(&self, job: &Path) -> io::Result<()> {
        // Others may pass through the folder, and where a user writes is nobody else's concern.
        super::state::replace(&NamedLog::path(job), &serde_json::to_vec(self)?)
    }
}

/// Where a log is.
enum LogPlace {
    /// In a file of ours, which may be moved aside at any time.
    Ours(PathBuf),
    /// In a file that the user named.
    Theirs,
}

/// Reads one log from its beginning or from its last lines on, over rotations.
pub(crate) struct LogReader {
    place: LogPlace,
    /// What was moved aside, oldest first, until it is read.
    old: VecDeque<File>,
    file: File,
    /// Bytes of a character whose rest has not come yet.
    rest: Vec<u8>,
    /// Another log, of which is read whatever there is once this one has no more for now.
    beside: Option<Box<LogReader>>,
}

impl LogReader {
    /// The log at this path in a job's folder. `tail`: only so many of its last lines.
    pub(crate) fn open(path: &Path, tail: Option<u64>) -> io::Result<LogReader> {
        if path.extension().is_some_and(|end| end == WHOLE) && !path.exists() {
            return LogReader::open_both(path, tail);
        }
        LogReader::open_one(path, tail)
    }

    /// Both streams where they lie in files of their own: the user named one, or an older agent wrote them.
    fn open_both(path: &Path, tail: Option<u64>) -> io::Result<LogReader> {
        let error = LogReader::open_one(&path.with_extension("err"), tail);
        match (LogReader::open_one(&path.with_extension("out"), tail), error) {
            (Ok(output), Ok(error)) if !same(&output.file, &error.file)? => {
                Ok(LogReader { beside: Some(Box::new(error)), ..output })
            }
            (Ok(output), _) => Ok(output),
            (Err(_), Ok(error)) => Ok(error),
            (Err(missing), Err(_)) => Err(missing),
        }
    }

    fn open_one(path: &Path, tail: Option<u64>) -> io::Result<LogReader> {
        let (place, mut file, mut old) = find(path)?;
        if let Some(lines) = tail {
            let missing = seek_tail(&mut file, lines)?;
            old = old.filter(|_| missing > 0);
            old.iter_mut().try_for_each(|old| seek_tail(old, missing).map(drop))?;
        }
        Ok(LogReader { place, old: old.into_iter().collect(), file, rest: Vec::new(), beside: None })
    }

    /// The next piece; none at the end, for now. A file that was cut is read from its start.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = vec![0; PIECE];
        let mut length = self.read(&mut bytes)?;
        if length == 0 && self.follow()? {
            length = self.read(&mut bytes)?;
        }
        bytes.truncate(length);
        match &mut self.beside {
            _ if length > 0 => Ok(Some(self.text(&bytes))),
            Some(beside) => beside.next(),
            None => Ok(None),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while let Some(old) = self.old.front_mut() {
            match old.read(bytes)? {
                0 => drop(self.old.pop_front()),
                length => return Ok(length),
            }
        }
        if self.file.metadata()?.len() < self.file.stream_position()? {
            self.file.seek(SeekFrom::Start(0))?;
        }
        self.file.read(bytes)
    }

    /// Goes on with the next file if this one was moved aside. What was written to it before that is read first.
    fn follow(&mut self) -> io::Result<bool> {
        let LogPlace::Ours(path) = &self.place else { return Ok(false) };
        let Ok(next) = File::open(path) else { return Ok(false) };
        if same(&next, &self.file)? {
            return Ok(false);
        }
        // It may have been moved aside, and overwritten there, more than once.
        let aside = File::open(rotated(path)).ok();
        let last = std::mem::replace(&mut self.file, next);
        let missed = aside.filter(|aside| !same(aside, &last).unwrap_or(true));
        self.old.push_back(last);
        self.old.extend(missed);
        Ok(true)
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

/// Opens a log, and what was moved aside of it. The agent may have more rights than the job's user, who may have put a
/// link where a log is named: so such a file is opened as the user.
fn find(path: &Path) -> io::Result<(LogPlace, File, Option<File>)> {
    let named = path.parent().map(NamedLog::load).unwrap_or_default();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(theirs) = named.files.get(&name) {
        return Ok((LogPlace::Theirs, open_theirs(theirs, named.uid, named.user.as_ref())?, None));
    }
    // A log that is moved aside between the two is read twice rather than not at all.
    let (file, old) = (File::open(path)?, File::open(rotated(path)).ok());
    let old = old.filter(|old| !same(old, &file).unwrap_or(true));
    Ok((LogPlace::Ours(path.to_owned()), file, old))
}

/// Whether two are the same file.
fn same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Goes to where the last so many lines begin; gives how many lines there are not.
fn seek_tail(file: &mut File, lines: u64) -> io::Result<u64> {
    let start = tail_start(file, lines)?;
    file.seek(SeekFrom::Start(start))?;
    if start > 0 || lines == 0 {
        return Ok(0);
    }
    let mut counted = 0;
    let mut block = vec![0; PIECE];
    loop {
        match file.read(&mut block)? {
            0 => break,
            length => counted += block[..length].iter().filter(|byte| **byte == b'\n').count() as u64,
        }
    }
    // The last line may not have ended yet.
    let end = file.stream_position()?;
    let unended = end > 0 && ends_within_a_line(file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(lines.saturating_sub(counted + u64::from(unended)))
}

fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last[0] != b'\n')
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::agent::testing::Folder;

    fn append(path: &Path, text: &[u8]) {
        File::options().create(true).append(true).open(path).unwrap().write_all(text).unwrap();
    }

    fn all(reader: &mut LogReader) -> String {
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    #[test]
    fn the_last_lines_are_found_from_the_end() {
        let folder = Folder::new();
        let path = folder.path().join("rank-0.out");
        append(&path, b"one\ntwo\nthree\n");
        let tail = |lines| all(&mut LogReader::open(&path, Some(lines)).unwrap());
        assert_eq!((tail(0), tail(1), tail(2)), (String::new(), "three\n".into(), "two\nthree\n".into()));
        assert_eq!(tail(9), "one\ntwo\nthree\n");
        append(&path, b"unfinished");
        assert_eq!(tail(2), "three\nunfinished");
        let long = folder.path().join("long");
        append(&long, format!("{}\n{}\n", "x".repeat(3 * PIECE), "y".repeat(2 * PIECE)).as_bytes());
        assert_eq!(all(&mut LogReader::open(&long, Some(1)).unwrap()).len(), 2 * PIECE + 1);
    }

    #[test]
    fn a_reader_goes_on_over_growth_rotation_and_cut_characters() {
        let folder = Folder::new();
        let path = folder.path().join("rank-0.out");
        append(&path, "first é".as_bytes());
        let mut reader = LogReader::open(&path, None).unwrap();
        assert_eq!(all(&mut reader), "first é");
        let euro = "€".as_bytes();
        append(&path, &euro[..2]);
        assert_eq!(all(&mut reader), "");
        append(&path, &euro[2..]);
        assert_eq!(all(&mut reader), "€");
        append(&path, b"last");
        std::fs::rename(&path, rotated(&path)).unwrap();
        append(&path, b"new");
        assert_eq!(all(&mut reader), "lastnew");
        assert_eq!(all(&mut LogReader::open(&path, None).unwrap()), "first é€lastnew");
        append(&path, b"\xff!");
        assert_eq!(all(&mut reader), "\u{fffd}!");
    }

    #[test]
    fn streams_in_files_of_their_own_are_read_one_after_the_other_and_both_followed() {
        let folder = Folder::new();
        let whole = folder.path().join("rank-0.log");
        assert!(LogReader::open(&whole, None).is_err());
        append(&whole.with_extension("err"), b"one\ntwo\n");
        assert_eq!(all(&mut LogReader::open(&whole, Some(1)).unwrap()), "two\n");
        append(&whole.with_extension("out"), b"out\n");
        let mut reader = LogReader::open(&whole, None).unwrap();
        assert_eq!(all(&mut reader), "out\none\ntwo\n");
        append(&whole.with_extension("out"), b"more\n");
        append(&whole.with_extension("err"), b"bad\n");
        assert_eq!(all(&mut reader), "more\nbad\n");
        append(&whole, b"in order\n");
        assert_eq!(all(&mut LogReader::open(&whole, None).unwrap()), "in order\n");
    }

    #[test]
    fn a_reader_that_missed_a_rotation_goes_on_with_what_is_kept() {
        let folder = Folder::new();
        let path = folder.path().join("rank-0.out");
        append(&path, b"one\n");
        let mut reader = LogReader::open(&path, None).unwrap();
        assert_eq!(all(&mut reader), "one\n");
        for next in [&b"two\n"[..], b"three\n", b"four\n"] {
            std::fs::rename(&path, rotated(&path)).unwrap();
            append(&path, next);
        }
        assert_eq!(all(&mut reader), "three\nfour\n");
    }

    #[test]
    fn the_last_lines_are_found_also_just_after_a_rotation() {
        let folder = Folder::new();
        let path = folder.path().join("rank-0.out");
        append(&rotated(&path), b"one\ntwo\nthree\n");
        append(&path, b"four\nfi");
        let tail = |lines| all(&mut LogReader::open(&path, Some(lines)).unwrap());
        assert_eq!((tail(1), tail(2)), ("fi".into(), "four\nfi".into()));
        assert_eq!((tail(3), tail(9)), ("three\nfour\nfi".into(), "one\ntwo\nthree\nfour\nfi".into()));
    }

    #[test]
    fn a_named_log_is_read_as_its_user_wherever_a_link_leads() {
        let Some(nobody) = crate::agent::testing::other_user() else { return };
        let folder = Folder::new();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (path, theirs) = (folder.path().join("rank-0.out"), folder.path().join("theirs"));
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(nobody.uid), Some(nobody.gid)).unwrap();
        let log = theirs.join("log");
        let files = [("rank-0.out".to_owned(), log.clone())].into();
        NamedLog { uid: nobody.uid, user: Some(nobody.clone()), files }.save(folder.path()).unwrap();
        append(&log, b"mine\n");
        std::os::unix::fs::chown(&log, Some(nobody.uid), Some(nobody.gid)).unwrap();
        assert_eq!(all(&mut LogReader::open(&path, None).unwrap()), "mine\n");
        // The user's own file behind a folder that the user may not enter: root could follow the link.
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
        append(&closed.join("kept"), b"kept from its owner\n");
        std::os::unix::fs::chown(closed.join("kept"), Some(nobody.uid), Some(nobody.gid)).unwrap();
        for target in [closed.join("kept"), "/etc/shadow".into(), "/etc/passwd".into(), "/dev/zero".into()] {
            std::fs::remove_file(&log).unwrap();
            std::os::unix::fs::symlink(&target, &log).unwrap();
            assert!(LogReader::open(&path, None).is_err(), "{}", target.display());
        }
    }

    #[test]
    fn a_named_file_must_be_the_users_own() {
        let folder = Folder::new();
        let (path, theirs) = (folder.path().join("rank-0.out"), folder.path().join("theirs"));
        append(&theirs, b"hello\n");
        let own = nix::unistd::geteuid().as_raw();
        let files = [("rank-0.out".to_owned(), theirs.clone())].into();
        let mut named = NamedLog { uid: own, user: None, files };
        named.save(folder.path()).unwrap();
        let mode = NamedLog::path(folder.path()).metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "where a user writes is nobody else's concern");
        assert_eq!(all(&mut LogReader::open(&path, None).unwrap()), "hello\n");
        named.uid = own + 1;
        named.save(folder.path()).unwrap();
        assert!(LogReader::open(&path, None).is_err());
        assert!(LogReader::open(&folder.path().join("rank-1.out"), None).is_err());
    }
}
