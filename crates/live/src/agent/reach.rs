//! Who can reach, and who could replace, the agent's folder. Root works there by paths, so each part of the path must be
//! out of other users' hands; and jobs of other users have their folders below it, so each part must let them through.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};

/// Entries of such a folder can be renamed by their owners only.
const STICKY: u32 = 0o1000;

/// Makes a folder where it is not there yet; its path without links. For root, a path that others could change is
/// refused before anything is made.
pub(super) fn make(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    check(&there.canonicalize()?)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o711).create(&path)?;
    let path = path.canonicalize()?;
    check(&path)?;
    Ok(path)
}

/// The first part of a path that other users cannot pass through, as far as one can tell.
pub(super) fn closed_at(path: &Path) -> Option<PathBuf> {
    let closed = |path: &&Path| path.metadata().is_ok_and(|found| found.mode() & 0o001 == 0);
    path.ancestors().collect::<Vec<_>>().into_iter().rev().find(closed).map(Path::to_owned)
}

/// Refuses, for root, a path that somebody else could lead elsewhere.
fn check(path: &Path) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    for part in path.ancestors() {
        let found = part.symlink_metadata()?;
        if let Some(who) = changed_by(found.uid(), found.gid(), found.mode()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal(path, part, &who)));
        }
    }
    Ok(())
}

/// Who besides root can rename what is in a folder.
fn changed_by(uid: u32, gid: u32, mode: u32) -> Option<String> {
    let name = |uid| User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    if uid != 0 {
        return Some(name(uid).map_or_else(|| format!("user {uid}"), |name| format!("user {name}")));
    }
    let open = mode & STICKY == 0;
    match mode {
        _ if open && mode & 0o002 != 0 => Some("every user".into()),
        _ if open && mode & 0o020 != 0 && gid != 0 => Some(format!("group {gid}")),
        _ => None,
    }
}

fn refusal(path: &Path, part: &Path, who: &str) -> String {
    let (path, part) = (path.display(), part.display());
    format!(
        "{part} can be changed by {who}, and the agent runs as root in {path}: it could be led to other files; \
         choose a folder that only root can change with --data, such as /var/lib/yard-agent"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::agent::testing::{Folder, is_root};

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn who_can_change_a_folder() {
        assert_eq!(changed_by(0, 0, 0o40755), None);
        assert_eq!(changed_by(0, 0, 0o41777), None, "as the folder of temporary things");
        assert_eq!(changed_by(0, 0, 0o40775), None, "root's own group");
        assert_eq!(changed_by(0, 50, 0o42775).as_deref(), Some("group 50"));
        assert_eq!(changed_by(0, 0, 0o40777).as_deref(), Some("every user"));
        assert_eq!(changed_by(4_000_000, 0, 0o40755).as_deref(), Some("user 4000000"));
    }

    #[test]
    fn root_works_in_no_folder_that_others_can_replace() {
        if !is_root("only root refuses folders") {
            return;
        }
        let folder = Folder::new();
        let theirs = folder.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(65_534), None).unwrap();
        let refused = make(&theirs.join("a/b")).unwrap_err().to_string();
        assert!(refused.contains("theirs can be changed by user nobody"), "{refused}");
        assert!(refused.contains("/var/lib/yard-agent"), "{refused}");
        assert!(!theirs.join("a").exists(), "nothing was made");
        // Also by a link from a folder that is fine.
        std::os::unix::fs::symlink(&theirs, folder.path().join("link")).unwrap();
        assert!(make(&folder.path().join("link/a")).is_err());
        chown(&theirs, Some(0), None).unwrap();
        assert_eq!(make(&folder.path().join("link/a")).unwrap(), theirs.canonicalize().unwrap().join("a"));
    }

    #[test]
    fn a_folder_that_others_cannot_reach_is_named() {
        let folder = Folder::new();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        set_mode(&folder.path().join("a"), 0o700);
        assert_eq!(closed_at(&below), Some(folder.path().join("a")));
        set_mode(&folder.path().join("a"), 0o711);
        assert_eq!(closed_at(&below), None);
    }
}
