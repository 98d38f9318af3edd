//! What the crates of others may be: under which licences, and which of them in more than one version. It asks
//! `cargo tree` and works without a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Licences that go with MIT and Apache-2.0: no terms on the programs that use the crate.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0", // the list of certificate authorities, as data
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Crates that are built in several versions, how many, and who holds the old ones back. Each costs build time: one more
/// is a decision, made here first; one that is no longer needed is removed.
const SEVERAL: &[(&str, usize, &str)] = &[
    ("base64", 2, "axum, ureq"),
    ("cpufeatures", 2, "sha2, which goes with the digests of earlier events"),
    ("darling", 3, "clarabel, nvml-wrapper"),
    ("darling_core", 3, "clarabel, nvml-wrapper"),
    ("darling_macro", 3, "clarabel, nvml-wrapper"),
    ("getrandom", 3, "ring, rand_core"),
    ("itertools", 2, "clarabel"),
    ("rand", 2, "proptest ahead of the others"),
    ("rand_core", 2, "rand_chacha: same seed, same bytes"),
    ("strsim", 2, "clarabel"),
    ("syn", 3, "clarabel; most derive macros but the newest"),
    ("thiserror", 2, "clarabel"),
    ("thiserror-impl", 2, "clarabel"),
    ("winnow", 2, "toml"),
];

/// A crate as it is built here: name, version, licence.
type Built = (String, String, String);

/// All crates that building and testing on this machine needs, our own left out.
fn built() -> BTreeSet<Built> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").to_owned());
    let mut command = Command::new(cargo);
    command.args(["tree", "--workspace", "--offline", "--locked", "--prefix=none", "--format={p}|{l}"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    text.lines().filter(|line| !line.contains("(/")).filter_map(parsed).collect()
}

/// `syn v2.0.119|MIT OR Apache-2.0`, with more between.
fn parsed(line: &str) -> Option<Built> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    Some((name.to_owned(), version.to_owned(), licence.trim_end_matches(" (*)").to_owned()))
}

/// Whether an SPDX expression leaves a way to use the crate. `/` is an old way to write OR.
fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace('/', " OR ");
    let either = parts(&licence, " OR ");
    let both = |part: &&str| parts(part, " AND ").iter().all(|one| is_allowed_alone(one));
    either.iter().any(|part| both(&part.as_str()))
}

fn is_allowed_alone(licence: &str) -> bool {
    let inner = licence.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inner.map_or_else(|| LICENCES.contains(&licence), is_allowed)
}

/// The parts between a word, where that is in no parentheses.
fn parts(expression: &str, between: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for piece in expression.split(between) {
        match parts.last_mut().filter(|last| last.matches('(').count() > last.matches(')').count()) {
            Some(open) => *open += &format!("{between}{piece}"),
            None => parts.push(piece.trim().to_owned()),
        }
    }
    parts
}

#[test]
fn licences_are_read_as_they_are_meant() {
    for good in
        ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT AND ISC"]
    {
        assert!(is_allowed(good), "{good}");
    }
    for bad in ["GPL-3.0", "", "MIT AND GPL-3.0", "(GPL-2.0 OR GPL-3.0) AND MIT", "LGPL-3.0 OR GPL-3.0"] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn every_crate_may_be_used() {
    let built = built();
    assert!(built.len() > 100, "cargo tree says little: {built:?}");
    let wrong: Vec<_> = built.iter().filter(|(.., licence)| !is_allowed(licence)).collect();
    assert!(wrong.is_empty(), "crates whose licence is not in the list of this file: {wrong:#?}");
}

#[test]
fn crates_in_several_versions_are_those_of_the_list() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in built() {
        versions.entry(name).or_default().insert(version);
    }
    let found = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let found: BTreeMap<_, _> = found.map(|(name, versions)| (name.as_str(), versions.len())).collect();
    let listed: BTreeMap<_, _> = SEVERAL.iter().map(|(name, count, _)| (*name, *count)).collect();
    assert_eq!(found, listed, "left: what is built; right: the list of this file. {versions:#?}");
}

/// A channel would have every machine without it download a compiler, also where there is no network.
#[test]
fn the_lowest_compiler_is_the_same_everywhere_and_none_is_fetched() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("the file is there");
    let manifest = read("Cargo.toml");
    let lowest = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).expect("it is named");
    let lowest = lowest.trim_matches('"');
    for page in ["README.md", "CONTRIBUTING.md"] {
        assert!(read(page).contains(&format!("Rust toolchain ({lowest} or later)")), "{page}: {lowest}");
    }
    let toolchain = read("rust-toolchain.toml");
    assert!(toolchain.contains("components") && !toolchain.lines().any(|line| line.starts_with("channel")));
}
