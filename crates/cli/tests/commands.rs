//! The smaller commands, and what all commands have in common: help, pipes, the round trip of traces.

mod common;

use std::process::{Child, Stdio};

use common::{Answer, Dir};

/// Starts a command whose output goes nowhere but to its pipes.
fn start(dir: &Dir, line: &str) -> Child {
    let args: Vec<_> = line.split_whitespace().collect();
    let mut command = dir.command(&args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary can be run")
}

// Help.

const COMMANDS: &[&str] = &[
    "",
    "up",
    "server",
    "agent",
    "submit",
    "jobs",
    "queue",
    "ls",
    "show",
    "logs",
    "cancel",
    "hold",
    "release",
    "requeue",
    "edit",
    "explain",
    "nodes",
    "drain",
    "resume",
    "events",
    "top",
    "token",
    "token create",
    "token list",
    "token revoke",
    "sim",
    "plot",
    "bundle",
    "plan",
    "shapes",
    "trace",
    "trace gen",
    "trace convert",
    "trace import",
    "trace show",
    "trace export",
    "policies",
    "validate",
    "fuzz",
    "bench",
    "bench market",
    "completions",
];

#[test]
fn every_command_has_help() {
    let dir = Dir::new();
    for command in COMMANDS {
        let help = dir.yard(&format!("{command} --help")).quietly();
        assert!(help.contains("Usage: yard"), "{command}: {help}");
    }
}

/// Help without a command to try.
fn without_examples(commands: &[&'static str]) -> Vec<&'static str> {
    let dir = Dir::new();
    let help = |command: &str| dir.yard(&format!("{command} --help")).quietly();
    commands.iter().copied().filter(|command| !help(command).contains("\n  yard ")).collect()
}

#[test]
fn help_has_examples() {
    let first_met = ["", "sim", "trace gen", "trace convert", "trace import", "trace show"];
    assert_eq!(without_examples(&first_met), [""; 0]);
}

#[test]
fn all_help_has_examples() {
    assert_eq!(without_examples(COMMANDS), [""; 0]);
}

#[test]
fn nothing_asked_is_answered_with_help() {
    let answer = Dir::new().yard("");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("Usage: yard"), "{}", answer.err);
}

#[test]
fn the_version_is_told() {
    assert_eq!(Dir::new().yard("--version").quietly(), concat!("yard ", env!("CARGO_PKG_VERSION"), "\n"));
}

// Lists.

/// Policies that results and documents name; there may be more.
const POLICIES: [&str; 14] = [
    "fifo",
    "fifo-fit",
    "backfill",
    "sjf",
    "ljf",
    "srtf",
    "srsf",
    "las",
    "tiresias",
    "gittins",
    "elas",
    "edf",
    "round-robin",
    "lpjf",
];

#[test]
fn policies_are_listed_with_all_there_is_to_know() {
    let answer = Dir::new().yard("policies -o json").json();
    let listed = answer["policies"].as_array().expect("policies is a list");
    for name in POLICIES {
        let entry = listed.iter().find(|entry| entry["name"] == name);
        let entry = entry.unwrap_or_else(|| panic!("{name} is not listed"));
        assert!(["family", "paper", "about"].iter().all(|key| entry[key].is_string()), "{entry}");
        assert!(entry["rounds"].is_boolean() && entry["params"].is_array(), "{entry}");
    }
    let table = Dir::new().yard("policies").quietly();
    assert!(listed.iter().all(|entry| table.contains(entry["name"].as_str().unwrap_or("?"))), "{table}");
}

#[test]
fn every_listed_policy_runs() {
    let dir = Dir::with_trace(common::THREE_JOBS);
    let listed = dir.yard("policies -o json").json();
    let names = listed["policies"].as_array().expect("policies is a list").iter();
    let names: Vec<_> = names.map(|entry| entry["name"].as_str().expect("a name is a string")).collect();
    let line = format!("sim --trace t.csv --cluster gpu:1x4 --policy {} -o json", names.join(","));
    let answer = dir.yard(&line).json();
    let runs = answer["runs"].as_array().expect("runs is a list");
    assert_eq!(runs.len(), names.len());
    assert!(runs.iter().all(|run| run["finished"] == 3), "{answer}");
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Dir::new().yard(&format!("completions {shell}")).quietly();
        assert!(script.contains("yard") && script.contains("per-job"), "{shell}: {script}");
    }
}

// Pipes.

/// Starts a command and stops reading at once.
fn closed_early(line: &str) {
    let mut child = start(&Dir::new(), line);
    drop(child.stdout.take());
    let answer = Answer::of(child.wait_with_output().expect("the binary ends"));
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{line}");
}

#[test]
fn a_reader_that_had_enough_is_no_error() {
    closed_early("policies");
    closed_early("policies -o json");
    closed_early("--help");
    closed_early("trace gen --jobs 20 --static");
}

#[test]
fn a_reader_that_had_enough_of_a_long_trace_is_no_error() {
    closed_early("trace gen --jobs 20000 --static");
}

#[test]
fn a_reader_that_had_enough_of_completions_is_no_error() {
    closed_early("completions bash");
}

// Traces.

#[test]
fn the_same_seed_makes_the_same_trace() {
    let gen_trace = |seed| Dir::new().yard(&format!("trace gen --jobs 50 --rate 20 --seed {seed}")).quietly();
    assert_eq!(gen_trace(1), gen_trace(1));
    assert_ne!(gen_trace(1), gen_trace(2));
}

#[test]
fn the_first_line_of_a_trace_repeats_it() {
    let dir = Dir::new();
    for line in ["trace gen --jobs 5 --rate 20.5 --preset gavel --seed 9", "trace gen --jobs 5 --static"] {
        let trace = dir.yard(line).quietly();
        let again = trace.lines().next().and_then(|first| first.strip_prefix("# yard "));
        assert_eq!(dir.yard(again.expect("the first line is a command")).quietly(), trace);
    }
}

#[test]
fn a_generated_trace_can_be_shown_through_a_pipe() {
    let dir = Dir::new();
    let mut making = start(&dir, "trace gen --jobs 120 --rate 60 --preset philly");
    let pipe = making.stdout.take().expect("stdout is a pipe");
    let show = dir.command(&["trace", "show", "/dev/stdin"]).stdin(pipe).output();
    let shown = Answer::of(show.expect("the binary can be run")).quietly();
    assert!(making.wait().is_ok_and(|status| status.success()));
    assert!(shown.contains("120") && shown.contains("arrivals") && shown.contains("gpus"), "{shown}");
}

#[test]
fn what_is_shown_can_be_json() {
    let dir = Dir::with_trace(common::THREE_JOBS);
    let shown = dir.yard("trace show t.csv -o json").json();
    assert_eq!((&shown["jobs"], &shown["format"]), (&3.into(), &"yard".into()));
}

#[test]
fn a_native_trace_is_converted_to_itself() {
    let dir = Dir::new();
    let made = dir.yard("trace gen --jobs 50 --rate 20 --seed 4").quietly();
    dir.write("t.csv", &made);
    let (comment, rows) = made.split_once('\n').expect("a trace has lines");
    assert!(comment.starts_with('#'));
    assert_eq!(dir.yard("trace convert t.csv").quietly(), rows);
    dir.yard("trace convert t.csv -o again.csv").quietly();
    assert_eq!(dir.read("again.csv"), rows);
}

#[test]
fn another_format_becomes_native() {
    let dir = Dir::new();
    dir.write(
        "g.trace",
        "ResNet-18 (batch size 64)\tpython3 main.py\timagenet\t-n\t1\t1000\t2\t1\t-1\t30.5\n",
    );
    let native = dir.yard("trace convert --from gavel g.trace").printed();
    assert!(native.starts_with("job_id,submit_s,gpus,"), "{native}");
    assert!(native.contains("30.5") && native.contains("ResNet-18") && native.contains("1000"), "{native}");
}

/// From what `sacct` prints to a simulation, in two commands.
#[test]
fn slurm_history_is_simulated() {
    let dir = Dir::new();
    dir.write(
        "month.txt",
        "JobID|User|State|Submit|Elapsed|AllocTRES\n\
         1|ann|COMPLETED|2026-10-01T08:00:00|01:00:00|cpu=8,gres/gpu=4\n\
         2|bob|FAILED|2026-10-01T08:30:00|00:30:00|cpu=8,gres/gpu:a100=2\n",
    );
    assert_eq!(
        dir.yard("trace import slurm month.txt -o month.csv").quietly() + &dir.read("month.csv"),
        "job_id,submit_s,gpus,duration_s,user\n1,0,4,3600,ann\n2,1800,2,1800,bob\n"
    );
    let done =
        dir.yard("sim --trace month.csv --cluster a100:1x4 --policy fifo --overheads none -o json").json();
    assert_eq!((&done["runs"][0]["finished"], &done["runs"][0]["makespan_s"]), (&2.into(), &5400.0.into()));
    let refused = dir.yard("trace import slurm month.csv");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("no column JobID"), "{}", refused.err);
}

/// What `yard policies` says of live tests is so: each is there, and its source names the policy.
#[test]
fn policies_are_tested_live_by_the_tests_that_they_name() {
    let listed = Dir::new().yard("policies -o json").json();
    let mut named = 0;
    for entry in listed["policies"].as_array().expect("a list of policies") {
        let (policy, live) =
            (entry["name"].as_str().expect("a name"), entry["live"].as_str().expect("a test"));
        let Some((file, test)) = live.split_once("::") else { continue };
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live");
        let text = std::fs::read_to_string(folder.join(format!("{file}.rs")))
            .unwrap_or_else(|error| panic!("{live}: {error}"));
        let at =
            text.find(&format!("#[test]\nfn {test}()")).unwrap_or_else(|| panic!("there is no test {live}"));
        let body = &text[at..];
        let body = &body[..body.find("\n}\n").map_or(body.len(), |end| end + 2)];
        assert!(
            body.contains(&format!("policy {policy}")) || body.contains(&format!("cluster(\"{policy} ")),
            "{live} does not run {policy}"
        );
        named += 1;
    }
    assert!(named >= 16, "only {named} policies are tested live");
}
