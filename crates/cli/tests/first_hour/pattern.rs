//! What may vary on the page: `…`.

const ANY: char = '…';

/// Whether what was printed is what the page says.
pub(crate) fn all_match(page: &[String], printed: &[String]) -> bool {
    match page {
        [] => printed.is_empty(),
        [first, rest @ ..] if is_any(first) => {
            (0..=printed.len()).any(|skipped| all_match(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => {
            printed.first().is_some_and(|line| matches(first, line)) && all_match(rest, &printed[1..])
        }
    }
}

/// What was printed, where a line that the page describes stays as the page has it.
pub(crate) fn kept(page: &[String], printed: &[String]) -> Vec<String> {
    let mut after = page;
    let mut described = |line: &String| {
        let at = after.iter().position(|old| !is_any(old) && matches(old, line))?;
        let old = &after[at];
        after = &after[at + 1..];
        Some(old.clone())
    };
    printed.iter().map(|line| described(line).unwrap_or_else(|| line.clone())).collect()
}

fn is_any(line: &str) -> bool {
    line.trim() == "…"
}

/// Whether a line is as the page says, however wide its columns are.
fn matches(pattern: &str, line: &str) -> bool {
    let (pattern, line) = (narrow(pattern), narrow(line));
    let mut parts = pattern.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Blanks in a row are one, and blanks beside `…` none: what it stands for may have any width.
fn narrow(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    words.join(" ").replace(" …", "…").replace("… ", "…")
}

#[test]
fn dots_stand_for_what_varies() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let same = |page, printed| all_match(&lines(page), &lines(printed));
    assert!(same("job 0\n…\nend", "job  0 \nend") && same("a\n…\nend", "a\nb\nc\nend"));
    assert!(same("at …:… in …", "at 127.0.0.1:7411 in /tmp") && same("took … s", "took 3.5 s"));
    assert!(!same("took … s", "took 3.5 min") && !same("a\nb", "a") && !same("a", "a\nb") && !same("", "x"));
    assert!(!same("a…b…a", "aba a b"), "what comes last is at the end");
    assert_eq!(kept(&lines("took … s\nold"), &lines("new\ntook 3 s")), lines("new\ntook … s"));
}
