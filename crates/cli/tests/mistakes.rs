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
fn check_cluster(toml: &str, parts: &[&str]) -> String {
    let dir = Dir::with_trace(THREE_JOBS);
    dir.write("c.toml", toml);
    check_parts(&dir, "sim --trace t.csv --cluster c.toml --policy fifo", parts)
}

// Traces.

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
            r#"error: t.csv: the header has unknown columns: "colour", "taste"; allowed are: job_id, submit_s, gpus, duration_s, steps, model, batch_size, user, tenant, weight, priority, deadline_s, min_gpus, max_gpus, kinds, after, mode, batch_max, regimes, rewards, late, class, max_slowdown, gpu_fraction, gpu_limit, gpu_memory_mib, gpu_busy, affinity, anti_affinity, exclusion, cpus, memory_mib, resources"#
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

// Policies, placers, formats and bundles.

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
    check_parts(&dir, line, &["--compat \"pollux\" is not known; there are tiresias, ", "blox"]);
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
        expect![[
            r#"error: policy "las" shares time in rounds: give --round a length above 0, such as 360s"#
        ]],
    );
}

// Clusters.

#[test]
fn a_cluster_is_a_file_or_kinds_with_sizes() {
    check_options(
        "--cluster gpu --policy fifo",
        expect![[
            r#"error: cluster "gpu": "gpu" is neither a file nor `kind:NODESxGPUS`, as in v100:9x4,p100:9x4 or gpu:8x8"#
        ]],
    );
    check_options(
        "--cluster none.toml --policy fifo",
        expect![[
            r#"error: cluster "none.toml": "none.toml" is neither a file nor `kind:NODESxGPUS`, as in v100:9x4,p100:9x4 or gpu:8x8"#
        ]],
    );
    check_options(
        "--cluster gpu:2x4, --policy fifo",
        expect![[
            r#"error: cluster "gpu:2x4,": "" is neither a file nor `kind:NODESxGPUS`, as in v100:9x4,p100:9x4 or gpu:8x8"#
        ]],
    );
}

#[test]
fn sizes_of_a_cluster_are_whole_numbers() {
    check_options(
        "--cluster gpu:0x4 --policy fifo",
        expect![[
            r#"error: cluster "gpu:0x4": gpu: 0 nodes of 4 devices; a node has 1 to 128, and there is at least one"#
        ]],
    );
    check_options(
        "--cluster gpu:2x0 --policy fifo",
        expect![[
            r#"error: cluster "gpu:2x0": gpu: 2 nodes of 0 devices; a node has 1 to 128, and there is at least one"#
        ]],
    );
    check_options(
        "--cluster gpu:-1x4 --policy fifo",
        expect![[r#"error: cluster "gpu:-1x4": "-1" in "gpu:-1x4" is not a whole number above 0"#]],
    );
    check_options(
        "--cluster gpu:2x129 --policy fifo",
        expect![[
            r#"error: cluster "gpu:2x129": gpu: 2 nodes of 129 devices; a node has 1 to 128, and there is at least one"#
        ]],
    );
    check_options(
        "--cluster gpu:2x4x8 --policy fifo",
        expect![[r#"error: cluster "gpu:2x4x8": "4x8" in "gpu:2x4x8" is not a whole number above 0"#]],
    );
}

#[test]
fn a_cluster_file_is_sound() {
    check_cluster("", &["c.toml", "missing field `nodes`"]);
    check_cluster("nodes = []\n", &["c.toml", "it has no nodes"]);
    check_cluster("[[nodes]]\nkind = 'a100'\ngpu = 8\n", &["c.toml", "line 3", "`gpu`", "`gpus`"]);
    check_cluster("[[nodes]]\nkind = 'a100'\ngpus = 'eight'\n", &["c.toml", "line 3", "\"eight\""]);
    check_cluster("[[nodes]]\nkind = 'a100\ngpus = 8\n", &["c.toml", "line 2"]);
    check_cluster("[[nodes]]\nkind = 'a 100'\ngpus = 8\n", &["c.toml", "\"a 100\" is no name for a kind"]);
    check_cluster("[[nodes]]\nkind = 'a100'\ngpus = 129\n", &["c.toml", "1 to 128"]);
}

#[test]
fn a_mistake_in_a_cluster_file_is_a_sentence() {
    let said = check_cluster("[[nodes]]\nkind = 'a100'\ngpu = 8\n", &["line 3"]);
    assert!(!said.contains('|') && !said.contains('^'), "{said}");
}

#[test]
fn a_price_is_a_number_from_zero_up() {
    for price in ["-1", "nan", "inf"] {
        let group = format!("[[nodes]]\nkind = 'a100'\ngpus = 8\nprice_per_hour = {price}\n");
        check_cluster(&group, &["price_per_hour"]);
    }
}

#[test]
fn a_rack_may_have_any_number() {
    let dir = Dir::with_trace(THREE_JOBS);
    let group = |kind: &str, rack: &str| format!("[[nodes]]\nkind = '{kind}'\ngpus = 8\n{rack}\n");
    dir.write("c.toml", group("a100", "rack = 4294967295") + &group("h100", "nodes_per_rack = 1"));
    let answer = dir.yard("sim --trace t.csv --cluster c.toml --policy fifo");
    assert!(matches!(answer.code, Some(0 | 2)), "{}", answer.err);
}

// Ranges and times.

#[test]
fn a_range_of_jobs_holds_jobs() {
    let sim = "sim --trace t.csv --cluster gpu:2x4 --policy fifo";
    check_usage(
        &format!("{sim} --jobs 5..5"),
        expect![[r#"error: invalid value '5..5' for '--jobs <A..B>': "5..5" holds no job"#]],
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
            r#"error: invalid value 'often' for '--round <TIME|auto>': "often" is no unit of time; use s, m, h or d"#
        ]],
    );
    check_usage(
        &format!("{sim} --round 5weeks"),
        expect![[
            r#"error: invalid value '5weeks' for '--round <TIME|auto>': "weeks" is no unit of time; use s, m, h or d"#
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
        expect!["error: --slow-nodes 1.5 is not a fraction from 0 to 1"],
    );
    check_options(
        "--cluster gpu:2x4 --policy fifo --slow-factor 0",
        expect!["error: --slow-factor 0 is not a factor above 0 and at most 1"],
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
    check(
        &steps(None),
        SIM_STEPS,
        expect![
            "error: t.csv, line 2, field steps: job a gives steps and no duration; name a throughput table with --throughputs"
        ],
    );
}

#[test]
fn a_table_has_the_models_of_the_trace() {
    let line = format!("{SIM_STEPS} --throughputs speeds.csv");
    let table = |row: &str| steps(Some(&format!("kind,model,batch_size,gpus,steps_per_s\n{row}\n")));
    check(
        &table("v100,VGG,64,2,10"),
        &line,
        expect![
            "error: t.csv, line 2, field model: the throughput table has no speed for ResNet-18 (batch size 64) on 2 GPUs of any kind of the cluster (v100)"
        ],
    );
    check(
        &table("v100,ResNet-18,32,2,10"),
        &line,
        expect![
            "error: t.csv, line 2, field model: the throughput table has no speed for ResNet-18 (batch size 64) on 2 GPUs of any kind of the cluster (v100)"
        ],
    );
    check(
        &table("p100,ResNet-18,64,2,10"),
        &line,
        expect![
            "error: t.csv, line 2, field model: the throughput table has no speed for ResNet-18 (batch size 64) on 2 GPUs of any kind of the cluster (v100)"
        ],
    );
}

#[test]
fn a_table_is_sound() {
    let line = format!("{SIM_STEPS} --throughputs speeds.csv");
    check_parts(&steps(None), &line, &["speeds.csv: cannot be read: No such file or directory"]);
    check(
        &steps(Some("kind,model,gpus,steps_per_s\nv100,ResNet-18,2,fast\n")),
        &line,
        expect![[
            r#"error: speeds.csv, line 2, field steps_per_s: "fast" is not a number; a speed is a number of steps a second from 0 up"#
        ]],
    );
    check(
        &steps(Some(
            "kind,model,batch_size,gpus,steps_per_s,beside_model\nv100,ResNet-18,64,2,9,\nv100,ResNet-18,64,2,5,LM\n",
        )),
        &line,
        expect![
            "error: speeds.csv, entry ResNet-18 (batch size 64) on 2 of v100 beside LM on 2: LM on 2 of v100 has no speed alone; a pair is of shapes with a speed alone"
        ],
    );
    check(
        &steps(Some("kind,model,batch_size,gpus,steps_per_s\nv100*1+p100*2,ResNet-18,64,2,9\n")),
        &line,
        expect![[
            r#"error: speeds.csv, line 2, field kind: "v100*1+p100*2" has 3 devices where gpus is 2; a kind is a name, or a mix such as v100*2+p100*2 of `gpus` devices in all"#
        ]],
    );
    check(
        &steps(Some(
            r#"{"v100": {"('ResNet-18 (batch size 64)', 2)": {"null": 5.0, "('LM', 2)": [1.0, 2.0, 3.0]}}}"#,
        )),
        &line,
        expect![
            "error: speeds.csv, entry v100 ('ResNet-18 (batch size 64)', 2) beside ('LM', 2): is no speed; alone a job has one speed, beside another a list of two"
        ],
    );
    check(
        &steps(Some(r#"{"v100": {"('ResNet-18 (batch size 64)', 2)": {"null": -5.0}}}"#)),
        &line,
        expect![
            "error: speeds.csv, entry v100 ('ResNet-18 (batch size 64)', 2): -5 is no speed; a speed is a number from 0 to 1e12"
        ],
    );
    let parts = ["speeds.csv: not a throughput table in Gavel's JSON: ", "line 1"];
    check_parts(&steps(Some("{\"v100\": 3}")), &line, &parts);
}

#[test]
fn a_belief_is_learned_from_a_table() {
    check_options(
        "--cluster gpu:2x4 --policy fifo --belief learned",
        expect!["error: --belief learned is about the speeds of a table; name one with --throughputs"],
    );
    check_options(
        "--cluster gpu:2x4 --policy fifo --belief learned --profiled 2",
        expect!["error: --profiled 2 is not a fraction from 0 to 1"],
    );
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
fn a_policy_is_named_once() {
    let dir = Dir::with_trace(THREE_JOBS);
    check_parts(&dir, "sim --trace t.csv --cluster gpu:2x4 --policy fifo,las,fifo", &["fifo", "once"]);
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
    expect!["error: invalid value '0' for '--jobs <N>': 0 is not in 1..=50000000"]
        .assert_eq(&first_line("trace gen --jobs 0 --static"));
    expect!["error: invalid value '0' for '--rate <PER_HOUR>': a rate is a number of jobs an hour, above 0 and at most 1e9"].assert_eq(&first_line("trace gen --jobs 5 --rate 0"));
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
