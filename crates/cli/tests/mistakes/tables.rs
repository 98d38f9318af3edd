//! Throughput tables.

use expect_test::expect;

use super::{check, check_options, check_parts};
use crate::common::Dir;

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
        expect!["error: --belief learned needs a table of speeds: --throughputs"],
    );
    check_options(
        "--cluster gpu:2x4 --policy fifo --belief learned --profiled 2",
        expect!["error: --profiled 2: give a fraction from 0 to 1"],
    );
}
