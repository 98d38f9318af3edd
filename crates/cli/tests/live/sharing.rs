//! Jobs that share a machine: turns, packing, moves.

use crate::harness::{Cluster, Folder, LEDGER};

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

/// Two models that lose little beside each other.
const TABLE: &str = "kind,model,gpus,steps_per_s,beside_model\n\
                     v100,cat,1,10,\nv100,dog,1,10,\nv100,cat,1,9,dog\nv100,dog,1,9,cat\n";

#[test]
fn two_jobs_share_one_device_where_the_table_says_they_go_well_together() {
    let folder = Folder::new();
    folder.write("table.csv", TABLE);
    let options = "--fake v100:1 --round 1s --policy max-min:packed=true --throughputs table.csv";
    let cluster = Cluster::up_in(folder, "127.0.0.1:0", options);
    let cat = cluster.submit("--model cat", &["sleep", "1000"]);
    let dog = cluster.submit("--model dog", &["sleep", "1000"]);
    let runs = |id: u64| cluster.state(id) == "running";
    cluster.until("both run on the one device", || runs(cat) && runs(dog));
    let node: serde_json::Value =
        serde_json::from_str(&cluster.yard("nodes -o json").ok()).expect("it is JSON");
    let held = &node["nodes"][0]["devices"][0]["jobs"];
    assert_eq!(held.as_array().map(Vec::len), Some(2), "{node:#}");
    for id in [cat, dog] {
        cluster.yard(&format!("cancel {id}")).ok();
        cluster.wait(id, "cancelled");
    }
    let alone = cluster.submit("--model cat --exclusive", &["sleep", "1000"]);
    cluster.wait(alone, "running");
    let other = cluster.submit("--model dog", &["sleep", "1000"]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(!(runs(alone) && runs(other)), "an exclusive job shares with nobody");
}

#[test]
fn a_job_without_checkpoints_is_stopped_in_place_and_goes_on() {
    let cluster = Cluster::up("--fake v100:1 --round 1s --policy las");
    let count = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo step $i; sleep 0.05; done";
    let jobs: Vec<_> = (0..3).map(|_| cluster.submit("--pause stop", &["sh", "-c", count])).collect();
    for id in &jobs {
        let job = cluster.wait(*id, "succeeded");
        let log = cluster.yard(&format!("logs {id}")).ok();
        let steps: Vec<_> = log.lines().filter(|line| line.starts_with("step")).collect();
        assert_eq!(steps.len(), 60, "each step once, without a checkpoint: {job:#}\n{log}");
    }
    let stops: u64 = jobs.iter().map(|id| cluster.job(*id)["preemptions"].as_u64().unwrap_or(0)).sum();
    assert!(stops > 0, "three jobs on one device take turns");
}
