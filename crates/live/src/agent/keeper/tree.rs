//! Who is whose child, from `/proc`: the processes under a rank, and the orphans that came to the keeper. Orphans
//! are told apart by a mark that every process inherits in its environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that marks whose process it is.
pub(crate) const MARK: &str = "YARD_KEEPER";

/// What is read of an environment: more than a program can be started with. A process can say that its own is all
/// of its memory.
const ENVIRON_MAX: u64 = 8 << 20;

/// The mark in a process's environment, where it can be read. The process can make this take for ever: see `Marks`.
pub(super) fn mark(proc: &Path, pid: i32) -> Option<String> {
    let mut environ = Vec::new();
    let file = File::open(proc.join(pid.to_string()).join("environ")).ok()?;
    file.take(ENVIRON_MAX).read_to_end(&mut environ).ok()?;
    let mut entries = environ.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// The living and dead direct children of this process.
pub(crate) fn children() -> Vec<i32> {
    let me = nix::unistd::getpid().as_raw();
    match fs::read_to_string(format!("/proc/{me}/task/{me}/children")) {
        Ok(list) => list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // Kernels may be built without that file.
        Err(_) => parents().into_iter().filter(|(_, parent)| *parent == me).map(|(pid, _)| pid).collect(),
    }
}

/// A process and everything under it.
pub(crate) fn descendants(roots: &[i32]) -> BTreeSet<i32> {
    let mut below: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in parents() {
        below.entry(parent).or_default().push(pid);
    }
    let mut found = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(below.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// All processes with their parents.
fn parents() -> BTreeMap<i32, i32> {
    pids().filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// All processes.
pub(crate) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: i32) -> Option<i32> {
    i32::try_from(stat(Path::new("/proc"), pid, 1)?).ok()
}

/// When a process started, in the system's own count: no two processes with the same number have the same.
pub(super) fn started(proc: &Path, pid: i32) -> Option<u64> {
    stat(proc, pid, 19)
}

/// A field of a process's state, counted from after its name. The process cannot hold this up.
fn stat(proc: &Path, pid: i32, field: usize) -> Option<u64> {
    let stat = fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
    // The name may contain anything, parentheses too: the fields begin after the last one.
    String::from_utf8_lossy(&stat).rsplit_once(')')?.1.split_whitespace().nth(field)?.parse().ok()
}

/// Sends a signal to one process; that it is gone is no error.
pub(crate) fn send(pid: i32, signal: Signal) {
    if let Err(error) = kill(Pid::from_raw(pid), signal) {
        tracing::debug!(pid, %signal, %error, "signal not sent");
    }
}
