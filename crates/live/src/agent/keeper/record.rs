//! Exits on file, one JSON line each, written before the agent is told: a new keeper after this one's death still
//! knows how things ended. They are written, not synced: what is written outlives the death of any process, and a
//! machine that goes down takes all parts with it, which the agent notices by the boot's number.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use yard_core::part::PartId;

use super::words::{ProcessExit, line};

/// Forgotten lines after which the file is written anew.
const STALE_MAX: usize = 1_000;

/// One line.
#[derive(Serialize, Deserialize)]
struct KeeperLine {
    part: PartId,
    rank: u32,
    exit: ProcessExit,
}

/// The exits that were not yet forgotten.
pub(super) struct KeeperRecord {
    path: PathBuf,
    file: File,
    exits: BTreeMap<(PartId, u32), ProcessExit>,
    /// Lines in the file that are no longer wanted.
    stale: usize,
}

impl KeeperRecord {
    /// The record in this file, new if need be. A last line that was cut short is no line.
    pub(super) fn open(path: PathBuf) -> io::Result<KeeperRecord> {
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        let lines = text.lines().filter_map(|text| serde_json::from_str::<KeeperLine>(text).ok());
        let exits = lines.map(|line| ((line.part, line.rank), line.exit)).collect();
        let mut record = KeeperRecord { file: append(&path)?, path, exits, stale: 0 };
        record.rewrite()?;
        Ok(record)
    }

    /// Adds exits.
    pub(super) fn add(&mut self, exits: &[(PartId, u32, ProcessExit)]) -> io::Result<()> {
        let lines = exits
            .iter()
            .flat_map(|(part, rank, exit)| line(&KeeperLine { part: *part, rank: *rank, exit: *exit }));
        let lines: Vec<u8> = lines.collect();
        self.exits.extend(exits.iter().map(|(part, rank, exit)| ((*part, *rank), *exit)));
        self.file.write_all(&lines)
    }

    /// All exits of parts that were not forgotten.
    pub(super) fn all(&self) -> Vec<(PartId, u32, ProcessExit)> {
        self.exits.iter().map(|((part, rank), exit)| (*part, *rank, *exit)).collect()
    }

    /// Drops a part's exits.
    pub(super) fn forget(&mut self, part: PartId) -> io::Result<()> {
        let before = self.exits.len();
        self.exits.retain(|(known, _), _| *known != part);
        self.stale += before - self.exits.len();
        if self.stale > STALE_MAX { self.rewrite() } else { Ok(()) }
    }

    /// Writes the file anew, atomically.
    fn rewrite(&mut self) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let lines = self
            .exits
            .iter()
            .flat_map(|((part, rank), exit)| line(&KeeperLine { part: *part, rank: *rank, exit: *exit }));
        std::fs::write(&next, lines.collect::<Vec<u8>>())?;
        std::fs::rename(&next, &self.path)?;
        (self.file, self.stale) = (append(&self.path)?, 0);
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use yard_core::ids::{JobId, LeaseId};

    use super::*;
    use crate::agent::testing::Folder;

    fn part(number: u64) -> PartId {
        PartId { lease: LeaseId(number), job: JobId(number), instance: 1 }
    }

    fn code(code: i32) -> ProcessExit {
        ProcessExit { code: Some(code), signal: None, ..ProcessExit::default() }
    }

    #[test]
    fn exits_are_found_again_and_a_cut_line_is_no_line() {
        let folder = Folder::new();
        let path = folder.path().join("exits");
        let mut record = KeeperRecord::open(path.clone()).unwrap();
        record.add(&[(part(1), 0, code(3)), (part(2), 0, code(0))]).unwrap();
        append(&path).unwrap().write_all(b"{\"part\":{\"lease\":9").unwrap();
        assert_eq!(KeeperRecord::open(path).unwrap().all(), [(part(1), 0, code(3)), (part(2), 0, code(0))]);
    }

    #[test]
    fn what_is_forgotten_leaves_the_file_in_the_end() {
        let folder = Folder::new();
        let path = folder.path().join("exits");
        let mut record = KeeperRecord::open(path.clone()).unwrap();
        for number in 0..STALE_MAX as u64 + 1 {
            record.add(&[(part(number), 0, code(0))]).unwrap();
            record.forget(part(number)).unwrap();
        }
        record.add(&[(part(5_000), 0, code(7))]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(record.all(), [(part(5_000), 0, code(7))]);
    }
}
