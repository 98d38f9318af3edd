use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use yard_core::cluster::Level;
use yard_core::part::Pause;

use super::super::{Checkpoint, Ranks};
use super::*;

const START: f64 = 1_794_758_400.0;

fn now() -> Zoned {
    Timestamp::constant(1_794_758_400, 0).to_zoned(TimeZone::UTC)
}

fn read(lines: &str) -> Result<Script, Mistake> {
    let lines: String = lines.lines().map(|line| format!("#SBATCH {line}\n")).collect();
    parse(
        &format!("#!/bin/bash -l\n# a comment\n\n{lines}\npython train.py\n"),
        Path::new("/home/me/job.sh"),
        &now(),
    )
}

fn job(lines: &str) -> JobRequest {
    read(lines).expect("it is sound").request
}

fn wrong(lines: &str) -> String {
    read(lines).expect_err("it is wrong").to_string()
}

/// What a script asks for that says nothing.
fn plain() -> JobRequest {
    let command = ["/bin/bash", "-l", "/home/me/job.sh"].map(String::from).to_vec();
    JobRequest { command, gpus: Some(0), ..JobRequest::default() }
}

fn kinds(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn the_script_is_the_command() {
    assert_eq!(job(""), plain());
    let env = parse("#!/usr/bin/env python3\n", Path::new("/x/a b.py"), &now()).expect("it is sound");
    assert_eq!(env.request.command, ["/usr/bin/env", "python3", "/x/a b.py"]);
}

#[test]
fn every_flag_has_its_effect() {
    let with = |change: fn(&mut JobRequest)| {
        let mut request = plain();
        change(&mut request);
        request
    };
    let table: &[(&str, JobRequest)] = &[
        ("--gpus=4", with(|r| r.gpus = Some(4))),
        ("-G 4", with(|r| r.gpus = Some(4))),
        ("--gpus a100:4", with(|r| (r.gpus, r.kinds) = (Some(4), kinds(&["a100"])))),
        ("--gpus=h100", with(|r| (r.gpus, r.kinds) = (Some(1), kinds(&["h100"])))),
        ("--gres=gpu", with(|r| r.gpus = Some(1))),
        ("--gres=gpu:2", with(|r| r.gpus = Some(2))),
        ("--gres=gpu:v100:2", with(|r| (r.gpus, r.kinds) = (Some(2), kinds(&["v100"])))),
        ("--gres=mps:50", with(|r| (r.gpus, r.gpu_fraction) = (Some(1), Some(0.5)))),
        (
            "--gres=mps:h100:25",
            with(|r| (r.gpus, r.gpu_fraction, r.kinds) = (Some(1), Some(0.25), kinds(&["h100"]))),
        ),
        ("--nodes=2 --gres=gpu:4", with(|r| (r.gpus, r.nodes) = (Some(8), Some(2)))),
        ("-N2\n--gpus-per-node=4", with(|r| (r.gpus, r.nodes) = (Some(8), Some(2)))),
        (
            "-N 2 --ntasks-per-node=4 --gres=gpu:4 # comment",
            with(|r| (r.gpus, r.nodes, r.ranks) = (Some(8), Some(2), Ranks::Device)),
        ),
        (
            "-N 2 --ntasks-per-node=2 --gres=gpu:4",
            with(|r| (r.gpus, r.nodes, r.tasks_per_node) = (Some(8), Some(2), Some(2))),
        ),
        ("-N 2 -n 8 -c 2", with(|r| (r.nodes, r.tasks_per_node, r.cpus) = (Some(2), Some(4), Some(8.0)))),
        (
            "-N 4 --segment=2 --gres=gpu:8 --switches=1",
            with(|r| {
                (r.gpus, r.nodes) = (Some(32), Some(4));
                (r.segment, r.close) = (Some(2), Some(Level::Rack));
            }),
        ),
        ("--switches=1@2:00:00", with(|r| r.prefer = Some(Level::Rack))),
        ("-n 4 --gpus=4", with(|r| (r.gpus, r.ranks) = (Some(4), Ranks::Device))),
        ("--ntasks=1 --gpus=4", with(|r| r.gpus = Some(4))),
        ("-c 8", with(|r| r.cpus = Some(8.0))),
        ("-c 8 -n 2 -G 2", with(|r| (r.cpus, r.gpus, r.ranks) = (Some(16.0), Some(2), Ranks::Device))),
        ("--mem=16G", with(|r| r.memory_mib = Some(16 << 10))),
        ("--mem=512", with(|r| r.memory_mib = Some(512))),
        ("--time=1-00:00:00", with(|r| r.time_limit_s = Some(86_400.0))),
        ("-t 90", with(|r| r.time_limit_s = Some(5400.0))),
        ("--deadline=18:00", with(|r| r.deadline = Some(START + 7200.0))),
        ("--begin=now+1hour", with(|r| r.begin = Some(START + 3600.0))),
        ("--begin=now+60", with(|r| r.begin = Some(START + 60.0))),
        ("--partition=a100,h100", with(|r| r.kinds = kinds(&["a100", "h100"]))),
        ("-p a100,h100 -C h100|v100", with(|r| r.kinds = kinds(&["h100"]))),
        ("--constraint=[a100|h100]", with(|r| r.kinds = kinds(&["a100", "h100"]))),
        ("--account=vision", with(|r| r.tenant = Some("vision".into()))),
        ("--qos=high", with(|r| r.priority = 10)),
        ("--qos=normal", with(|_| ())),
        ("-q low", with(|r| r.priority = -10)),
        ("--job-name='my job'", with(|r| r.name = Some("my job".into()))),
        ("-J \"my job\"", with(|r| r.name = Some("my job".into()))),
        ("--chdir=/data", with(|r| r.workdir = Some("/data".into()))),
        ("--output=%x-%j-%t.out", with(|r| r.output = Some("%x-%j-%t.out".into()))),
        (
            "-o %A.out -e %j.err",
            with(|r| (r.output, r.error) = (Some("%j.out".into()), Some("%j.err".into()))),
        ),
        ("--exclusive", with(|r| r.exclusive = true)),
        ("--requeue", with(|_| ())),
        ("--no-requeue", with(|r| (r.pause, r.max_restarts) = (Pause::Never, Some(0)))),
        (
            "--signal=B:USR1@120",
            with(|r| {
                r.checkpoint =
                    Checkpoint { signal: Some("USR1".into()), grace_s: Some(120.0), ..Checkpoint::default() };
            }),
        ),
        (
            "--signal=SIGHUP",
            with(|r| {
                r.checkpoint =
                    Checkpoint { signal: Some("HUP".into()), grace_s: Some(60.0), ..Checkpoint::default() }
            }),
        ),
        ("--dependency=afterok:12:13,afterok:14", with(|r| r.after = vec![12, 13, 14])),
        ("-d afterok:12", with(|r| r.after = vec![12])),
    ];
    for (lines, expected) in table {
        assert_eq!(job(lines), *expected, "{lines}");
    }
    let tried = |flag: &SbatchFlag| {
        let long = format!("--{}", flag.long);
        table.iter().any(|(lines, _)| {
            lines.contains(&long) || flag.short.is_some_and(|c| lines.contains(&format!("-{c}")))
        })
    };
    let others = ["array"];
    let untried: Vec<_> = FLAGS.iter().filter(|flag| !tried(flag) && !others.contains(&flag.long)).collect();
    assert!(untried.is_empty(), "{:?}", untried.iter().map(|flag| flag.long).collect::<Vec<_>>());
}

#[test]
fn an_array_is_several_jobs() {
    let script = read("--array=1,3-7:2 -o %A_%a.out").expect("it is sound");
    assert_eq!(script.array, Some(vec![1, 3, 5, 7]));
    let jobs = script.jobs();
    assert_eq!(jobs.len(), 4);
    assert_eq!(jobs[1].output.as_deref(), Some("%j_3.out"));
    assert_eq!(jobs[1].env["SLURM_ARRAY_TASK_ID"], "3");
    assert_eq!(jobs[1].env["YARD_ARRAY_TASK_ID"], "3");
    assert_eq!(jobs[0].env["SLURM_ARRAY_TASK_MAX"], "7");
    assert_eq!(read("").expect("it is sound").jobs(), [plain()]);
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    let unknown = wrong("--gpus=1\n--colour=red");
    assert!(unknown.starts_with("line 5: --colour is not supported"), "{unknown}");
    let mail = wrong("--mail-type=END");
    assert!(mail.contains("no mail is sent") && mail.contains("yard submit --wait"), "{mail}");
    assert!(unknown.contains("--gres"), "it says what is: {unknown}");
    assert!(wrong("-W").contains("-W is not supported"));
    assert!(wrong("--dependency=afterany:12").contains("--dependency: \"afterany:12\" is not afterok:JOB"));
    assert!(wrong("--dependency=afterok:12?afterok:13").contains("is not a job number"));
    for (lines, part) in [
        ("--nodes", "needs a value"),
        ("--exclusive=user", "takes no value"),
        ("--nodes=2-4", "not a whole number"),
        ("--nodes=0", "not a whole number"),
        ("train", "is not a flag"),
        ("--job-name='x", "quote is not closed"),
        ("--gres=shard:2", "use mps:50 for 50 percent of one GPU"),
        ("--gres=mps", "mps needs a number"),
        ("--gres=mps:150", "150 percent is more than one GPU; use gpu:2 for whole GPUs"),
        ("--gres=mps:0", "not a whole number"),
        ("--gres=fpga:1", "other resources are not supported"),
        ("--gres=gpux", "other resources are not supported"),
        ("--qos=urgent", "not low, normal or high"),
        ("--signal=KILL", "not a signal"),
        ("--signal=R:USR1", "reservations"),
        ("--array=1-10%2", "not supported yet"),
        ("--array=9-1", "not a number or a range"),
        ("--array=0-999999", "more than 10000"),
        ("--constraint=a&b", "more than kinds"),
        ("--partition=a --constraint=b", "contradicts"),
        ("--output=%N.out", "%N is not supported"),
        ("--output=%a.out", "there is no --array"),
        ("--gpus=3 --nodes=2 --gres=gpu:4", "add up to 8"),
        ("--switches=2", "one rack"),
        ("--segment=0", "not a whole number"),
        ("--nodes=2 --ntasks=3", "cannot be divided evenly"),
        ("--nodes=2 --ntasks=4 --ntasks-per-node=4 --gres=gpu:4", "contradict"),
        ("--time=soon", "not a time"),
        ("--mem=much", "not a size"),
    ] {
        let said = wrong(lines);
        assert!(said.contains(part), "{lines}: {said}");
    }
}

#[test]
fn a_script_says_who_reads_it_and_asks_before_it_begins() {
    let path = Path::new("/x");
    let wrong = |text: &str| parse(text, path, &now()).expect_err("it is wrong").to_string();
    assert!(wrong("#SBATCH --gpus=1\n").starts_with("line 1: the script does not begin with #!"));
    assert!(wrong("#!\n").contains("does not begin"));
    assert!(
        wrong("#!/bin/sh\necho\n#SBATCH --gpus=1\n")
            .starts_with("line 3: #SBATCH lines after the first command")
    );
    assert!(parse("#!/bin/sh\n##SBATCH --nonsense\n#SBATCHED\n", path, &now()).is_ok());
}

#[test]
fn scripts_are_told_from_job_files() {
    assert!(is_script("#!/bin/sh\n") && is_script("\n#SBATCH -N1\n"));
    assert!(!is_script("# a comment\nname: x\n"));
}

proptest! {
    #[test]
    fn no_line_is_a_panic(lines in prop::collection::vec("(--[a-z-]{1,12}|-[A-Za-z])[ =]?\\PC{0,12}", 0..6)) {
        let _ = read(&lines.join("\n"));
    }

    #[test]
    fn known_flags_with_any_value_are_read_or_refused(at in 0..FLAGS.len(), value in "[-0-9a-zA-Z:,%|@=+]{0,16}") {
        let line = format!("--{}={value}", FLAGS[at].long);
        if let Ok(script) = read(&line) {
            prop_assert!(script.jobs().len() <= 10_000);
        }
    }

    #[test]
    fn any_text_is_a_script_or_none(text in "\\PC{0,80}") {
        let _ = parse(&text, Path::new("/x"), &now());
        let _ = is_script(&text);
    }
}
