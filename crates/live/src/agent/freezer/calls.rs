//! What a driver can do to one process. Two drivers exist: the real one and the one for tests.

use super::words::Failure;

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// It uses its cards.
    Running,
    /// Its calls to the driver wait.
    Locked,
    /// And what it had on cards is in the host's memory.
    Checkpointed,
    /// The driver has given it up.
    Failed,
}

/// The driver's calls. The process runs while they are made: it does part of the work itself.
pub(super) trait Calls: Send + Sync {
    /// How far a process is; none where it uses no card or is gone.
    fn state(&self, pid: i32) -> Result<Option<ProcessState>, Failure>;
    /// Makes its calls wait.
    fn lock(&self, pid: i32) -> Result<(), Failure>;
    /// Moves what it has on cards to the host's memory; it must be locked.
    fn checkpoint(&self, pid: i32) -> Result<(), Failure>;
    /// Moves it back; it is locked then.
    fn restore(&self, pid: i32) -> Result<(), Failure>;
    /// Lets its calls go on.
    fn unlock(&self, pid: i32) -> Result<(), Failure>;
    /// Host memory of a process.
    fn memory(&self, pid: i32) -> u64;
}
