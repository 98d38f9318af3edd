//! A part's control group, as the keeper uses it: everything of the part is in there, wherever it hides, so it can be
//! ended whole, and it is known when nothing is left.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use yard_core::part::Starved;

use super::tree;

/// One group. The agent made it and set its limits.
pub(super) struct ProcessGroup(pub(super) PathBuf);

impl ProcessGroup {
    /// Ends everything in it.
    pub(super) fn kill(&self) {
        // Kernels before 5.14 have no such file.
        if fs::write(self.0.join("cgroup.kill"), "1").is_err() {
            self.pids().into_iter().for_each(|pid| tree::send(pid, Signal::SIGKILL));
        }
    }

    /// Holds everything in it where it is, whatever signals its user sends, or lets it go on.
    pub(super) fn freeze(&self, frozen: bool) {
        // Kernels before 5.2 have no such file.
        if let Err(error) = fs::write(self.0.join("cgroup.freeze"), if frozen { "1" } else { "0" }) {
            let cgroup = self.0.display();
            tracing::warn!(%error, %cgroup, frozen, "a control group is not frozen or thawed; signals alone must do");
        }
    }

    /// Whether no process is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.pids().is_empty()
    }

    /// Sets how much memory it may use.
    pub(super) fn limit_memory(&self, max: Option<u64>) {
        let max = max.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
        if let Err(error) = fs::write(self.0.join("memory.max"), max) {
            tracing::warn!(%error, cgroup = %self.0.display(), "a limit of memory was not changed");
        }
    }

    /// Whether something in it was killed for want of memory, and what it had.
    pub(super) fn out_of_memory(&self) -> Option<Starved> {
        let events = fs::read_to_string(self.0.join("memory.events")).ok()?;
        let killed = events.lines().filter_map(|line| line.strip_prefix("oom_kill "));
        killed.filter_map(|count| count.parse::<u64>().ok()).find(|count| *count > 0)?;
        let (limit_mib, used_mib) = (mib(&self.0.join("memory.max")), mib(&self.0.join("memory.peak")));
        Some(Starved { limit_mib, used_mib })
    }

    /// The folder of all groups of its agent.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.0.parent().map(Path::to_owned)
    }

    /// Removes it; it is no error that it is gone.
    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, cgroup = %self.0.display(), "a control group stays");
        }
    }

    /// Its processes, also those in groups within it.
    pub(super) fn pids(&self) -> BTreeSet<i32> {
        let mut open = vec![self.0.clone()];
        let mut pids = BTreeSet::new();
        while let Some(folder) = open.pop() {
            let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            pids.extend(list.lines().filter_map(|pid| pid.parse::<i32>().ok()));
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            open.extend(inner.map(|entry| entry.path()));
        }
        pids
    }
}

/// A size in a file of the group; none where there is no limit.
fn mib(path: &Path) -> Option<u64> {
    let bytes: u64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::Folder;

    #[test]
    fn processes_in_groups_within_a_group_are_its_processes() {
        let folder = Folder::new();
        let group = ProcessGroup(folder.path().to_owned());
        assert!(group.is_empty());
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/cgroup.procs"), "13\n").unwrap();
        assert!(!group.is_empty());
        fs::write(folder.path().join("cgroup.procs"), "11\n12\n").unwrap();
        assert_eq!(group.pids(), BTreeSet::from([11, 12, 13]));
    }

    #[test]
    fn a_job_that_ran_out_of_memory_is_told_its_limit_and_what_it_used() {
        let folder = Folder::new();
        let group = ProcessGroup(folder.path().to_owned());
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(group.out_of_memory(), None);
        write("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\noom_group_kill 0\n");
        assert_eq!(group.out_of_memory(), None);
        write("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n");
        write("memory.max", "536870912\n");
        write("memory.peak", "536870912\n");
        let starved = Starved { limit_mib: Some(512), used_mib: Some(512) };
        assert_eq!(group.out_of_memory(), Some(starved));
        write("memory.max", "max\n");
        assert_eq!(
            group.out_of_memory(),
            Some(Starved { limit_mib: None, ..starved }),
            "its node had no more"
        );
    }
}
