//! Secrets that a job finds as files. They are in memory only. Where the keeper is root each rank has a file system of
//! its own, mounted in a namespace that no other process is in; otherwise the part has a folder of the user's own on a
//! file system in memory, which goes with the part.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use sha2::{Digest, Sha256};

use super::words::SecretFiles;

/// Room beside the secrets themselves.
const ROOM: usize = 1 << 20;

/// Mounts a file system that this process and its children alone see, and writes the files. Needs root's rights.
pub(super) fn mount_files(secrets: &SecretFiles, (uid, gid): (u32, u32)) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted on the machine later is seen in here, and nothing of ours out there.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
    let size =
        ROOM + secrets.files.iter().map(|(_, value)| value.0.len().next_multiple_of(4096)).sum::<usize>();
    let options = format!("size={size},nr_inodes=1024,mode=0500,uid={uid},gid={gid}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let tmpfs = |options: &str| mount(Some("secrets"), &secrets.folder, Some("tmpfs"), flags, Some(options));
    // Kernels before 6.4 cannot promise that it is not swapped out.
    tmpfs(&format!("{options},noswap")).or_else(|_| tmpfs(&options))?;
    secrets
        .files
        .iter()
        .try_for_each(|(name, value)| write(&secrets.folder.join(name), &value.0, Some((uid, gid))))
}

/// Makes the folder of a part whose keeper is not root, and writes the files.
pub(super) fn make_files(secrets: &SecretFiles) -> io::Result<()> {
    let base = secrets.folder.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    let found = std::fs::symlink_metadata(base)?;
    if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!("{} is not this user's own folder; remove it", base.display())));
    }
    if statfs(base)?.filesystem_type() != TMPFS_MAGIC {
        return Err(io::Error::other(format!("{} is not in memory", base.display())));
    }
    remove_files(&secrets.folder);
    DirBuilder::new().mode(0o700).create(&secrets.folder)?;
    secrets.files.iter().try_for_each(|(name, value)| write(&secrets.folder.join(name), &value.0, None))
}

/// Removes such a folder, or all of them.
pub(super) fn remove_files(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.display(), "secrets stay in memory");
    }
}

/// Where the folders of this keeper's parts are.
pub(crate) fn secrets_base(keeper: &Path) -> PathBuf {
    let in_memory = |path: &PathBuf| statfs(path).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let root = session.filter(in_memory).unwrap_or_else(|| PathBuf::from("/dev/shm"));
    let digest = Sha256::digest(keeper.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    root.join(format!("yard-{}-{name}", nix::unistd::geteuid()))
}

fn write(path: &Path, value: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o400).open(path)?;
    if let Some((uid, gid)) = owner {
        fchown(&file, Some(uid), Some(gid))?;
    }
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::agent::testing::Folder;
    use crate::wire::SecretValue;

    fn secrets(folder: PathBuf) -> SecretFiles {
        let files = vec![("token".to_owned(), SecretValue("x".into()))];
        SecretFiles { folder, mounted: false, files }
    }

    #[test]
    fn without_root_secrets_are_in_memory_and_for_one_user() {
        let scratch = Folder::new();
        let base = secrets_base(scratch.path());
        let secrets = secrets(base.join("1-1-1"));
        make_files(&secrets).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&base), mode(&secrets.folder)), (0o700, 0o700));
        assert_eq!(mode(&secrets.folder.join("token")), 0o400);
        assert_eq!(std::fs::read(secrets.folder.join("token")).unwrap(), b"x");
        remove_files(&base);
        assert!(!base.exists());
    }

    #[test]
    fn what_others_can_enter_or_a_disk_holds_is_no_place_for_secrets() {
        let scratch = Folder::new();
        let base = secrets_base(scratch.path());
        DirBuilder::new().create(&base).unwrap();
        std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o755)).unwrap();
        let open_to_all = make_files(&secrets(base.join("1-1-1")));
        remove_files(&base);
        assert!(open_to_all.unwrap_err().to_string().contains("own folder"));
        let disk = Path::new(env!("CARGO_MANIFEST_DIR"));
        if statfs(disk).unwrap().filesystem_type() != TMPFS_MAGIC {
            let base = disk.join(format!("../../target/no-secrets-{}", std::process::id()));
            let on_disk = make_files(&secrets(base.join("1-1-1")));
            remove_files(&base);
            assert!(on_disk.unwrap_err().to_string().contains("memory"));
        }
    }
}
