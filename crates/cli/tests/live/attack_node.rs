//! What a user with a job tries against the node that it runs on, and against the server beside it.

use std::process::Command;

use crate::harness::{Answer, Cluster, LEDGER};

fn is_root() -> bool {
    yard_needs::root("only root can run jobs as other users")
}

/// A token for another user; what is submitted with it.
struct OtherUser {
    secret: String,
}

impl OtherUser {
    fn new(cluster: &Cluster, name: &str) -> OtherUser {
        let made = cluster.yard(&format!("token create --user {name} --scope submit -o json")).ok();
        let made: serde_json::Value = serde_json::from_str(&made).expect("it is JSON");
        OtherUser { secret: made["secret"].as_str().expect("it shows the secret once").to_owned() }
    }

    fn submit(&self, cluster: &Cluster, script: &str) -> Answer {
        let args = ["submit", "--parsable", "--", "sh", "-c", script];
        let mut command: Command = cluster.command(&args);
        command.env("YARD_TOKEN", &self.secret).output().expect("the binary can be run").into()
    }

    fn run(&self, cluster: &Cluster, script: &str) -> u64 {
        let said = self.submit(cluster, script).ok();
        said.trim().parse().unwrap_or_else(|_| panic!("{said} is no number"))
    }
}

#[test]
fn yard_up_as_root_runs_other_users_jobs_and_they_read_nothing_of_roots() {
    if !is_root() {
        return;
    }
    let cluster = Cluster::up("--fake v100:2 --round 1s --job-env GIVEN=yes");
    let nobody = OtherUser::new(&cluster, "nobody");
    let data = cluster.folder.0.join(".yard");
    let secrets =
        "token join-token yard.db yard.db-wal yard.lock ca/ca.key ca/ca.pem agent/state.0 agent/lock";
    let script = format!(
        "echo uid $(id -u); cd {0} 2>/dev/null && echo reached; ls {0} && echo LEAK; ls {0}/ca {0}/agent && echo LEAK; \
         for file in {secrets}; do cat {0}/$file && echo LEAK $file; done; \
         for pid in $(pgrep -x yard); do cat /proc/$pid/environ && echo LEAK $pid; done; env; echo done",
        data.display()
    );
    let id = nobody.run(&cluster, &script);
    cluster.wait(id, "succeeded");
    let log = cluster.yard(&format!("logs {id}")).out;
    assert!(log.contains("uid 65534\n") && log.contains("done\n"), "{log}");
    assert!(!log.contains("LEAK"), "{log}");
    // The server was started by `cargo test`, whose variables it has and no job should.
    let own = cluster.submit("", &["env"]);
    cluster.wait(own, "succeeded");
    for log in [&log, &cluster.yard(&format!("logs {own}")).out] {
        assert!(!log.contains("CARGO"), "{log}");
        assert!(log.contains("GIVEN=yes\n") && log.contains("YARD_JOB_ID="), "{log}");
    }
    // An account of the system.
    let refused = OtherUser::new(&cluster, "daemon").run(&cluster, "echo ran");
    let view = cluster.wait(refused, "failed");
    assert_eq!(view["exit_code"].as_i64(), Some(126), "{view:#}");
    let said = view.to_string();
    assert!(said.contains("uid 1,") && said.contains("--min-uid"), "{view:#}");
}

#[test]
fn an_agent_that_is_not_root_runs_only_its_own_users_jobs() {
    if !is_root() {
        return;
    }
    // The whole cluster is nobody's, in a folder of theirs.
    let folder = crate::harness::Folder::new();
    std::os::unix::fs::chown(&folder.0, Some(65_534), Some(65_534)).expect("root may");
    let cluster = Cluster::up_as(65_534, folder, "--fake v100:1 --round 1s");
    let own = cluster.submit("", &["id", "-u"]);
    cluster.wait(own, "succeeded");
    assert_eq!(cluster.yard(&format!("logs {own}")).out, "65534\n");
    let refused = OtherUser::new(&cluster, "daemon").submit(&cluster, "cat .yard/token");
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("only jobs of nobody"), "{}", refused.err);
    assert!(refused.err.contains("does not run as root"), "{}", refused.err);
}

#[test]
fn a_job_that_had_just_started_still_talks_after_its_agent_was_killed() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 30s");
    cluster.agent("one", "--fake v100:1");
    cluster.folder.write("ledger.py", LEDGER);
    let id = cluster.python("", "ledger.py", &["100000", "0.05"]);
    cluster.wait(id, "running");
    cluster.kill_agent("one");
    cluster.agent("one", "--fake v100:1");
    let step = || cluster.job(id)["step"].as_u64().unwrap_or(0);
    let before = step();
    cluster.until("it says how far it is", || step() > before + 5);
    assert_eq!(cluster.job(id)["starts"].as_u64(), Some(1));
}
