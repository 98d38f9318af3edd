//! A driver for nodes with pretend devices: every process uses cards, and its state is a file, so that it outlives
//! the freezer as a driver's would. What it takes and where it fails is read from `settings.json` in the same folder
//! before each call, for tests.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::calls::{Calls, ProcessState};
use super::words::Failure;

/// What to do.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FakeSettings {
    /// How long moving takes.
    delay_ms: u64,
    /// Host memory that a moved process takes.
    bytes: u64,
    /// A call that fails.
    fail: Option<FakeCall>,
    /// Whether it will always.
    forever: bool,
    /// A call at which the freezer crashes, once.
    crash: Option<FakeCall>,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FakeCall {
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

    fn settings(&self) -> FakeSettings {
        let text = std::fs::read(self.folder.join("settings.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn file(&self, pid: i32) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    fn change(&self, pid: i32, call: FakeCall, from: ProcessState, to: ProcessState) -> Result<(), Failure> {
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
        if matches!(call, FakeCall::Checkpoint | FakeCall::Restore) {
            std::thread::sleep(Duration::from_millis(settings.delay_ms));
        }
        self.write(pid, to).map_err(|error| failure(error.to_string()))
    }

    fn write(&self, pid: i32, state: ProcessState) -> io::Result<()> {
        let word = match state {
            ProcessState::Locked => "locked",
            ProcessState::Checkpointed => "checkpointed",
            ProcessState::Running | ProcessState::Failed => return std::fs::remove_file(self.file(pid)),
        };
        std::fs::write(self.file(pid), word)
    }
}

impl Calls for Fake {
    fn state(&self, pid: i32) -> Result<Option<ProcessState>, Failure> {
        if !Path::new("/proc").join(pid.to_string()).exists() {
            let _of_the_dead = std::fs::remove_file(self.file(pid));
            return Ok(None);
        }
        Ok(Some(match std::fs::read_to_string(self.file(pid)).as_deref() {
            Ok("locked") => ProcessState::Locked,
            Ok("checkpointed") => ProcessState::Checkpointed,
            _ => ProcessState::Running,
        }))
    }

    fn lock(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, FakeCall::Lock, ProcessState::Running, ProcessState::Locked)
    }

    fn checkpoint(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, FakeCall::Checkpoint, ProcessState::Locked, ProcessState::Checkpointed)
    }

    fn restore(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, FakeCall::Restore, ProcessState::Checkpointed, ProcessState::Locked)
    }

    fn unlock(&self, pid: i32) -> Result<(), Failure> {
        self.change(pid, FakeCall::Unlock, ProcessState::Locked, ProcessState::Running)
    }

    fn memory(&self, pid: i32) -> u64 {
        match self.state(pid) {
            Ok(Some(ProcessState::Checkpointed)) => self.settings().bytes,
            _ => 0,
        }
    }
}
