//! A driver for nodes with pretend devices: every process uses cards, and its state is a file, so that it outlives
//! the freezer as a driver's would. What it takes and where it fails is read from `settings.json` in the same folder
//! before each call, for tests.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::calls::{Calls, State};
use super::words::Failure;

/// What to do.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// How long moving takes.
    delay_ms: u64,
    /// Host memory that a moved process takes.
    bytes: u64,
    /// A call that fails.
    fail: Option<Call>,
    /// Whether it will always.
    forever: bool,
    /// A call at which the freezer crashes, once.
    crash: Option<Call>,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Call {
    Lock,
    Checkpoint,
    Restore,
    Unlock,
}

/// The driver.
pub(super) struct Fake {
    folder: PathBuf,
}

impl Fake {
    pub(super) fn new(folder: &Path) -> Fake {
        Fake { folder: folder.to_owned() }
    }

    fn settings(&self) -> Settings {
        let text = std::fs::read(self.folder.join("settings.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn file(&self, pid: i32) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    fn change(&self, pid: i32, call: Call, from: State, to: State) -> Result<(), Failure> {
        let settings = self.settings();
        let failure = |reason: String| Failure { reason, forever: settings.forever };
        if settings.crash == Some(call) {
            let _once = std::fs::remove_file(self.folder.join("settings.json"));
            std::process::abort();
        }
        if settings.fail == Some(call) {
            return Err(failure(format!("{call:?} of process {pid} fails because the settings say so")));
        }
        if self.state(pid)? != Some(from) {
            return Err(failure(format!("process {pid} is not {from:?}")));
        }
        if matches!(call, Call::Checkpoint | Call::Restore) {
            std::thread::sleep(Duration::from_millis(settings.delay_ms));
        }
        self.write(pid, to).map_err(|error| failure(error.to_string()))
    }

    fn write(&self, pid: i32, state: State) -> io::Result<()> {
        let word = match state {
            State::Locked => "locked",
            State::Checkpointed => "checkpointed",
            State::Running | State::Failed => return std::fs::remove_file(self.file(pid)),
        };
        std::fs::write(self.file(pid), word)
    }
}

impl Calls for Fake {
    fn state(&self, pid: i32) -> Result<Option<State>, Failure> {
        if !Path::new("/proc").join(pid.to_string()).exists() {
            let _of_the_dead = std::fs::remove_file(self.file(pid));
            return Ok(None);
        }
        Ok(Some(match std::fs::read_to_string(self.file(pid)).as_deref() {
            Ok("locked") => State::Locked,
            Ok("checkpointed") => State::Checkpointed,
            _ => State::Running,
        }))
    }

    fn lock(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, Call::Lock, State::Running, State::Locked)
    }

    fn checkpoint(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, Call::Checkpoint, State::Locked, State::Checkpointed)
    }

    fn restore(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, Call::Restore, State::Checkpointed, State::Locked)
    }

    fn unlock(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, Call::Unlock, State::Locked, State::Running)
    }

    fn memory(&self, pid: i32) -> u64 {
        match self.state(pid) {
            Ok(Some(State::Checkpointed)) => self.settings().bytes,
            _ => 0,
        }
    }
}
