//! Whether a daemon is there, from the list of processes: one of its user whose command is the control program and whose
//! environment names its folder. What the user writes into that folder is not looked at: it may be anything.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{CONTROL, PIPE};

/// How much is read of a process's arguments and environment.
const READ_MAX: u64 = 64 << 10;

/// The processes of one daemon.
pub(super) struct Control {
    uid: u32,
    /// The entry of their environment.
    entry: String,
}

impl Control {
    /// Those of a user, for these pipes.
    pub(super) fn of(uid: u32, pipe: &Path) -> Control {
        Control { uid, entry: format!("{PIPE}={}", pipe.display()) }
    }

    /// Whether there is one.
    pub(super) fn is_alive(&self) -> bool {
        pids().any(|pid| self.is_one(pid))
    }

    /// Kills them.
    pub(super) fn kill(&self) {
        for pid in pids().filter(|pid| self.is_one(*pid)) {
            // Held before it is looked at again: by then the number may be that of another process.
            let held = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            if let Some(held) = held.filter(|_| self.is_one(pid)) {
                tracing::warn!(pid, "an MPS daemon does not end when told to; it is killed");
                let _gone = pidfd_send_signal(held, Signal::KILL);
            }
        }
    }

    fn is_one(&self, pid: i32) -> bool {
        let place = Path::new("/proc").join(pid.to_string());
        let theirs = || place.metadata().is_ok_and(|found| found.uid() == self.uid);
        let read = |what: &str| beginning(&place.join(what)).unwrap_or_default();
        let entry = |entry: &[u8]| entry == self.entry.as_bytes();
        theirs() && is_control(&read("cmdline")) && read("environ").split(|byte| *byte == 0).any(entry)
    }
}

/// Whether a command line is that of the control program: itself, or what runs it.
fn is_control(line: &[u8]) -> bool {
    let name = |word: &[u8]| word.rsplit(|byte| *byte == b'/').next() == Some(CONTROL.as_bytes());
    line.split(|byte| *byte == 0).take(2).any(name)
}

/// The beginning of a file of the system. What a daemon is known by stands there, and a user's process may have
/// megabytes of arguments.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(READ_MAX).read_to_end(&mut text)?;
    Ok(text)
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
