//! A job's life: submitted, run, watched, withdrawn.

use crate::harness::Cluster;

#[test]
fn a_job_runs_and_its_output_and_exit_code_are_kept() {
    let cluster = Cluster::up("--fake v100:2 --round 1s");
    let id = cluster.submit("--name hello", &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    let job = cluster.wait(id, "failed");
    assert_eq!((job["exit_code"].as_i64(), job["name"].as_str()), (Some(7), Some("hello")));
    assert!(cluster.yard(&format!("logs {id}")).ok().contains("out"));
    assert!(cluster.yard(&format!("logs --stderr {id}")).ok().contains("err"));
    let id = cluster.submit("", &["true"]);
    assert_eq!(cluster.wait(id, "succeeded")["exit_code"], 0);
    assert_eq!(cluster.yard("show last -o json").ok(), cluster.yard(&format!("show {id} -o json")).ok());
}

#[test]
fn waiting_for_a_job_gives_its_own_exit_code() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let code = |command: &[&str]| {
        let mut args = vec!["submit", "--wait", "--"];
        args.extend(command);
        cluster.command(&args).output().expect("the binary can be run").status.code()
    };
    assert_eq!(code(&["true"]), Some(0));
    assert_eq!(code(&["sh", "-c", "exit 42"]), Some(42));
    let args = ["submit", "--wait", "--gpus", "64", "--", "true"];
    let rejected = cluster.command(&args).output().expect("the binary can be run");
    assert_eq!(rejected.status.code(), Some(3), "{}", String::from_utf8_lossy(&rejected.stderr));
}

#[test]
fn a_job_knows_what_it_is_part_of() {
    let cluster = Cluster::up("--fake v100:2 --round 1s");
    let id = cluster.submit("--gpus 2 --env MINE=yes", &["env"]);
    cluster.wait(id, "succeeded");
    let env = cluster.yard(&format!("logs {id}")).ok();
    let job = format!("YARD_JOB_ID={id}");
    let wanted = [
        job.as_str(),
        "YARD_INSTANCE=1",
        "YARD_SOCKET=",
        "YARD_CHECKPOINT_DIR=",
        "CUDA_VISIBLE_DEVICES=0,1",
        "MASTER_ADDR=",
        "MASTER_PORT=",
        "WORLD_SIZE=1",
        "RANK=0",
        "LOCAL_RANK=0",
        "LOCAL_WORLD_SIZE=1",
        "NODE_RANK=0",
        "SLURM_JOB_ID=",
        "SLURM_PROCID=0",
        "MINE=yes",
    ];
    for name in wanted {
        assert!(env.lines().any(|line| line.starts_with(name)), "{name} is missing in\n{env}");
    }
}

#[test]
fn a_job_that_ignores_the_signal_is_killed_with_all_its_children() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let script = "trap '' TERM; (trap '' TERM; setsid sh -c \"trap '' TERM; while :; do sleep 0.1; done\") & \
                  echo ready; while :; do sleep 0.1; done";
    let id = cluster.submit("--pause checkpoint --grace 1s", &["sh", "-c", script]);
    cluster.wait(id, "running");
    cluster.until("it is ready", || cluster.log(id).contains("ready"));
    cluster.yard(&format!("cancel {id}")).ok();
    cluster.wait(id, "cancelled");
    let left = || {
        let processes = std::fs::read_dir("/proc").expect("/proc is there").flatten();
        let environ = |path: std::path::PathBuf| std::fs::read(path.join("environ")).unwrap_or_default();
        let mark = format!("YARD_CHECKPOINT_DIR={}", cluster.folder.0.display());
        let of_job = |path| String::from_utf8_lossy(&environ(path)).contains(&mark);
        processes.filter(|process| of_job(process.path())).count()
    };
    cluster.until("nothing of it is left", || left() == 0);
}

#[test]
fn a_job_can_be_withdrawn_in_every_state() {
    let cluster = Cluster::up("--fake v100:1 --round 1s --policy fifo");
    let running = cluster.submit("", &["sleep", "1000"]);
    cluster.wait(running, "running");
    let pending = cluster.submit("", &["sleep", "1000"]);
    assert_eq!(cluster.state(pending), "pending");
    cluster.yard(&format!("cancel {pending} --reason changed-my-mind")).ok();
    cluster.wait(pending, "cancelled");
    cluster.yard(&format!("cancel {running}")).ok();
    cluster.wait(running, "cancelled");
    assert!(
        cluster.yard(&format!("cancel {running}")).ok().contains("cancelled"),
        "once more changes nothing"
    );
    // At once after the submission: while it starts, most likely.
    let starting = cluster.submit("", &["sleep", "1000"]);
    cluster.yard(&format!("cancel {starting}")).ok();
    cluster.wait(starting, "cancelled");
    // Stopping: it takes its time to save.
    let slow = cluster.submit(
        "--pause checkpoint --grace 5s",
        &["sh", "-c", "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done"],
    );
    cluster.wait(slow, "running");
    cluster.yard(&format!("cancel {slow}")).ok();
    let twice = cluster.yard(&format!("cancel {slow}"));
    assert!(matches!(twice.code, Some(0 | 2)), "{}", twice.err);
    cluster.wait(slow, "cancelled");
    let next = cluster.submit("", &["true"]);
    cluster.wait(next, "succeeded");
}

#[test]
fn a_failing_job_is_tried_again_as_often_as_it_may() {
    let cluster = Cluster::up("--fake v100:1 --round 1s --backoff 1s");
    let id = cluster.submit("--max-restarts 2", &["sh", "-c", "echo try $YARD_INSTANCE; exit 3"]);
    let job = cluster.wait(id, "failed");
    assert_eq!((job["failures"].as_i64(), job["exit_code"].as_i64()), (Some(3), Some(3)));
    let log = cluster.yard(&format!("logs {id}")).ok();
    assert!((1..=3).all(|at| log.contains(&format!("try {at}"))), "logs append over restarts: {log}");
}

#[test]
fn a_job_that_uses_up_its_time_is_ended() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let id = cluster.submit("--time 2s --max-restarts 5", &["sleep", "1000"]);
    let job = cluster.wait(id, "failed");
    assert!(job["reason"].as_str().is_some_and(|reason| reason.contains("time")), "{job:#}");
}

#[test]
fn a_waiting_job_is_told_why_and_what_would_help() {
    let cluster = Cluster::up("--fake v100:2 --round 1s --policy fifo");
    let first = cluster.submit("--gpus 2", &["sleep", "1000"]);
    cluster.wait(first, "running");
    let second = cluster.submit("--gpus 1", &["sleep", "1000"]);
    let json = || -> serde_json::Value {
        serde_json::from_str(&cluster.yard(&format!("explain {second} -o json")).ok()).expect("it is JSON")
    };
    cluster.until("a plan names it", || json()["reason"] != "policy");
    let said = cluster.yard(&format!("explain {second}")).ok();
    assert!(said.contains(&format!("{first}")), "it names who is in front: {said}");
    let json = json();
    assert!(json["reason"] == "priority" || json["reason"] == "capacity", "{json:#}");
    assert_eq!(json["ahead"][0].as_u64(), Some(first));
}

/// A job that takes long to make its first step, and says before that how far it is.
const SLOW_TO_BEGIN: &str = r#"
import sys, time
import switchyard

switchyard.progress(0, 20)
print("begun", flush=True)
time.sleep(float(sys.argv[1]))
for step in range(20):
    if switchyard.should_stop(step):
        sys.exit(0)
    switchyard.progress(step + 1, 20)
"#;

/// What was measured of it then is no speed, and leaves neither it nor the next of its kind without a way to run.
#[test]
fn a_job_that_is_stopped_before_its_first_step_runs_again() {
    let cluster = Cluster::up("--fake h100:2 --round 1s --policy las");
    cluster.folder.write("slow.py", SLOW_TO_BEGIN);
    let slow = || cluster.python("--gpus 2 --model slow --grace 60s", "slow.py", &["3"]);
    let first = slow();
    cluster.until("it has begun", || cluster.log(first).contains("begun"));
    let second = cluster.submit("--gpus 2", &["sleep", "2"]);
    cluster.wait(second, "succeeded");
    let job = cluster.wait(first, "succeeded");
    assert!(job["preemptions"].as_u64() > Some(0), "it was stopped in between: {job:#}");
    let events = cluster.yard(&format!("events --job {first}")).ok();
    assert!(events.contains("steps=0"), "before its first step: {events}");
    cluster.wait(slow(), "succeeded");
}
