//! Control groups (version 2) where the agent may make them: one for each part, with what it may use of memory,
//! processors, processes and devices, and a way to end all of it at once. Where there are none, jobs run without limits;
//! that is logged once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use sha2::{Digest, Sha256};
use yard_core::part::{Held, PartId};

use super::AgentConfig;
use super::bpf::DeviceProgram;
use super::confinement::{Confinement, NodeSize};
use super::device_files::DeviceFiles;
use super::devices::Devices;
use crate::wire::Task;

/// Microseconds over which processor time is counted.
const PERIOD: u64 = 100_000;

/// What is limited, where the kernel can.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// The folder of this agent's control groups, and what goes for all of them.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    folder: PathBuf,
    controllers: Vec<String>,
    confinement: Confinement,
    node: NodeSize,
    /// Device files that only some parts may open; none where that cannot be enforced.
    guarded: Option<DeviceFiles>,
}

/// A part's group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartGroup {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Device files that are closed to it.
    pub(crate) closed: Vec<PathBuf>,
}

impl Cgroups {
    /// The control groups of an agent with these devices, which are guarded where that can be done.
    pub(crate) fn find(config: &AgentConfig, devices: &Devices) -> anyhow::Result<Option<Cgroups>> {
        let count = devices.groups().iter().map(|group| group.devices.len() as u32).sum();
        let open = |root: &Path| {
            Cgroups::open(root, &config.data, config.confinement.clone(), NodeSize::here(count))
        };
        let mut groups = config.cgroups.as_deref().and_then(open);
        let guarded = match (&mut groups, devices.files()) {
            (_, Ok(files)) if files.is_empty() => Ok(()),
            (Some(groups), Ok(files)) => groups.guard(files).map_err(|error| error.to_string()),
            (None, Ok(_)) => Err("there is no cgroup v2".to_owned()),
            (_, Err(why)) => Err(why),
        };
        match guarded {
            Ok(()) => {}
            Err(why) if config.confinement.devices_required => bail!(
                "jobs cannot be kept from using each other's GPUs: {why}; to run them anyway: --devices-enforced auto"
            ),
            Err(why) => tracing::warn!(%why, "jobs cannot be kept from each other's devices"),
        }
        Ok(groups)
    }

    /// Makes a folder for the groups of the agent with this data, where that is possible. `root`: where control groups
    /// are, or beside those of version 1.
    pub(crate) fn open(
        root: &Path,
        data: &Path,
        confinement: Confinement,
        node: NodeSize,
    ) -> Option<Cgroups> {
        let digest = Sha256::digest(data.as_os_str().as_encoded_bytes());
        let name =
            format!("yard-{}", digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>());
        let is_one = |root: &&PathBuf| root.join("cgroup.controllers").exists();
        let roots = [root.to_owned(), root.join("unified")];
        let made = match roots.iter().find(is_one) {
            Some(root) => prepare(&root.join(&name)).map(|()| root.join(&name)),
            None => Err(io::Error::other(format!("{} is not a cgroup v2 mount", root.display()))),
        };
        if let Err(error) = &made {
            tracing::warn!(%error, "no control groups here: jobs run without limits");
        }
        let folder = made.ok()?;
        let offered = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        let controllers: Vec<String> = offered.split_whitespace().map(str::to_owned).collect();
        let missing: Vec<_> =
            CONTROLLERS.iter().filter(|wanted| !controllers.iter().any(|had| had == *wanted)).collect();
        if !missing.is_empty() {
            tracing::warn!(?missing, "control groups cannot limit these here");
        }
        Some(Cgroups { folder, controllers, confinement, node, guarded: None })
    }

    /// Closes these files to parts that do not hold them, from now on. Fails where the kernel or the rights do not allow
    /// it.
    pub(crate) fn guard(&mut self, files: DeviceFiles) -> io::Result<()> {
        let trial = self.folder.join("trial");
        fs::create_dir_all(&trial)?;
        let done = DeviceProgram::load(&files.rules(&[])).and_then(|program| program.attach(&trial));
        let _removed = fs::remove_dir(&trial);
        done?;
        self.guarded = Some(files);
        Ok(())
    }

    /// A group for a part, with its limits.
    pub(crate) fn make(&self, part: PartId, task: &Task, held: &[Held]) -> io::Result<PartGroup> {
        let path = self.path(part);
        if !self.folder.exists() {
            prepare(&self.folder)?; // A keeper that went took it along.
        }
        fs::create_dir_all(&path)?;
        let set = |controller: &str, file: &str, value: String| {
            let had = self.controllers.iter().any(|had| had == controller);
            if had { fs::write(path.join(file), value) } else { Ok(()) }
        };
        if let Some(bytes) = self.memory(task, held) {
            set("memory", "memory.max", bytes.to_string())?;
            // The whole part or nothing: a gang with one rank missing only wastes its devices.
            set("memory", "memory.oom.group", "1".into())?;
        }
        set("pids", "pids.max", self.confinement.pids(count(held)).to_string())?;
        if let Some(cpus) = task.cpus.filter(|cpus| *cpus > 0.0) {
            let quota = ((cpus * PERIOD as f64) as u64).max(1_000);
            set("cpu", "cpu.max", format!("{quota} {PERIOD}"))?;
        }
        let closed = self.close_devices(&path, held)?;
        Ok(PartGroup { path, closed })
    }

    /// How much memory a part may use, in bytes.
    pub(crate) fn memory(&self, task: &Task, held: &[Held]) -> Option<u64> {
        let counted = self.controllers.iter().any(|had| had == "memory");
        self.confinement.memory(task, count(held), self.node).filter(|_| counted)
    }

    /// Closes the devices that a part does not hold. Once that works on this node, it must work for every part.
    fn close_devices(&self, group: &Path, held: &[Held]) -> io::Result<Vec<PathBuf>> {
        let Some(files) = &self.guarded else { return Ok(Vec::new()) };
        DeviceProgram::load(&files.rules(held))?.attach(group)?;
        Ok(files.others(held))
    }

    /// Removes the group of a part that never ran; the keeper removes those of parts that did.
    pub(crate) fn remove(&self, part: PartId) {
        if let Err(error) = fs::remove_dir(self.path(part))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "a control group stays");
        }
    }

    /// Removes all of them, where nothing is in them any more.
    pub(crate) fn close(&self) {
        sweep(&self.folder);
        let _in_use = fs::remove_dir(&self.folder);
    }

    fn path(&self, part: PartId) -> PathBuf {
        self.folder.join(format!("{}-{}-{}", part.lease, part.job, part.instance))
    }
}

fn count(held: &[Held]) -> u32 {
    held.iter().map(|held| held.mask.count_ones()).sum()
}

/// Makes the folder of an agent's groups, with limits for what is below it.
fn prepare(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    for folder in path.parent().into_iter().chain([path]) {
        let offered = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        let wanted =
            CONTROLLERS.iter().filter(|wanted| offered.split_whitespace().any(|had| had == **wanted));
        for controller in wanted {
            let enabled = fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}"));
            if let Err(error) = enabled {
                tracing::warn!(%error, controller, group = %folder.display(), "limits cannot be set below this group; move its processes to a group of their own");
            }
        }
    }
    sweep(path);
    Ok(())
}

/// Removes the groups in which nothing is left; the kernel keeps the others.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _in_use = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::{Folder, start, task};

    const NODE: NodeSize = NodeSize { memory: 8 << 30, devices: 2 };

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let root = Folder::new();
        let offered = "cpuset cpu io memory pids\n";
        fs::write(root.path().join("cgroup.controllers"), offered).unwrap();
        let mut groups =
            Cgroups::open(root.path(), Path::new("/data"), Confinement::default(), NODE).unwrap();
        groups.controllers = offered.split_whitespace().map(str::to_owned).collect();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(root.path().join("cgroup.subtree_control")), "+pids");
        let (start, mut task) = (start(7, 3), task(&["true"]));
        let group = groups.make(start.part, &task, &start.devices).unwrap().path;
        assert_eq!(read(group.join("memory.max")), (4_u64 << 30).to_string());
        assert_eq!(
            (read(group.join("memory.oom.group")), read(group.join("pids.max"))),
            ("1".into(), "4608".into())
        );
        (task.memory_mib, task.cpus) = (Some(512), Some(1.5));
        groups.make(start.part, &task, &start.devices).unwrap();
        assert_eq!(read(group.join("memory.max")), "536870912");
        assert_eq!(read(group.join("cpu.max")), "150000 100000");
    }

    #[test]
    fn without_them_there_are_none() {
        let root = Folder::new();
        assert!(Cgroups::open(root.path(), Path::new("/data"), Confinement::default(), NODE).is_none());
        assert!(fs::read_dir(root.path()).unwrap().next().is_none());
    }

    #[test]
    fn agents_of_one_machine_have_groups_of_their_own() {
        let root = Folder::new();
        fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        let open =
            |data: &str| Cgroups::open(root.path(), Path::new(data), Confinement::default(), NODE).unwrap();
        assert_ne!(open("/one").folder, open("/other").folder);
        assert_eq!(open("/one").folder, open("/one").folder);
    }
}
