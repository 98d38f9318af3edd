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
    Ok(file)
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
