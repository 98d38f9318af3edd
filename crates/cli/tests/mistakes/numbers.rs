//! Ranges, times and fractions.

use expect_test::{Expect, expect};

use super::{check_options, refused};
use crate::common::{Dir, THREE_JOBS};

/// A run that the command line's own grammar refuses: the first line says why, a hint follows.
fn check_usage(line: &str, message: Expect) {
    let answer = refused(&Dir::with_trace(THREE_JOBS), line);
    message.assert_eq(answer.err.lines().next().unwrap_or_default());
}

#[test]
fn a_range_of_jobs_holds_jobs() {
    let sim = "sim --trace t.csv --cluster gpu:2x4 --policy fifo";
    check_usage(
        &format!("{sim} --jobs 5..5"),
        expect![[r#"error: invalid value '5..5' for '--jobs <A..B>': "5..5" selects no jobs"#]],
    );
    check_usage(
        &format!("{sim} --jobs 1-2"),
        expect![[r#"error: invalid value '1-2' for '--jobs <A..B>': "1-2" is not a range such as 100..200"#]],
    );
    check_options(
        "--cluster gpu:2x4 --policy fifo --jobs 0..4",
        expect!["error: --jobs 0..4 goes past the 3 jobs of t.csv"],
    );
}

#[test]
fn a_round_is_a_length_of_time() {
    let sim = "sim --trace t.csv --cluster gpu:2x4 --policy las";
    check_usage(
        &format!("{sim} --round often"),
        expect![[
            r#"error: invalid value 'often' for '--round <TIME|auto>': "often" is not a unit of time; use s, m, h or d"#
        ]],
    );
    check_usage(
        &format!("{sim} --round 5weeks"),
        expect![[
            r#"error: invalid value '5weeks' for '--round <TIME|auto>': "weeks" is not a unit of time; use s, m, h or d"#
        ]],
    );
    check_usage(
        &format!("{sim} --round=-5s"),
        expect![[
            r#"error: invalid value '-5s' for '--round <TIME|auto>': "-5s" is not a length of time such as 360s, 6m or 1h"#
        ]],
    );
}

#[test]
fn fractions_are_fractions() {
    check_options(
        "--cluster gpu:2x4 --policy fifo --slow-nodes 1.5",
        expect!["error: --slow-nodes 1.5: give a fraction from 0 to 1"],
    );
    check_options(
        "--cluster gpu:2x4 --policy fifo --slow-factor 0",
        expect!["error: --slow-factor 0: give a factor above 0 and at most 1"],
    );
}

#[test]
fn what_is_needed_is_asked_for() {
    check_usage(
        "sim --trace t.csv --cluster gpu:2x4",
        expect!["error: the following required arguments were not provided:"],
    );
    check_usage(
        "sim --trace t.csv --cluster gpu:2x4 --policy fifo --colour red",
        expect!["error: unexpected argument '--colour' found"],
    );
}
