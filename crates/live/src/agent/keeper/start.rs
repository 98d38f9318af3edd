//! How a rank's process comes to be. Where it runs as the keeper's own user it is started directly; otherwise
//! through `launch`, which starts with a clean environment, takes the job's from its input and drops its rights
//! first, so that nothing the user chose (libraries to preload, files to open) acts with the keeper's rights.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::libc::O_NONBLOCK;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};

use super::tree::MARK;
use super::words::{RankSpec, RunAs, Sink};

/// Why a rank has no process.
#[derive(Debug, PartialEq)]
pub(crate) struct Unstartable {
    /// As a shell would say it, where it is the job's own fault.
    pub(crate) code: Option<i32>,
    /// In a sentence.
    pub(crate) message: String,
}

/// What the launcher reads from its input.
#[derive(Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) user: RunAs,
    pub(super) rank: RankSpec,
}

/// Starts a rank in a process group of its own, marked.
pub(crate) fn start(mut rank: RankSpec, user: Option<&RunAs>, mark: &str) -> Result<Child, Unstartable> {
    rank.env.insert(MARK.into(), mark.into());
    match user {
        None => start_here(&rank),
        Some(user) => start_as(rank, user, mark),
    }
}

fn start_here(rank: &RankSpec) -> Result<Child, Unstartable> {
    let program = find_program(rank)?;
    let mut command = Command::new(program);
    command.arg0(&rank.argv[0]).args(&rank.argv[1..]).env_clear().envs(&rank.env).current_dir(&rank.cwd);
    let stdout = open(&rank.stdout)?;
    command.stderr(match &rank.stderr {
        Some(sink) => open(sink)?,
        None => stdout.try_clone().map_err(|error| node_fault(&error))?,
    });
    command.stdin(Stdio::null()).stdout(stdout).process_group(0);
    spawned(command.spawn(), &rank.argv[0])
}

fn start_as(rank: RankSpec, user: &RunAs, mark: &str) -> Result<Child, Unstartable> {
    let Some((program, args)) = user.launcher.split_first() else {
        return Err(Unstartable {
            code: None,
            message: "the agent has no command that changes users".into(),
        });
    };
    let ours = |sink: &Sink| if sink.theirs { Ok(None) } else { open(sink).map(Some) };
    let stdout = ours(&rank.stdout)?;
    let stderr = match &rank.stderr {
        Some(sink) => ours(sink)?,
        None => stdout.as_ref().map(File::try_clone).transpose().map_err(|error| node_fault(&error))?,
    };
    let mut command = Command::new(program);
    command.args(args).env_clear().env(MARK, mark).current_dir("/").stdin(Stdio::piped()).process_group(0);
    command.stdout(stdout.map_or_else(Stdio::null, Stdio::from));
    command.stderr(stderr.map_or_else(Stdio::null, Stdio::from));
    let mut child = spawned(command.spawn(), program)?;
    let launch = super::words::line(&Launch { user: user.clone(), rank });
    let written = child.stdin.take().map(|mut input| input.write_all(&launch));
    if let Some(Err(error)) = written {
        tracing::debug!(%error, "a launcher ended before it knew what to launch"); // Its exit says the rest.
    }
    Ok(child)
}

/// Opens a file to append to, and writes its header. Pipes without a reader and other things that are no files
/// would block, so they are refused.
pub(super) fn open(sink: &Sink) -> Result<File, Unstartable> {
    let name = sink.path.display();
    let refused = |what: String| Unstartable { code: Some(126), message: format!("output {name}: {what}") };
    let mut options = OpenOptions::new();
    // What is ours lies where other users may pass, and is read through the agent.
    let mode = if sink.theirs { 0o644 } else { 0o600 };
    options.create(true).append(true).mode(mode).custom_flags(O_NONBLOCK);
    let mut file = options.open(&sink.path).map_err(|error| refused(error.to_string()))?;
    let kind = file.metadata().map_err(|error| refused(error.to_string()))?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        return Err(refused("it is neither a file nor a device; name a file".into()));
    }
    if let Some(header) = &sink.header {
        writeln!(file, "{header}").map_err(|error| refused(error.to_string()))?;
    }
    Ok(file)
}

/// Where the program is, by the job's own search path; relative names count from its working directory.
pub(super) fn find_program(rank: &RankSpec) -> Result<PathBuf, Unstartable> {
    let Some(name) = rank.argv.first().filter(|name| !name.is_empty()) else {
        return Err(Unstartable { code: Some(127), message: "the command is empty".into() });
    };
    if !rank.cwd.is_dir() {
        let message = format!("working directory {} is not there on this node", rank.cwd.display());
        return Err(Unstartable { code: Some(126), message });
    }
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let path = rank.env.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    let found =
        std::env::split_paths(path).map(|folder| rank.cwd.join(folder).join(name)).find(|at| runs(at));
    found.ok_or_else(|| Unstartable {
        code: Some(127),
        message: format!("{name} was not found in PATH={path}"),
    })
}

fn runs(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// Tells the job's faults from the node's.
fn spawned<T>(spawned: io::Result<T>, name: &str) -> Result<T, Unstartable> {
    spawned.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unstartable { code: Some(127), message: format!("{name} was not found") },
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => node_fault(&error),
        _ => Unstartable { code: Some(126), message: format!("{name} cannot be run: {error}") },
    })
}

fn node_fault(error: &io::Error) -> Unstartable {
    Unstartable { code: None, message: format!("this node cannot start processes now: {error}") }
}
