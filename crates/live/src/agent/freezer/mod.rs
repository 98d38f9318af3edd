//! The freezer: moves what processes have on cards to the host's memory and back, through the driver. It is a process
//! of its own beside the agent, because a call into the driver may hang or crash, and must take neither the agent nor
//! the keeper with it. Requests come as JSON lines on its standard input, each is worked on in a thread of its own,
//! and answers go to its standard output. When its input ends it finishes what is under way and exits.
//!
//! The driver remembers how far each process is, so nothing is kept here: what a freezer that died left half done is
//! found again by the next one, which does the rest or undoes it.

mod calls;
mod client;
mod cuda;
mod fake;
mod moves;
mod words;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;

use self::calls::Calls;
pub(crate) use self::client::Freezer;
use self::cuda::Cuda;
use self::fake::Fake;
pub(crate) use self::words::{Failure, Moved};
use self::words::{FreezerAnswer, FreezerWhat, Request};
use super::clock::since_boot;
use super::inherited::keep_from_children;

/// Runs a freezer until its input ends. One that is still at work for an agent that died is waited for, so that two
/// never hold the same process. With `fake`, there is no driver: what it would do is read from the folder.
pub fn freezer_main(dir: &Path, fake: bool) -> anyhow::Result<()> {
    keep_from_children();
    DirBuilder::new().recursive(true).mode(0o700).create(dir).context("the freezer's folder")?;
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(dir.join("lock"))?;
    file.lock().context("the freezer's lock")?;
    let calls: Result<Box<dyn Calls>, Failure> = match fake {
        true => Ok(Box::new(Fake::new(dir))),
        false => Cuda::load().map(|cuda| Box::new(cuda) as Box<dyn Calls>),
    };
    // Whoever runs this may hold the lock of the standard output for as long as it lasts.
    let output = File::from(io::stdout().as_fd().try_clone_to_owned().context("the freezer's output")?);
    serve(calls.as_deref(), &Mutex::new(output));
    Ok(())
}

fn serve(calls: Result<&dyn Calls, &Failure>, output: &Mutex<File>) {
    std::thread::scope(|scope| {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(request) => drop(scope.spawn(move || answer(calls, request, output))),
                Err(error) => tracing::error!(%error, "the agent said what is no request"),
            }
        }
    });
}

fn answer(calls: Result<&dyn Calls, &Failure>, request: Request, output: &Mutex<File>) {
    let began = since_boot();
    let done = calls.map_err(Failure::clone).and_then(|calls| match &request.what {
        FreezerWhat::Probe {} => Ok(0),
        FreezerWhat::Freeze { pids } => moves::freeze(calls, pids),
        FreezerWhat::Thaw { pids } => moves::thaw(calls, pids).map(|()| 0),
    });
    let seconds = since_boot().saturating_sub(began) as f64 / 1e6;
    let done = done.map(|bytes| Moved { bytes, seconds });
    let line = words::line(&FreezerAnswer { id: request.id, done });
    // An agent that is gone asks the next freezer.
    let _gone = output.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
}

/// Memory as the kernel writes it, from a file such as `/proc/meminfo`.
pub(crate) fn bytes_of(file: &str, name: &str) -> Option<u64> {
    let line = file.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(bytes_of("Name:\tx\nVmRSS:\t    2048 kB\nVmData: 1 kB\n", "VmRSS:"), Some(2 << 20));
        for wrong in ["", "VmRSS:", "VmRSS: x kB", "VmRSS: 99999999999999999999 kB"] {
            assert_eq!(bytes_of(wrong, "VmRSS:"), None, "{wrong}");
        }
    }
}
