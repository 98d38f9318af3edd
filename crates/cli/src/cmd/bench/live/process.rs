//! Processes of the program being measured: started, found and weighed, and gone when the measurement is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::{Client, ServerArgs};
use crate::clock;

/// How often, and after how long each time, to look whether something has come about.
const LOOKS: u32 = 3_000;
const PAUSE: Duration = Duration::from_millis(20);

/// Looks for something until it is there.
pub(in crate::cmd::bench) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return Ok(found);
        }
        std::thread::sleep(PAUSE);
    }
    bail!("{what}: not within {} s; try again with less", (PAUSE * LOOKS).as_secs())
}

/// A folder that goes away with the measurement.
pub(in crate::cmd::bench) struct ScratchServer(pub(in crate::cmd::bench) PathBuf);

impl ScratchServer {
    pub(in crate::cmd::bench) fn new(parent: &Path) -> anyhow::Result<ScratchServer> {
        let path = parent.join(format!("yard-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(ScratchServer(path))
    }
}

impl Drop for ScratchServer {
    fn drop(&mut self) {
        // What is left is in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `yard` with some arguments; it is told to stop when this is dropped, and the keeper of its agent too.
pub(in crate::cmd::bench) struct Yard {
    child: Child,
    data: PathBuf,
}

impl Yard {
    /// Starts it; what it says goes into a file beside its data.
    pub(in crate::cmd::bench) fn start(command: &str, data: &Path, options: &[&str]) -> anyhow::Result<Yard> {
        let program = std::env::current_exe().context("cannot find the file of this program")?;
        let log = log_of(data);
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut yard = Command::new(program);
        yard.arg(command).arg("--data").arg(data).args(["--log", "warn"]).args(options);
        yard.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = yard.spawn().with_context(|| format!("yard {command} does not start"))?;
        Ok(Yard { child, data: data.to_owned() })
    }

    /// How to ask it, once it answers.
    pub(in crate::cmd::bench) fn answers(&mut self) -> anyhow::Result<ServerArgs> {
        let server = until("the server answers", || self.ended().or_else(|| address(&self.data).map(Ok)))??;
        let asked = ServerArgs { server: Some(server), token_file: Some(self.data.join("token")) };
        let client = Client::new(&asked)?;
        until("the server is ready", || client.stream("/readyz", &[], None).ok())?;
        Ok(asked)
    }

    /// That it ended, which it should not.
    fn ended<T>(&mut self) -> Option<anyhow::Result<T>> {
        let status = self.child.try_wait().ok().flatten()?;
        let said = std::fs::read_to_string(log_of(&self.data)).unwrap_or_default();
        Some(Err(anyhow::anyhow!("it ended with {status}: {}", said.trim())))
    }

    /// Seconds of a processor that it has had.
    pub(super) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        clock::cpu_of(&text).with_context(|| format!("{path} says nothing of time"))
    }

    /// What it holds of memory.
    pub(in crate::cmd::bench) fn memory(&self) -> anyhow::Result<ProcessMemory> {
        ProcessMemory::of(self.child.id())
    }

    /// The same of its agent's keeper, once that is there.
    pub(in crate::cmd::bench) fn keeper_memory(&self) -> anyhow::Result<ProcessMemory> {
        ProcessMemory::of(until("the agent starts its keeper", || keeper_of(&self.data))?)
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        end(self.child.id());
        if until("it ends", || self.child.try_wait().ok().flatten()).is_err() {
            // It may have ended just now.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // It would wait a while for another agent.
        keeper_of(&self.data).into_iter().for_each(end);
    }
}

fn address(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join("server.json")).ok()?;
    let named: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(named["url"].as_str()?.to_owned())
}

fn log_of(data: &Path) -> PathBuf {
    data.with_extension("log")
}

/// Tells a process to end.
fn end(pid: u32) {
    // It may have ended by itself.
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGTERM);
}

/// What a process holds of memory, in MiB.
pub(in crate::cmd::bench) struct ProcessMemory {
    pub(in crate::cmd::bench) now: f64,
    /// The most so far.
    pub(super) peak: f64,
}

impl ProcessMemory {
    fn of(pid: u32) -> anyhow::Result<ProcessMemory> {
        let path = format!("/proc/{pid}/status");
        let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        let mib = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
        };
        let both = mib("VmRSS:").zip(mib("VmHWM:"));
        let (now, peak) = both.with_context(|| format!("{path} says nothing of memory"))?;
        Ok(ProcessMemory { now, peak })
    }
}

/// The keeper of the agent with this folder, or one below it.
fn keeper_of(data: &Path) -> Option<u32> {
    let ours = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        words.nth(1).as_deref() == Some("keeper") && words.any(|word| Path::new(&*word).starts_with(data))
    };
    let entries = std::fs::read_dir("/proc").ok()?;
    let mut pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| ours(*pid))
}
