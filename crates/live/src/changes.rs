//! What changed on the board of late, so that who watches is sent that and not everything. It remembers so much; who
//! was away for longer looks at the whole board again.

use std::collections::{BTreeSet, VecDeque};

/// Changes that are remembered.
const KEPT: usize = 1 << 16;

/// A thing on the board that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Job(u64),
    Node(String),
}

/// The changes of late. Revisions are microseconds since 1970, so that they grow over restarts too.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    revision: u64,
    /// Everything after this revision is in the list.
    floor: u64,
    list: VecDeque<(u64, What)>,
}

/// What changed since a revision, each thing once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardChanged {
    /// Jobs.
    pub jobs: BTreeSet<u64>,
    /// Nodes.
    pub nodes: BTreeSet<String>,
}

impl Changes {
    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A new revision, for what changes at this time.
    pub fn begin(&mut self, now_us: u64) {
        self.revision = now_us.max(self.revision + 1);
        if self.floor == 0 {
            self.floor = self.revision - 1;
        }
    }

    /// A job changed in this revision.
    pub fn job(&mut self, job: u64) {
        self.note(What::Job(job));
    }

    /// A node changed in this revision.
    pub fn node(&mut self, node: &str) {
        self.note(What::Node(node.to_owned()));
    }

    /// Something is gone from the board: who watches looks at all of it again.
    pub fn restart(&mut self) {
        self.list.clear();
        self.floor = self.revision;
    }

    fn note(&mut self, what: What) {
        self.list.push_back((self.revision, what));
        if self.list.len() > KEPT {
            self.floor = self.list.pop_front().map_or(self.floor, |(revision, _)| revision);
        }
    }

    /// What changed after a revision; none where that was too long ago, or before this start.
    pub fn since(&self, revision: u64) -> Option<BoardChanged> {
        if revision < self.floor || revision > self.revision {
            return None;
        }
        let mut changed = BoardChanged::default();
        for (_, what) in self.list.iter().rev().take_while(|(at, _)| *at > revision) {
            match what {
                What::Job(job) => changed.jobs.insert(*job),
                What::Node(node) => changed.nodes.insert(node.clone()),
            };
        }
        Some(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_and_only_to_who_has_not_seen_it() {
        let mut changes = Changes::default();
        changes.begin(100);
        changes.job(1);
        changes.node("a");
        let first = changes.revision();
        changes.begin(50);
        assert!(changes.revision() > first, "a clock that goes back does not matter");
        changes.job(2);
        changes.job(2);
        assert_eq!(changes.since(first).unwrap().jobs, [2].into());
        assert_eq!(changes.since(99).unwrap().jobs, [1, 2].into());
        assert_eq!(changes.since(99).unwrap().nodes, ["a".to_owned()].into());
        assert_eq!(changes.since(changes.revision()), Some(BoardChanged::default()));
        changes.restart();
        assert_eq!(changes.since(first), None, "what is gone cannot be told as a change");
    }

    #[test]
    fn who_was_away_for_long_is_told_to_look_at_everything() {
        let mut changes = Changes::default();
        changes.begin(100);
        assert_eq!(changes.since(98), None, "before this start");
        assert_eq!(changes.since(101), None, "of another server");
        for now in 0..2 * KEPT as u64 {
            changes.begin(1_000 + now);
            changes.job(now);
        }
        assert_eq!(changes.since(100), None);
        let recent = changes.revision() - 10;
        assert_eq!(changes.since(recent).map(|changed| changed.jobs.len()), Some(10));
    }
}
