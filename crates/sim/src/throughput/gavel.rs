//! Gavel's JSON: `{"v100": {"('ResNet-18 (batch size 128)', 1)": {"null": 12.3, "('LM (batch size 5)', 1)":
//! [8.1, 40.2], …}, …}, …}`: steps a second alone, and of both beside each other. `[0, 0]` says that they
//! cannot. The kinds `*_unconsolidated` hold the speeds of gangs spread over servers.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::{Profile, ThroughputEntry, ThroughputError, Throughputs, plain};
use crate::trace::{Text, split_model};

/// What a kind that ends so holds: speeds of gangs spread over servers.
const SPREAD: &str = "_unconsolidated";

/// Keys with their values, in order; a key that comes twice is there twice.
struct Entries<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys(PhantomData))
    }
}

struct Keys<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Keys<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Cell {
    Alone(Option<f64>),
    Pair(Vec<f64>),
}

pub(super) fn read(text: Text<'_>) -> Result<Throughputs, ThroughputError> {
    let kinds: Entries<Entries<Entries<Cell>>> = serde_json::from_slice(text.bytes)
        .map_err(|source| ThroughputError::Json { file: text.file.to_owned(), source })?;
    let mut table = Throughputs::default();
    for (kind, entries) in &kinds.0 {
        for (key, cells) in &entries.0 {
            let profile = profile(text.file, kind, key)?;
            for (beside, cell) in &cells.0 {
                read_cell(text.file, kind, &profile, (key, beside), cell, &mut table)?;
            }
        }
    }
    Ok(table)
}

fn read_cell(
    file: &str,
    kind: &str,
    profile: &Profile,
    (key, beside): (&str, &str),
    cell: &Cell,
    table: &mut Throughputs,
) -> Result<(), ThroughputError> {
    let place =
        || if beside == "null" { format!("{kind} {key}") } else { format!("{kind} {key} beside {beside}") };
    let spread = kind.ends_with(SPREAD);
    let name = kind.strip_suffix(SPREAD).unwrap_or(kind);
    match (beside, cell) {
        ("null", Cell::Alone(None)) => Ok(()),
        ("null", Cell::Alone(Some(speed))) => table.add_named(
            file,
            place,
            ThroughputEntry { spread, ..ThroughputEntry::alone(name, profile.clone(), *speed) },
        ),
        (_, Cell::Pair(speeds)) if beside != "null" && speeds.len() == 2 => {
            if spread {
                return Ok(()); // What neighbours take from each other is read off one server.
            }
            let other = self::profile(file, kind, beside)?;
            if other.gpus != profile.gpus {
                return Err(bad(
                    file,
                    place(),
                    "the gangs differ",
                    "jobs on the same devices have gangs of one size",
                ));
            }
            // The other's part stands in its own entry; where it has none, this one tells it.
            table.tell(name, &other, profile, speeds[1]);
            table.add_named(
                file,
                place,
                ThroughputEntry {
                    beside: Some(other),
                    ..ThroughputEntry::alone(name, profile.clone(), speeds[0])
                },
            )
        }
        _ => {
            Err(bad(file, place(), "is no speed", "alone a job has one speed, beside another a list of two"))
        }
    }
}

fn profile(file: &str, kind: &str, key: &str) -> Result<Profile, ThroughputError> {
    let split = split_key(key).ok_or_else(|| {
        bad(file, format!("{kind} {key}"), "the key is no shape", "a key is like ('A3C', 1)")
    })?;
    let (model, batch_size) = split_model(split.0);
    Ok(Profile { model: model.into(), batch_size, gpus: split.1 })
}

fn bad(file: &str, entry: String, problem: &str, allowed: &'static str) -> ThroughputError {
    ThroughputError::Entry {
        file: file.to_owned(),
        entry: plain(&entry),
        problem: problem.to_owned(),
        allowed,
    }
}

/// `('ResNet-18 (batch size 128)', 1)` as its two parts.
fn split_key(key: &str) -> Option<(&str, u32)> {
    let (template, gpus) = key.strip_prefix("('")?.strip_suffix(')')?.rsplit_once("', ")?;
    gpus.parse().ok().filter(|&gpus| gpus > 0).map(|gpus| (template, gpus))
}
