//! Policies that are programs (`--policy exec:…`): those of examples/policies decide as the built-in ones do, and one that
//! is wrong, late or dead ends the simulation with a message that says what to mend.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use common::{Answer, Dir, THREE_JOBS};
use serde_json::Value;
use yard_needs::needs;

const HELLO: &str = r#"{"hello":{"protocol":1}}"#;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python() -> bool {
    needs("python3", Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success()))
}

/// Runs a simulation in this folder, with the Python package at hand.
fn sim(dir: &Dir, line: &str) -> Answer {
    let args: Vec<_> = "sim --trace t.csv".split(' ').chain(line.split_whitespace()).collect();
    let mut command = dir.command(&args);
    command.env("PYTHONPATH", root().join("python/src"));
    Answer::of(command.output().expect("the binary can be run"))
}

/// A program that says these lines, one for each that it is told.
fn script(dir: &Dir, lines: &[&str]) -> String {
    let each = |line: &&str| format!("read -r line\nprintf '%s\\n' '{line}'\n");
    program(dir, &lines.iter().map(each).collect::<String>())
}

fn program(dir: &Dir, body: &str) -> String {
    dir.write("p.sh", format!("#!/bin/sh\n{body}"));
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path("p.sh"), executable).expect("own files may be made executable");
    "exec:./p.sh".into()
}

/// What is said of a simulation under a program that is no good.
fn failure(dir: &Dir, policy: &str) -> String {
    let answer = sim(dir, &format!("--cluster gpu:1x4 --policy {policy}"));
    assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{}", answer.err);
    answer.err
}

fn digest(answer: Answer) -> (u64, String) {
    let run = &answer.json()["runs"][0];
    let text = |value: &Value| value.as_str().expect("a digest is text").to_owned();
    (run["plans"].as_u64().expect("plans are counted"), text(&run["events_sha256"]))
}

#[test]
fn examples_decide_as_the_policies_of_the_table() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let jobs = dir.yard("trace gen --preset philly --jobs 120 --rate 60 --seed 3").printed();
    dir.write("t.csv", jobs);
    // With failures, so that jobs also start over; on two kinds, so that shares have shapes.
    let on = "--cluster v100:5x8,p100:5x8 --node-mtbf 3d --seed 5 -o json";
    for name in ["fifo", "srtf", "las", "isolated"] {
        let file = root().join("examples/policies").join(name).with_extension("py");
        let ours = digest(sim(&dir, &format!("{on} --policy exec:{}", file.display())));
        assert!(ours.0 > 50, "{name} was asked {} times", ours.0);
        assert_eq!(ours, digest(sim(&dir, &format!("{on} --policy {name}"))), "{name}");
    }
}

#[test]
fn what_a_program_declares_counts() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s,priority\na,0,4,100,1\n");
    let refused = script(&dir, &[r#"{"hello":{"protocol":1,"mode":"fractions"}}"#]);
    let said = failure(&dir, &refused);
    assert!(said.contains("policy exec:./p.sh does not honour priorities"), "{said}");
    let beats = script(&dir, &[r#"{"hello":{"protocol":1,"cadence":"every-round"}}"#]);
    let said = failure(&dir, &format!("{beats} --round 0"));
    assert!(said.contains("needs rounds"), "{said}");
}

#[test]
fn a_wrong_line_is_shown_with_its_number_and_field() {
    let dir = Dir::with_trace(THREE_JOBS);
    let plan = r#"{"plan":{"seq":1,"all":true,"shares":[{"job":77}]}}"#;
    let said = failure(&dir, &script(&dir, &[HELLO, plan]));
    let expected =
        "policy exec:./p.sh: line 2 of its output: field plan.shares[0].job: no job 77 is in the view";
    assert!(said.contains(expected) && said.contains(plan), "{said}");
    let said = failure(&dir, &script(&dir, &[r#"{"hello":{"protocol":1,"premept":true}}"#]));
    assert!(said.contains("line 1 of its output, its hello: field hello.premept: unknown field"), "{said}");
    let said = failure(&dir, &script(&dir, &[r#"{"hello":{"protocol":2}}"#]));
    assert!(said.contains("speaks version 2") && said.contains("version 1"), "{said}");
    let early = r#"{"plan":{"seq":9,"all":true,"shares":[]}}"#;
    assert!(failure(&dir, &script(&dir, &[HELLO, early])).contains("field plan.seq: 9"));
}

#[test]
fn what_the_engine_refuses_of_any_plan_it_refuses_here() {
    let dir = Dir::with_trace(THREE_JOBS);
    let twice = r#"{"plan":{"seq":1,"all":true,"shares":[{"job":0},{"job":0}]}}"#;
    let said = failure(&dir, &script(&dir, &[HELLO, twice]));
    assert!(said.contains("line 2 of its output: the shares of job 0 add up to 2, above 1"), "{said}");
}

#[test]
fn a_program_that_is_late_or_dead_is_named_with_what_it_wrote() {
    let dir = Dir::with_trace(THREE_JOBS);
    let late = program(&dir, &format!("read -r l; echo '{HELLO}'; read -r l; echo thinking >&2; sleep 600"));
    let said = failure(&dir, &format!("{late}:timeout=0.2s"));
    assert!(said.contains("no answer within 0.2 s") && said.contains("p.sh: thinking"), "{said}");
    let dead = program(&dir, &format!("read -r l; echo '{HELLO}'; read -r l; echo out of ideas >&2; exit 7"));
    let said = failure(&dir, &dead);
    let expected = "it exited with code 7 instead of answering; its last line on stderr: out of ideas";
    assert!(said.contains(expected), "{said}");
    let at_once = program(&dir, "echo no such module >&2; exit 1");
    let said = failure(&dir, &at_once);
    assert!(said.contains("no such module") && said.contains("exited with code 1"), "{said}");
}

#[test]
fn a_name_that_cannot_be_started_is_answered_with_the_remedy() {
    let dir = Dir::with_trace(THREE_JOBS);
    assert!(failure(&dir, "exec:./none.py").contains("cannot find ./none.py"));
    dir.write("plain.py", "print()");
    assert!(failure(&dir, "exec:./plain.py").contains("is not executable: chmod +x ./plain.py"));
    assert!(failure(&dir, "exec:").contains("name a program"));
    dir.write("p.sh", "no first line");
    program(&dir, "");
    dir.write("p.sh", "no first line");
    let said = failure(&dir, "exec:./p.sh");
    assert!(said.contains("begins with a line such as #!/usr/bin/env python3"), "{said}");
}

#[test]
fn parameters_reach_the_program_and_it_may_refuse_them() {
    if !python() {
        return;
    }
    let dir = Dir::with_trace(THREE_JOBS);
    let body = "from switchyard.policy import Policy\n\n\nclass Picky(Policy):\n    def start(self, params):\n        raise ValueError('depth must be a number, not ' + params['depth'])\n\n\nPicky().run()\n";
    program(&dir, "");
    dir.write("p.sh", format!("#!/usr/bin/env python3\n{body}"));
    let said = failure(&dir, "exec:./p.sh:depth=deep");
    assert!(said.contains("it refuses: depth must be a number, not deep"), "{said}");
}

#[test]
fn a_program_ends_with_the_simulation() {
    let dir = Dir::with_trace(THREE_JOBS);
    // It ignores that nobody talks to it any more, and says where it is.
    let body = format!("echo $$ >> pids; read -r l; echo '{HELLO}'; while :; do sleep 1; done");
    let policy = program(&dir, &body);
    failure(&dir, &format!("{policy}:timeout=0.2s"));
    let pids = dir.read("pids");
    assert_eq!(pids.lines().count(), 2, "once for its hello, once for the run: {pids}");
    for pid in pids.lines() {
        let left = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!left.contains("p.sh"), "{pid} is still there");
    }
}
