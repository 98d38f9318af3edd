//! A program that is asked one line and answers one line, under a limit of time and of length. It is started without a
//! shell, in a process group of its own, and never outlives the thread that asks it.

use std::collections::VecDeque;
use std::ffi::{CString, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::output;

/// The longest line either side may send.
pub(super) const LINE_MAX: usize = 64 << 20;

/// What is kept of stderr for the error message.
const TAIL_LINES: usize = 20;
const TAIL_LINE_MAX: u64 = 500;

/// Lines of stderr that are passed on; what follows is dropped.
const PASSED_MAX: usize = 1_000;

/// How long a program that closed its output may take to end, so that its exit code is known, and how often to look.
const ENDS_TRIES: u32 = 50;
const ENDS_PAUSE: Duration = Duration::from_millis(10);

/// What becomes of the program's stderr, beside the end of it that errors show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stderr {
    /// It goes to ours.
    Pass,
    /// It is kept for an error only.
    Keep,
}

/// Why there is no answer, and the last that the program wrote on stderr.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) what: String,
    pub(super) stderr: Vec<String>,
}

enum Heard {
    Line(Vec<u8>),
    TooLong,
    Ended,
}

/// A program that runs.
pub(super) struct PolicyProcess {
    child: Child,
    lines_to: Option<SyncSender<Vec<u8>>>,
    heard: Receiver<Heard>,
    stderr: Receiver<Vec<String>>,
    /// Lines that it has answered.
    pub(super) lines: u64,
}

impl PolicyProcess {
    pub(super) fn start(path: &Path, stderr: Stderr) -> io::Result<PolicyProcess> {
        // By way of this program: only the child itself can ask to end with its parent.
        let own = std::process::id().to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command.args([OsString::from("policy-program"), own.into(), path.into()]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let errors = child.stderr.take().expect("piped");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (lines_to, lines) = sync_channel(1);
        let (hears, heard) = sync_channel(1);
        let (ends, tail) = sync_channel(1);
        let thread = |what: &str| std::thread::Builder::new().name(format!("policy-{what}"));
        thread("in").spawn(move || write(input, &lines))?;
        thread("out").spawn(move || listen(output, &hears))?;
        thread("err").spawn(move || ends.send(collect(errors, &name, stderr)))?;
        Ok(PolicyProcess { child, lines_to: Some(lines_to), heard, stderr: tail, lines: 0 })
    }

    /// Asks, and waits for the answer. After trouble the program is of no use any more.
    pub(super) fn ask(&mut self, line: Vec<u8>, limit: Duration) -> Result<Vec<u8>, Trouble> {
        let lines_to = self.lines_to.as_ref().expect("it is open until the end");
        // One that no longer reads has ended, which is heard in a moment.
        if let Err(TrySendError::Full(_)) = lines_to.try_send(line) {
            return Err(self.trouble("it answers without reading what it is told".into()));
        }
        match self.heard.recv_timeout(limit) {
            Ok(Heard::Line(line)) => {
                self.lines += 1;
                Ok(line)
            }
            Ok(Heard::TooLong) => {
                Err(self.trouble(format!("line {} of its output is longer than 64 MiB", self.lines + 1)))
            }
            Ok(Heard::Ended) | Err(RecvTimeoutError::Disconnected) => {
                let how = self.end_by_itself().map_or("closed its output".to_owned(), ended);
                Err(self.trouble(format!("it {how} instead of answering")))
            }
            Err(RecvTimeoutError::Timeout) => {
                let limit = limit.as_secs_f64();
                Err(self.trouble(format!("no answer within {limit} s (timeout=TIME sets the limit)")))
            }
        }
    }

    /// Ends it, and says what was wrong.
    pub(super) fn trouble(&mut self, what: String) -> Trouble {
        self.kill();
        // Somebody else may still hold its stderr.
        let stderr = self.stderr.recv_timeout(ENDS_PAUSE * ENDS_TRIES).unwrap_or_default();
        Trouble { what, stderr }
    }

    fn end_by_itself(&mut self) -> Option<ExitStatus> {
        for _ in 0..ENDS_TRIES {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(ENDS_PAUSE);
        }
        None
    }

    fn kill(&mut self) {
        self.lines_to = None;
        // Errors say that it is gone already, which is what is wanted.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

impl Drop for PolicyProcess {
    /// One that reads to the end of its input ends by itself, and may write down what it likes before.
    fn drop(&mut self) {
        self.lines_to = None;
        self.end_by_itself();
        self.kill();
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

fn write(mut input: ChildStdin, lines: &Receiver<Vec<u8>>) {
    while let Ok(line) = lines.recv() {
        if input.write_all(&line).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

fn listen(output: ChildStdout, heard: &SyncSender<Heard>) {
    let mut output = BufReader::with_capacity(1 << 16, output);
    loop {
        let said = next(&mut output);
        let over = !matches!(said, Heard::Line(_));
        if heard.send(said).is_err() || over {
            return;
        }
    }
}

/// The next line. The last one of a program that ended in its midst is none.
fn next(output: &mut impl BufRead) -> Heard {
    let mut line = Vec::new();
    match output.take(LINE_MAX as u64).read_until(b'\n', &mut line) {
        Ok(_) if line.ends_with(b"\n") => Heard::Line(line),
        Ok(LINE_MAX) => Heard::TooLong,
        Ok(_) | Err(_) => Heard::Ended,
    }
}

/// Reads stderr to its end; its last lines.
fn collect(errors: ChildStderr, name: &str, stderr: Stderr) -> Vec<String> {
    let mut errors = BufReader::new(errors);
    let (mut tail, mut passed) = (VecDeque::new(), 0);
    while let Some(line) = some_of_a_line(&mut errors) {
        if stderr == Stderr::Pass && passed < PASSED_MAX {
            output::note(&format!("{name}: {line}"));
            passed += 1;
            if passed == PASSED_MAX {
                output::note(&format!("{name}: further lines are not shown"));
            }
        }
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    tail.into()
}

/// A line, or as much of it as is kept at once.
fn some_of_a_line(errors: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = errors.take(TAIL_LINE_MAX).read_until(b'\n', &mut line);
    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
    read.is_ok_and(|bytes| bytes > 0).then(|| output::plain(&text))
}

/// What `yard policy-program` does: makes sure that it ends with its parent, and becomes the program.
pub(crate) fn become_program(parent: i32, path: &Path) -> anyhow::Error {
    if let Err(error) = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL) {
        return anyhow::Error::new(error).context("the program could outlive its parent");
    }
    if nix::unistd::getppid().as_raw() != parent {
        return anyhow::anyhow!("the process that wanted the program is gone");
    }
    // Not as a shell would: a file without a first line that says what reads it is none.
    let Ok(file) = CString::new(path.as_os_str().as_bytes()) else {
        return anyhow::anyhow!("{} is not a path", path.display());
    };
    let error =
        nix::unistd::execv(&file, &[&file]).expect_err("a program that became another returns nothing");
    let hint = if error == Errno::ENOEXEC {
        "; a script begins with a line such as #!/usr/bin/env python3"
    } else {
        ""
    };
    anyhow::anyhow!("cannot start {}: {}{hint}", path.display(), error.desc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_and_not_longer_than_allowed() {
        let mut lines: &[u8] = b"one\ntwo";
        assert!(matches!(next(&mut lines), Heard::Line(line) if line == b"one\n"));
        assert!(matches!(next(&mut lines), Heard::Ended), "half a line is none");
        let long = vec![b'x'; LINE_MAX + 1];
        assert!(matches!(next(&mut &long[..]), Heard::TooLong));
    }

    #[test]
    fn stderr_is_read_in_bounded_pieces() {
        let text = "x".repeat(1200) + "\nend\n";
        let mut errors = text.as_bytes();
        let pieces: Vec<_> = std::iter::from_fn(|| some_of_a_line(&mut errors)).collect();
        assert_eq!(pieces.iter().map(String::len).collect::<Vec<_>>(), [500, 500, 200, 3]);
    }
}
