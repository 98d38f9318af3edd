//! The last steps before a job: a short-lived process that is put into the job's control group before it knows what to
//! do, starts with the agent's rights, sees that devices are closed, mounts the job's secrets, gives its rights up for
//! good, opens what the user named, and becomes the job. It exists because a user's groups can only be taken on between
//! fork and exec by code of our own, which a program of our own is without `unsafe`.
//!
//! Its orders come on standard input, a socket. Where it fails it answers there why; where it becomes the job, the
//! socket closes without a word. It also opens files of users for the agent, with their rights, and hands them over.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{
    Gid, Uid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, getegid, geteuid, initgroups, setgid, setuid,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::secrets::mount_files;
use super::start::{KeeperLaunch, Orders, Unstartable, find_program, open};
use super::words::{RankSpec, RunAs};

/// Reads what to do from standard input and does it; returns only if that fails, with the code a shell would give. What
/// went wrong is also the last line of the job's error output.
pub fn launch_main() -> ExitCode {
    crate::agent::inherited::keep_from_children();
    let Err(failure) = launch();
    let told = writeln!(io::stderr(), "yard: {}", failure.message);
    let code = if told.is_ok() { failure.code.unwrap_or(1) } else { 1 };
    ExitCode::from(code as u8)
}

fn launch() -> Result<Infallible, Unstartable> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| fault("its orders", error))?;
    let orders: Orders = serde_json::from_str(&text).map_err(|error| fault("its orders", error))?;
    // A copy that closes by itself when this process becomes another.
    let line = io::stdin().as_fd().try_clone_to_owned().map_err(|error| fault("standard input", error))?;
    let nothing = File::open("/dev/null").map_err(|error| fault("/dev/null", error))?;
    dup2_stdin(nothing).map_err(|error| fault("standard input", error))?;
    let Err(failure) = obey(orders, &line);
    let _nobody_listens = File::from(line).write_all(&super::words::line(&failure));
    Err(failure)
}

fn obey(orders: Orders, line: &OwnedFd) -> Result<Infallible, Unstartable> {
    match orders {
        Orders::Become(launch) => become_job(&launch),
        Orders::Open { user, path } => hand_over(&user, &path, line),
    }
}

fn become_job(launch: &KeeperLaunch) -> Result<Infallible, Unstartable> {
    check_closed(&launch.closed)?;
    let ids = launch.user.as_ref().map(|user| (user.uid, user.gid));
    if let Some(secrets) = launch.secrets.as_ref().filter(|secrets| secrets.mounted) {
        let owner = ids.unwrap_or_else(|| (geteuid().as_raw(), getegid().as_raw()));
        mount_files(secrets, owner).map_err(|error| Unstartable {
            code: None,
            message: format!("this node cannot hand secrets over as files: {error}"),
        })?;
    }
    launch.user.as_ref().map_or(Ok(()), drop_rights)?;
    redirect(&launch.rank)?;
    execute(&launch.rank)
}

/// Nothing of the job may run while it could use another job's devices.
fn check_closed(files: &[PathBuf]) -> Result<(), Unstartable> {
    let opens = |path: &&PathBuf| {
        OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path).is_ok()
    };
    match files.iter().find(opens) {
        None => Ok(()),
        Some(path) => Err(Unstartable {
            code: None,
            message: format!("{} is not closed to the job, though it is not the job's", path.display()),
        }),
    }
}

/// From here on everything happens with the user's rights.
fn drop_rights(user: &RunAs) -> Result<(), Unstartable> {
    let failed = |error| fault(&format!("running as {}", user.name), error);
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let name = CString::new(user.name.as_bytes()).map_err(|error| fault("the user's name", error))?;
    initgroups(&name, gid).and_then(|()| setgid(gid)).and_then(|()| setuid(uid)).map_err(failed)?;
    if !uid.is_root() && (geteuid() != uid || setuid(Uid::from_raw(0)).is_ok()) {
        return Err(fault("giving up rights", "they could be taken back"));
    }
    umask(Mode::from_bits_truncate(0o022));
    Ok(())
}

fn redirect(rank: &RankSpec) -> Result<(), Unstartable> {
    let failed = |error| fault("its output", error);
    if rank.stdout.theirs {
        let file = open(&rank.stdout)?;
        dup2_stdout(&file).map_err(failed)?;
        if rank.stderr.is_none() {
            dup2_stderr(&file).map_err(failed)?;
        }
    }
    match rank.stderr.as_ref().filter(|sink| sink.theirs) {
        Some(sink) => dup2_stderr(open(sink)?).map_err(failed),
        None => Ok(()),
    }
}

fn execute(rank: &RankSpec) -> Result<Infallible, Unstartable> {
    let program = find_program(rank)?;
    chdir(&rank.cwd).map_err(|error| fault(&rank.cwd.display().to_string(), error))?;
    let mut command = Command::new(&program);
    command.arg0(&rank.argv[0]).args(&rank.argv[1..]).env_clear().envs(&rank.env);
    let error = command.exec();
    Err(Unstartable {
        code: Some(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }),
        message: format!("{} cannot be run: {error}", program.display()),
    })
}

/// Opens a file as its user and sends it over the line.
fn hand_over(user: &RunAs, path: &Path, line: &OwnedFd) -> Result<Infallible, Unstartable> {
    drop_rights(user)?;
    let failed = |error: io::Error| fault(&path.display().to_string(), error);
    let file =
        OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path).map_err(failed)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    rights.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(line, &[IoSlice::new(b"\n")], &mut rights, SendFlags::empty())
        .map_err(|error| failed(error.into()))?;
    std::process::exit(0)
}

fn fault(what: &str, error: impl std::fmt::Display) -> Unstartable {
    Unstartable { code: Some(126), message: format!("{what}: {error}") }
}
