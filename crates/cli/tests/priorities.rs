//! Priorities from the outside, under every policy of the table: honoured, or refused with what to do.

mod common;

use common::Dir;
use serde_json::Value;

/// On one device: the second comes later, is as long, and is more urgent.
const TRACE: &str =
    "job_id,submit_s,gpus,duration_s,priority\nblocks,0,1,50,\ncalm,1,1,50,\nurgent,2,1,50,3\n";

fn sim(dir: &Dir, policy: &str, more: &str) -> common::Answer {
    let setting = "--trace t.csv --cluster gpu:1 --overheads none --round 10s";
    dir.yard(&format!("sim {setting} --policy {policy} {more} -o json --per-job jobs.csv"))
}

/// Where each job ended, by name.
fn end(dir: &Dir, job: &str) -> f64 {
    let text = dir.read("jobs.csv");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let column = |name: &str| header.iter().position(|known| *known == name).expect("a column");
    let row = lines.find(|row| row[column("job_id")] == job).expect("the job's row");
    row[column("end_s")].parse().expect("it ended")
}

#[test]
fn every_policy_honours_priorities_or_refuses_them() {
    let listed = Dir::new().yard("policies -o json").json();
    let all: Vec<&Value> = listed["policies"].as_array().expect("a list").iter().collect();
    let (mut honoured, mut refused) = (0, 0);
    for entry in all {
        let (policy, dir) = (entry["name"].as_str().expect("a name"), Dir::with_trace(TRACE));
        let answer = sim(&dir, policy, "");
        if entry["priorities"] != "refused" {
            assert_eq!(answer.json()["runs"][0]["priorities_ignored"], false);
            assert!(end(&dir, "urgent") < end(&dir, "calm"), "{policy}");
            honoured += 1;
            continue;
        }
        assert_eq!(answer.code, Some(2), "{policy}");
        let begins =
            format!("error: t.csv, line 4, field priority: policy {policy} does not honour priorities: ");
        assert!(answer.err.starts_with(&begins), "{}", answer.err);
        assert!(answer.err.trim_end().ends_with("--priorities ignore"), "{}", answer.err);
        let ignored = sim(&dir, policy, "--priorities ignore");
        let note = "note: the priorities of 1 jobs are ignored (--priorities ignore)\n";
        assert_eq!(ignored.err, note, "{policy}");
        assert_eq!(ignored.json()["runs"][0]["priorities_ignored"], true);
        refused += 1;
    }
    assert!(honoured > 20 && refused > 20, "{honoured} honour them and {refused} do not");
}

#[test]
fn what_is_ignored_is_said_in_the_table_too() {
    let dir = Dir::with_trace(TRACE);
    let table =
        dir.yard("sim --trace t.csv --cluster gpu:1 --policy fifo,max-min --priorities ignore").printed();
    assert!(table.contains("priorities ignored"), "{table}");
    let same = dir.yard("sim --trace t.csv --cluster gpu:1 --policy fifo,max-min");
    assert!(
        same.code == Some(2) && same.err.contains("policy max-min does not honour"),
        "one refuses, none runs"
    );
}

#[test]
fn a_plan_lists_the_urgent_first_or_is_refused() {
    let dir = Dir::with_trace(TRACE);
    let plan =
        |policy: &str| dir.yard(&format!("plan --trace t.csv --cluster gpu:1 --policy {policy} -o json"));
    assert_eq!(plan("srtf").json()["shares"][0]["jobs"][0], "urgent");
    let refused = plan("nash");
    assert!(refused.err.contains("line 4, field priority: policy nash"), "{}", refused.err);
    assert_eq!(plan("nash --priorities ignore").code, Some(0));
}
