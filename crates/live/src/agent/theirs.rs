//! Files that a job's user named, opened for reading with that user's rights. An agent that is root would be led by a
//! link to files that the user may not read, whatever it checks afterwards; so the launcher becomes the user, opens the
//! file, and hands it back.

use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::stat::{major, minor};
use nix::sys::statfs::{self, FUSE_SUPER_MAGIC};
use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::keeper::{Orders, RunAs, Unstartable, line};

/// How long the launcher may take: the file may lie on another machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest answer.
const ANSWER_MAX: usize = 64 << 10;

/// Opens a file of this user to read. `user`: who to become for it, where the agent is somebody else.
pub(crate) fn open_theirs(path: &Path, uid: u32, user: Option<&RunAs>) -> io::Result<File> {
    let file = match user {
        Some(user) => open_as(path, user)?,
        None => File::options().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path)?,
    };
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != uid {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file of the job's user"));
    }
    if statfs::fstatfs(&file)?.filesystem_type() == FUSE_SUPER_MAGIC && is_users_own(found.dev())? {
        let message = "it is on a file system that a user mounted, which could block the agent";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(file)
}

/// Whether somebody other than root answers for this file system. One that is not found was not mounted by root here.
fn is_users_own(device: u64) -> io::Result<bool> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(!mounted_by_root(&mounts, &format!("{}:{}", major(device), minor(device))))
}

fn mounted_by_root(mounts: &str, device: &str) -> bool {
    let mut lines = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(device));
    let by_root = |line: &str| {
        line.rsplit(' ').next().is_some_and(|options| options.split(',').any(|option| option == "user_id=0"))
    };
    lines.any(by_root)
}

fn open_as(path: &Path, user: &RunAs) -> io::Result<File> {
    let (mut ours, mut child) = start(user)?;
    let orders = line(&Orders::Open { user: user.clone(), path: path.to_owned() });
    let asked = ours.set_read_timeout(Some(PATIENCE)).and_then(|()| ours.write_all(&orders));
    let answer = asked.and_then(|()| ours.shutdown(Shutdown::Write)).and_then(|()| receive(&ours));
    // It may hang in a file system; nothing it does now matters.
    let _gone = child.kill().and_then(|()| child.wait());
    answer
}

/// A launcher, and the line to it.
fn start(user: &RunAs) -> io::Result<(UnixStream, Child)> {
    let Some((program, args)) = user.launcher.split_first() else {
        return Err(io::Error::other("the agent has no command that changes users"));
    };
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command.args(args).env_clear().current_dir("/").stdin(OwnedFd::from(theirs));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok((ours, child))
}

/// The file that the launcher sends, or why there is none.
fn receive(ours: &UnixStream) -> io::Result<File> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut answer = vec![0; ANSWER_MAX];
    // A wait with a limit is not taken up again by itself after a signal.
    let got = retry_on_intr(|| {
        recvmsg(ours, &mut [IoSliceMut::new(&mut answer)], &mut rights, RecvFlags::CMSG_CLOEXEC)
    })?;
    let files = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    if let Some(file) = files.flatten().next() {
        return Ok(File::from(file));
    }
    let why = serde_json::from_slice::<Unstartable>(&answer[..got.bytes]);
    Err(io::Error::other(why.map_or_else(|_| "it could not be opened".to_owned(), |why| why.message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_of_a_users_own_is_told_from_one_that_root_mounted() {
        let mounts = "36 25 0:52 / /data rw - fuse.juicefs JuiceFS rw,user_id=0,group_id=0,allow_other\n\
            37 25 0:53 / /home/eve/x rw,nosuid - fuse.sshfs eve rw,user_id=1001,group_id=1001\n";
        assert!(mounted_by_root(mounts, "0:52"));
        assert!(!mounted_by_root(mounts, "0:53") && !mounted_by_root(mounts, "0:54"));
    }
}
