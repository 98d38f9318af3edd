//! Names that people give: shown in terminals, in pages and in paths, so they hold nothing that means something there.

use super::Problem;
use crate::request::JobRequest;

const NAME_MAX: usize = 128;

/// Refuses a job whose names or words could do harm where they are shown or used.
pub(super) fn check(request: &JobRequest) -> Result<(), Problem> {
    let names = [("name", &request.name), ("tenant", &request.tenant), ("model", &request.model)];
    for (field, name) in names {
        name.as_deref().map_or(Ok(()), |name| check_name(field, name))?;
    }
    request.kinds.iter().try_for_each(|kind| check_name("kinds", kind))?;
    if request.command.first().is_none_or(String::is_empty) {
        return Err(Problem::field(
            "command",
            "command: say which program to run, such as [\"python\", \"train.py\"]",
        ));
    }
    request.command.iter().try_for_each(|word| without_nul("command", word))?;
    for (key, value) in &request.env {
        check_variable(key)?;
        without_nul("env", value)?;
    }
    Ok(())
}

/// A name without control characters, and that is no path.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), Problem> {
    let refused = |why: &str| Err(Problem::field(field, format!("{field}: {why}")));
    if name.is_empty() || name.len() > NAME_MAX {
        return refused("a name has 1 to 128 bytes");
    }
    if name.chars().any(|c| c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'))
    {
        return refused("a name has no control characters");
    }
    if name.contains('/') || name.contains("..") {
        return refused("a name is no path: leave out `/` and `..`");
    }
    Ok(())
}

/// A user's or a node's name: what operating systems and certificates take.
pub(super) fn check_plain(field: &str, name: &str) -> Result<(), Problem> {
    check_name(field, name)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.len() > 63 || name.starts_with('-') || !name.bytes().all(plain) {
        let error = format!("{field}: use at most 63 letters, digits, `.`, `-` and `_`, no `-` first");
        return Err(Problem::field(field, error));
    }
    Ok(())
}

fn check_variable(key: &str) -> Result<(), Problem> {
    if key.is_empty() || key.contains('=') {
        return Err(Problem::field("env", "env: a variable's name is not empty and has no `=`"));
    }
    without_nul("env", key)
}

fn without_nul(field: &str, word: &str) -> Result<(), Problem> {
    if word.contains('\0') {
        return Err(Problem::field(field, format!("{field}: a word cannot hold a zero byte")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RIGHT_TO_LEFT: char = '\u{202e}';

    proptest! {
        #[test]
        fn what_is_accepted_is_safe_to_show_and_to_use(name in "[ -~\u{0}-\u{20}/.\u{202e}é]{0,20}") {
            let harmless = !name.chars().any(|c| c.is_control() || c == RIGHT_TO_LEFT);
            let safe = !name.is_empty() && harmless && !name.contains('/') && !name.contains("..");
            prop_assert!(safe || check_name("name", &name).is_err());
            if check_plain("user", &name).is_ok() {
                prop_assert!(name.is_ascii() && !name.contains(' '));
            }
        }
    }

    #[test]
    fn usual_names_are_accepted() {
        for name in ["train", "resnet 50, lr=0.1", "über", "a.b-c_d"] {
            assert!(check_name("name", name).is_ok(), "{name}");
        }
    }
}
