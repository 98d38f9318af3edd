//! What the agent's tests share: folders that go away, and the program that stands in for `yard keeper`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use yard_core::Span;
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::{Held, PartId, Pause, Ranks, Start};

use crate::wire::Task;

/// A folder that is removed with everything in it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("yard-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// The example `keeper`, which cargo builds along with the tests.
pub(crate) fn program() -> String {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("examples/keeper");
    assert!(path.exists(), "{} is not there: cargo build -p yard-live --example keeper", path.display());
    path.to_str().unwrap().to_owned()
}

/// An order for one rank on one fake device.
pub(crate) fn start(lease: u64, job: u64) -> Start {
    Start {
        part: PartId { lease: LeaseId(lease), job: JobId(job) },
        instance: 1,
        devices: SmallVec::from_slice(&[Held { group: 0, mask: 1 }]),
        ranks: Ranks { first: 0, count: 1, world: 1, node_rank: 0, nodes: 1 },
        pause: Pause::Checkpoint,
        grace: Span::from_whole_secs(30),
        limit: None,
        card: false,
        thaw: false,
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
        memory_mib: None,
        cpus: None,
        kind: "fake".into(),
    }
}
