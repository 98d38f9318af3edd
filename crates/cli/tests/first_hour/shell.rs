//! A shell in a folder of its own, in which one command is typed after the other.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What no command prints: the shell says it after each.
const MARK: u8 = 1;

pub(crate) struct Shell {
    shell: Child,
    input: ChildStdin,
    output: BufReader<PipeReader>,
    folder: PathBuf,
}

impl Shell {
    /// With `yard` on the path, and `$SOURCE` and `$PORT` as the page says.
    pub(crate) fn new() -> Shell {
        let folder = new_folder();
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile"]).current_dir(folder.join("work"));
        for name in ["YARD_SERVER", "YARD_TOKEN", "COLUMNS", "PYTHONPATH", "CI"] {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", folder.join("bin").display()));
        command
            .env("SOURCE", source())
            .env("PORT", free_port().to_string())
            .env("TZ", "UTC")
            .env("code", "0");
        command.stdin(Stdio::piped()).stderr(writer.try_clone().expect("it can be shared")).stdout(writer);
        let mut shell = command.spawn().expect("bash can be run");
        let input = shell.stdin.take().expect("its input is a pipe");
        Shell { shell, input, output: BufReader::new(reader), folder }
    }

    /// Types a command; the lines that it prints.
    pub(crate) fn run(&mut self, command: &str) -> Vec<String> {
        // `$?` is that of the command before, as in a terminal.
        let line = format!("(exit $code)\n{{ {command}\n}} </dev/null; code=$?; printf '\\001'\n");
        self.input.write_all(line.as_bytes()).expect("the shell listens");
        let mut printed = Vec::new();
        self.output.read_until(MARK, &mut printed).expect("the shell answers");
        assert_eq!(printed.pop(), Some(MARK), "the shell ended at: {command}");
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        // Jobs outlive agents by design; these here should not outlive their test.
        end_all_in(&self.folder);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A folder under the system's own, because paths of sockets must be short: `work`, and `bin` with the binary.
fn new_folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("yard-hour-{}-{:02}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    for part in ["bin", "work"] {
        std::fs::create_dir_all(folder.join(part)).expect("a temporary folder can be made");
    }
    symlink(env!("CARGO_BIN_EXE_yard"), folder.join("bin/yard")).expect("the binary can be linked");
    folder
}

/// The root of this repository.
fn source() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

/// Ends every process that works in the folder: what the page left running, and what a failed command did.
fn end_all_in(folder: &Path) {
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let cwd = std::fs::read_link(process.path().join("cwd")).unwrap_or_default();
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let names = String::from_utf8_lossy(&line).contains(&*folder.to_string_lossy());
        if names || cwd.starts_with(folder) {
            let pid = process.file_name();
            let _ = Command::new("kill").arg("-9").arg(pid).stderr(Stdio::null()).status();
        }
    }
}
