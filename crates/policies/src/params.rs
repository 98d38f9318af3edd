//! What a policy is told when it is made, and how a mistake in it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::PolicyEntry;
use crate::buyers::{BuyersRest, Sight};

/// The parameter of policies that may be told to see no difference between kinds.
pub(crate) const AGNOSTIC: (&str, &str) = (
    "agnostic",
    "take all kinds to be equally fast, as schedulers that know no kinds do: true or false [false]",
);

/// The parameter of policies whose fair level leaves something.
pub(crate) const REST: (&str, &str) = (
    "rest",
    "what the fair level leaves goes to the largest total throughput (most), or to nobody until rounds give it out (none) [most]",
);
/// The parameter of policies that may be told to put several jobs on the same devices.
pub(crate) const PACKED: (&str, &str) =
    ("packed", "share devices between jobs where the belief says that it pays: true or false [false]");

/// A policy's parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// Device-seconds that past jobs received from start to end; for policies that learn from them.
    pub service: Arc<[f64]>,
    /// What was given, by key. Only keys that the policy names.
    pub values: BTreeMap<String, String>,
}

/// What is wrong with the name or the parameters of a policy or placer. The text says what is allowed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ParamError {
    /// Nothing has this name.
    #[error("no {what} is called `{name}`; did you mean `{nearest}`? There are: {known}")]
    Unknown {
        /// Policy or placer.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The most similar name.
        nearest: String,
        /// All names.
        known: String,
    },
    /// The policy has no such parameter.
    #[error("{policy} has no parameter `{key}`: it takes {known}")]
    Key {
        /// The policy.
        policy: &'static str,
        /// The key that was given.
        key: String,
        /// The keys it has.
        known: String,
    },
    /// A parameter is not written `key=value`, or is given twice.
    #[error("`{part}`: write each parameter once, as key=value")]
    Form {
        /// The part that is not understood.
        part: String,
    },
    /// A value that is not allowed.
    #[error("{key}={value}: must be {allowed}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The policy learns from past jobs, and their service is missing or not usable.
    #[error("{policy} needs the service of past jobs ({reason}): {how}")]
    Service {
        /// The policy.
        policy: &'static str,
        /// What is wrong with what it got.
        reason: String,
        /// How to give it.
        how: &'static str,
    },
}

impl ParamError {
    pub(crate) fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> ParamError {
        let nearest = known.clone().min_by_key(|other| distance(name, other)).unwrap_or_default().to_owned();
        let known = known.collect::<Vec<_>>().join(", ");
        ParamError::Unknown { what, name: name.to_owned(), nearest, known }
    }
}

impl Params {
    /// Reads `key=value` parts, allowing only the keys of `entry`.
    pub(crate) fn read<'a>(
        entry: &PolicyEntry,
        parts: impl Iterator<Item = &'a str>,
        service: Arc<[f64]>,
    ) -> Result<Params, ParamError> {
        let mut values = BTreeMap::new();
        for part in parts {
            let form = || ParamError::Form { part: part.to_owned() };
            let (key, value) = part.split_once('=').ok_or_else(form)?;
            check_key(entry, key)?;
            if values.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(form());
            }
        }
        Ok(Params { service, values })
    }

    /// A value as it was given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Yes or no; no if it is not given.
    pub fn flag(&self, key: &'static str) -> Result<bool, ParamError> {
        match self.text(key) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => Err(bad(key, text, "true or false")),
        }
    }

    /// Numbers above zero by name, written `a*2/b*1`; none if it is not given.
    pub(crate) fn weights(&self, key: &'static str) -> Result<BTreeMap<String, f64>, ParamError> {
        let Some(text) = self.text(key) else { return Ok(BTreeMap::new()) };
        let one = |part: &str| {
            let (name, number) = part.rsplit_once('*')?;
            let number = number.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)?;
            Some((name.to_owned(), number))
        };
        let all: Option<BTreeMap<_, _>> = text.split('/').map(one).collect();
        all.ok_or_else(|| bad(key, text, "names with numbers above 0, written a*2/b*1"))
    }

    /// Where what the fair level leaves goes.
    pub(crate) fn rest(&self) -> Result<BuyersRest, ParamError> {
        match self.text("rest") {
            None | Some("most") => Ok(BuyersRest::Most),
            Some("none") => Ok(BuyersRest::None),
            Some(text) => Err(bad("rest", text, "most or none")),
        }
    }

    /// Whether kinds are told apart.
    pub(crate) fn sight(&self) -> Result<Sight, ParamError> {
        Ok(if self.flag("agnostic")? { Sight::Agnostic } else { Sight::Aware })
    }

    /// Whether jobs may share devices. What two jobs do together is known for each kind, so it is of no use to a
    /// policy that tells no kinds apart.
    pub(crate) fn packed(&self) -> Result<bool, ParamError> {
        match (self.flag("packed")?, self.flag("agnostic")?) {
            (true, true) => Err(bad(
                "packed",
                "true",
                "false where agnostic=true: jobs that share devices differ by kind",
            )),
            (packed, _) => Ok(packed),
        }
    }

    /// A number above zero.
    pub fn positive(&self, key: &'static str) -> Result<Option<f64>, ParamError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.map(Some).ok_or_else(|| bad(key, text, "a number above 0"))
    }

    /// Ascending numbers above zero, written `a/b/c`.
    pub fn ascending(&self, key: &'static str) -> Result<Option<Vec<f64>>, ParamError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let numbers: Option<Vec<f64>> = text.split('/').map(|part| part.parse().ok()).collect();
        let fine = |numbers: &Vec<f64>| {
            numbers.iter().all(|number| number.is_finite() && *number > 0.0)
                && numbers.windows(2).all(|pair| pair[0] < pair[1])
        };
        let error = || bad(key, text, "ascending numbers above 0, written a/b/c");
        numbers.filter(fine).map(Some).ok_or_else(error)
    }
}

pub(crate) fn bad(key: &'static str, value: &str, allowed: &'static str) -> ParamError {
    ParamError::Value { key, value: value.to_owned(), allowed }
}

fn check_key(entry: &PolicyEntry, key: &str) -> Result<(), ParamError> {
    if entry.params.iter().any(|(known, _)| *known == key) {
        return Ok(());
    }
    let keys: Vec<&str> = entry.params.iter().map(|(known, _)| *known).collect();
    let known = if keys.is_empty() { "no parameters".to_owned() } else { keys.join(", ") };
    Err(ParamError::Key { policy: entry.name, key: key.to_owned(), known })
}

/// Letters to insert, drop or change to make one word of another (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (at, other) in to.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = change.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("fifo", "fifo"), 0);
    }
}
