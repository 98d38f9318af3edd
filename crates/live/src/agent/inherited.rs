//! Files that whoever started this process left open. A shell's or a service's own files must not reach jobs through
//! agent, keeper and launcher: they may be root's.

#![expect(unsafe_code, reason = "a file that is known by its number only has no safe form")]

use nix::libc::{F_SETFD, FD_CLOEXEC, fcntl};

/// Has everything but the standard streams closed in whatever this process starts or becomes. What it opens itself
/// later is so already.
pub(crate) fn keep_from_children() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.collect::<Vec<_>>().into_iter().filter(|number| *number > 2) {
        // SAFETY: it sets a flag of a number, and fails on one that is no open file.
        let _closed = unsafe { fcntl(number, F_SETFD, FD_CLOEXEC) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_was_left_open_reaches_no_child() {
        let left = nix::unistd::dup(std::fs::File::open("/etc/hostname").unwrap()).unwrap();
        let number = left.as_raw_fd();
        let sees = || {
            let open = format!("test -e /proc/self/fd/{number}");
            Command::new("sh").args(["-c", &open]).status().unwrap().success()
        };
        assert!(sees(), "it would be inherited");
        keep_from_children();
        assert!(!sees());
    }
}
