//! The same decisions live and simulated: what happened is exported as a trace, and the simulator decides the same.

use std::collections::BTreeMap;

use crate::harness::Cluster;

/// Who started in which order, by what the events say.
fn starts(lines: &str, job_of: impl Fn(&serde_json::Value) -> Option<String>) -> Vec<String> {
    let events = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    events.filter_map(|event| job_of(&event)).collect()
}

#[test]
fn what_happened_live_happens_again_in_simulation() {
    let cluster = Cluster::up("--fake gpu:2 --round 4s --policy fifo");
    // Lengths that end well before the next beat, so that a slow machine does not change who is next.
    for (gpus, seconds) in [(2, "1"), (1, "9"), (1, "5"), (2, "1"), (1, "1")] {
        cluster.submit(&format!("--gpus {gpus} --time 1h"), &["sleep", seconds]);
    }
    cluster.until("all are done", || {
        let list: serde_json::Value =
            serde_json::from_str(&cluster.yard("jobs --all -o json").out).unwrap_or_default();
        let jobs = list["jobs"].as_array().cloned().unwrap_or_default();
        jobs.len() == 5 && jobs.iter().all(|job| job["state"] == "succeeded")
    });
    let trace = cluster.yard("trace export").ok();
    cluster.folder.write("history.csv", &trace);
    let live = starts(&cluster.yard("events -o json").ok(), |event| {
        (event["event"] == "granted").then(|| event["job"].to_string())
    });
    let sim = cluster.yard(
        "sim --trace history.csv --cluster gpu:1x2 --policy fifo --round 4s --overheads none --events sim.jsonl -o json",
    );
    sim.ok();
    let text =
        std::fs::read_to_string(cluster.folder.0.join("sim.jsonl")).expect("the simulator wrote its events");
    let simulated = starts(&text, |event| {
        event.get("Granted").or(event.get("granted")).map(|grant| grant["jobs"][0].to_string())
    });
    let numbered: BTreeMap<_, _> =
        live.iter().collect::<std::collections::BTreeSet<_>>().into_iter().zip(0..).collect();
    let live: Vec<String> = live.iter().map(|job| numbered[job].to_string()).collect();
    assert_eq!(live, simulated, "\n{trace}\n{text}");
}
