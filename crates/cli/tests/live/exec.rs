//! A cluster whose decisions are a program's (`--policy exec:…`): it decides, it may fail without hurting what runs, it
//! is started again, and it ends with the server.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use yard_needs::needs;

use crate::harness::{Cluster, Folder, package};

/// A cluster that is ruled by the `fifo` of the examples. It notes its process in `pids`; where there is a file `broken`
/// it fails at its start.
fn ruled(folder: Folder) -> Cluster {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policies/fifo.py");
    let (here, package) = (folder.0.display().to_string(), package().display().to_string());
    let script = format!(
        "#!/bin/sh\necho $$ >> {here}/pids\nif [ -e {here}/broken ]; then echo out of order >&2; exit 3; fi\n\
         PYTHONPATH={package} exec python3 {}\n",
        example.display()
    );
    let file = folder.write("policy.sh", &script);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, executable).expect("own files may be made executable");
    let options = format!("--fake v100:2 --round 0s --policy exec:{}", file.display());
    Cluster::up_in(folder, "127.0.0.1:0", &options)
}

/// The processes of the program that are there now.
fn programs(cluster: &Cluster) -> Vec<String> {
    let pids = std::fs::read_to_string(cluster.folder.0.join("pids")).unwrap_or_default();
    let lives = |pid: &&str| {
        let told = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        told.contains("fifo.py") || told.contains("policy.sh")
    };
    pids.lines().filter(lives).map(str::to_owned).collect()
}

fn end(pid: &str) {
    // It may have ended by itself.
    let _ = std::process::Command::new("kill").args(["-9", pid]).status();
}

fn python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output();
    needs("python3", found.is_ok_and(|out| out.status.success()))
}

#[test]
fn a_program_that_fails_hurts_nobody_and_is_started_again() {
    if !python() {
        return;
    }
    let cluster = ruled(Folder::new());
    let first = cluster.submit("--gpus 1", &["sleep", "1000"]);
    cluster.wait(first, "running");
    cluster.folder.write("broken", "");
    programs(&cluster).iter().for_each(|pid| end(pid));
    let second = cluster.submit("--gpus 1", &["sleep", "1000"]);
    let told = || cluster.yard("events").ok();
    cluster.until("an event says why", || told().contains("it is started again in"));
    assert!(told().contains("instead of answering"), "{}", told());
    assert!(!told().contains("out of order"), "what it writes is for the server's log: {}", told());
    cluster.until("its words are in the log", || {
        std::fs::read_to_string(cluster.folder.0.join("up.log")).is_ok_and(|log| log.contains("out of order"))
    });
    assert_eq!(cluster.state(first), "running", "the last allocation stays in force");
    std::fs::remove_file(cluster.folder.0.join("broken")).expect("it was there");
    cluster.wait(second, "running");
    assert_eq!(cluster.job(first)["preemptions"].as_u64(), Some(0));
}

#[test]
fn a_program_ends_with_the_server_however_that_ends() {
    if !python() {
        return;
    }
    let mut cluster = ruled(Folder::new());
    let job = cluster.submit("--gpus 1", &["sleep", "1000"]);
    cluster.wait(job, "running");
    assert!(!programs(&cluster).is_empty(), "somebody decided that it runs");
    cluster.kill_server();
    cluster.until("the program is gone", || programs(&cluster).is_empty());
}
