//! The last steps before a job of another user: a short-lived process that starts with the agent's rights, gives
//! them up for good, opens what the user named, and becomes the job. It exists because the groups of a user can
//! only be taken on between fork and exec by code of our own, which a program of our own is without `unsafe`.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::stat::{Mode, umask};
use nix::unistd::{
    Gid, Uid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, geteuid, initgroups, setgid, setuid,
};

use super::start::{Launch, Unstartable, find_program, open};
use super::words::{RankSpec, RunAs};

/// Reads what to become from standard input and becomes it; returns only if that fails, with the code a shell
/// would give. What went wrong is the last line of the job's error output.
pub fn launch_main() -> ExitCode {
    let Err(failure) = launch();
    use io::Write;
    let told = writeln!(io::stderr(), "yard: {}", failure.message);
    let code = if told.is_ok() { failure.code.unwrap_or(1) } else { 1 };
    ExitCode::from(code as u8)
}

fn launch() -> Result<Infallible, Unstartable> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| fault("its orders", error))?;
    let launch: Launch = serde_json::from_str(&text).map_err(|error| fault("its orders", error))?;
    let nothing = File::open("/dev/null").map_err(|error| fault("/dev/null", error))?;
    dup2_stdin(nothing).map_err(|error| fault("standard input", error))?;
    drop_rights(&launch.user)?;
    redirect(&launch.rank)?;
    become_job(&launch.rank)
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

fn become_job(rank: &RankSpec) -> Result<Infallible, Unstartable> {
    let program = find_program(rank)?;
    chdir(&rank.cwd).map_err(|error| fault(&rank.cwd.display().to_string(), error))?;
    let argv = rank.argv.iter().map(|word| c_string(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let pairs = rank.env.iter().map(|(key, value)| c_string(format!("{key}={value}").as_bytes()));
    let env = pairs.collect::<Result<Vec<_>, _>>()?;
    execve(&c_path(&program)?, &argv, &env).map_err(|error| Unstartable {
        code: Some(if error == nix::errno::Errno::ENOENT { 127 } else { 126 }),
        message: format!("{} cannot be run: {error}", program.display()),
    })
}

fn c_path(path: &Path) -> Result<CString, Unstartable> {
    c_string(path.as_os_str().as_bytes())
}

fn c_string(bytes: &[u8]) -> Result<CString, Unstartable> {
    CString::new(bytes).map_err(|error| fault("the command or its environment", error))
}

fn fault(what: &str, error: impl std::fmt::Display) -> Unstartable {
    Unstartable { code: Some(126), message: format!("{what}: {error}") }
}
