//! `yard shapes` from the outside: what it lists, that the simulator reads it, and what is said of mistakes.

mod common;

use common::{Answer, Dir};
use expect_test::{Expect, expect};
use serde_json::Value;

const GPT: &str =
    "name = \"gpt\"\nhidden = 4096\nlayers = 32\nheads = 32\nseq = 2048\nvocab = 51200\nbatch = 64\n";

/// Two layers, the second with far more parameters.
const CHAIN: &str = "name = \"two\"\nbatch = 64\nprofile_batch = 4\nmeasured_on = \"v100-16\"\n\
    [[layer]]\nforward_s = 0.01\nbackward_s = 0.02\nparameters = 1e6\noutput_bytes = 1000\n\
    [[layer]]\nforward_s = 0.01\nbackward_s = 0.02\nparameters = 1e9\n";

const GRAPH: &str = r#"{"memory_bytes": 1e9, "accelerators": 2, "processors": 1,
    "nodes": [{"id": 1, "name": "in", "accelerator_time": 2, "processor_time": 9},
              {"id": 2, "name": "mid", "accelerator_time": 2, "processor_time": 9},
              {"id": 3, "name": "out", "accelerator_time": 3, "processor_time": 3}],
    "edges": [{"from": 1, "to": 2, "transfer_time": 0.5}, {"from": 2, "to": 3, "transfer_time": 0.5}]}"#;

fn with(name: &str, text: &str) -> Dir {
    let dir = Dir::new();
    dir.write(name, text);
    dir
}

fn model() -> Dir {
    with("m.toml", GPT)
}

/// A call that is refused with one sentence and nothing on stdout.
fn check(dir: &Dir, line: &str, message: Expect) {
    let Answer { code, out, err } = dir.yard(line);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    message.assert_eq(err.trim_end());
}

#[test]
fn it_runs_whole_split_split_deeper_or_not_at_all() {
    let kinds = "v100-16,v100-32,a100-80,h200-141";
    let json = model().yard(&format!("shapes m.toml --kinds {kinds} --max 8 -o json")).json();
    let shapes = json["shapes"].as_array().unwrap();
    let fewest = |kind: &str| {
        let counts = shapes.iter().filter(|shape| shape["kind"] == kind && shape["spread"] == "node");
        counts.map(|shape| shape["gpus"].as_u64().unwrap()).min()
    };
    let counts = ["h200-141", "a100-80", "v100-32", "v100-16"].map(fewest);
    assert_eq!(counts, [Some(1), Some(2), Some(8), None]);
    for refused in json["refused"].as_array().unwrap() {
        assert!(refused["least_gib"].as_f64().unwrap() > 14.9, "{refused}");
    }
}

#[test]
fn json_has_the_keys_of_the_contract() {
    let json = model().yard("shapes m.toml --kinds a100-80 --max 2 -o json").json();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&json), ["refused", "shapes"]);
    let expected = [
        "data",
        "gpus",
        "interleave",
        "kind",
        "memory_gib",
        "micro_batch",
        "offload",
        "pipeline",
        "recompute",
        "shard",
        "spread",
        "step_s",
        "tensor",
    ];
    assert_eq!(keys(&json["shapes"][0]), expected);
    assert_eq!(keys(&json["refused"][0]), ["gpus", "kind", "least_gib"]);
}

#[test]
fn people_read_the_plan_and_why_there_is_none() {
    let table = model().yard("shapes m.toml --kinds v100-32,v100-16 --max 8").quietly();
    assert!(table.contains("6.66 billion parameters; 64 samples of 2048 tokens a step"), "{table}");
    assert!(
        table.contains("tensor 2, pipeline 2, data 2, micro-batch 1, interleave 4, optimizer sharded"),
        "{table}"
    );
    let reason = "v100-16: not enough memory: a device needs 120.1 GiB on 1, 60.0 GiB on 2, 30.0 GiB on 4, 15.0 GiB on 8; it has 14.9 GiB.";
    assert!(table.contains(reason), "{table}");
    let none = model().yard("shapes m.toml --kinds v100-16 --max 1").quietly();
    assert!(none.contains("Found no way to run this model."), "{none}");
}

#[test]
fn the_simulator_reads_the_csv() {
    let dir = model();
    let csv = dir.yard("shapes m.toml --cluster h100:2x8,v100-32:1x8 -o csv").quietly();
    assert!(csv.starts_with("kind,model,batch_size,gpus,steps_per_s,spread\n"), "{csv}");
    dir.write("speeds.csv", &csv);
    dir.write("t.csv", "job_id,submit_s,gpus,steps,model,batch_size\na,0,8,100,gpt,64\nb,5,16,100,gpt,64\n");
    let line =
        "sim --trace t.csv --cluster h100:2x8,v100-32:1x8 --throughputs speeds.csv --policy fifo-het -o json";
    let run = dir.yard(line).json()["runs"][0].clone();
    assert_eq!(run["finished"], 2, "{run}");
}

#[test]
fn kinds_of_ones_own_change_what_is_given() {
    let dir = model();
    dir.write("k.toml", "[[kind]]\nname = \"mine\"\nlike = \"a100-80\"\nmemory_gb = 200\n");
    let json = dir.yard("shapes m.toml --kinds mine,a100-80 --max 1 --kind-file k.toml -o json").json();
    assert_eq!(json["shapes"][0]["kind"], "mine");
    assert_eq!(json["refused"][0]["kind"], "a100-80");
}

#[test]
fn offloading_runs_what_else_would_not_fit() {
    let json = model().yard("shapes m.toml --kinds a100-80 --max 1 --offload -o json").json();
    assert_eq!(json["shapes"][0]["offload"], "optimizer", "{json}");
}

#[test]
fn unlike_layers_are_cut_into_stages_also_on_a_mix() {
    let dir = with("c.toml", CHAIN);
    let json = dir.yard("shapes c.toml --kinds v100-32,v100-32*1+a100-80*1 --max 2 -o json").json();
    let mixed =
        json["shapes"].as_array().unwrap().iter().find(|one| one["kind"] == "v100-32*1+a100-80*1").unwrap();
    assert_eq!((mixed["gpus"].as_u64(), mixed["pipeline"].as_u64()), (Some(2), Some(2)), "{mixed}");
    let like = json["shapes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["kind"] == "v100-32" && one["gpus"] == 2)
        .unwrap();
    assert!(mixed["step_s"].as_f64() < like["step_s"].as_f64(), "{json}");
    let refused = dir.yard("shapes c.toml --kinds v100-16 --max 1 -o json").json();
    let least = refused["refused"][0]["least_gib"].as_f64().unwrap();
    assert!((least / (18.018e9 / 0.94 / (1u64 << 30) as f64) - 1.0).abs() < 0.002, "{refused}");
    let table = dir.yard("shapes c.toml --kinds v100-32*1+a100-80*1").quietly();
    assert!(table.contains("1 layers × 1 v100-32") && table.contains("1 layers × 1 a100-80"), "{table}");
    let table = dir.yard("shapes c.toml --kinds v100-32 --max 2").quietly();
    assert!(table.contains("1 layers × 1 → 1 layers × 1"), "{table}");
}

#[test]
fn a_graph_is_split_exactly() {
    let dir = with("g.json", GRAPH);
    let json = dir.yard("shapes --graph g.json -o json").json();
    // in and mid on one accelerator with one transfer to out, which is on the processor or the other accelerator.
    assert_eq!((json["load"].as_f64(), json["exact"].as_bool()), (Some(3.0), Some(true)), "{json}");
    let table = dir.yard("shapes --graph g.json").quietly();
    assert!(table.starts_with("Greatest load 3.0000 over 3 devices; no split is better."), "{table}");
}

#[test]
fn mistakes_are_one_sentence() {
    let dir = model();
    let said = |field: &str, value: &str| {
        let lines = GPT
            .lines()
            .map(|line| if line.starts_with(field) { format!("{field} = {value}") } else { line.to_owned() });
        dir.write("bad.toml", lines.collect::<Vec<_>>().join("\n"));
        "shapes bad.toml --kinds h200"
    };
    check(
        &dir,
        said("batch", "0"),
        expect!["error: bad.toml: batch: 0 is out of range; give a whole number from 1 to 100000000"],
    );
    check(
        &dir,
        said("heads", "30"),
        expect![
            "error: bad.toml: hidden: 4096 does not divide by heads = 30; make hidden a multiple of heads"
        ],
    );
    check(
        &dir,
        said("seq", "\"long\""),
        expect![[r#"error: bad.toml, line 5: invalid type: string "long", expected u32"#]],
    );
    check(
        &dir,
        "shapes m.toml --kinds h200 --pipeline 5",
        expect!["error: --pipeline 5: 32 layers cannot be divided by it; give one of 1, 2, 4, 8, 16, 32"],
    );
    check(
        &dir,
        "shapes m.toml --kinds abacus",
        expect![[
            r#"error: kind "abacus" is not known; give one of v100, v100-16, v100-32, a100, a100-40, a100-80, h100, h100-80, h200, h200-141, or describe it with --kind-file"#
        ]],
    );
    check(
        &dir,
        "shapes m.toml --kinds h200 --max 0",
        expect!["error: --max 0: give a whole number from 1 to 1048576"],
    );
    dir.write("k.toml", "[[kind]]\nname = \"mine\"\nlike = \"h200\"\nmemory_gb = 0\n");
    check(
        &dir,
        "shapes m.toml --kinds mine --kind-file k.toml",
        expect![
            "error: k.toml: kind mine, memory_gb: 0 is not above 0; give what the maker's data sheet or `yard bench kind` says"
        ],
    );
    dir.write("c.toml", CHAIN.replace("forward_s = 0.01", ""));
    check(
        &dir,
        "shapes c.toml --kinds v100-32",
        expect![
            "error: c.toml: layer 1: its time is not clear; give either forward_s (and backward_s) or forward_flops"
        ],
    );
    dir.write("c.toml", CHAIN.replace("measured_on = \"v100-16\"", ""));
    check(
        &dir,
        "shapes c.toml --kinds v100-32",
        expect!["error: c.toml: measured_on: it is missing; name the kind on which forward_s was measured"],
    );
}

#[test]
fn graphs_that_make_no_sense_are_one_sentence() {
    let dir = with("g.json", &GRAPH.replace("\"from\": 1, \"to\": 2", "\"from\": 3, \"to\": 2"));
    let answer = dir.yard("shapes --graph g.json");
    let said = answer.err.trim_end();
    assert!(
        said.starts_with("error: g.json: edges: \"") && said.ends_with("take out one of the cycle's edges"),
        "{said}"
    );
    dir.write("g.json", GRAPH.replace("\"to\": 3", "\"to\": 7"));
    check(
        &dir,
        "shapes --graph g.json",
        expect!["error: g.json: edges: there is no node 7; name one of nodes"],
    );
    dir.write("g.json", GRAPH.replace("\"memory_bytes\": 1e9", "\"memory_bytes\": 0"));
    check(
        &dir,
        "shapes --graph g.json",
        expect!["error: g.json: memory_bytes: 0 hold nothing; give a number above 0"],
    );
}

const SHAPES: &str = "model,hidden,layers,heads,seq,vocab,batch,kind,devices,tensor,pipeline,data,micro_batch,interleave,recompute,shard,step_s,memory_gb\n";

#[test]
fn validate_compares_with_another_file_and_exits_with_one_where_it_misses() {
    let row = |kind: &str| format!("{SHAPES}big,8192,80,64,2048,51200,64,{kind},1,-,-,-,-,-,-,-,,\n");
    let dir = with("s.csv", &row("v100-16"));
    let rows = dir.yard("validate --only shapes --file s.csv -o json").json();
    let keys: Vec<&String> = rows["rows"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["allowed", "case", "figure", "ok", "ours", "reference", "suite"]);
    assert_eq!(rows["rows"][0]["ok"], true);
    dir.write("s.csv", row("h200").replace("8192,80,64", "1024,8,16"));
    let answer = dir.yard("validate --only shapes --file s.csv -o json");
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    let rows: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(rows["rows"][0]["ok"], false);
    check(
        &dir,
        "validate --only blox --file s.csv",
        expect![
            "error: --only blox: the suite reads no file of its own; those that do are: planner-golden, ptdp, korthikanti, korthikanti-memory, vtrain, mpt, h200-gpt, shapes, dag, dapple"
        ],
    );
}

#[test]
fn constants_of_a_kind_are_fitted_to_steps() {
    let mut csv = String::from("hidden,layers,heads,seq,vocab,micro_batch,micro_batches,recompute,step_s\n");
    for (micro_batch, step_s) in [(1, 0.130), (4, 0.400), (8, 0.760)] {
        csv += &format!("2048,24,16,2048,51200,{micro_batch},1,none,{step_s}\n");
    }
    let dir = with("steps.csv", &csv);
    let fitted = dir.yard("bench kind --steps steps.csv --kind a100-80 -o json").json();
    let error = |key: &str| fitted[key].as_f64().unwrap();
    assert!(
        error("mean_error_after") < error("mean_error_before") && error("mean_error_after") < 0.05,
        "{fitted}"
    );
    dir.write("k.toml", dir.yard("bench kind --steps steps.csv --kind a100-80").quietly());
    dir.write("m.toml", GPT);
    assert_eq!(dir.yard("shapes m.toml --kinds a100-80 --kind-file k.toml --max 2").code, Some(0));
}

#[test]
fn the_bench_says_what_is_wanted_and_whether_it_was_met() {
    let figures = Dir::new().yard("bench shapes -o json").json();
    assert_eq!((figures["kinds"].as_u64(), figures["devices"].as_u64()), (Some(8), Some(1024)), "{figures}");
    assert!(figures["gpt_6_7b_shapes"].as_u64() > Some(0), "{figures}");
    let seconds = |key: &str| figures[key].as_f64().unwrap();
    let met = seconds("gpt_6_7b_s").max(seconds("gpt_175b_s")) <= seconds("wanted_s");
    assert_eq!(figures["result"], if met { "met" } else { "MISSED" });
}
