//! What people get wrong, and what they are told: exit code 2, one sentence that names the place and what
//! is allowed, nothing on stdout, and no file written.

mod common;

use common::{Answer, Dir, THREE_JOBS};
use expect_test::{Expect, expect};

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

/// A run that the command line's own grammar refuses: the first line says why, a hint follows.
fn check_usage(line: &str, message: Expect) {
    let answer = refused(&Dir::with_trace(THREE_JOBS), line);
    message.assert_eq(answer.err.lines().next().unwrap_or_default());
}

/// A trace that is refused.
fn check_trace(trace: impl AsRef<[u8]>, message: Expect) {
    let dir = Dir::new();
    dir.write("t.csv", trace);
    check(&dir, "sim --trace t.csv --cluster gpu:2x4 --policy fifo", message);
}

/// Options that are refused with a sound trace.
fn check_options(options: &str, message: Expect) {
    check(&Dir::with_trace(THREE_JOBS), &format!("sim --trace t.csv {options}"), message);
}

/// A cluster file that is refused.
fn check_cluster(toml: &str, message: Expect) {
    let dir = Dir::with_trace(THREE_JOBS);
    dir.write("c.toml", toml);
    check(&dir, "sim --trace t.csv --cluster c.toml --policy fifo", message);
}

// Traces.

#[test]
fn a_missing_column_is_named() {
    check_trace("job_id,submit_s,duration_s\na,0,100\n", expect![[]]);
    check_trace("job_id,submit_s,gpus\na,0,1\n", expect![[]]);
}

#[test]
fn unknown_columns_are_named() {
    check_trace("job_id,submit_s,gpus,duration_s,colour,taste\na,0,1,100,red,sour\n", expect![[]]);
}

#[test]
fn a_duration_is_positive() {
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,1,-5\n", expect![[]]);
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,0\n", expect![[]]);
}

#[test]
fn a_job_has_at_least_one_gpu() {
    check_trace("job_id,submit_s,gpus,duration_s\n# a comment\na,0,0,100\n", expect![[]]);
}

#[test]
fn a_number_is_a_number() {
    check_trace("job_id,submit_s,gpus,duration_s\na,soon,1,100\n", expect![[]]);
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1.5,100\n", expect![[]]);
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,nan\n", expect![[]]);
}

#[test]
fn a_row_is_as_long_as_the_header() {
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,1\n", expect![[]]);
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,100,7\n", expect![[]]);
}

#[test]
fn a_job_id_occurs_once() {
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,1,1\na,5,1,100\n", expect![[]]);
}

#[test]
fn a_job_fits_the_cluster() {
    check_trace("job_id,submit_s,gpus,duration_s\na,0,1,100\nb,0,9,100\n", expect![[]]);
}

#[test]
fn a_job_finds_one_of_its_kinds() {
    check_trace("job_id,submit_s,gpus,duration_s,kinds\na,0,1,100,a100|h100\n", expect![[]]);
}

#[test]
fn an_empty_trace_has_no_jobs() {
    check_trace("", expect![[]]);
    check_trace("job_id,submit_s,gpus,duration_s\n", expect![[]]);
}

#[test]
fn garbage_is_no_trace() {
    let garbage: Vec<u8> = (0..5000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    check_trace(garbage, expect![[]]);
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
    check_trace(half_gzip(THREE_JOBS), expect![[]]);
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
    check_trace(half_tar(THREE_JOBS), expect![[]]);
}

#[test]
fn a_trace_can_be_read() {
    let dir = Dir::new();
    check(&dir, "sim --trace none.csv --cluster gpu:2x4 --policy fifo", expect![[]]);
    let dir = Dir::new();
    dir.make_folder("folder");
    check(&dir, "sim --trace folder --cluster gpu:2x4 --policy fifo", expect![[]]);
}

// Policies, placers, formats and bundles.

#[test]
fn an_unknown_policy_is_answered_with_the_nearest() {
    check_options("--cluster gpu:2x4 --policy fifo,tiresius", expect![[]]);
}

#[test]
fn an_unknown_parameter_is_answered_with_those_there_are() {
    check_options("--cluster gpu:2x4 --policy tiresias:knob=1", expect![[]]);
    check_options("--cluster gpu:2x4 --policy fifo:knob=1", expect![[]]);
}

#[test]
fn a_parameter_has_a_value_that_is_allowed() {
    check_options("--cluster gpu:2x4 --policy tiresias:promote=-1", expect![[]]);
    check_options("--cluster gpu:2x4 --policy tiresias:promote", expect![[]]);
}

#[test]
fn an_unknown_placer_is_answered_with_the_nearest() {
    check_options("--cluster gpu:2x4 --policy fifo --placer pakc", expect![[]]);
}

#[test]
fn an_unknown_format_is_answered_with_those_there_are() {
    check_options("--cluster gpu:2x4 --policy fifo --format gavle", expect![[]]);
}

#[test]
fn an_unknown_bundle_is_answered_with_those_there_are() {
    check_options("--cluster gpu:2x4 --policy fifo --compat pollux", expect![[]]);
}

#[test]
fn unknown_overheads_are_answered_with_those_there_are() {
    check_options("--cluster gpu:2x4 --policy fifo --overheads free", expect![[]]);
}

#[test]
fn a_policy_that_takes_turns_needs_rounds() {
    check_options("--cluster gpu:2x4 --policy las --round 0", expect![[]]);
}

// Clusters.

#[test]
fn a_cluster_is_a_file_or_kinds_with_sizes() {
    check_options("--cluster gpu --policy fifo", expect![[]]);
    check_options("--cluster none.toml --policy fifo", expect![[]]);
    check_options("--cluster gpu:2x4, --policy fifo", expect![[]]);
}

#[test]
fn sizes_of_a_cluster_are_whole_numbers() {
    check_options("--cluster gpu:0x4 --policy fifo", expect![[]]);
    check_options("--cluster gpu:2x0 --policy fifo", expect![[]]);
    check_options("--cluster gpu:-1x4 --policy fifo", expect![[]]);
    check_options("--cluster gpu:2x129 --policy fifo", expect![[]]);
    check_options("--cluster gpu:2x4x8 --policy fifo", expect![[]]);
}

#[test]
fn a_cluster_file_is_sound() {
    check_cluster("", expect![[]]);
    check_cluster("nodes = []\n", expect![[]]);
    check_cluster("[[nodes]]\nkind = 'a100'\ngpu = 8\n", expect![[]]);
    check_cluster("[[nodes]]\nkind = 'a100'\ngpus = 'eight'\n", expect![[]]);
    check_cluster("[[nodes]]\nkind = 'a100\ngpus = 8\n", expect![[]]);
    check_cluster("[[nodes]]\nkind = 'a 100'\ngpus = 8\n", expect![[]]);
}

// Ranges and times.

#[test]
fn a_range_of_jobs_holds_jobs() {
    let sim = "sim --trace t.csv --cluster gpu:2x4 --policy fifo";
    check_usage(&format!("{sim} --jobs 5..5"), expect![[]]);
    check_usage(&format!("{sim} --jobs 1-2"), expect![[]]);
    check_options("--cluster gpu:2x4 --policy fifo --jobs 0..4", expect![[]]);
}

#[test]
fn a_round_is_a_length_of_time() {
    let sim = "sim --trace t.csv --cluster gpu:2x4 --policy las";
    check_usage(&format!("{sim} --round often"), expect![[]]);
    check_usage(&format!("{sim} --round 5weeks"), expect![[]]);
    check_usage(&format!("{sim} --round=-5s"), expect![[]]);
}

#[test]
fn fractions_are_fractions() {
    check_options("--cluster gpu:2x4 --policy fifo --slow-nodes 1.5", expect![[]]);
    check_options("--cluster gpu:2x4 --policy fifo --slow-factor 0", expect![[]]);
}

#[test]
fn what_is_needed_is_asked_for() {
    check_usage("sim --trace t.csv --cluster gpu:2x4", expect![[]]);
    check_usage("sim --trace t.csv --cluster gpu:2x4 --policy fifo --colour red", expect![[]]);
}

// Throughput tables.

/// A folder with a trace in steps and, if given, a table.
fn steps(table: Option<&str>) -> Dir {
    let dir = Dir::with_trace("job_id,submit_s,gpus,steps,model,batch_size\na,0,2,1000,ResNet-18,64\n");
    table.iter().for_each(|table| dir.write("speeds.csv", table));
    dir
}

const SIM_STEPS: &str = "sim --trace t.csv --cluster v100:2x4 --policy fifo";

#[test]
fn steps_need_a_table() {
    check(&steps(None), SIM_STEPS, expect![[]]);
}

#[test]
fn a_table_has_the_models_of_the_trace() {
    let line = format!("{SIM_STEPS} --throughputs speeds.csv");
    let table = |row: &str| steps(Some(&format!("kind,model,batch_size,gpus,steps_per_s\n{row}\n")));
    check(&table("v100,VGG,64,2,10"), &line, expect![[]]);
    check(&table("v100,ResNet-18,32,2,10"), &line, expect![[]]);
    check(&table("p100,ResNet-18,64,2,10"), &line, expect![[]]);
}

#[test]
fn a_table_is_sound() {
    let line = format!("{SIM_STEPS} --throughputs speeds.csv");
    check(&steps(None), &line, expect![[]]);
    check(&steps(Some("kind,model,gpus,steps_per_s\nv100,ResNet-18,2,fast\n")), &line, expect![[]]);
    check(&steps(Some("{\"v100\": 3}")), &line, expect![[]]);
}

// Outputs that cannot be written.

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
    expect![[]].assert_eq(&unwritable("--html none/r.html"));
    expect![[]].assert_eq(&unwritable("--events none/e.jsonl"));
    expect![[]].assert_eq(&unwritable("--per-job none/j.csv"));
    expect![[]].assert_eq(&unwritable("--html folder"));
    expect![[]].assert_eq(&unwritable("--events folder"));
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

// `yard trace`.

#[test]
fn traces_are_made_of_sensible_numbers() {
    let first = |line: &str| {
        let answer = Dir::new().yard(line);
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{}", answer.err);
        answer.err.lines().next().unwrap_or_default().to_owned()
    };
    expect![[]].assert_eq(&first("trace gen --jobs 0 --static"));
    expect![[]].assert_eq(&first("trace gen --jobs 5 --rate 0"));
    expect![[]].assert_eq(&first("trace gen --jobs 5"));
    expect![[]].assert_eq(&first("trace gen --jobs 5 --static --preset chaos"));
    expect![[]].assert_eq(&first("trace show none.csv"));
    expect![[]].assert_eq(&first("trace convert --from gavle none.csv"));
}
