//! docs/new-policy.md shows the policy that is compiled and tested in `yard-policies`. `make bless` rewrites the page.

use expect_test::expect_file;

const FENCE: &str = "```rust\n";

#[test]
fn the_page_has_the_code_that_is_tested() {
    let page = expect_file!["../../../docs/new-policy.md"];
    let text = page.data();
    let (before, rest) = text.split_once(FENCE).expect("the page has code");
    let (_, after) = rest.split_once("```\n").expect("the code ends");
    let code = include_str!("../../policies/src/area.rs");
    page.assert_eq(&format!("{before}{FENCE}{code}```\n{after}"));
}

#[test]
fn the_page_has_the_line_of_the_table() {
    let table = include_str!("../../policies/src/lib.rs");
    let page = include_str!("../../../docs/new-policy.md");
    for line in ["mod area;", "    area::ENTRY,\n"] {
        assert!(table.contains(line) && page.contains(line), "{line}");
    }
}
