//! Jobs that their users hold, release, have started again and edit, as people type it.

use std::process::Command;

use crate::harness::{Answer, Cluster};

fn refused(answer: Answer, why: &str) {
    assert_eq!(answer.code, Some(2), "{}{}", answer.out, answer.err);
    assert!(answer.err.contains(why), "{} does not say: {why}", answer.err);
}

#[test]
fn jobs_are_held_released_started_again_and_edited() {
    let mut cluster = Cluster::up("--fake v100:1 --round 1s --policy fifo");
    let script = "trap 'exit 0' TERM; echo start $YARD_INSTANCE; while :; do sleep 0.1; done";
    let first = cluster.submit("--pause checkpoint --name first", &["sh", "-c", script]);
    cluster.wait(first, "running");
    let [second, third] =
        ["second", "third"].map(|name| cluster.submit(&format!("--name {name}"), &["sleep", "1000"]));
    refused(cluster.yard(&format!("requeue {second}")), "is waiting already");
    refused(cluster.yard(&format!("edit {first} --priority 1")), "yard hold");
    refused(cluster.yard(&format!("edit {second} --gpus 4")), "cancel it and submit it again");
    cluster.yard(&format!("requeue {first}")).ok();
    cluster.until("it starts again", || cluster.log(first).contains("start 2"));
    // Chosen by what they are; nobody can be asked here.
    refused(cluster.yard("hold --state pending --name sec*"), "--yes");
    let said = cluster.yard("hold --state pending --name sec* --reason later --yes").ok();
    assert!(said.contains(&format!("yard release {second}")), "{said}");
    assert!(cluster.yard("jobs").ok().contains("later"), "yard jobs says who holds it, and what for");
    assert!(cluster.yard(&format!("explain {second}")).ok().contains("(held)"));
    cluster.yard(&format!("edit {third} --rename urgent --priority 3")).ok();
    cluster.yard(&format!("hold {first}")).ok();
    cluster.wait(first, "suspended");
    cluster.wait(third, "running");
    cluster.kill_server();
    cluster.start();
    assert!(cluster.yard(&format!("show {third}")).ok().contains("urgent"), "it is still called so");
    cluster.yard(&format!("cancel {third}")).ok();
    cluster.wait(third, "cancelled");
    for job in [first, second] {
        assert!(cluster.yard(&format!("show {job}")).ok().contains("held by"), "it is still held");
    }
    cluster.yard(&format!("release {second}")).ok();
    cluster.wait(second, "running");
    refused(cluster.yard(&format!("release {second}")), "is not held");
    cluster.yard(&format!("cancel {second}")).ok();
    cluster.wait(second, "cancelled");
    cluster.yard(&format!("release {first}")).ok();
    cluster.until("it goes on", || cluster.log(first).contains("start 3"));
}

#[test]
fn the_command_line_finds_a_server_by_its_data_folder() {
    let cluster = Cluster::up("--fake v100:1");
    let data = cluster.folder.0.join(".yard");
    let mut command = Command::new(env!("CARGO_BIN_EXE_yard"));
    command.env_remove("YARD_SERVER").env_remove("YARD_TOKEN").env("YARD_DATA", &data).current_dir("/");
    let answer = Answer::from(command.args(["nodes", "-o", "json"]).output().expect("it can be run"));
    assert!(answer.ok().contains("v100"));
}
