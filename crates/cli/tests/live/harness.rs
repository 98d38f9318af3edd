//! A real cluster on this machine: `yard up` in a folder of its own, driven by the same commands that people type.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

/// How often to look, and how long to wait between, before a test gives up. Machines are slow at times; nothing is
/// asserted about speed.
const LOOKS: u32 = 2400;
const PAUSE: Duration = Duration::from_millis(50);

/// A folder under the system's own, because paths of sockets must be short.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Of one width, so that no name begins another: what a test leaves is ended by its folder.
        let name = format!("yard-test-{}-{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file can be written in the test's folder");
        path
    }
}

impl Drop for Folder {
    #[expect(clippy::print_stderr, reason = "whoever reads a failed test wants to look there")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what the cluster left is in {}", self.0.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Answer {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Answer { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Answer {
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }
}

/// A cluster: one server, with or without an agent in the same process, and further agents.
pub(crate) struct Cluster {
    pub(crate) folder: Folder,
    options: Vec<String>,
    listen: String,
    server: Option<Child>,
    agents: Vec<(String, Child)>,
    /// Who runs all commands, where that is not the test's own user.
    uid: Option<u32>,
}

impl Cluster {
    /// `yard up` with these options, ready for jobs.
    pub(crate) fn up(options: &str) -> Cluster {
        Cluster::up_in(Folder::new(), "127.0.0.1:0", options)
    }

    /// The same in a folder of the test's own choice, on an address of its choice.
    pub(crate) fn up_in(folder: Folder, listen: &str, options: &str) -> Cluster {
        Cluster::begin(folder, listen, options, None)
    }

    /// The same as another user, in a folder of theirs.
    pub(crate) fn up_as(uid: u32, folder: Folder, options: &str) -> Cluster {
        Cluster::begin(folder, "127.0.0.1:0", options, Some(uid))
    }

    fn begin(folder: Folder, listen: &str, options: &str, uid: Option<u32>) -> Cluster {
        let options = options.split_whitespace().map(str::to_owned).collect();
        let mut cluster =
            Cluster { folder, options, listen: listen.into(), server: None, agents: Vec::new(), uid };
        cluster.start();
        cluster
    }

    /// Starts the server, again after a kill: on the same address, so that agents find it.
    pub(crate) fn start(&mut self) {
        assert!(self.server.is_none(), "the server runs already");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.0.join("up.log"));
        let log = log.expect("the log can be opened");
        let mut command = self.command(&["up", "--data", ".yard", "--listen", &self.listen]);
        command.args(&self.options).stdout(log.try_clone().expect("it can be shared")).stderr(log);
        self.server = Some(command.spawn().expect("the binary can be run"));
        self.until("the server answers", || self.yard("nodes -o json").code == Some(0));
        if !self.options.iter().any(|option| option == "--no-agent") {
            self.until("its agent joins", || self.yard("nodes -o json").out.contains("\"up\""));
        }
        let url = self.url();
        self.listen = url.rsplit("//").next().expect("an address has a scheme").to_owned();
    }

    /// Where the server listens.
    pub(crate) fn url(&self) -> String {
        let text =
            std::fs::read_to_string(self.folder.0.join(".yard/server.json")).expect("server.json is there");
        let file: Value = serde_json::from_str(&text).expect("server.json is JSON");
        file["url"].as_str().expect("it has a url").to_owned()
    }

    /// The administrator's token.
    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.folder.0.join(".yard/token")).expect("the token is there");
        text.trim().to_owned()
    }

    /// The agent of this process group dies with the server as hard as it can be.
    pub(crate) fn kill_server(&mut self) {
        let mut server = self.server.take().expect("the server runs");
        server.kill().expect("it can be killed");
        server.wait().expect("it ends");
    }

    /// Starts a further agent under a name.
    pub(crate) fn agent(&mut self, name: &str, options: &str) {
        self.agent_by(&[], name, options);
    }

    /// The same through another command, such as one that enters a network namespace.
    pub(crate) fn agent_by(&mut self, through: &[&str], name: &str, options: &str) {
        let data = format!("agent-{name}");
        let url = self.url().replace("http:", "https:");
        let args =
            ["agent", "--server", &url, "--join-token", ".yard/join-token", "--data", &data, "--name", name];
        // Tests submit as whoever runs them, which may be root.
        let args = args.iter().chain(&["--min-uid", "0"]);
        let mut line: Vec<String> = through.iter().map(|part| part.to_string()).collect();
        line.push(env!("CARGO_BIN_EXE_yard").to_owned());
        line.extend(args.map(|part| part.to_string()));
        line.extend(options.split_whitespace().map(str::to_owned));
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.0.join(format!("{data}.log")));
        let log = log.expect("the log can be opened");
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(&self.folder.0).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("it can be shared")).stderr(log);
        let child = command.spawn().expect("the agent can be run");
        self.agents.push((name.to_owned(), child));
        self.until("the agent joins", || self.node(name).is_some_and(|node| node["state"] == "up"));
    }

    /// Kills an agent as hard as it can be; what it ran stays.
    pub(crate) fn kill_agent(&mut self, name: &str) {
        let at = self.agents.iter().position(|(other, _)| other == name).expect("there is such an agent");
        let (_, mut child) = self.agents.remove(at);
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }

    /// A command in the cluster's folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_yard"));
        command.args(args).current_dir(&self.folder.0).env_remove("COLUMNS").stdin(Stdio::null());
        command.env_remove("YARD_SERVER").env_remove("YARD_TOKEN");
        if let Some(uid) = self.uid {
            use std::os::unix::process::CommandExt;
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Runs a command line, arguments separated by blanks.
    pub(crate) fn yard(&self, line: &str) -> Answer {
        let args: Vec<_> = line.split_whitespace().collect();
        self.command(&args).output().expect("the binary can be run").into()
    }

    /// Submits a job; what follows `--` is given apart.
    pub(crate) fn submit(&self, options: &str, command: &[&str]) -> u64 {
        let mut args = vec!["submit", "--parsable"];
        args.extend(options.split_whitespace());
        args.push("--");
        args.extend(command);
        let answer: Answer = self.command(&args).output().expect("the binary can be run").into();
        let said = answer.ok();
        said.trim().parse().unwrap_or_else(|_| panic!("{said} is no number"))
    }

    /// A training job in Python, with the training-side package at hand.
    pub(crate) fn python(&self, options: &str, script: &str, args: &[&str]) -> u64 {
        let path = format!("--env PYTHONPATH={}", package().display());
        let script = self.folder.0.join(script);
        let mut line = vec!["python3", script.to_str().expect("test paths are UTF-8")];
        line.extend(args);
        self.submit(&format!("{path} {options}"), &line)
    }

    /// A job as the API shows it.
    pub(crate) fn job(&self, id: u64) -> Value {
        serde_json::from_str(&self.yard(&format!("show {id} -o json")).ok()).expect("show prints JSON")
    }

    pub(crate) fn state(&self, id: u64) -> String {
        self.job(id)["state"].as_str().expect("a job has a state").to_owned()
    }

    /// A node as the API shows it.
    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        let answer = self.yard("nodes -o json");
        let list: Value = serde_json::from_str(&answer.out).ok()?;
        list["nodes"].as_array()?.iter().find(|node| node["name"] == name).cloned()
    }

    /// Waits until a job is in a state.
    pub(crate) fn wait(&self, id: u64, state: &str) -> Value {
        let mut seen = Value::Null;
        for _ in 0..LOOKS {
            seen = self.job(id);
            if seen["state"] == state {
                return seen;
            }
            let ended = ["succeeded", "failed", "cancelled", "rejected"];
            let over = ended.iter().any(|end| seen["state"] == *end);
            assert!(!over, "job {id} should become {state}: {seen:#}\n{}", self.log(id));
            std::thread::sleep(PAUSE);
        }
        panic!("job {id} did not become {state}: {seen:#}\n{}", self.log(id));
    }

    pub(crate) fn log(&self, id: u64) -> String {
        let err = self.yard(&format!("logs --stderr {id}"));
        self.yard(&format!("logs {id}")).out + &err.out + &err.err
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..LOOKS {
            if is_so() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("in vain: {what}\n{}", self.tail());
    }

    /// The end of what the server said.
    fn tail(&self) -> String {
        let text = std::fs::read_to_string(self.folder.0.join("up.log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Asks the API by hand; the answer's code and body.
    pub(crate) fn curl(&self, args: &[&str]) -> (u32, String) {
        let mut command = Command::new("curl");
        command.args(["-s", "-m", "60", "-w", "\n%{http_code}"]).args(args).current_dir(&self.folder.0);
        let answer: Answer = command.output().expect("curl can be run").into();
        let (body, code) = answer.out.rsplit_once('\n').expect("the code comes last");
        (code.parse().expect("the code is a number"), body.to_owned())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let children = self.server.iter_mut().chain(self.agents.iter_mut().map(|(_, child)| child));
        for child in children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Jobs outlive agents by design; these here should not outlive their test.
        end_all_in(&self.folder.0);
    }
}

/// Ends every process that works in the test's folder: keepers and what they keep.
fn end_all_in(folder: &Path) {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let cwd = std::fs::read_link(process.path().join("cwd")).unwrap_or_default();
        let names = String::from_utf8_lossy(&line).contains(&*folder.to_string_lossy());
        if (names || cwd.starts_with(folder)) && process.path().join("exe").exists() {
            let pid = process.file_name().to_string_lossy().into_owned();
            let own = pid == std::process::id().to_string();
            if pid.parse::<u32>().is_ok() && !own {
                let _ = Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status();
            }
        }
    }
}

/// The training-side package of this repository.
pub(crate) fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../python/src")
        .canonicalize()
        .expect("python/src is there")
}

/// A job that keeps the list of its steps in its checkpoint, so that a step done twice or never shows.
pub(crate) const LEDGER: &str = r#"
import json, os, sys, time
import switchyard

total, pause = int(sys.argv[1]), float(sys.argv[2])
done = []

def save(path):
    with open(path, "w") as file:
        json.dump(done, file)

def load(path):
    with open(path) as file:
        done[:] = json.load(file)

for step in switchyard.steps(total, save=save, load=load):
    time.sleep(pause)
    done.append(step)

if not switchyard.stopped():
    out = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "ledger-%s.json" % os.environ["YARD_JOB_ID"])
    with open(out, "w") as file:
        json.dump(done, file)
    print("done", len(done), flush=True)
"#;

impl Cluster {
    /// Asserts that a finished `LEDGER` job did each of its steps exactly once.
    pub(crate) fn each_step_once(&self, id: u64, total: usize) {
        let path = self.folder.0.join(format!("ledger-{id}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("job {id}: {error}"));
        let done: Vec<usize> = serde_json::from_str(&text).expect("the ledger is JSON");
        assert_eq!(done, (0..total).collect::<Vec<_>>(), "job {id}");
    }
}
