//! Outputs that cannot be written.

use crate::common::{Answer, Dir, THREE_JOBS};

/// The message for an output that cannot be written. What was computed by then may have been printed.
fn unwritable(option: &str) -> String {
    let dir = Dir::with_trace(THREE_JOBS);
    dir.make_folder("folder");
    let answer = dir.yard(&format!("sim --trace t.csv --cluster gpu:2x4 --policy fifo {option}"));
    assert_eq!((answer.code, answer.err.lines().count()), (Some(2), 1), "{}", answer.err);
    answer.err.trim_end().to_owned()
}

#[test]
fn an_output_that_cannot_be_written_is_reported() {
    for option in ["--html none/o", "--events none/o", "--per-job none/o"] {
        let said = unwritable(option);
        assert!(said.starts_with("error: cannot write none/o"), "{said}");
        assert!(said.contains("No such file or directory"), "{said}");
    }
    for option in ["--html folder", "--events folder", "--per-job folder"] {
        let said = unwritable(option);
        assert!(said.starts_with("error: cannot write folder: Is a directory"), "{said}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_found_out_first() {
    for option in ["--html none/o", "--events none/o", "--per-job none/o", "--html folder", "--events folder"]
    {
        let dir = Dir::with_trace(THREE_JOBS);
        dir.make_folder("folder");
        let answer = dir.yard(&format!("sim --trace t.csv --cluster gpu:2x4 --policy fifo {option}"));
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{option}");
        assert!(!answer.err.contains(".part"), "{} names no file that the user named", answer.err);
        assert_eq!(dir.files("."), ["folder", "t.csv"], "{option}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let dir = Dir::with_trace(THREE_JOBS);
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let args = ["sim", "--trace", "t.csv", "--cluster", "gpu:2x4", "--policy", "fifo"];
    let answer = Answer::of(dir.command(&args).stdout(full).output().expect("the binary can be run"));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.starts_with("error: "), "{}", answer.err);
}
