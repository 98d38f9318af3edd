//! The same decisions live and simulated: what happened is exported as a trace, and the simulator decides the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::Cluster;

/// Who was given devices in which order, by what the events say.
fn grants(lines: &str, job_of: impl Fn(&Value) -> String) -> Vec<String> {
    let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["event"] == "granted").map(|event| job_of(&event)).collect()
}

/// Exports what happened, simulates it with the same settings, and compares who was given devices in which order; that
/// order is returned, with jobs numbered from 0.
fn same(cluster: &Cluster, n_jobs: usize, settings: &str) -> Vec<String> {
    cluster.until("all are done", || {
        let list: Value = serde_json::from_str(&cluster.yard("jobs --all -o json").out).unwrap_or_default();
        let jobs = list["jobs"].as_array().cloned().unwrap_or_default();
        jobs.len() == n_jobs && jobs.iter().all(|job| job["state"] == "succeeded")
    });
    // They are over on the board a moment before they are in the history.
    cluster.until("all are recorded", || cluster.yard("trace export").out.lines().count() == n_jobs + 1);
    let trace = cluster.yard("trace export").ok();
    cluster.folder.write("history.csv", &trace);
    let live = grants(&cluster.yard("events -o json").ok(), |event| event["job"].to_string());
    let line = format!("sim --trace history.csv {settings} --overheads none --events sim.jsonl -o json");
    cluster.yard(&line).ok();
    let text =
        std::fs::read_to_string(cluster.folder.0.join("sim.jsonl")).expect("the simulator wrote its events");
    let simulated = grants(&text, |event| event["jobs"][0].to_string());
    let numbered: BTreeMap<_, _> = live.iter().collect::<BTreeSet<_>>().into_iter().zip(0..).collect();
    let live: Vec<String> = live.iter().map(|job| numbered[job].to_string()).collect();
    assert_eq!(live, simulated, "\n{trace}\n{text}");
    live
}

#[test]
fn what_happened_live_happens_again_in_simulation() {
    let cluster = Cluster::up("--fake gpu:2 --round 4s --policy fifo");
    // Lengths that end well before the next beat, so that a slow machine does not change who is next.
    for (gpus, seconds) in [(2, "1"), (1, "9"), (1, "5"), (2, "1"), (1, "1")] {
        cluster.submit(&format!("--gpus {gpus} --time 1h"), &["sleep", seconds]);
    }
    same(&cluster, 5, "--cluster gpu:1x2 --policy fifo --round 4s");
}

#[test]
fn what_was_stopped_live_is_stopped_in_simulation() {
    let cluster = Cluster::up("--fake gpu:1 --round 2s --policy srtf");
    // Steps, not one sleep: a sleep goes on while its process is stopped.
    let steps = |steps: u32| format!("i=0; while [ $i -lt {steps} ]; do i=$((i+1)); sleep 0.05; done");
    let submit = |duration: &str, count: u32| {
        cluster.submit(&format!("--duration {duration} --pause stop"), &["sh", "-c", &steps(count)])
    };
    let ran = |job: u64, seconds: f64| {
        cluster.until("it has run for a while", || cluster.job(job)["executed_s"].as_f64() > Some(seconds));
    };
    // Ten seconds and one and a half, far enough apart for any machine: who is shorter is never in doubt.
    let long = submit("60s", 200);
    ran(long, 1.0);
    let short = submit("2s", 30);
    cluster.wait(short, "succeeded");
    ran(long, 4.0);
    let other = submit("90s", 200);
    cluster.wait(long, "succeeded");
    ran(other, 1.0);
    submit("2s", 30);
    let order = same(&cluster, 4, "--cluster gpu:1x1 --policy srtf --round 2s");
    assert_eq!(
        order,
        ["0", "1", "0", "2", "3", "2"],
        "two are stopped for shorter ones, and the longer waits"
    );
}
