//! `yard plan` from the outside: the keys of the contract, who is present when, and mistakes.

mod common;

use common::{Dir, THREE_JOBS};
use serde_json::{Value, json};

fn plan(options: &str) -> Value {
    let dir = Dir::with_trace(THREE_JOBS);
    dir.yard(&format!("plan --trace t.csv --cluster gpu:1x4 {options} -o json")).json()
}

fn jobs(plan: &Value) -> Vec<&str> {
    let shares = plan["shares"].as_array().expect("shares is a list");
    shares.iter().map(|share| share["jobs"][0].as_str().expect("ids are the trace's")).collect()
}

#[test]
fn a_plan_has_the_keys_of_the_contract() {
    let plan = plan("--policy srtf");
    for key in ["objective", "upper_bound", "gap", "prices", "unmet"] {
        assert!(plan.get(key).is_some_and(Value::is_null), "{key}: {plan}");
    }
    assert_eq!(plan["policy"], "srtf");
    assert!(plan["plan_s"].as_f64().is_some_and(|seconds| seconds >= 0.0));
    assert_eq!(plan["shares"][0], json!({"jobs": ["second"], "kind": "gpu", "gpus": 2, "fraction": 1.0}));
}

#[test]
fn without_a_time_all_jobs_are_there_and_none_has_run() {
    assert_eq!(jobs(&plan("--policy srtf")), ["second", "first", "third"]);
    assert_eq!(jobs(&plan("--policy fifo")), ["first", "second", "third"]);
}

#[test]
fn at_a_time_those_are_there_who_came_and_have_not_ended() {
    assert_eq!(jobs(&plan("--policy srtf --at 0 --overheads none")), ["first"]);
    assert_eq!(jobs(&plan("--policy srtf --at 15 --overheads none")), ["second", "first"]);
    // The first has four devices until second 10, is stopped for the second until 60, and goes on to 150.
    let late = plan("--policy srtf --at 100 --overheads none --round 0");
    assert_eq!((jobs(&late), &late["at_s"]), (vec!["first", "third"], &json!(100.0)));
    assert_eq!(jobs(&plan("--policy srtf --at 1h --overheads none")), [""; 0]);
}

#[test]
fn where_nobody_is_stopped_who_runs_is_in_the_plan() {
    assert_eq!(jobs(&plan("--policy backfill --at 50 --overheads none")), ["first"]);
}

#[test]
fn a_choice_of_kinds_is_left_open() {
    let dir = Dir::with_trace(THREE_JOBS);
    let plan = dir.yard("plan --trace t.csv --cluster a:1x4,b:1x4 --policy fifo -o json").json();
    assert_eq!(plan["shares"][0], json!({"jobs": ["first"], "kind": null, "gpus": 4, "fraction": 1.0}));
}

#[test]
fn fractions_are_parts_of_the_time() {
    let plan = plan("--policy round-robin");
    let sum: f64 =
        plan["shares"].as_array().unwrap().iter().map(|share| share["fraction"].as_f64().unwrap()).sum();
    assert!((sum - 3.0 * 4.0 / 7.0).abs() < 1e-12, "{plan}");
}

#[test]
fn a_long_plan_is_cut_on_the_screen_only() {
    let rows: String = (0..100).map(|job| format!("j{job},0,1,10\n")).collect();
    let dir = Dir::with_trace(&format!("job_id,submit_s,gpus,duration_s\n{rows}"));
    let table = dir.yard("plan --trace t.csv --cluster gpu:4 --policy fifo").quietly();
    assert!(table.contains("j39") && !table.contains("j40"), "{table}");
    assert!(table.contains("60 more shares; -o json lists all"), "{table}");
    let all = dir.yard("plan --trace t.csv --cluster gpu:4 --policy fifo -o json").json();
    assert_eq!(all["shares"].as_array().map(Vec::len), Some(100));
}

#[test]
fn mistakes_are_told_as_for_sim() {
    let dir = Dir::with_trace(THREE_JOBS);
    for (options, said) in [
        ("--policy nope", "no policy is called `nope`"),
        ("--policy fifo,srtf", "yard plan takes one policy"),
        ("--policy fifo --throughputs none.json", "none.json"),
        ("--policy fifo --at soon", "not a unit of time"),
        ("--policy fifo --round 5x", "not a unit of time"),
    ] {
        let answer = dir.yard(&format!("plan --trace t.csv --cluster gpu:1x4 {options}"));
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{options}");
        assert!(answer.err.contains(said), "{options}: {}", answer.err);
    }
}
