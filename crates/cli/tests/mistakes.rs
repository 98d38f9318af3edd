//! What people get wrong, and what they are told: exit code 2, one sentence that names the place and what
//! is allowed, nothing on stdout, and no file written.

#[path = "mistakes/clusters.rs"]
mod clusters;
mod common;
#[path = "mistakes/names.rs"]
mod names;
#[path = "mistakes/numbers.rs"]
mod numbers;
#[path = "mistakes/outputs.rs"]
mod outputs;
#[path = "mistakes/tables.rs"]
mod tables;
#[path = "mistakes/traces.rs"]
mod traces;

use common::{Answer, Dir, THREE_JOBS};
use expect_test::Expect;

/// Every output there is, into a folder that must stay empty.
const OUTPUTS: &str = "--html out/r.html --events out/e.jsonl --per-job out/j.csv";

/// A run that is refused.
fn refused(dir: &Dir, line: &str) -> Answer {
    dir.make_folder("out");
    let answer = dir.yard(&format!("{line} {OUTPUTS}"));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert_eq!(answer.out, "", "results go to stdout, and there are none");
    assert_eq!(dir.files("out"), [""; 0], "nothing is written before everything is checked");
    answer
}

/// A run that is refused with one sentence.
fn check(dir: &Dir, line: &str, message: Expect) {
    let answer = refused(dir, line);
    assert!(answer.err.starts_with("error: "), "{}", answer.err);
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    message.assert_eq(answer.err.trim_end());
}

/// A run that is refused with one sentence that holds these parts: for texts of the system or of a parser,
/// and for lists that grow.
fn check_parts(dir: &Dir, line: &str, parts: &[&str]) -> String {
    let said = refused(dir, line).err;
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    assert!(!said.trim_end().contains(char::is_control), "{said:?}");
    for part in parts {
        assert!(said.contains(part), "{said} does not say: {part}");
    }
    said
}

/// Options that are refused with a sound trace.
fn check_options(options: &str, message: Expect) {
    check(&Dir::with_trace(THREE_JOBS), &format!("sim --trace t.csv {options}"), message);
}
