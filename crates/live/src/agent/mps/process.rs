//! Whether a daemon is there. It says in a file of its folder which process it is; that the process is one, and of
//! this folder, is seen by its command line and its environment, where that may be read.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use super::{CONTROL, PIPE};

/// Whether a daemon runs that has this folder.
pub(super) fn is_alive(pipe: &Path) -> bool {
    let Some(pid) = pid(pipe) else { return false };
    let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}"));
    let has_name = |line: Vec<u8>| line.windows(CONTROL.len()).any(|part| part == CONTROL.as_bytes());
    let entry = format!("{PIPE}={}", pipe.display());
    let own = |environ: Vec<u8>| environ.split(|byte| *byte == 0).any(|known| known == entry.as_bytes());
    read("cmdline").is_ok_and(has_name) && read("environ").map_or(true, own)
}

/// The process that a daemon says it is. The folder is its user's, who may have put anything there.
fn pid(pipe: &Path) -> Option<u32> {
    let path = pipe.join(format!("{CONTROL}.pid"));
    let file =
        std::fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOFOLLOW).open(path).ok()?;
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
