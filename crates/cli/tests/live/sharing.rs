//! Jobs that share a machine: turns, packing, moves.

use crate::harness::{Cluster, LEDGER};

#[test]
fn twenty_jobs_take_turns_on_four_devices_and_do_each_step_once() {
    let cluster = Cluster::up("--fake v100:2,k80:2 --round 2s --policy las");
    cluster.folder.write("ledger.py", LEDGER);
    let jobs: Vec<_> = (0..20).map(|_| cluster.python("", "ledger.py", &["60", "0.05"])).collect();
    for id in &jobs {
        cluster.wait(*id, "succeeded");
        cluster.each_step_once(*id, 60);
    }
    let stops: u64 = jobs.iter().map(|id| cluster.job(*id)["preemptions"].as_u64().unwrap_or(0)).sum();
    assert!(stops > 0, "twenty jobs on four devices take turns");
}

#[test]
fn a_job_moves_to_another_agent_and_goes_on_from_its_checkpoint() {
    let mut cluster = Cluster::up("--no-agent --round 1s --policy fifo");
    cluster.agent("one", "--fake v100:1");
    cluster.folder.write("ledger.py", LEDGER);
    let shared = cluster.folder.0.join("checkpoints");
    std::fs::create_dir(&shared).expect("a folder can be made");
    let options = format!("--checkpoint-dir {}", shared.display());
    let id = cluster.python(&options, "ledger.py", &["100", "0.05"]);
    cluster.until("it has done some steps", || cluster.job(id)["step"].as_u64() > Some(10));
    cluster.agent("two", "--fake v100:1");
    cluster.yard("drain one --evict --reason maintenance").ok();
    cluster.until("it runs on the other", || {
        let job = cluster.job(id);
        job["state"] == "succeeded" || job["nodes"].to_string().contains("two")
    });
    let job = cluster.wait(id, "succeeded");
    cluster.each_step_once(id, 100);
    assert_eq!(job["starts"], 2, "{job:#}");
}

#[test]
fn a_drained_node_keeps_what_it_runs_and_takes_nothing_new() {
    let cluster = Cluster::up("--fake v100:2 --name here --round 1s --policy fifo");
    let running = cluster.submit("", &["sleep", "3"]);
    cluster.wait(running, "running");
    cluster.yard("drain here --reason cleaning").ok();
    let node = cluster.node("here").expect("it is there");
    assert_eq!(
        (node["state"].as_str(), node["reason"].as_str()),
        (Some("draining"), Some("drained by root: cleaning"))
    );
    let waiting = cluster.submit("", &["true"]);
    cluster.wait(running, "succeeded");
    assert_eq!(cluster.state(waiting), "pending");
    cluster.yard("resume here").ok();
    cluster.wait(waiting, "succeeded");
}
