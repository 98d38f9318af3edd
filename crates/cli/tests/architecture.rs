//! Which crate may use which. A new edge is a decision, made here first.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Each crate and the crates of this workspace that it builds on. What is not in the table is not allowed.
const EDGES: &[(&str, &[&str])] = &[
    ("yard", &["yard-core", "yard-live", "yard-planner", "yard-policies", "yard-sim", "yard-solver"]),
    ("yard-core", &[]),
    ("yard-live", &["yard-core"]),
    ("yard-needs", &[]),
    ("yard-planner", &[]),
    ("yard-policies", &["yard-core", "yard-solver"]),
    ("yard-sim", &["yard-core"]),
    ("yard-solver", &[]),
];

#[test]
fn crates_depend_on_each_other_as_the_table_says() {
    let allowed: BTreeMap<String, BTreeSet<String>> = EDGES
        .iter()
        .map(|(from, to)| (from.to_string(), to.iter().map(|to| to.to_string()).collect()))
        .collect();
    assert_eq!(edges(), allowed, "left: the manifests; right: the table in this file");
}

/// The edges that the manifests have. Tests and build scripts may use what they like.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let packages = packages();
    let names: BTreeSet<_> = packages.iter().map(name).collect();
    let used = |package: &Value| {
        let all = package["dependencies"].as_array().expect("a package lists its dependencies");
        all.iter().filter(|one| one["kind"].is_null()).map(name).filter(|one| names.contains(one)).collect()
    };
    packages.iter().map(|package| (name(package), used(package))).collect()
}

fn name(value: &Value) -> String {
    value["name"].as_str().expect("packages and dependencies have names").to_owned()
}

fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").to_owned());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"].as_array().expect("metadata lists the packages").clone()
}
