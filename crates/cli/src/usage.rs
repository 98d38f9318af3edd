//! The command line as it is typed, and what is said of mistakes in it: in the words of users, not of a parser.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error, FromArgMatches};

/// From here on a limit only says how a number is stored.
const NO_LIMIT: u64 = u32::MAX as u64;

/// Reads a command line.
pub(crate) fn parse<T: FromArgMatches>(
    command: Command,
    line: impl IntoIterator<Item = OsString>,
) -> Result<T, Error> {
    let mut command = negatives(command);
    let matches = command.try_get_matches_from_mut(line).map_err(plain)?;
    T::from_arg_matches(&matches).map_err(|wrong| wrong.format(&mut command))
}

/// A negative number is a value, which its flag may refuse, and not an unknown flag.
fn negatives(command: Command) -> Command {
    let named = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_positional();
    let command = command.mut_args(|arg| if named(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(negatives)
}

fn plain(mut error: Error) -> Error {
    // An unknown flag is a mistyped one: nobody meant to pass it as a value.
    if error.get(ContextKind::SuggestedArg).is_some() {
        error.remove(ContextKind::Suggested);
    }
    let said = error.source().and_then(|source| wanted(&source.to_string()));
    let (ErrorKind::ValueValidation, Some(wanted)) = (error.kind(), said) else { return error };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (value, arg) = (text(ContextKind::InvalidValue), text(ContextKind::InvalidArg));
    let said =
        format!("invalid value '{value}' for '{arg}': {wanted}\n\nFor more information, try '--help'.\n");
    Error::raw(ErrorKind::ValueValidation, said)
}

/// What a number should have been, where the parser speaks of digits, literals and types.
fn wanted(said: &str) -> Option<String> {
    if let Some((given, range)) = said.split_once(" is not in ") {
        let (least, most) = range.split_once("..")?;
        let most = most.trim_start_matches('=');
        return match (given.starts_with('-'), most.parse::<u64>()) {
            (_, Ok(limit)) if limit < NO_LIMIT => None,
            (false, Ok(_)) if given != "0" => Some(format!("give a whole number, {most} at most")),
            _ => Some(format!("give a whole number, {least} or more")),
        };
    }
    match said {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            Some("give a whole number, such as 4".into())
        }
        "invalid float literal" | "cannot parse float from empty string" => {
            Some("give a number, such as 0.5".into())
        }
        _ if said.starts_with("number too") => Some("this number is too large or too small".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let count = clap::arg!(--count <N>).value_parser(clap::value_parser!(u32));
        let part = clap::arg!(--part <PART>).value_parser(clap::value_parser!(f64));
        let least = clap::arg!(--least <N>).value_parser(clap::value_parser!(u64).range(1..));
        let few = clap::arg!(--few <N>).value_parser(clap::value_parser!(u64).range(1..=9));
        Command::new("yard").subcommand(Command::new("do").args([count, part, least, few]))
    }

    #[derive(Debug)]
    struct Nothing;

    impl FromArgMatches for Nothing {
        fn from_arg_matches(_: &clap::ArgMatches) -> Result<Nothing, Error> {
            Ok(Nothing)
        }

        fn update_from_arg_matches(&mut self, _: &clap::ArgMatches) -> Result<(), Error> {
            Ok(())
        }
    }

    fn wrong(args: &str) -> String {
        let line = ["yard", "do"].into_iter().chain(args.split(' ')).map(OsString::from);
        let error = parse::<Nothing>(command(), line).expect_err("it is wrong").to_string();
        error.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn numbers_are_asked_for_in_plain_words() {
        let [whole, number] = ["give a whole number, such as 4", "give a number, such as 0.5"];
        let least = "give a whole number, 0 or more";
        assert_eq!(wrong("--count -1"), format!("error: invalid value '-1' for '--count <N>': {least}"));
        assert_eq!(wrong("--count many"), format!("error: invalid value 'many' for '--count <N>': {whole}"));
        assert_eq!(
            wrong("--part half"),
            format!("error: invalid value 'half' for '--part <PART>': {number}")
        );
        assert!(wrong("--count 99999999999").ends_with("4294967295 at most"));
        assert!(wrong("--least 0").ends_with("for '--least <N>': give a whole number, 1 or more"));
        assert!(wrong("--least -3").contains("give a whole number"));
        let line = ["yard", "do", "--count", "x"].map(OsString::from);
        let whole = parse::<Nothing>(command(), line).expect_err("it is no number").to_string();
        assert!(!whole.contains("Usage") && whole.ends_with("try '--help'.\n"), "{whole}");
        assert!(wrong("--few 10").ends_with("10 is not in 1..=9"));
    }

    #[test]
    fn a_mistyped_flag_is_not_offered_as_a_value() {
        let line = ["yard", "do", "--cuont", "1"].map(OsString::from);
        let said = parse::<Nothing>(command(), line).expect_err("there is no such flag").to_string();
        assert!(said.contains("'--count'") && !said.contains("to pass"), "{said}");
    }
}
