//! Where an agent keeps what: its state, its keeper, and a folder for each job with the output of its ranks. The
//! keeper writes that output, so a job's user needs no way into these folders; what is the user's own there (`work`,
//! `checkpoints`, the socket) belongs to them. Every folder in which the agent itself makes, removes or binds something
//! belongs to the agent's user, and nobody else can write to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use sha2::{Digest, Sha256};
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::PartId;

use super::logs::WHOLE;
use super::opendir::{FileOwner, OpenDir};
use super::reach;

/// Longest path that the system lets a socket have, with room for the part's name.
const SOCKET_DIR_MAX: usize = 60;

/// How long to wait for the folder's last agent to be gone, and how often to look.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The agent's folders.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    data: PathBuf,
    run: PathBuf,
}

impl Layout {
    /// Makes the folders. Others may pass through them to what is theirs, and see nothing else.
    pub(crate) fn open(data: &Path) -> io::Result<Layout> {
        let data = reach::make(data)?;
        folder(&data, 0o711)?;
        folder(&data.join("jobs"), 0o711)?;
        folder(&data.join("parts"), 0o700)?;
        folder(&data.join("identity"), 0o700)?;
        let run = run_dir(&data);
        folder(&run, 0o711)?;
        folder(&run.join("mps"), 0o711)?;
        folder(&run.join("secrets"), 0o711)?;
        Ok(Layout { data, run })
    }

    /// Locks the folder for this agent: two on one folder would contradict each other.
    pub(crate) async fn lock(&self) -> io::Result<Flock<File>> {
        let path = self.data.join("lock");
        let mut options = File::options();
        let mut file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
        for _ in 0..LOCK_TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((unlocked, _)) => file = unlocked,
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        let message = "another agent uses this folder; stop it, or choose another folder with --data";
        Err(io::Error::new(io::ErrorKind::WouldBlock, message))
    }

    /// The agent's folder, without links.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What survives a restart.
    pub(crate) fn state(&self) -> PathBuf {
        self.data.join("state")
    }

    /// What a part runs.
    pub(crate) fn task(&self, part: PartId) -> PathBuf {
        self.data.join("parts").join(format!("{}-{}-{}.json", part.lease, part.job, part.instance))
    }

    /// How pretend cards are doing, where somebody says so.
    pub(crate) fn fake_cards(&self) -> PathBuf {
        self.data.join("fake-cards.json")
    }

    /// The keeper's folder.
    pub(crate) fn keeper(&self) -> PathBuf {
        self.run.join("keeper")
    }

    /// Where MPS daemons have their folders.
    pub(crate) fn mps(&self) -> PathBuf {
        self.run.join("mps")
    }

    /// Where a rank finds its secrets, in a namespace of its own. For everybody else it is empty.
    pub(crate) fn secrets(&self) -> PathBuf {
        self.run.join("secrets")
    }

    /// The freezer's folder.
    pub(crate) fn freezer(&self) -> PathBuf {
        self.data.join("freezer")
    }

    /// Certificates of the agent.
    pub(crate) fn identity(&self) -> PathBuf {
        self.data.join("identity")
    }

    /// A job's folder.
    pub(crate) fn job(&self, job: JobId) -> PathBuf {
        self.data.join("jobs").join(job.to_string())
    }

    /// A rank's output.
    pub(crate) fn log(&self, job: JobId, rank: u32, stderr: bool) -> PathBuf {
        let end = if stderr { "err" } else { "out" };
        self.job(job).join(format!("rank-{rank}.{end}"))
    }

    /// Both of them in one, in order of arrival.
    pub(crate) fn whole_log(&self, job: JobId, rank: u32) -> PathBuf {
        self.job(job).join(format!("rank-{rank}.{WHOLE}"))
    }

    /// The folder of a part's socket.
    pub(crate) fn socket(&self, part: PartId) -> PathBuf {
        self.run.join(format!("{}-{}-{}", part.lease, part.job, part.instance))
    }

    /// The folders of sockets that are there, with the parts that they were made for.
    pub(crate) fn socket_folders(&self) -> Vec<(PartId, PathBuf)> {
        let entries = std::fs::read_dir(&self.run).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some((part_of(entry.file_name().to_str()?)?, entry.path()))).collect()
    }

    /// Makes a job's folder.
    pub(crate) fn make_job(&self, job: JobId) -> io::Result<PathBuf> {
        let path = self.job(job);
        folder(&path, 0o711)?;
        Ok(path)
    }

    /// Makes a folder of the job's user within the job's, which is the agent's.
    pub(crate) fn make_theirs(
        &self,
        job: JobId,
        name: &str,
        owner: Option<FileOwner>,
    ) -> io::Result<PathBuf> {
        let path = self.job(job);
        let (folder, new) = OpenDir::open(&path)?.make(name.as_ref())?;
        if new {
            folder.give(owner)?;
        }
        Ok(path.join(name))
    }
}

/// The part that a socket's folder is named after.
fn part_of(name: &str) -> Option<PartId> {
    let mut numbers = name.split('-');
    let mut next = || numbers.next()?.parse::<u64>().ok();
    let (lease, job, instance) = (LeaseId(next()?), JobId(next()?), u32::try_from(next()?).ok()?);
    next().is_none().then_some(PartId { lease, job, instance })
}

fn folder(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
    own(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// A folder for temporary things could have been put there by anybody.
fn own(path: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("{} does not belong to the agent's user; remove it", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Where sockets are: with the data, or, where that path is too long for a socket, under a name that is always the same
/// in a folder of the system: that of services for root, that of temporary things for others.
fn run_dir(data: &Path) -> PathBuf {
    let near = data.join("run");
    if near.as_os_str().len() <= SOCKET_DIR_MAX {
        return near;
    }
    let digest = Sha256::digest(near.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    match geteuid() {
        root if root.is_root() => PathBuf::from(format!("/run/yard-{name}")),
        user => std::env::temp_dir().join(format!("yard-{user}-{name}")),
    }
}

#[cfg(test)]
mod tests {
    use yard_core::ids::LeaseId;

    use super::*;
    use crate::agent::testing::Folder;

    #[test]
    fn a_socket_has_a_short_path_wherever_the_data_is() {
        let folder = Folder::new();
        let deep = folder.path().join("a-rather-long-name-for-a-folder").join("and-another-one-within-it");
        let part = PartId { lease: LeaseId(u64::MAX), job: JobId(u64::MAX), instance: u32::MAX };
        for data in [folder.path().to_owned(), deep.clone()] {
            let layout = Layout::open(&data).unwrap();
            assert!(layout.socket(part).join("s").as_os_str().len() < 108);
            assert!(layout.keeper().join("sock").as_os_str().len() < 108);
            let pipe = crate::agent::mps::pipe_in(&layout.mps(), "GPU-0", u32::MAX);
            assert!(pipe.join("control_privileged").as_os_str().len() < 108);
        }
        let (first, second) = (Layout::open(&deep).unwrap(), Layout::open(&deep).unwrap());
        assert_eq!(first.keeper(), second.keeper());
        assert!(!first.keeper().starts_with(&deep));
        std::fs::remove_dir_all(first.run).unwrap();
    }

    #[test]
    fn the_longest_path_beside_the_data_still_holds_a_daemons_socket() {
        let run = PathBuf::from(format!("/{}", "x".repeat(SOCKET_DIR_MAX - 1)));
        let pipe = crate::agent::mps::pipe_in(&run.join("mps"), "GPU-0", u32::MAX);
        assert!(pipe.join("control_privileged").as_os_str().len() < 108);
    }

    #[test]
    fn folders_of_sockets_are_found_again() {
        let folder = Folder::new();
        let layout = Layout::open(folder.path()).unwrap();
        let part = PartId { lease: LeaseId(7), job: JobId(3), instance: 2 };
        for name in ["7-3-2", "keeper", "7-3", "7-3-2-1", "7-3-x"] {
            std::fs::create_dir_all(layout.run.join(name)).unwrap();
        }
        assert_eq!(layout.socket_folders(), [(part, layout.socket(part))]);
    }

    #[tokio::test]
    async fn two_agents_do_not_share_a_folder() {
        let folder = Folder::new();
        let layout = Layout::open(folder.path()).unwrap();
        let first = layout.lock().await.unwrap();
        let refused = layout.lock().await.unwrap_err().to_string();
        assert!(refused.contains("another agent uses this folder"), "{refused}");
        drop(first);
        layout.lock().await.unwrap();
    }

    #[test]
    fn a_users_folder_is_theirs_and_what_is_there_stays_as_it_is() {
        if !crate::agent::testing::is_root("only root can make folders of other users") {
            return;
        }
        let folder = Folder::new();
        let layout = Layout::open(folder.path()).unwrap();
        layout.make_job(JobId(3)).unwrap();
        let path = layout.make_theirs(JobId(3), "work", Some((65_534, 65_534))).unwrap();
        assert_eq!(
            (path.metadata().unwrap().uid(), path.metadata().unwrap().mode() & 0o777),
            (65_534, 0o700)
        );
        layout.make_theirs(JobId(3), "work", Some((1, 1))).unwrap();
        assert_eq!(path.metadata().unwrap().uid(), 65_534);
        std::os::unix::fs::symlink("/etc", layout.job(JobId(3)).join("checkpoints")).unwrap();
        assert!(layout.make_theirs(JobId(3), "checkpoints", Some((1, 1))).is_err());
    }
}
