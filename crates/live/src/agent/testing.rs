//! What the agent's tests share: orders to follow, and the program that stands in for `yard keeper`.

use std::path::{Path, PathBuf};

use smallvec::SmallVec;
use yard_core::Span;
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::{Held, PartId, Pause, Ranks, Start};

use super::keeper::RunAs;
pub(crate) use crate::scratch::Scratch as Folder;
use crate::wire::Task;

/// The example `keeper`, which cargo builds along with the tests.
pub(crate) fn program() -> String {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("examples/keeper");
    assert!(
        path.exists(),
        "{} is not there, or old: cargo build -p yard-live --example keeper",
        path.display()
    );
    path.to_str().unwrap().to_owned()
}

/// A user who is not the test's own. None, with a word about it, where only root could run this.
pub(crate) fn other_user() -> Option<RunAs> {
    if !yard_needs::root("only root can be other users") {
        return None;
    }
    let nobody = nix::unistd::User::from_name("nobody").unwrap().expect("every system has nobody");
    let (uid, gid) = (nobody.uid.as_raw(), nobody.gid.as_raw());
    Some(RunAs { name: nobody.name, uid, gid, launcher: vec![program(), "launch".into()] })
}

/// Whether this is root; only root can do some things.
pub(crate) use yard_needs::root as is_root;

/// An order for one rank on one fake device.
pub(crate) fn start(lease: u64, job: u64) -> Start {
    Start {
        part: PartId { lease: LeaseId(lease), job: JobId(job), instance: 1 },
        devices: SmallVec::from_slice(&[Held { group: 0, mask: 1 }]),
        ranks: Ranks { first: 0, count: 1, world: 1, node_rank: 0, nodes: 1 },
        pause: Pause::Checkpoint,
        grace: Span::from_whole_secs(30),
        limit: None,
        card: false,
        thaw: false,
        claim: yard_core::job::Claim::Ordinary,
        loss_max: 0.0,
    }
}

/// What such an order runs: nothing is said but the command. The user is the test's own.
pub(crate) fn task(command: &[&str]) -> Task {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap();
    Task {
        name: "test".into(),
        user: user.map_or_else(String::new, |user| user.name),
        command: command.iter().map(|word| word.to_string()).collect(),
        env: std::collections::BTreeMap::new(),
        workdir: PathBuf::new(),
        checkpoint_dir: None,
        stop_signal: "TERM".into(),
        output: None,
        error: None,
        batch_size: None,
        accumulation: None,
        memory_mib: None,
        cpus: None,
        memory_part_mib: None,
        limits: None,
        secrets: Vec::new(),
        kind: "fake".into(),
    }
}

/// A file's owner, group and mode.
pub(crate) fn owner_and_mode(path: &Path) -> (u32, u32, u32) {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(path).unwrap();
    (found.uid(), found.gid(), found.mode())
}

/// The user who attacks in tests: `nobody`.
pub(crate) const NOBODY: (u32, u32) = (65_534, 65_534);

/// A process of `nobody` that replaces entries of a folder by links to a victim, as fast as it can.
pub(crate) struct LinkAttack(std::process::Child);

impl LinkAttack {
    const SCRIPT: &str = "
import os, signal, sys
folder, victim, names = sys.argv[1], sys.argv[2], sys.argv[3:]
rounds, made, going = 0, 0, True
def stop(*_):
    global going
    going = False
signal.signal(signal.SIGTERM, stop)
def attempt(call, *args):
    try:
        call(*args)
        return True
    except OSError:
        return False
print('ready', flush=True)
while going:
    rounds += 1
    for name in names:
        path = os.path.join(folder, name)
        attempt(os.unlink, path) or attempt(os.rmdir, path) or attempt(os.rename, path, path + '.old')
        made += attempt(os.symlink, victim, path)
        attempt(os.symlink, victim, os.path.join(path, 'link'))
        attempt(os.symlink, os.path.join(victim, 'secret'), os.path.join(path, 'file'))
print(rounds, made, flush=True)
";

    /// Begins, once the process is there.
    pub(crate) fn begin(folder: &Path, names: &[&str], victim: &Path) -> LinkAttack {
        use std::io::BufRead;
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("/usr/bin/python3");
        command.args(["-c", LinkAttack::SCRIPT]).arg(folder).arg(victim).args(names);
        command.uid(NOBODY.0).gid(NOBODY.1).current_dir("/").stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        let output = child.stdout.as_mut().unwrap();
        std::io::BufReader::with_capacity(1, output).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        LinkAttack(child)
    }

    /// Ends; how often it tried, and how many links it made.
    pub(crate) fn end(self) -> (u64, u64) {
        let pid = nix::unistd::Pid::from_raw(self.0.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        let output = self.0.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }
}
