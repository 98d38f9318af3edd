//! What the agent's tests share: orders to follow, and the program that stands in for `yard keeper`.

use std::path::{Path, PathBuf};

use smallvec::SmallVec;
use yard_core::Span;
use yard_core::ids::{JobId, LeaseId};
use yard_core::part::{Held, PartId, Pause, Ranks, Start};

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
        limits: None,
        secrets: Vec::new(),
        kind: "fake".into(),
    }
}
