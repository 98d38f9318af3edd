//! Names by pattern: `*` stands for any number of characters, `?` for one.

/// Whether a name is one of those that a pattern means.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut to) = (0, 0);
    // Where the last star stands, and up to where it reaches so far. Only the last one ever needs to reach further.
    let mut star = None;
    while to < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, to));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == name[to] => (at, to) = (at + 1, to + 1),
            _ => {
                let Some((stood, reached)) = star else { return false };
                (at, to) = (stood + 1, reached + 1);
                star = Some((stood, reached + 1));
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        for (pattern, name) in [
            ("*", "gpu-1"),
            ("gpu-*", "gpu-"),
            ("gpu-*", "gpu-12"),
            ("gpu-?", "gpu-1"),
            ("*-1", "gpu-1-1"),
            ("g*u*1", "gpu-21"),
            ("gpu-1", "gpu-1"),
            ("**", ""),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "gpu-1"),
            ("gpu-?", "gpu-12"),
            ("gpu-*", "cpu-1"),
            ("gpu-1", "gpu-11"),
            ("*-1", "gpu-12"),
            ("GPU-*", "gpu-1"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        let long = "a".repeat(10_000);
        assert!(!matches(&"*a".repeat(50), &(long + "b")), "a hostile pattern takes no time");
    }
}
