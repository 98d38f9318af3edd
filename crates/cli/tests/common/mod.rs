//! The real binary in a folder of its own. Paths are relative to that folder, so that messages can be
//! compared whole.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Three jobs for a cluster of four devices or more.
pub(crate) const THREE_JOBS: &str =
    "job_id,submit_s,gpus,duration_s\nfirst,0,4,100\nsecond,10,2,50\nthird,20,1,500\n";

/// A folder that is there as long as the test.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("the tests' own folder can be made");
        Dir(path)
    }

    /// A folder with a trace in it, `t.csv`.
    pub(crate) fn with_trace(text: &str) -> Dir {
        let dir = Dir::new();
        dir.write("t.csv", text);
        dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file can be written in the tests' own folder");
    }

    pub(crate) fn make_folder(&self, name: &str) {
        std::fs::create_dir(self.path(name)).expect("a folder can be made in the tests' own folder");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of all files in a folder, in order.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect("the folder is there");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("it can be listed").file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A command in this folder. Nobody's terminal decides how wide the help is.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_yard"));
        command.args(args).current_dir(&self.0).env_remove("COLUMNS").stdin(Stdio::null());
        command
    }

    /// Runs a command line, arguments separated by blanks.
    pub(crate) fn yard(&self, line: &str) -> Answer {
        let args: Vec<_> = line.split_whitespace().collect();
        Answer::of(self.command(&args).output().expect("the binary can be run"))
    }

    /// The same with something to read on stdin, through a pipe.
    pub(crate) fn yard_reading(&self, line: &str, input: &str) -> Answer {
        let args: Vec<_> = line.split_whitespace().collect();
        let mut command = self.command(&args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be run");
        let mut pipe = child.stdin.take().expect("stdin is a pipe");
        // The reader may stop early; what it says is what counts.
        let _ = pipe.write_all(input.as_bytes());
        drop(pipe);
        Answer::of(child.wait_with_output().expect("the binary ends"))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the binary said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    pub(crate) fn of(output: Output) -> Answer {
        let text = |bytes| String::from_utf8(bytes).expect("all output is UTF-8");
        Answer { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What it printed, given that all went well and nothing needed saying.
    pub(crate) fn quietly(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// What it printed, given that all went well.
    pub(crate) fn printed(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// What it printed, as JSON.
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.printed()).expect("it printed JSON")
    }
}
