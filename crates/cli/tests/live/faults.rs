//! Any part may die at any moment; nothing that was acknowledged is lost.

use std::time::Duration;

use crate::harness::{Cluster, LEDGER};

#[test]
fn a_killed_agent_finds_its_jobs_again() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 30s");
    cluster.agent("one", "--fake v100:2");
    let id = cluster.submit("", &["sh", "-c", "echo began; sleep 6; echo over; exit 5"]);
    cluster.wait(id, "running");
    cluster.kill_agent("one");
    std::thread::sleep(Duration::from_secs(1));
    cluster.agent("one", "--fake v100:2");
    let job = cluster.wait(id, "failed");
    assert_eq!((job["exit_code"].as_i64(), job["starts"].as_i64()), (Some(5), Some(1)), "{job:#}");
    assert_eq!(cluster.log(id).matches("began").count(), 1, "it ran on while its agent was away");
}

#[test]
fn a_job_goes_elsewhere_when_its_agent_stays_away_and_never_runs_twice() {
    let mut cluster = Cluster::up("--no-agent --round 1s --lease 3s --policy fifo");
    cluster.agent("one", "--fake v100:1");
    cluster.folder.write("ledger.py", LEDGER);
    let shared = cluster.folder.0.join("checkpoints");
    std::fs::create_dir(&shared).expect("a folder can be made");
    let id = cluster.python(&format!("--checkpoint-dir {}", shared.display()), "ledger.py", &["200", "0.05"]);
    cluster.until("it has done some steps", || cluster.job(id)["step"].as_u64() > Some(5));
    cluster.kill_agent("one");
    cluster.agent("two", "--fake v100:1");
    // The agent is dead, but its keeper still runs the job; it must be over before it starts elsewhere.
    cluster.wait(id, "succeeded");
    cluster.each_step_once(id, 200);
}

#[test]
fn the_server_may_be_killed_at_any_moment() {
    let kills: u32 = std::env::var("YARD_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut cluster = Cluster::up("--fake v100:2,k80:2 --round 1s --policy las");
    cluster.folder.write("ledger.py", LEDGER);
    let mut jobs = Vec::new();
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    for kill in 0..kills {
        for _ in 0..3 {
            jobs.push(cluster.python("", "ledger.py", &["20", "0.02"]));
        }
        jobs.push(cluster.submit("", &["sh", "-c", "exit 0"]));
        // A fixed sequence of odd moments between 0 and 2 seconds.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(kill as u64 + 1);
        std::thread::sleep(Duration::from_millis(seed >> 53));
        cluster.kill_server();
        cluster.start();
    }
    for id in &jobs {
        cluster.wait(*id, "succeeded");
    }
    for id in jobs.iter().filter(|id| cluster.job(**id)["name"] == "python3") {
        cluster.each_step_once(*id, 20);
    }
    let known: serde_json::Value =
        serde_json::from_str(&cluster.yard("jobs --all -o json").ok()).expect("it is JSON");
    assert_eq!(known["jobs"].as_array().map(Vec::len), Some(jobs.len()), "each submission is there once");
}

#[test]
fn submissions_repeated_with_one_key_make_one_job() {
    let cluster = Cluster::up("--fake v100:1 --round 1s");
    let (url, token) = (cluster.url(), cluster.token());
    let auth = format!("Authorization: Bearer {token}");
    let post = |body: &str| {
        let url = format!("{url}/v1/jobs");
        let json = "Content-Type: application/json";
        cluster.curl(&["-H", &auth, "-H", json, "-H", "Idempotency-Key: k1", "-d", body, &url])
    };
    let (code, first) = post(r#"{"command":["true"]}"#);
    assert_eq!(code, 201, "{first}");
    let (_, second) = post(r#"{"command":["true"]}"#);
    let id = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("it is JSON")["id"].clone();
    assert_eq!(id(&first), id(&second));
    assert_eq!(post(r#"{"command":["false"]}"#).0, 409);
}

#[test]
fn a_job_leaves_a_card_that_falls_off_and_the_card_comes_back() {
    let cluster = Cluster::up("--fake h100:2 --name here --round 1s --policy fifo");
    let id = cluster.submit("--gpus 1", &["sleep", "1000"]);
    cluster.wait(id, "running");
    let device = |at: usize| cluster.node("here").expect("it is there")["devices"][at].clone();
    let holds = |at: usize| device(at)["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty());
    let (first, other) = if holds(0) { (0, 1) } else { (1, 0) };
    let cards = format!(
        r#"{{"cards": {{"h100:{first}": null, "h100:{other}": {{"busy": 0.75, "memory_used_mib": 2048}}}}}}"#
    );
    let file = cluster.folder.0.join(".yard/agent/fake-cards.json");
    std::fs::write(&file, cards).expect("a file can be written");
    cluster.until("it runs on the other card", || holds(other) && cluster.state(id) == "running");
    let problem = device(first)["problem"].to_string();
    assert!(problem.contains("no longer answers the driver"), "{problem}");
    cluster.until("the other card is seen to work", || device(other)["busy"] == 0.75);
    let table = cluster.yard("nodes --devices").ok();
    assert!(table.contains("75%") && table.contains("2.0/80 GiB"), "{table}");
    assert_eq!(cluster.job(id)["failures"], 0, "it was not the job's fault");
    std::fs::remove_file(&file).expect("a file can be removed");
    cluster.until("the card is back", || device(first)["problem"].is_null());
}
