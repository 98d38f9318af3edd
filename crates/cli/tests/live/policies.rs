//! What policies are known for, seen live: real agents on pretend devices, and for each policy the one thing that no
//! other would do. `live` in the table of policies (`yard policies`, docs/policies.md) names these tests.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Answer, Cluster, Folder, LEDGER};

/// Jobs by device of the one node.
fn held(cluster: &Cluster) -> Vec<Vec<u64>> {
    let nodes: Value = serde_json::from_str(&cluster.yard("nodes -o json").ok()).expect("it is JSON");
    let devices = nodes["nodes"][0]["devices"].as_array().expect("a node has devices").clone();
    let jobs = |device: &Value| {
        let jobs = device["jobs"].as_array().cloned().unwrap_or_default();
        jobs.iter().filter_map(Value::as_u64).collect()
    };
    devices.iter().map(jobs).collect()
}

/// The device that a job is on.
fn device_of(cluster: &Cluster, job: u64) -> Option<usize> {
    held(cluster).iter().position(|jobs| jobs.contains(&job))
}

fn running(cluster: &Cluster, jobs: &[u64]) -> usize {
    jobs.iter().filter(|job| cluster.state(**job) == "running").count()
}

fn stops(cluster: &Cluster, job: u64) -> u64 {
    cluster.job(job)["preemptions"].as_u64().expect("a job counts its preemptions")
}

#[test]
fn kubeshare_fills_devices_by_request_and_keeps_jobs_apart_by_label() {
    let cluster = Cluster::up("--fake v100:2 --policy kubeshare --round 0s");
    let submit = |options: &str| {
        let job =
            cluster.submit(&format!("--gpu-fraction 0.3 --gpu-memory 8GiB {options}"), &["sleep", "1000"]);
        cluster.wait(job, "running");
        job
    };
    let (first, second) = (submit("--anti-affinity heavy"), submit(""));
    let apart = submit("--anti-affinity heavy");
    let third = submit("");
    let at = |job: u64| device_of(&cluster, job);
    assert!(
        at(first).is_some() && at(first) == at(second),
        "two parts share one device: {:?}",
        held(&cluster)
    );
    assert!(at(apart) != at(first), "the label keeps them apart: {:?}", held(&cluster));
    assert!(at(third) == at(first), "there was room for a third: {:?}", held(&cluster));
    let large = cluster.submit("--gpu-fraction 0.8 --gpu-memory 8GiB", &["sleep", "1000"]);
    cluster.until("a plan names it", || !cluster.yard(&format!("explain {large}")).ok().contains("(policy)"));
    assert_eq!(cluster.state(large), "pending", "0.8 fits beside neither 0.9 nor 0.3");
}

#[test]
fn salus_keeps_as_many_jobs_resident_as_memory_holds() {
    // 80 GiB hold three of 30 GiB, because a third of each is needed only while it computes; a fourth does not fit.
    let cluster = Cluster::up("--fake v100:1 --policy salus:load=4 --round 0s");
    let submit = || cluster.submit("--gpu-memory 30GiB", &["sleep", "1000"]);
    let jobs: Vec<u64> = (0..4).map(|_| submit()).collect();
    cluster.until("three are resident", || running(&cluster, &jobs) == 3);
    assert_eq!(held(&cluster)[0].len(), 3);
    assert_eq!(cluster.state(jobs[3]), "pending", "in order of arrival, and no more than memory holds");
    cluster.yard(&format!("cancel {}", jobs[0])).ok();
    cluster.wait(jobs[3], "running");
    assert_eq!(running(&cluster, &jobs), 3);
    assert!(jobs.iter().all(|job| stops(&cluster, *job) == 0));
}

/// What the pretend card says: the first jobs are light.
const LIGHT: &str = r#"{"cards": {"v100:0": {"busy": 0.4, "memory_used_mib": 16000,
    "jobs": {"0": [0.2, 8000], "1": [0.2, 8000], "2": [0.2, 8000]}}}}"#;

#[test]
fn lucid_pairs_light_jobs_and_stops_nobody() {
    let cluster = Cluster::up("--fake v100:1 --policy lucid --round 0s");
    cluster.folder.write(".yard/agent/fake-cards.json", LIGHT);
    let submit = || cluster.submit("--duration 1h", &["sleep", "1000"]);
    let first = submit();
    cluster.wait(first, "running");
    let (second, third) = (submit(), submit());
    cluster.until("the second joins the first", || running(&cluster, &[first, second, third]) == 2);
    assert_eq!(cluster.state(third), "pending", "at most two share a device");
    assert_eq!(held(&cluster)[0], [first, second]);
    cluster.yard(&format!("cancel {first}")).ok();
    cluster.wait(third, "running");
    assert_eq!(held(&cluster)[0], [second, third]);
    assert!([first, second, third].iter().all(|job| stops(&cluster, *job) == 0), "nobody is ever stopped");
}

/// A model that is five times as fast on one kind as on the other, and twice as fast on two devices.
const KINDS: &str = "kind,model,gpus,steps_per_s,beside_model\n\
                     v100,cat,1,10,\nv100,cat,2,19,\nv100,cat,4,36,\nk80,cat,1,2,\nk80,cat,2,3.8,\n";

fn with_table(options: &str) -> Cluster {
    let folder = Folder::new();
    folder.write("table.csv", KINDS);
    folder.write("ledger.py", LEDGER);
    Cluster::up_in(folder, "127.0.0.1:0", &format!("{options} --throughputs table.csv --belief table"))
}

#[test]
fn sia_gives_a_job_the_better_kind_and_more_devices_when_they_fall_free() {
    let cluster = with_table("--fake v100:2,k80:1 --policy sia --round 1s");
    let holder = cluster.submit("--model cat --gpus 2 --kind v100 --pause never", &["sleep", "1000"]);
    cluster.wait(holder, "running");
    let moves =
        cluster.python("--model cat --gpus 1 --min-gpus 1 --max-gpus 2", "ledger.py", &["100000", "0.05"]);
    cluster.until("it runs on the kind that is free", || cluster.job(moves)["kind"] == "k80");
    cluster.wait(moves, "running");
    cluster.yard(&format!("cancel {holder}")).ok();
    cluster.until("it has both devices of the better kind", || {
        let job = cluster.job(moves);
        job["state"] == "running" && job["kind"] == "v100" && job["gpus"] == 2
    });
}

#[test]
fn market_gives_a_job_that_asked_for_one_device_all_that_are_idle() {
    let cluster = with_table("--fake v100:2,k80:1 --policy market --round 1s");
    let options = "--model cat --gpus 1 --min-gpus 1 --max-gpus 2 --duration 10h";
    let job = cluster.python(options, "ledger.py", &["100000", "0.05"]);
    cluster.until("it has both devices of the better kind", || {
        let job = cluster.job(job);
        job["state"] == "running" && job["kind"] == "v100" && job["gpus"] == 2
    });
    let other = cluster.submit("--model cat --kind k80", &["sleep", "1000"]);
    cluster.wait(other, "running");
    assert_eq!(cluster.job(job)["gpus"], 2, "nobody needs what it has");
}

#[test]
fn elasticflow_gives_a_deadline_what_it_needs_and_refuses_what_cannot_be() {
    let cluster = with_table("--fake v100:4 --policy elasticflow --round 1s");
    let job = |options: &str| {
        let options = format!("--model cat --gpus 1 --min-gpus 1 --max-gpus 4 {options}");
        cluster.python(&options, "ledger.py", &["100000", "0.05"])
    };
    let late = job("--duration 10h");
    cluster.until("it has all that is idle", || cluster.job(late)["gpus"] == 4);
    let hopeless = cluster.yard("submit --model cat --duration 10h --deadline 1h --late refuse -- true");
    assert_eq!(hopeless.code, Some(3), "{}{}", hopeless.out, hopeless.err);
    let due = job("--duration 100m --deadline 1h");
    cluster.until("the deadline has two devices, the rest is the other's", || {
        let [late, due] = [late, due].map(|job| cluster.job(job));
        let gpus = |job: &Value| job["gpus"].as_u64().filter(|_| job["state"] == "running");
        gpus(&due) >= Some(2) && (Some(1)..Some(3)).contains(&gpus(&late))
    });
}

#[test]
fn chronus_has_a_deadline_lease_devices_before_others() {
    // Nothing is promised by the engine here: what is kept is kept by the policy.
    let cluster = Cluster::up("--fake v100:1 --policy chronus:lease=2 --round 1s --promises off");
    let spot = cluster.submit("--duration 5s --pause stop", &["sleep", "1000"]);
    cluster.wait(spot, "running");
    let due = cluster.submit("--duration 15s --deadline 20s --pause stop", &["sleep", "3"]);
    cluster.wait(due, "running");
    assert!(stops(&cluster, spot) > 0, "shortest first, but for the deadline");
    cluster.wait(due, "succeeded");
    assert_eq!(stops(&cluster, due), 0, "a lease is kept");
    cluster.wait(spot, "running");
}

#[test]
fn tiresias_stops_a_job_past_its_threshold_for_a_newcomer_and_no_other() {
    let cluster = Cluster::up("--fake v100:1 --policy tiresias:thresholds=3/100000 --round 1s");
    let long = cluster.submit("--pause stop", &["sleep", "1000"]);
    cluster.until("it is past its threshold", || cluster.job(long)["executed_s"].as_f64() > Some(4.0));
    let news = [(); 2].map(|()| cluster.submit("--pause stop", &["sleep", "1"]));
    for job in news {
        cluster.wait(job, "succeeded");
    }
    assert_eq!(stops(&cluster, long), 1, "it was demoted, and waits until both are done");
    assert_eq!(news.map(|job| stops(&cluster, job)), [0, 0], "nobody is stopped below the threshold");
    cluster.wait(long, "running");
}

/// A job of another user, who has a token.
fn submit_as(cluster: &Cluster, user: &str, options: &str) -> u64 {
    let made = cluster.yard(&format!("token create --user {user} --scope submit -o json")).ok();
    let made: Value = serde_json::from_str(&made).expect("it is JSON");
    let line = format!("submit --parsable {options} -- sleep 1000");
    let mut command: Command = cluster.command(&line.split_whitespace().collect::<Vec<_>>());
    command.env("YARD_TOKEN", made["secret"].as_str().expect("it shows the secret once"));
    let answer: Answer = command.output().expect("the binary can be run").into();
    answer.ok().trim().parse().expect("it prints a number")
}

#[test]
fn gandiva_fair_divides_time_by_users_tickets_whoever_has_more_jobs() {
    if !yard_needs::root("only root can run jobs as other users") {
        return;
    }
    let cluster = Cluster::up("--fake v100:1 --policy gandiva-fair --round 1s");
    let many: Vec<u64> =
        (0..2).map(|_| cluster.submit("--weight 0.5 --pause stop", &["sleep", "1000"])).collect();
    let one = submit_as(&cluster, "nobody", "--weight 1 --pause stop --workdir /");
    let had = |job: u64| cluster.job(job)["executed_s"].as_f64().unwrap_or(0.0);
    // Two tickets to one: two thirds of the time, where equal parts for all jobs would be one third and weights by job
    // one half.
    cluster.until("time is divided two to one", || {
        let (theirs, ours) = (had(one), many.iter().map(|job| had(*job)).sum::<f64>());
        theirs + ours > 20.0 && (1.6..2.5).contains(&(theirs / ours))
    });
    assert!(many.iter().all(|job| had(*job) > 0.0), "both of the other user's jobs had turns");
}
