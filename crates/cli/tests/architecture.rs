//! Which crate may use which, and what the live driver does not know. A new edge is a decision, made here first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
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

/// Words of one way to run jobs, in small letters. The driver speaks to whoever runs jobs through `exec::Backend` alone.
const FOREIGN: &[&str] =
    &["agent", "beat", "gang", "partid", "hello", "yard_core::part", "yard_core::holder", "crate::wire"];

#[test]
fn the_driver_knows_no_agents_parts_or_beats() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../live/src/driver");
    let sources = sources(&folder);
    assert!(sources.len() > 20, "{}: {sources:?}", folder.display());
    let said: Vec<String> = sources.iter().flat_map(|path| foreign(path)).collect();
    assert!(said.is_empty(), "the driver names what is its backend's own:\n{}", said.join("\n"));
}

/// The modules of a folder; its tests run real backends and name what they like.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the driver's folder can be read");
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.map(|entry| entry.expect("its files can be listed").path()).partition(|path| path.is_dir());
    let inner = folders.into_iter().filter(|folder| !folder.ends_with("tests"));
    files.into_iter().chain(inner.flat_map(|folder| sources(&folder))).collect()
}

fn foreign(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a source is text");
    let lines = (1..).zip(text.lines().map(str::to_lowercase));
    let named = lines.flat_map(|(number, line)| {
        let words = FOREIGN.iter().filter(move |word| line.contains(*word));
        words.map(move |word| format!("{}:{number}: {word}", path.display()))
    });
    named.collect()
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
