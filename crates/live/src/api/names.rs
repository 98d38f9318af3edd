//! Names that come with a request but are no part of a job: of users and nodes. They are shown in terminals and
//! pages and used in certificates and paths, so they hold nothing that means something there.

use super::ApiProblem;

const NAME_MAX: usize = 63;

/// A user's or a node's name: what operating systems and certificates take.
pub(super) fn check_plain(field: &str, name: &str) -> Result<(), ApiProblem> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !first || name.len() > NAME_MAX || name.contains("..") || !name.bytes().all(plain) {
        let error =
            format!("{field}: use 1 to 63 letters, digits, `.`, `-` and `_`, with a letter or digit first");
        return Err(ApiProblem::field(field, error));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["ada", "node-1", "gpu01.rack_2", "_svc", "1"] {
            assert!(check_plain("name", name).is_ok(), "{name}");
        }
        let long = "a".repeat(64);
        for name in
            ["", ".", "..", "-a", "a/b", "a..b", "a b", "a\n", "\u{1b}[31m", "é", "\u{202e}a", long.as_str()]
        {
            assert!(check_plain("name", name).is_err(), "{name:?}");
        }
    }
}
