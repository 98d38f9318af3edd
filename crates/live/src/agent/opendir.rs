//! A folder that is held open. The agent works in folders of users as root, and a path can be turned into a link
//! between two calls; a descriptor cannot. So folders are opened once without following a link, owners and modes are
//! changed on the descriptor, and entries are named relative to it.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fchownat, getegid, geteuid, unlinkat};

/// A user and a group, by number.
pub(crate) type FileOwner = (u32, u32);

/// What an open folder is opened with: a link in its place is refused, and so is anything but a folder.
const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Most entries that are removed at once: a user can make millions, and the agent has other things to do.
const CLEAR_MAX: usize = 20_000;

/// An open folder.
#[derive(Debug)]
pub(crate) struct OpenDir(OwnedFd);

impl AsFd for OpenDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl OpenDir {
    /// Opens a folder. The last part of the path may not be a link; the others must be out of users' reach.
    pub(crate) fn open(path: &Path) -> io::Result<OpenDir> {
        Ok(OpenDir(openat(AT_FDCWD, path, FOLDER, Mode::empty())?))
    }

    /// Opens a folder within; a link is refused.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<OpenDir> {
        Ok(OpenDir(openat(self, name, FOLDER, Mode::empty())?))
    }

    /// Makes a folder within, or opens the one that is there; whether it is new.
    pub(crate) fn make(&self, name: &OsStr) -> io::Result<(OpenDir, bool)> {
        let new = match mkdirat(self, name, Mode::S_IRWXU) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(error) => return Err(error.into()),
        };
        Ok((self.enter(name)?, new))
    }

    /// Makes the folder the agent's own, whoever had it; others may only pass through it.
    pub(crate) fn take_back(&self) -> io::Result<()> {
        fchown(self, Some(geteuid()), Some(getegid()))?;
        Ok(fchmod(self, Mode::from_bits_truncate(0o711))?)
    }

    /// Makes the folder a user's own.
    pub(crate) fn give(&self, owner: Option<FileOwner>) -> io::Result<()> {
        let (user, group) = ids(owner);
        Ok(fchown(self, user, group)?)
    }

    /// Makes an entry a user's own, that nobody else may use. The folder must be the agent's: nobody else can have put
    /// a link there.
    pub(crate) fn give_entry(&self, name: &OsStr, owner: Option<FileOwner>) -> io::Result<()> {
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        fchmodat(self, name, mode, FchmodatFlags::FollowSymlink)?;
        let (user, group) = ids(owner);
        Ok(fchownat(self, name, user, group, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Removes an empty folder; that there is none is no error.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        absent(unlinkat(self, name, UnlinkatFlags::RemoveDir))
    }

    /// Removes all that is within. Folders are emptied one at a time, and what folders they have moves up here first:
    /// a user can nest them more deeply than a recursion could follow.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut left = CLEAR_MAX;
        let mut moved = 0_u64;
        loop {
            let entries = self.entries(&mut left)?;
            if entries.is_empty() {
                return enough(left);
            }
            for (name, is_folder) in entries {
                if !is_folder {
                    absent(unlinkat(self, name.as_c_str(), UnlinkatFlags::NoRemoveDir))?;
                    continue;
                }
                let below = OpenDir(openat(self, name.as_c_str(), FOLDER, Mode::empty())?);
                self.empty_out(&below, &mut left, &mut moved)?;
                absent(unlinkat(self, name.as_c_str(), UnlinkatFlags::RemoveDir))?;
            }
        }
    }

    /// Removes the files of a folder within, and moves its folders here.
    fn empty_out(&self, below: &OpenDir, left: &mut usize, moved: &mut u64) -> io::Result<()> {
        for (name, is_folder) in below.entries(left)? {
            if !is_folder {
                absent(unlinkat(below, name.as_c_str(), UnlinkatFlags::NoRemoveDir))?;
                continue;
            }
            self.move_up(below, &name, moved)?;
        }
        enough(*left)
    }

    /// Moves a folder of a folder within here, under a name that is free.
    fn move_up(&self, below: &OpenDir, name: &CString, moved: &mut u64) -> io::Result<()> {
        loop {
            *moved += 1;
            match renameat(below, name.as_c_str(), self, format!(".up-{moved}").as_str()) {
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// What is within, and whether it is a folder; no more than is left to do.
    fn entries(&self, left: &mut usize) -> io::Result<Vec<(CString, bool)>> {
        let mut listing = Dir::openat(self, ".", FOLDER, Mode::empty())?;
        let mut entries = Vec::new();
        for entry in listing.iter() {
            let entry = entry?;
            if [c".", c".."].contains(&entry.file_name()) {
                continue;
            }
            if *left == 0 {
                break;
            }
            *left -= 1;
            entries.push((entry.file_name().to_owned(), entry.file_type() == Some(Type::Directory)));
        }
        Ok(entries)
    }
}

/// Nobody is the agent's own user.
fn ids(owner: Option<FileOwner>) -> (Option<Uid>, Option<Gid>) {
    owner.map_or((Some(geteuid()), Some(getegid())), |(user, group)| {
        (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
    })
}

/// Whether all was done that was to do.
fn enough(left: usize) -> io::Result<()> {
    if left > 0 { Ok(()) } else { Err(io::Error::other("there is too much to remove at once")) }
}

fn absent(removed: nix::Result<()>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::agent::testing::Folder;

    #[test]
    fn links_are_not_followed() {
        let folder = Folder::new();
        let (at, victim) = (folder.path().join("at"), folder.path().join("victim"));
        std::fs::create_dir_all(at.join("within")).unwrap();
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("kept"), "").unwrap();
        symlink(&victim, at.join("link")).unwrap();
        symlink(&victim, at.join("within/link")).unwrap();
        assert!(OpenDir::open(&at.join("link")).is_err());
        let dir = OpenDir::open(&at).unwrap();
        assert!(dir.enter("link".as_ref()).is_err() && dir.make("link".as_ref()).is_err());
        dir.clear().unwrap();
        assert_eq!(at.read_dir().unwrap().count(), 0);
        assert!(victim.join("kept").exists());
    }

    #[test]
    fn folders_nested_deeply_and_folders_with_too_much_are_no_danger() {
        let folder = Folder::new();
        let mut dir = OpenDir::open(folder.path()).unwrap();
        // Deeper than descriptors can be open, and than a path can be long.
        for _ in 0..5_000 {
            dir = dir.make("d".as_ref()).unwrap().0;
        }
        OpenDir::open(folder.path()).unwrap().clear().unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let full = folder.path().join("full");
        std::fs::create_dir(&full).unwrap();
        for number in 0..CLEAR_MAX + 1 {
            std::fs::write(full.join(number.to_string()), "").unwrap();
        }
        let dir = OpenDir::open(folder.path()).unwrap();
        assert!(dir.clear().is_err(), "it is not all done in one go");
        dir.clear().unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
