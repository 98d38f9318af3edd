//! Traces, and files that hold them.

use expect_test::{Expect, expect};

use super::{check, check_parts};
use crate::common::{Dir, THREE_JOBS};

/// A trace that is refused.
fn check_trace(trace: impl AsRef<[u8]>, message: Expect) {
    let dir = Dir::new();
    dir.write("t.csv", trace);
    check(&dir, "sim --trace t.csv --cluster gpu:2x4 --policy fifo", message);
}

#[test]
fn a_missing_column_is_named() {
    check_trace(
        "job_id,submit_s,duration_s\na,0,100\n",
        expect!["error: t.csv: the header has no column gpus; it has: job_id, submit_s, duration_s"],
    );
    check_trace(
        "job_id,submit_s,gpus\na,0,1\n",
        expect!["error: t.csv: the header has no column duration_s or steps; it has: job_id, submit_s, gpus"],
    );
}

#[test]
fn unknown_columns_are_named() {
    check_trace(
        "job_id,submit_s,gpus,duration_s,colour,taste\na,0,1,100,red,sour\n",
        expect![[
            r#"error: t.csv: the header has unknown columns: "colour", "taste"; allowed are: job_id, submit_s, gpus, duration_s, steps, model, batch_size, user, tenant, weight, priority, deadline_s, min_gpus, max_gpus, kinds, after, mode, batch_max, regimes, rewards, late, class, max_slowdown, gpu_fraction, gpu_limit, gpu_memory_mib, gpu_busy, affinity, anti_affinity, exclusion, cpus, memory_mib, resources, nodes, segment, close, prefer"#
        ]],
    );
}

#[test]
fn a_duration_is_positive() {
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,1,-5\n",
        expect![[
            r#"error: t.csv, line 3, field duration_s: "-5" is negative; a duration is a number of seconds above 0"#
        ]],
    );
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,0\n",
        expect![[
            r#"error: t.csv, line 2, field duration_s: "0" is zero; a duration is a number of seconds above 0"#
        ]],
    );
}

#[test]
fn a_job_has_at_least_one_gpu() {
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,0,100\n",
        expect![[
            r#"error: t.csv, line 2, field gpus: "0" is zero; gpus are a whole number from 1 to 1000000"#
        ]],
    );
}

#[test]
fn lines_are_counted_as_editors_count_them() {
    let sim = "sim --trace t.csv --cluster gpu:2x4 --policy fifo";
    let header = "job_id,submit_s,gpus,duration_s";
    for trace in [
        format!("# one\n# two\n{header}\na,0,1,1\nb,0,0,1\n"),
        format!("{header}\na,0,1,1\n# three\n# four\nb,0,0,1\n"),
        format!("{header}\na,0,1,1\n\n\nb,0,0,1\n"),
        format!("{header}\r\na,0,1,1\r\nc,0,1,1\r\nd,0,1,1\r\nb,0,0,1\r\n"),
    ] {
        check_parts(&Dir::with_trace(&trace), sim, &["t.csv, line 5, field gpus"]);
    }
}

#[test]
fn a_number_is_a_number() {
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,soon,1,100\n",
        expect![[
            r#"error: t.csv, line 2, field submit_s: "soon" is not a number; a time is a number of seconds from 0 up"#
        ]],
    );
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1.5,100\n",
        expect![[
            r#"error: t.csv, line 2, field gpus: "1.5" is not whole; gpus are a whole number from 1 to 1000000"#
        ]],
    );
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,nan\n",
        expect![[
            r#"error: t.csv, line 2, field duration_s: "nan" is not a finite number; a duration is a number of seconds above 0"#
        ]],
    );
}

#[test]
fn a_row_is_as_long_as_the_header() {
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,1\n",
        expect!["error: t.csv, line 3: the row has 3 fields, and 4 are expected"],
    );
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,100,7\n",
        expect!["error: t.csv, line 2: the row has 5 fields, and 4 are expected"],
    );
}

#[test]
fn a_job_id_occurs_once() {
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,1,1\na,5,1,100\n",
        expect![[
            r#"error: t.csv, line 4, field job_id: "a" is also on line 2; each job has a name of its own"#
        ]],
    );
}

#[test]
fn a_job_fits_the_cluster() {
    check_trace(
        "job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,9,100\n",
        expect![[
            r#"error: t.csv, line 3, field gpus: job b asks for 9, and the cluster "gpu:2x4" has 8 on the kinds it may use (any)"#
        ]],
    );
}

#[test]
fn a_job_finds_one_of_its_kinds() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s,kinds\na,0,1,100,a100|h100\n");
    check_parts(&dir, "sim --trace t.csv --cluster gpu:2x4 --policy fifo", &["t.csv, line 2", "a100, h100"]);
}

#[test]
fn an_empty_trace_has_no_jobs() {
    check_trace("", expect!["error: t.csv: there are no jobs in it"]);
    check_trace("job_id,submit_s,gpus,duration_s\n", expect!["error: t.csv: there are no jobs in it"]);
}

#[test]
fn garbage_is_no_trace() {
    let dir = Dir::new();
    let garbage: Vec<u8> = (0..5000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    dir.write("t.csv", garbage);
    let parts = ["t.csv: no format has the header", "name one of: yard, gavel"];
    check_parts(&dir, "sim --trace t.csv --cluster gpu:2x4 --policy fifo", &parts);
}

/// The beginning of a gzip file: a header, then one stored block of which only half is there.
fn half_gzip(text: &str) -> Vec<u8> {
    let length = text.len() as u16;
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(&text.as_bytes()[..text.len() / 2]);
    bytes
}

#[test]
fn a_gzip_file_is_whole() {
    let dir = Dir::new();
    dir.write("t.csv.gz", half_gzip(THREE_JOBS));
    let parts = ["t.csv.gz: the gzip data are damaged or cut short: "];
    check_parts(&dir, "sim --trace t.csv.gz --cluster gpu:2x4 --policy fifo", &parts);
}

/// The beginning of a tar archive: the header of one member that claims more than follows.
fn half_tar(text: &str) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, field: &str| header[at..at + field.len()].copy_from_slice(field.as_bytes());
    put(0, "cluster01.csv");
    put(124, &format!("{:011o}", 2 * text.len()));
    put(156, "0");
    put(257, "ustar\x0000");
    // The sum is taken with blanks in its own place.
    put(148, "        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    [&header, text.as_bytes()].concat()
}

#[test]
fn a_tar_archive_is_whole() {
    let dir = Dir::new();
    dir.write("t.tar", half_tar(THREE_JOBS));
    let parts = ["t.tar: the tar data are damaged or cut short: a member is longer than the archive"];
    check_parts(&dir, "sim --trace t.tar --cluster gpu:2x4 --policy fifo", &parts);
}

#[test]
fn a_trace_can_be_read() {
    let line = |trace: &str| format!("sim --trace {trace} --cluster gpu:2x4 --policy fifo");
    check_parts(&Dir::new(), &line("none.csv"), &["none.csv: cannot be read: No such file or directory"]);
    let dir = Dir::new();
    dir.make_folder("folder");
    check_parts(&dir, &line("folder"), &["folder: cannot be read: Is a directory"]);
}

#[test]
fn nothing_is_said_twice() {
    let line = "sim --trace none.csv --cluster gpu:2x4 --policy fifo";
    let said = check_parts(&Dir::new(), line, &["none.csv"]);
    assert_eq!(said.matches("No such file or directory").count(), 1, "{said}");
}

#[test]
fn traces_are_made_of_sensible_numbers() {
    expect!["error: invalid value '0' for '--jobs <N>': 0 is not in 1..=50000000"]
        .assert_eq(&first_line("trace gen --jobs 0 --static"));
    expect!["error: invalid value '0' for '--rate <PER_HOUR>': the rate must be a number of jobs per hour, above 0 and at most 1e9"].assert_eq(&first_line("trace gen --jobs 5 --rate 0"));
    expect!["error: the following required arguments were not provided:"]
        .assert_eq(&first_line("trace gen --jobs 5"));
    expect!["error: invalid value 'chaos' for '--preset <PRESET>'"]
        .assert_eq(&first_line("trace gen --jobs 5 --static --preset chaos"));
}

#[test]
fn traces_that_are_shown_can_be_read() {
    expect!["error: invalid value 'gavle' for '--from <FORMAT>'"]
        .assert_eq(&first_line("trace convert --from gavle none.csv"));
    let said = first_line("trace show none.csv");
    assert!(said.starts_with("error: none.csv: cannot be read: No such file or directory"), "{said}");
}

/// The first line on stderr of a command that is refused.
fn first_line(line: &str) -> String {
    let answer = Dir::new().yard(line);
    assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{}", answer.err);
    answer.err.lines().next().unwrap_or_default().to_owned()
}
