//! Where an agent keeps what: its state, its keeper, and a folder for each job with the output of its ranks. Output is
//! opened by the agent's side and handed to the job, so a job's user needs no way into these folders; what is the
//! user's own there (`work`, `checkpoints`, the socket's folder) belongs to them.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use yard_core::ids::JobId;
use yard_core::part::PartId;

/// Longest path that the system lets a socket have, with room for the part's name.
const SOCKET_DIR_MAX: usize = 60;

/// The agent's folders.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    data: PathBuf,
    run: PathBuf,
}

impl Layout {
    /// Makes the folders. Others may pass through them to what is theirs, and see nothing else.
    pub(crate) fn open(data: &Path) -> io::Result<Layout> {
        std::fs::create_dir_all(data)?;
        let data = data.canonicalize()?;
        folder(&data, 0o711)?;
        folder(&data.join("jobs"), 0o711)?;
        folder(&data.join("parts"), 0o700)?;
        let run = run_dir(&data);
        folder(&run, 0o711)?;
        folder(&run.join("mps"), 0o711)?;
        Ok(Layout { data, run })
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

    /// The folder of a part's socket.
    pub(crate) fn socket(&self, part: PartId) -> PathBuf {
        self.run.join(format!("{}-{}-{}", part.lease, part.job, part.instance))
    }

    /// Makes a job's folder.
    pub(crate) fn make_job(&self, job: JobId) -> io::Result<PathBuf> {
        let path = self.job(job);
        folder(&path, 0o711)?;
        Ok(path)
    }

    /// Makes a folder of the job's user within the job's.
    pub(crate) fn make_theirs(
        &self,
        job: JobId,
        name: &str,
        owner: Option<(u32, u32)>,
    ) -> io::Result<PathBuf> {
        let path = self.job(job).join(name);
        if !path.exists() {
            std::fs::DirBuilder::new().mode(0o700).create(&path)?;
            if let Some((user, group)) = owner {
                chown(&path, Some(user), Some(group))?;
            }
        }
        Ok(path)
    }
}

fn folder(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
    own(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// A folder for temporary things could have been put there by anybody.
fn own(path: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("{} is not a folder of the agent's user; remove it", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Where sockets are: with the data, or, where that path is too long for a socket, in the system's folder for
/// temporary things under a name that is always the same.
fn run_dir(data: &Path) -> PathBuf {
    let near = data.join("run");
    if near.as_os_str().len() <= SOCKET_DIR_MAX {
        return near;
    }
    let digest = Sha256::digest(near.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    std::env::temp_dir().join(format!("yard-{}-{name}", nix::unistd::geteuid()))
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
            let daemon = layout.mps().join(crate::agent::mps::folder_name("GPU-0", u32::MAX));
            assert!(daemon.join("control_privileged").as_os_str().len() < 108);
        }
        let (first, second) = (Layout::open(&deep).unwrap(), Layout::open(&deep).unwrap());
        assert_eq!(first.keeper(), second.keeper());
        assert!(!first.keeper().starts_with(&deep));
        std::fs::remove_dir_all(first.run).unwrap();
    }
}
