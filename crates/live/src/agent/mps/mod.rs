//! MPS, the driver's service through which processes of one user share a card side by side, each with a limit of its
//! own. A card and a user have one control daemon, started with the first part that needs it and ended a while after
//! the last. Daemons outlive the agent, as jobs do; a folder for each, named after card and user, is where the next
//! agent finds them. That folder is the agent's; in it the user has one for the daemon's pipes and one for its logs,
//! and nothing there is read or believed by the agent.

mod process;
#[cfg(test)]
mod tests;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use nix::unistd::{Uid, User, geteuid};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use yard_core::part::PartId;
use yard_core::{Span, Time};

use self::process::Control;
pub(crate) use self::tool::Tool;
use super::admit::UserAccount;
use super::keeper::{RankSpec, RunAs, Sink, start};
use super::opendir::{FileOwner, OpenDir};
use super::spawn::Unspawned;
use crate::wire::Limits;

/// The program that starts, and talks to, a daemon.
const CONTROL: &str = "nvidia-cuda-mps-control";

/// The variable that names a daemon's folder, to the daemon and to its clients.
const PIPE: &str = "CUDA_MPS_PIPE_DIRECTORY";

/// How long a daemon stays without clients.
const IDLE: Span = Span::from_whole_secs(60);

/// How long a daemon may take to come up, and to end. It has nothing to load: that is its server's part, later.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked for until then.
const LOOK: Duration = Duration::from_millis(10);

/// How often a daemon is told to end before it is killed.
const QUITS_MAX: u32 = 3;

/// How long after it was told it is told again.
const QUIT_AGAIN: Duration = Duration::from_secs(1);

/// The user's folders in a daemon's: pipes, under a short name because sockets lie there, and logs.
const PIPES: &str = "p";
const LOGS: &str = "log";

/// How much of what a command said is read.
const SAID_MAX: u64 = 4 << 10;

/// How a part's processes reach their card through MPS.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MpsClient {
    pipe: PathBuf,
    limits: Limits,
}

impl MpsClient {
    /// What is added to their environment. The card is number 0 to them: their daemon has no other.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let Limits { compute, memory_mib } = self.limits;
        let mut vars = vec![(PIPE, self.pipe.to_string_lossy().into_owned())];
        if compute < 1.0 {
            let percent = (compute * 100.0).round().max(1.0);
            vars.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string()));
        }
        vars.extend(memory_mib.map(|mib| ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={mib}M"))));
        vars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A control daemon, or what is left of one.
#[derive(Debug)]
struct Daemon {
    uid: u32,
    /// Whose processes are its clients.
    parts: BTreeSet<PartId>,
    /// Since when there are none.
    idle: Time,
    /// What tells it to end.
    ending: Option<Child>,
    /// How often it was told, and when the last time.
    told: u32,
    told_at: Option<Instant>,
}

/// All daemons of this node.
#[derive(Debug)]
pub(crate) struct Mps {
    dir: PathBuf,
    tool: Tool,
    launcher: Vec<String>,
    /// By the names of their folders.
    daemons: BTreeMap<String, Daemon>,
}

/// Where a card's daemon for a user has its pipes, as processes are told.
pub(crate) fn pipe_in(dir: &Path, card: &str, uid: u32) -> PathBuf {
    dir.join(folder_name(card, uid)).join(PIPES)
}

/// The folder of a card's daemon for a user. Short, because sockets lie there.
fn folder_name(card: &str, uid: u32) -> String {
    format!("{}-{uid}", short(card))
}

fn short(card: &str) -> String {
    Sha256::digest(card.as_bytes()).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder is that of a daemon of this card.
fn is_of(card: &str, name: &str) -> bool {
    name.split_once('-').is_some_and(|(of, _)| of == short(card))
}

impl Mps {
    /// Finds what the last agent left in the folder, which is the agent's own.
    pub(crate) fn open(dir: PathBuf, tool: Tool, launcher: Vec<String>, now: Time) -> io::Result<Mps> {
        let mut daemons = BTreeMap::new();
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let uid = name.split_once('-').and_then(|(_, uid)| uid.parse().ok());
            if let (Some(uid), true) = (uid, entry.file_type()?.is_dir()) {
                daemons.insert(name, Daemon::new(uid, now));
            }
        }
        Ok(Mps { dir, tool, launcher, daemons })
    }

    /// Why jobs cannot be limited here; none: they can.
    pub(crate) fn missing(&self) -> Option<String> {
        if let Tool::Missing(why) = &self.tool { Some(why.clone()) } else { None }
    }

    /// The way to a card for a part that begins. A daemon that is not there is started while everybody waits: that
    /// is quick, and nothing said about the part may overtake its start.
    pub(crate) fn join(
        &mut self,
        part: PartId,
        limits: Limits,
        devices: &[String],
        account: &UserAccount,
    ) -> Result<MpsClient, Unspawned> {
        let fault = |message: String| Unspawned { code: None, message };
        let [card] = devices else {
            let held = devices.len();
            return Err(fault(format!("a job is limited on one card, and this one has {held} on this node")));
        };
        let name = folder_name(card, account.uid());
        let client = MpsClient { pipe: pipe_in(&self.dir, card, account.uid()), limits };
        match &self.tool {
            Tool::Pretend => {}
            Tool::Missing(why) => {
                return Err(fault(format!("the job's part of a card cannot be limited: {why}")));
            }
            Tool::Program(program) => {
                self.await_end(&name);
                if !self.control(&name, account.uid()).is_alive() {
                    self.start(program, &name, card, account).map_err(|why| fault(unstarted(card, &why)))?;
                }
            }
        }
        self.rejoin(part, devices, account);
        Ok(client)
    }

    /// Notes that a part's processes go through a daemon.
    pub(crate) fn rejoin(&mut self, part: PartId, devices: &[String], account: &UserAccount) {
        if let [card] = devices {
            let daemon = self.daemons.entry(folder_name(card, account.uid()));
            daemon.or_insert_with(|| Daemon::new(account.uid(), Time::ZERO)).parts.insert(part);
        }
    }

    /// A part has another name now.
    pub(crate) fn rename(&mut self, part: PartId, as_part: PartId) {
        for daemon in self.daemons.values_mut() {
            if daemon.parts.remove(&part) {
                daemon.parts.insert(as_part);
            }
        }
    }

    /// A part's processes are gone, or about to be.
    pub(crate) fn leave(&mut self, part: PartId, now: Time) {
        for daemon in self.daemons.values_mut() {
            if daemon.parts.remove(&part) {
                daemon.idle = now;
            }
        }
    }

    /// Ends daemons that had no clients for a while, and forgets those that are gone.
    pub(crate) fn look(&mut self, now: Time) {
        let unused = |daemon: &Daemon| daemon.parts.is_empty() && now - daemon.idle >= IDLE;
        let names: Vec<_> =
            self.daemons.iter().filter(|(_, daemon)| unused(daemon)).map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.end(name));
    }

    /// A part begins that goes to its cards without MPS: idle daemons there end first, since they may cost it speed.
    pub(crate) fn vacate(&mut self, devices: &[String]) {
        for card in devices {
            let here = |(name, daemon): &(&String, &Daemon)| is_of(card, name) && daemon.parts.is_empty();
            let idle: Vec<_> = self.daemons.iter().filter(here).map(|(name, _)| name.clone()).collect();
            for name in idle {
                self.end(&name);
                self.await_end(&name);
            }
        }
    }

    /// Ends all daemons, and waits a little for that.
    pub(crate) fn end_all(&mut self) {
        let all = |mps: &mut Mps| {
            mps.daemons.keys().cloned().collect::<Vec<_>>().iter().for_each(|name| mps.end(name));
            mps.daemons.is_empty()
        };
        wait(|| all(self));
    }

    /// Tells a daemon to end, unless it was told already; once it is gone, so is its folder.
    fn end(&mut self, name: &str) {
        let Some(daemon) = self.daemons.get_mut(name) else { return };
        let uid = daemon.uid;
        if daemon.is_told() {
            return;
        }
        let Tool::Program(program) = &self.tool else {
            self.daemons.remove(name);
            return;
        };
        let control = self.control(name, uid);
        if !control.is_alive() {
            self.clear(name);
            self.daemons.remove(name);
            return;
        }
        match self.daemons.get(name).map(|daemon| (daemon.told, daemon.told_at)) {
            Some((_, Some(at))) if at.elapsed() < QUIT_AGAIN => return, // It is about to end.
            Some((QUITS_MAX.., _)) => return control.kill(), // Whatever it is, it is no daemon that listens.
            _ => {}
        }
        match self.quit(program, name, uid) {
            Ok(child) => {
                self.daemons.entry(name.to_owned()).and_modify(|daemon| daemon.telling(child));
            }
            Err(error) => tracing::warn!(%error, daemon = name, "an MPS daemon cannot be told to end"),
        }
    }

    fn quit(&self, program: &Path, name: &str, uid: u32) -> Result<Child, String> {
        let quit = ["/bin/sh", "-c", "echo quit | \"$0\"", &program.to_string_lossy()].map(str::to_owned);
        let env = BTreeMap::from([pipe_of(&self.dir.join(name).join(PIPES))]);
        self.run(name, quit.to_vec(), env, self.user(uid)?.as_ref())
    }

    /// One that was told to end is no use to a part that begins, but will not be there for long: a user who keeps it
    /// from ending must not hold up others.
    fn await_end(&self, name: &str) {
        if let Some(daemon) = self.daemons.get(name).filter(|daemon| daemon.ending.is_some()) {
            let control = self.control(name, daemon.uid);
            if !wait(|| !control.is_alive()) {
                control.kill();
            }
        }
    }

    /// The processes of a daemon.
    fn control(&self, name: &str, uid: u32) -> Control {
        Control::of(uid, &self.dir.join(name).join(PIPES))
    }

    /// Starts a daemon and waits until it can be found. What is left of an earlier one is cleared away.
    fn start(&self, program: &Path, name: &str, card: &str, account: &UserAccount) -> Result<(), String> {
        self.clear(name);
        let folder = self.make_folder(name, account.owner()).map_err(|error| error.to_string())?;
        let (pipe, control) = (folder.join(PIPES), self.control(name, account.uid()));
        let log = ("CUDA_MPS_LOG_DIRECTORY".to_owned(), folder.join(LOGS).to_string_lossy().into_owned());
        let mut env = account.base.clone();
        env.retain(|name, _| !name.starts_with("CUDA_"));
        env.extend([pipe_of(&pipe), log, ("CUDA_VISIBLE_DEVICES".to_owned(), card.to_owned())]);
        let argv = vec![program.to_string_lossy().into_owned(), "-d".to_owned()];
        let mut child = self.run(name, argv, env, account.run_as.as_ref())?;
        let mut failed = None;
        let there = wait(|| match child.try_wait() {
            Ok(Some(status)) if status.success() => control.is_alive(),
            Ok(None) => false,
            other => {
                failed = Some(other.map_or_else(|error| error.to_string(), |status| format!("{status:?}")));
                true
            }
        });
        match failed {
            Some(status) => Err(format!("{status}{}", self.said(name))),
            None if there => Ok(()),
            None => {
                let _gone = child.kill().and_then(|()| child.wait());
                Err(format!("it was not there after {PATIENCE:?}{}", self.said(name)))
            }
        }
    }

    /// Runs a command of a daemon's user. Its output goes to a file that only the agent's user can touch.
    fn run(
        &self,
        name: &str,
        argv: Vec<String>,
        mut env: BTreeMap<String, String>,
        user: Option<&RunAs>,
    ) -> Result<Child, String> {
        env.entry("PATH".into()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".into());
        let stdout = Sink { path: self.output(name), theirs: false, header: None };
        let rank = RankSpec { rank: 0, argv, env, cwd: PathBuf::from("/"), stdout, stderr: None };
        start(rank, user, "mps").map_err(|failed| failed.message)
    }

    /// Who a daemon runs as, where that is not the agent's own user.
    fn user(&self, uid: u32) -> Result<Option<RunAs>, String> {
        if uid == geteuid().as_raw() {
            return Ok(None);
        }
        let known = User::from_uid(Uid::from_raw(uid)).map_err(|error| error.to_string())?;
        let user = known.ok_or_else(|| format!("there is no user {uid} any more"))?;
        let (gid, launcher) = (user.gid.as_raw(), self.launcher.clone());
        Ok(Some(RunAs { name: user.name, uid, gid, launcher }))
    }

    /// A daemon's folder, which is the agent's, with the user's two in it.
    fn make_folder(&self, name: &str, owner: Option<FileOwner>) -> io::Result<PathBuf> {
        let (daemon, _) = OpenDir::open(&self.dir)?.make(OsStr::new(name))?;
        daemon.take_back()?;
        for within in [PIPES, LOGS] {
            daemon.make(OsStr::new(within))?.0.give(owner)?;
        }
        Ok(self.dir.join(name))
    }

    /// Removes what is left of a daemon. An older version gave the whole folder to the user, so it is taken back first.
    fn clear(&self, name: &str) {
        let folder = || -> io::Result<()> {
            let all = OpenDir::open(&self.dir)?;
            let daemon = all.enter(OsStr::new(name))?;
            daemon.take_back()?;
            daemon.clear()?;
            all.remove_folder(OsStr::new(name))
        };
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        for error in [folder(), std::fs::remove_file(self.output(name))].into_iter().filter_map(Result::err) {
            if !gone(&error) {
                tracing::warn!(%error, daemon = name, "what is left of an MPS daemon stays");
            }
        }
    }

    fn output(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.out"))
    }

    /// The last line that a command of a daemon said.
    fn said(&self, name: &str) -> String {
        let mut text = Vec::new();
        let file = File::open(self.output(name));
        let _said = file.and_then(|file| file.take(SAID_MAX).read_to_end(&mut text));
        String::from_utf8_lossy(&text).lines().last().map_or_else(String::new, |line| format!(": {line}"))
    }
}

impl Daemon {
    fn new(uid: u32, idle: Time) -> Daemon {
        Daemon { uid, parts: BTreeSet::new(), idle, ending: None, told: 0, told_at: None }
    }

    /// It is being told to end.
    fn telling(&mut self, child: Child) {
        (self.ending, self.told, self.told_at) = (Some(child), self.told + 1, Some(Instant::now()));
    }

    /// Whether it is being told to end.
    fn is_told(&mut self) -> bool {
        self.ending.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

fn unstarted(card: &str, why: &str) -> String {
    format!(
        "the MPS daemon of card {card} did not start ({why}); try {CONTROL} -d on this node, or do without limits"
    )
}

/// Looks until it is so, or patience is over; whether it is.
fn wait(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        if is_so() {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    is_so()
}

fn pipe_of(pipe: &Path) -> (String, String) {
    (PIPE.to_owned(), pipe.to_string_lossy().into_owned())
}
