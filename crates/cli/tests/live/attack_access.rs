//! Attacks with a join token, a node's certificate or a submit token, on the real binary: a machine gets in once and
//! under a name of its own, and no user's jobs get before others or stay because they say so.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::Cluster;

/// A job that does not stop when it is asked to, and ends with 7 where it runs twice at the same time.
const STUBBORN: &str = "trap '' TERM; exec 9>>lock; flock -n 9 || exit 7; echo began; sleep 1000";

/// A machine of the test's own: an agent that may not be let in.
struct Machine {
    child: Child,
    log: std::path::PathBuf,
}

impl Machine {
    fn start(cluster: &Cluster, name: &str, token: &str, data: &str) -> Machine {
        let url = cluster.url().replace("http:", "https:");
        let log = cluster.folder.0.join(format!("{data}.log"));
        let mut command = cluster.command(&["agent", "--server", &url, "--join-token", token]);
        command
            .args(["--data", data, "--name", name, "--fake", "v100:1", "--min-uid", "0"])
            .stdout(Stdio::null());
        command.stderr(std::fs::File::create(&log).expect("a log can be made"));
        Machine { child: command.spawn().expect("the agent can be run"), log }
    }

    /// Waits until it gave up by itself: its exit code and what it said.
    fn ends(&mut self, cluster: &Cluster) -> (Option<i32>, String) {
        let mut code = None;
        cluster.until("the agent ends", || {
            let ended = self.child.try_wait().expect("it can be waited for");
            code = ended.and_then(|status| status.code());
            ended.is_some()
        });
        (code, self.said())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn token(cluster: &Cluster, file: &str, options: &str) -> String {
    let secret = cluster.yard(&format!("token create {options}")).ok();
    cluster.folder.write(file, &secret);
    secret.trim().to_owned()
}

/// The process that keeps the jobs of an agent.
fn keeper_of(folder: &Path) -> Option<String> {
    let keeper = folder.join("run/keeper").to_string_lossy().into_owned();
    let lines = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = lines.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.find(|line| line.split('\0').any(|word| word == keeper))
}

/// Whether the keeper of an agent's folder ends soon; one whose agent was killed waits half a minute for another.
fn is_without_keeper(cluster: &Cluster, data: &str) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        keeper_of(&cluster.folder.0.join(data)).is_none()
    })
}

#[test]
fn an_agent_that_is_told_to_end_takes_its_idle_keeper_along() {
    let cluster = Cluster::up("--no-agent --round 1s");
    token(&cluster, "once", "--scope join");
    let mut one = Machine::start(&cluster, "one", "once", "a");
    cluster.until("it joins", || cluster.node("one").is_some_and(|node| node["state"] == "up"));
    assert!(keeper_of(&cluster.folder.0.join("a")).is_some(), "an agent has a keeper");
    let told = std::process::Command::new("kill").args(["-TERM", &one.child.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()));
    assert_eq!(one.ends(&cluster).0, Some(0), "{}", one.said());
    assert!(is_without_keeper(&cluster, "a"));
}

#[test]
fn a_second_machine_gets_in_neither_with_a_used_token_nor_under_a_taken_name() {
    let cluster = Cluster::up("--no-agent --round 1s");
    token(&cluster, "once", "--scope join");
    let _one = Machine::start(&cluster, "one", "once", "a");
    cluster
        .until("the first machine joins", || cluster.node("one").is_some_and(|node| node["state"] == "up"));
    let (code, said) = Machine::start(&cluster, "two", "once", "b").ends(&cluster);
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(said.contains("this join token has been used"), "{said}");
    assert!(is_without_keeper(&cluster, "b"), "its keeper goes with it");
    let (code, said) = Machine::start(&cluster, "one", ".yard/join-token", "c").ends(&cluster);
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(said.contains("node one has joined already") && said.contains("yard nodes rm one"), "{said}");
    let listed: Value = serde_json::from_str(&cluster.yard("nodes -o json").ok()).expect("it is JSON");
    assert_eq!(listed["nodes"].as_array().map(Vec::len), Some(1), "{listed:#}");
    let tokens = cluster.yard("token list").ok();
    assert!(tokens.contains("*, used"), "{tokens}");
    let up = cluster.yard("nodes rm one");
    assert!(up.code != Some(0) && up.err.contains("--force"), "{}", up.err);
}

#[test]
fn a_revoked_node_is_cut_off_and_its_jobs_go_on_elsewhere() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 3s --policy fifo");
    let mut one = Machine::start(&cluster, "one", ".yard/join-token", "a");
    cluster.until("it joins", || cluster.node("one").is_some_and(|node| node["state"] == "up"));
    let id = cluster.submit("", &["sh", "-c", "echo began; exec sleep 1000"]);
    cluster.wait(id, "running");
    cluster.yard("nodes revoke one").ok();
    let (code, said) = one.ends(&cluster);
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(said.contains("was revoked") && said.contains("yard nodes rm one"), "{said}");
    let (code, said) = Machine::start(&cluster, "one", ".yard/join-token", "b").ends(&cluster);
    assert!(code != Some(0) && said.contains("has joined already"), "the name stays taken: {said}");
    cluster.agent("two", "--fake v100:1");
    cluster.until("its job runs elsewhere", || {
        let job = cluster.job(id);
        job["state"] == "running" && job["nodes"][0].as_str().is_some_and(|place| place.starts_with("two"))
    });
    cluster.yard("nodes rm one").ok();
    cluster.until("it is forgotten", || cluster.node("one").is_none());
    let _again = Machine::start(&cluster, "one", ".yard/join-token", "c");
    cluster.until("the name is free", || cluster.node("one").is_some_and(|node| node["state"] == "up"));
}

#[test]
fn a_submit_token_puts_no_job_before_those_of_others() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let id = cluster.submit("", &["sleep", "1000"]);
    cluster.wait(id, "running");
    let eve = token(&cluster, "eve", "--user eve");
    let auth = format!("Authorization: Bearer {eve}");
    let post = |path: &str, body: &str| {
        let url = format!("{}{path}", cluster.url());
        cluster.curl(&["-H", &auth, "-H", "Content-Type: application/json", "-d", body, &url])
    };
    for attack in
        [r#""weight":1000000"#, r#""class":"guaranteed""#, r#""priority":100"#, r#""tenant":"somebody""#]
    {
        let job = format!(r#"{{"command":["sleep","1000"],{attack}}}"#);
        for _ in 0..8 {
            let (code, said) = post("/v1/jobs", &job);
            assert_eq!(code, 403, "{attack}: {said}");
        }
        assert_eq!(post("/v1/what-if", &format!(r#"{{"job":{job}}}"#)).0, 403, "{attack}");
    }
    let job = cluster.job(id);
    assert_eq!((job["state"].as_str(), job["preemptions"].as_u64()), (Some("running"), Some(0)), "{job:#}");
    let (_, me) = cluster.curl(&["-H", &auth, &format!("{}/v1/me", cluster.url())]);
    let me: Value = serde_json::from_str(&me).expect("it is JSON");
    assert_eq!(
        (me["limits"]["weight_max"].as_f64(), me["limits"]["priority_max"].as_i64()),
        (Some(1.0), Some(0))
    );
}

#[test]
fn a_job_with_a_long_grace_is_killed_when_that_is_asked_for_also_over_a_restart() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 60s");
    cluster.agent("one", "--fake v100:2");
    let refused = cluster.yard("submit --grace 24h -- true");
    assert!(refused.code != Some(0) && refused.err.contains("at most 600s"), "{}", refused.err);
    let jobs = [(); 2]
        .map(|()| cluster.submit("--grace 10min", &["sh", "-c", "trap '' TERM; echo began; sleep 1000"]));
    for id in jobs {
        cluster.wait(id, "running");
        cluster.until("it has begun", || cluster.log(id).contains("began"));
        cluster.yard(&format!("cancel {id}")).ok();
        cluster.until("it is being stopped", || cluster.state(id) == "suspending");
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(jobs.iter().all(|id| cluster.state(*id) == "suspending"), "they do not stop by themselves");
    cluster.yard(&format!("cancel --force {}", jobs[0])).ok();
    cluster.wait(jobs[0], "cancelled");
    // The order to kill is on record before it is answered, whatever becomes of the server and the agent.
    cluster.kill_agent("one");
    cluster.yard(&format!("cancel --force {}", jobs[1])).ok();
    cluster.kill_server();
    cluster.start();
    cluster.agent("one", "--fake v100:2");
    let job = cluster.wait(jobs[1], "cancelled");
    assert_eq!(job["starts"], 1, "{job:#}");
}

#[test]
fn a_dead_node_is_given_up_whatever_grace_its_jobs_have_and_none_runs_twice() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 3s --policy fifo");
    cluster.agent("one", "--fake v100:1");
    let id = cluster.submit("--grace 10min --max-restarts 0", &["sh", "-c", STUBBORN]);
    cluster.wait(id, "running");
    cluster.until("it has begun", || cluster.log(id).contains("began"));
    cluster.kill_agent("one");
    cluster.agent("two", "--fake v100:1");
    // Ten minutes would be more than a test waits for.
    cluster.until("it runs elsewhere", || cluster.job(id)["starts"] == 2 && cluster.state(id) == "running");
    cluster.until("it has begun there", || cluster.log(id).contains("began"));
    assert_eq!(cluster.job(id)["failures"], 0, "the first was gone before the second began");
    cluster.yard(&format!("cancel --force {id}")).ok();
    cluster.wait(id, "cancelled");
}
