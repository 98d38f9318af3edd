//! Names of policies, placers, formats and bundles, and their parameters.

use expect_test::expect;

use super::{check_options, check_parts};
use crate::common::{Dir, THREE_JOBS};

#[test]
fn an_unknown_policy_is_answered_with_the_nearest() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:2x4 --policy fifo,tiresius";
    let parts = ["no policy is called `tiresius`; did you mean `tiresias`? There are: fifo, ", "gittins"];
    check_parts(&dir, line, &parts);
}

#[test]
fn an_unknown_parameter_is_answered_with_those_there_are() {
    check_options(
        "--cluster gpu:2x4 --policy tiresias:knob=1",
        expect![
            "error: tiresias has no parameter `knob`: it takes thresholds, promote, consolidate, artifact"
        ],
    );
    check_options(
        "--cluster gpu:2x4 --policy fifo:knob=1",
        expect!["error: fifo has no parameter `knob`: it takes no parameters"],
    );
}

#[test]
fn a_parameter_has_a_value_that_is_allowed() {
    check_options(
        "--cluster gpu:2x4 --policy tiresias:promote=-1",
        expect!["error: promote=-1: must be a number above 0"],
    );
    check_options(
        "--cluster gpu:2x4 --policy tiresias:promote",
        expect!["error: `promote`: write each parameter once, as key=value"],
    );
}

#[test]
fn an_unknown_placer_is_answered_with_the_nearest() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:2x4 --policy fifo --placer pakc";
    let parts = ["no placer is called `pakc`; did you mean `pack`? There are: ", "count", "yarn"];
    check_parts(&dir, line, &parts);
}

#[test]
fn an_unknown_format_is_answered_with_those_there_are() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:2x4 --policy fifo --format gavle";
    let parts = ["format \"gavle\" is unknown; the formats are: auto, yard, gavel, ", "itp"];
    check_parts(&dir, line, &parts);
}

#[test]
fn an_unknown_bundle_is_answered_with_those_there_are() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:2x4 --policy fifo --compat pollux";
    check_parts(&dir, line, &["--compat \"pollux\" is unknown; choose from tiresias, ", "blox"]);
}

#[test]
fn unknown_overheads_are_answered_with_those_there_are() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:2x4 --policy fifo --overheads free";
    check_parts(&dir, line, &["overheads \"free\": no profile and no file of that name", "h200", "save_s"]);
}

#[test]
fn a_policy_that_takes_turns_needs_rounds() {
    check_options(
        "--cluster gpu:2x4 --policy las --round 0",
        expect![[r#"error: policy "las" needs rounds: give --round a length above 0, such as 360s"#]],
    );
}

#[test]
fn a_policy_is_named_once() {
    let dir = Dir::with_trace(THREE_JOBS);
    check_parts(&dir, "sim --trace t.csv --cluster gpu:2x4 --policy fifo,las,fifo", &["fifo", "once"]);
}
