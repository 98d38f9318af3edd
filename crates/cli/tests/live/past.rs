//! The past once more: simulated as it was, it goes as it went; with more nodes it goes faster, with fewer slower.

use serde_json::{Value, json};

use crate::harness::Cluster;

/// Seconds from one decision to the next: what was recorded and what is simulated may differ by that much.
const ROUND_S: f64 = 4.0;

/// Two nodes of two devices, and a history of seven jobs of two teams that had to wait for each other.
fn recorded() -> Cluster {
    let mut cluster = Cluster::up("--fake gpu:2 --name n1 --round 4s --policy fifo");
    cluster.agent("n2", "--fake gpu:2");
    for (gpus, seconds, team) in [
        (2, "5", "a"),
        (2, "9", "b"),
        (2, "1", "a"),
        (1, "5", "b"),
        (2, "5", "a"),
        (1, "1", "b"),
        (2, "1", "a"),
    ] {
        cluster.submit(&format!("--gpus {gpus} --time 1h --tenant {team}"), &["sleep", seconds]);
    }
    cluster.until("all are done", || {
        let list: Value = serde_json::from_str(&cluster.yard("jobs --all -o json").out).unwrap_or_default();
        let jobs = list["jobs"].as_array().cloned().unwrap_or_default();
        jobs.len() == 7 && jobs.iter().all(|job| job["state"] == "succeeded")
    });
    // They are over on the board a moment before they are in the history.
    cluster.until("all are recorded", || cluster.yard("trace export").out.lines().count() == 8);
    cluster
}

/// Asks the API.
fn ask(cluster: &Cluster, question: &Value) -> Value {
    let token = format!("Authorization: Bearer {}", cluster.token());
    let url = format!("{}/v1/what-if/history", cluster.url());
    let json = "Content-Type: application/json";
    let (code, body) =
        cluster.curl(&["-X", "POST", "-H", &token, "-H", json, "-d", &question.to_string(), &url]);
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).expect("the answer is JSON")
}

fn waits(row: &Value) -> f64 {
    row["run"]["avg_queue_s"].as_f64().expect("jobs are done")
}

#[test]
fn the_past_goes_again_as_it_went_and_otherwise_with_other_nodes() {
    let cluster = recorded();
    let told = ask(
        &cluster,
        &json!({"history_s": 3600, "detail": true, "prices": {"gpu": 2.0}, "alternatives": [
            {"add": ["gpu:4x2"]}, {"remove": ["n2"]}, {"policy": "srtf"}, {"add": ["gpu:4x2"], "remove": ["n1", "n2"]},
        ]}),
    );
    assert_eq!((&told["window"]["jobs"], &told["window"]["open"]), (&json!(7), &json!(0)));
    // Each job waited as long as it is simulated to, but for what a round may hide.
    for job in told["baseline"]["detail"]["jobs"].as_array().expect("there is detail") {
        let really = cluster.job(job["id"].as_u64().expect("it has a number"));
        let since = |key: &str| {
            really[key].as_f64().expect("it is over") - really["submitted_at"].as_f64().unwrap_or(0.0)
        };
        let off = |simulated: &Value, really: f64| (simulated.as_f64().expect("it is over") - really).abs();
        assert!(off(&job["wait_s"], since("started_at")) <= ROUND_S, "{job:#} {really:#}");
        assert!(off(&job["jct_s"], since("ended_at")) <= ROUND_S, "{job:#} {really:#}");
    }
    let (base, other) = (&told["baseline"], |at: usize| &told["alternatives"][at]);
    assert!(waits(base) > 1.0 && waits(other(0)) < waits(base) / 2.0, "{told:#}");
    assert!(waits(other(1)) > waits(base) && waits(other(3)) < waits(base), "{told:#}");
    assert!(other(1)["against_baseline"]["avg_queue_s"].as_f64() > Some(0.0));
    assert_eq!(other(3)["run"]["cluster"], "gpu:4x2");
    // The same work costs the same wherever it waits.
    let cost = |row: &Value| row["run"]["cost"].as_f64().expect("there is a price");
    let hours = base["run"]["gpu_hours"].as_f64().expect("devices were held");
    assert!((cost(base) - 2.0 * hours).abs() < 1e-9 && (cost(other(0)) - cost(base)).abs() < 1e-9);
    let teams: Vec<_> = other(0)["teams"].as_array().expect("an admin sees teams").iter().collect();
    assert_eq!(teams.iter().map(|team| &team["team"]).collect::<Vec<_>>(), ["a", "b"]);
    let jobs = |team: &&Value| team["jobs"].as_u64().unwrap_or(0);
    assert_eq!(teams.iter().map(jobs).sum::<u64>(), 7);
    as_people_ask(&cluster, &told);
}

/// The command prints the numbers of the API, and writes the report.
fn as_people_ask(cluster: &Cluster, told: &Value) {
    let line = "what-if --history 1h --policy srtf --price gpu=2 -o json --html past.html";
    let answer = cluster.yard(line);
    assert!(answer.err.contains("report: past.html"), "{}", answer.err);
    let same: Value = serde_json::from_str(&answer.ok()).expect("it prints JSON");
    assert_eq!(same["alternatives"][0]["run"], told["alternatives"][2]["run"]);
    assert_eq!(same["baseline"]["run"], told["baseline"]["run"]);
    let page = std::fs::read_to_string(cluster.folder.0.join("past.html")).expect("the report is there");
    assert!(page.contains("What if, on 7 jobs of the past") && page.contains("</html>"));
    let table = cluster.yard("what-if --history 1h --add gpu:4x2").ok();
    let shown = |text: &str| assert!(table.contains(text), "{text} is missing in\n{table}");
    ["recorded", "baseline (fifo)", "with gpu:4x2", "by team", "7 jobs submitted from"]
        .into_iter()
        .for_each(shown);
    let wrong = cluster.yard("what-if --history 1h --remove n3");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("there is no node \"n3\" to remove; there are: n1, n2"), "{}", wrong.err);
}
