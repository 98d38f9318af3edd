//! How a rank's process comes to be. Where it runs as the keeper's own user and nothing confines it, it is started
//! directly; otherwise through `launch`, which starts with a clean environment, is put into the control group, takes the
//! job's environment from its input and drops its rights first, so that nothing the user chose (libraries to preload,
//! files to open) acts with the keeper's rights or outside the group.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::libc::O_NONBLOCK;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};

use super::log_file::LogFile;
use super::output::{Stream, Whole};
use super::tree::MARK;
use super::words::{Confine, RankSpec, RunAs, SecretFiles, Sink};
use crate::agent::logs::WHOLE;

/// Why a rank has no process.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unstartable {
    /// As a shell would say it, where it is the job's own fault.
    pub(crate) code: Option<i32>,
    /// In a sentence.
    pub(crate) message: String,
}

/// What the launcher reads from its input.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Orders {
    /// Become a rank.
    Become(Box<KeeperLaunch>),
    /// Open a file to read, as this user, and hand it back.
    Open { user: RunAs, path: PathBuf },
}

/// A rank to become.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeeperLaunch {
    pub(super) user: Option<RunAs>,
    pub(super) rank: RankSpec,
    /// See `Confine`.
    pub(super) closed: Vec<PathBuf>,
    pub(super) secrets: Option<SecretFiles>,
}

/// What the ranks of a part have in common.
pub(super) struct Setting<'a> {
    pub(super) user: Option<&'a RunAs>,
    pub(super) confine: &'a Confine,
    pub(super) log_max: u64,
}

/// A process that is there, or about to become a rank.
pub(super) struct Started {
    pub(super) child: Child,
    /// Where a launcher waits for its orders, and the orders.
    pub(super) launch: Option<(UnixStream, Vec<u8>)>,
    /// What it writes to our logs.
    pub(super) streams: Vec<Stream>,
}

/// A rank's standard output and error; none where the launcher opens them.
#[derive(Default)]
struct Outputs {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

/// Starts a rank in a process group of its own, marked, with its output on its way to our logs.
pub(super) fn start_rank(
    mut rank: RankSpec,
    setting: &Setting<'_>,
    mark: &str,
) -> Result<Started, Unstartable> {
    rank.env.insert(MARK.into(), mark.into());
    let (outputs, streams) = piped(&rank, setting)?;
    let Confine { cgroup, closed, secrets, launcher } = setting.confine;
    let mounted = secrets.as_ref().is_some_and(|secrets| secrets.mounted);
    if cgroup.is_none() && setting.user.is_none() && !mounted {
        return Ok(Started { child: start_here(&rank, outputs)?, launch: None, streams });
    }
    let command = setting.user.map_or(launcher, |user| &user.launcher);
    let (mut child, orders) = start_launcher(command, mark, outputs)?;
    if let Some(cgroup) = cgroup
        && let Err(error) = std::fs::write(cgroup.join("cgroup.procs"), child.id().to_string())
    {
        let _gone = child.kill().and_then(|()| child.wait());
        let message =
            format!("this node cannot put the job into its control group {}: {error}", cgroup.display());
        return Err(Unstartable { code: None, message });
    }
    let (user, closed, secrets) = (setting.user.cloned(), closed.clone(), secrets.clone());
    let launch = Orders::Become(Box::new(KeeperLaunch { user, rank, closed, secrets }));
    Ok(Started { child, launch: Some((orders, super::words::line(&launch))), streams })
}

/// Starts a process of the agent's own need, as a user, with its output in a file.
pub(crate) fn start(mut rank: RankSpec, user: Option<&RunAs>, mark: &str) -> Result<Child, Unstartable> {
    rank.env.insert(MARK.into(), mark.into());
    let outputs = filed(&rank)?;
    let Some(user) = user else { return start_here(&rank, outputs) };
    let (child, mut orders) = start_launcher(&user.launcher, mark, outputs)?;
    let (user, closed, secrets) = (Some(user.clone()), Vec::new(), None);
    let launch = Orders::Become(Box::new(KeeperLaunch { user, rank, closed, secrets }));
    if let Err(error) = orders.write_all(&super::words::line(&launch)) {
        tracing::debug!(%error, "a launcher ended before it knew what to launch"); // Its exit says the rest.
    }
    Ok(child)
}

/// Pipes for what goes to our logs; the files that the user named, where this process opens them.
fn piped(rank: &RankSpec, setting: &Setting<'_>) -> Result<(Outputs, Vec<Stream>), Unstartable> {
    let mut streams = Vec::new();
    let whole = whole(rank, setting)?;
    let mut output = |sink: &Sink| -> Result<Option<OwnedFd>, Unstartable> {
        if sink.theirs {
            return Ok(None);
        }
        let log = LogFile::open(sink, setting.log_max).map_err(|error| node_fault(&error))?;
        let (job, stream) =
            Stream::to(log, whole.clone(), setting.user).map_err(|error| node_fault(&error))?;
        streams.push(stream);
        Ok(Some(job))
    };
    let stdout = output(&rank.stdout)?;
    let stderr = match &rank.stderr {
        Some(sink) => output(sink)?,
        None => copy(&stdout)?,
    };
    Ok((Outputs { stdout, stderr }, streams))
}

/// The log that gets both streams in order of arrival, where both are ours.
fn whole(rank: &RankSpec, setting: &Setting<'_>) -> Result<Option<Whole>, Unstartable> {
    let ours = |sink: &Sink| !sink.theirs;
    let both = ours(&rank.stdout) && rank.stderr.as_ref().is_some_and(ours);
    let sink = Sink { path: rank.stdout.path.with_extension(WHOLE), ..rank.stdout.clone() };
    let open = || LogFile::open(&sink, setting.log_max).map(|log| Arc::new(Mutex::new(log)));
    both.then(open).transpose().map_err(|error| node_fault(&error))
}

/// Our files, as they are.
fn filed(rank: &RankSpec) -> Result<Outputs, Unstartable> {
    let ours = |sink: &Sink| -> Result<Option<OwnedFd>, Unstartable> {
        if sink.theirs { Ok(None) } else { Ok(Some(open(sink)?.into())) }
    };
    let stdout = ours(&rank.stdout)?;
    let stderr = match &rank.stderr {
        Some(sink) => ours(sink)?,
        None => copy(&stdout)?,
    };
    Ok(Outputs { stdout, stderr })
}

fn copy(output: &Option<OwnedFd>) -> Result<Option<OwnedFd>, Unstartable> {
    output.as_ref().map(OwnedFd::try_clone).transpose().map_err(|error| node_fault(&error))
}

fn start_here(rank: &RankSpec, outputs: Outputs) -> Result<Child, Unstartable> {
    let program = find_program(rank)?;
    let stdout = match outputs.stdout {
        Some(ours) => ours,
        None => open(&rank.stdout)?.into(),
    };
    let stderr = match (outputs.stderr, &rank.stderr) {
        (Some(ours), _) => ours,
        (None, Some(theirs)) => open(theirs)?.into(),
        (None, None) => stdout.try_clone().map_err(|error| node_fault(&error))?,
    };
    let mut command = Command::new(program);
    command.arg0(&rank.argv[0]).args(&rank.argv[1..]).env_clear().envs(&rank.env).current_dir(&rank.cwd);
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
    spawned(command.spawn(), &rank.argv[0])
}

/// A launcher that waits for its orders, and where to send them.
fn start_launcher(
    launcher: &[String],
    mark: &str,
    outputs: Outputs,
) -> Result<(Child, UnixStream), Unstartable> {
    let Some((program, args)) = launcher.split_first() else {
        return Err(Unstartable { code: None, message: "the agent has no command that starts jobs".into() });
    };
    let (orders, input) = UnixStream::pair().map_err(|error| node_fault(&error))?;
    let mut command = Command::new(program);
    command.args(args).env_clear().env(MARK, mark).current_dir("/").process_group(0);
    command.stdin(OwnedFd::from(input));
    command.stdout(outputs.stdout.map_or_else(Stdio::null, Stdio::from));
    command.stderr(outputs.stderr.map_or_else(Stdio::null, Stdio::from));
    // Whatever is wrong with our own program is the node's fault.
    let child = command.spawn().map_err(|error| node_fault(&error))?;
    Ok((child, orders))
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
        let message = format!("working directory {} does not exist on this node", rank.cwd.display());
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

pub(super) fn node_fault(error: &io::Error) -> Unstartable {
    Unstartable { code: None, message: format!("this node cannot start processes now: {error}") }
}
