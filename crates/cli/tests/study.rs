//! Results for papers: seeds, sweeps, time series, figures, and folders that reproduce a result.

mod common;

use common::{Dir, THREE_JOBS};
use serde_json::Value;

const GENERATED: &str = "sim --trace gen:uniform:jobs=40:rate=60 --cluster gpu:2x8 --policy fifo,srtf";

fn list<'a>(json: &'a Value, key: &str) -> &'a Vec<Value> {
    json[key].as_array().unwrap_or_else(|| panic!("{key} is {}", json[key]))
}

fn figure(run: &Value) -> f64 {
    run["avg_jct_s"].as_f64().expect("jobs ended")
}

#[test]
fn means_are_those_of_the_runs() {
    let dir = Dir::new();
    let json = dir.yard(&format!("{GENERATED} --seeds 3 --seed 7 --sweep load=0.5,1 -o json")).json();
    let (runs, means) = (list(&json, "runs"), list(&json, "means"));
    assert_eq!((runs.len(), means.len()), (12, 4), "two loads, three seeds, two policies");
    let of = |policy: &str, load: &str| -> Vec<f64> {
        let same = |run: &&Value| run["policy"] == policy && run["sweep"]["load"] == load;
        runs.iter().filter(same).map(figure).collect()
    };
    let (fifo, srtf) = (of("fifo", "1"), of("srtf", "1"));
    assert_eq!(fifo.len(), 3);
    assert!(fifo[0] != fifo[1], "another seed has other jobs");
    let last = &means[3];
    assert_eq!((last["policy"].as_str(), last["sweep"]["load"].as_str()), (Some("srtf"), Some("1")));
    let told = |part: &str| last["figures"]["avg_jct_s"][part].as_f64().expect("it is a number");
    let mean = srtf.iter().sum::<f64>() / 3.0;
    assert!((told("mean") - mean).abs() < 1e-6 && told("low") < mean && mean < told("high"));
    let more = srtf.iter().zip(&fifo).map(|(srtf, fifo)| srtf - fifo).sum::<f64>() / 3.0;
    let difference = last["avg_jct_s_minus_first"]["mean"].as_f64().expect("it is a number");
    assert!((difference - more).abs() < 1e-6, "{difference} and {more}");
    assert!(
        of("fifo", "1").iter().sum::<f64>() > of("fifo", "0.5").iter().sum::<f64>(),
        "more load, more waiting"
    );
}

#[test]
fn one_seed_of_many_is_the_run_of_that_seed() {
    let dir = Dir::new();
    let many = dir.yard(&format!("{GENERATED} --seeds 2 --seed 4 -o json")).json();
    let alone = dir.yard(&format!("{GENERATED} --seed 5 -o json")).json();
    assert_eq!(list(&many, "runs")[2]["events_sha256"], list(&alone, "runs")[0]["events_sha256"]);
}

#[test]
fn seeds_without_anything_random_are_refused() {
    let dir = Dir::with_trace(THREE_JOBS);
    let answer = dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo --seeds 3");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("every run would be the same"), "{}", answer.err);
    let failing = dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo --seeds 3 --node-mtbf 1h");
    assert_eq!(failing.code, Some(0), "{}", failing.err);
}

#[test]
fn a_parameter_of_a_policy_can_be_varied() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line =
        "sim --trace t.csv --cluster gpu:1x4 --policy tiresias,fifo --sweep tiresias:promote=2,8 -o json";
    let json = dir.yard(line).json();
    let names: Vec<_> = list(&json, "runs").iter().map(|run| run["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["tiresias:promote=2", "fifo", "tiresias:promote=8", "fifo"]);
    let wrong = dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo --sweep srtf:x=1");
    assert!(wrong.err.contains("there is no such setting; vary load, round"), "{}", wrong.err);
}

#[test]
fn figures_are_drawn_of_what_was_written() {
    let dir = Dir::with_trace(THREE_JOBS);
    dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf --per-job j.csv --series s.csv")
        .printed();
    assert!(
        dir.read("s.csv")
            .starts_with("policy,t_s,running_jobs,queued_jobs,used_gpus,queued_gpus,utilization\nfifo,0,")
    );
    dir.yard("plot j.csv -o j.svg").quietly();
    dir.yard("plot s.csv --figure queued_gpus -o s.pdf").quietly();
    let sweep = dir.yard(&format!("{GENERATED} --seeds 2 --sweep load=0.5,1 -o json")).printed();
    dir.write("sweep.json", sweep);
    dir.yard("plot sweep.json -o sweep.svg").quietly();
    let svg = dir.read("sweep.svg");
    assert!(svg.contains(">mean completion time (") && svg.contains(">srtf</text>"), "{svg}");
    assert!(
        dir.read("j.svg").contains(">completion time</text>") && dir.read("s.pdf").starts_with("%PDF-1.4")
    );
    assert!(dir.yard("plot t.csv -o t.svg").err.contains("none of the files that yard sim writes"));
}

#[test]
fn a_bundle_reproduces_its_result() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf --bundle b";
    dir.yard(line).printed();
    let files =
        ["README.md", "inputs", "jct_s.pdf", "jct_s.svg", "jobs.csv", "manifest.json", "queued_gpus.pdf"];
    assert!(files.iter().all(|file| dir.files("b").contains(&(*file).to_owned())), "{:?}", dir.files("b"));
    assert!(dir.yard(line).err.contains("the folder is not empty"));
    // It stands alone.
    std::fs::remove_file(dir.path("t.csv")).expect("it was there");
    assert_eq!(dir.yard("bundle b").quietly(), "identical: 2 runs, event by event\n");
    let manifest = dir.read("b/manifest.json");
    let json: Value = serde_json::from_str(&manifest).expect("it is JSON");
    assert_eq!(json["command"][0], "--trace=inputs/t.csv");
    let digest = json["runs"][1]["events_sha256"].as_str().expect("it has a digest");
    let (before, after) = manifest.rsplit_once(digest).expect("it is there");
    dir.write("b/manifest.json", format!("{before}0{after}"));
    let differs = dir.yard("bundle b");
    assert_eq!((differs.code, differs.out.as_str()), (Some(1), "differs: srtf at seed 0\n"));
    dir.write("b/inputs/t.csv", "job_id,submit_s,gpus,duration_s\n");
    assert!(dir.yard("bundle b").err.contains("inputs/t.csv has changed"));
}

#[test]
fn a_bundle_with_a_program_reproduces_its_result() {
    let dir = Dir::with_trace(THREE_JOBS);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    std::fs::copy(format!("{source}examples/policies/srtf.py"), dir.path("mine.py"))
        .expect("it can be copied");
    let yard = |line: &str| {
        let args: Vec<_> = line.split_whitespace().collect();
        let mut command = dir.command(&args);
        command.env("PYTHONPATH", format!("{source}python/src"));
        common::Answer::of(command.output().expect("the binary can be run"))
    };
    yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo,exec:./mine.py --bundle b").printed();
    assert_eq!(yard("bundle b").quietly(), "identical: 2 runs, event by event\n");
}

#[test]
fn a_bundle_of_a_sweep_has_its_curves() {
    let dir = Dir::new();
    dir.yard(&format!("{GENERATED} --seeds 2 --sweep load=0.5,1 --bundle=b")).printed();
    assert!(dir.files("b").contains(&"avg_jct_s.svg".to_owned()), "{:?}", dir.files("b"));
    assert_eq!(dir.yard("bundle b").quietly(), "identical: 8 runs, event by event\n");
}
