//! Control groups (version 2) where the agent may make them: one for each part, with the memory and processor time it
//! asked for, and a way to end all of it at once. Where there are none, jobs run without limits; that is logged once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use yard_core::part::PartId;

use crate::wire::Task;

/// Microseconds over which processor time is counted.
const PERIOD: u64 = 100_000;

/// The folder of this agent's control groups.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups(PathBuf);

impl Cgroups {
    /// Makes a folder for the agent's groups below this root, where that is possible.
    pub(crate) fn open(root: &Path, name: &str) -> Option<Cgroups> {
        let made = prepare(root, name);
        if let Err(error) = &made {
            tracing::info!(%error, "no control groups here: limits of memory and processors are not kept");
        }
        made.ok().map(Cgroups)
    }

    /// A group for a part, with its limits.
    pub(crate) fn make(&self, part: PartId, task: &Task) -> io::Result<PathBuf> {
        let path = self.path(part);
        fs::create_dir_all(&path)?;
        if let Some(mib) = task.memory_mib {
            fs::write(path.join("memory.max"), mib.saturating_mul(1 << 20).to_string())?;
            // The whole part or nothing: a gang with one rank missing only wastes its devices.
            fs::write(path.join("memory.oom.group"), "1")?;
        }
        if let Some(cpus) = task.cpus.filter(|cpus| *cpus > 0.0) {
            let quota = ((cpus * PERIOD as f64) as u64).max(1_000);
            fs::write(path.join("cpu.max"), format!("{quota} {PERIOD}"))?;
        }
        Ok(path)
    }

    /// Removes the group of a part that is over.
    pub(crate) fn remove(&self, part: PartId) {
        if let Err(error) = fs::remove_dir(self.path(part))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "a control group stays");
        }
    }

    fn path(&self, part: PartId) -> PathBuf {
        self.0.join(format!("{}-{}-{}", part.lease, part.job, part.instance))
    }
}

fn prepare(root: &Path, name: &str) -> io::Result<PathBuf> {
    let offered = fs::read_to_string(root.join("cgroup.controllers"))?;
    let wanted =
        ["memory", "cpu"].into_iter().filter(|wanted| offered.split_whitespace().any(|had| had == *wanted));
    let wanted = wanted.map(|controller| format!("+{controller}")).collect::<Vec<_>>().join(" ");
    let path = root.join(name);
    fs::create_dir_all(&path)?;
    fs::write(root.join("cgroup.subtree_control"), &wanted)?;
    fs::write(path.join("cgroup.subtree_control"), &wanted)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::{Folder, start, task};

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let root = Folder::new();
        fs::write(root.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
        let groups = Cgroups::open(root.path(), "yard").unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(root.path().join("yard/cgroup.subtree_control")), "+memory +cpu");
        let mut task = task(&["true"]);
        (task.memory_mib, task.cpus) = (Some(512), Some(1.5));
        let group = groups.make(start(7, 3).part, &task).unwrap();
        assert_eq!(read(group.join("memory.max")), "536870912");
        assert_eq!(read(group.join("cpu.max")), "150000 100000");
    }

    #[test]
    fn without_them_there_are_none() {
        let root = Folder::new();
        assert!(Cgroups::open(root.path(), "yard").is_none());
        assert!(fs::read_dir(root.path()).unwrap().next().is_none());
    }
}
