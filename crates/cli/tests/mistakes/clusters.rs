//! Clusters.

use expect_test::expect;

use super::{check_options, check_parts};
use crate::common::{Dir, THREE_JOBS};

/// A cluster file that is refused.
fn check_cluster(toml: &str, parts: &[&str]) -> String {
    let dir = Dir::with_trace(THREE_JOBS);
    dir.write("c.toml", toml);
    check_parts(&dir, "sim --trace t.csv --cluster c.toml --policy fifo", parts)
}

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
