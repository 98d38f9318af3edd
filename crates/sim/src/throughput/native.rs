//! The native forms, CSV and TOML, with the same names. CSV: a header of `kind,model,gpus,steps_per_s` and, where
//! wanted, `batch_size,spread,beside_model,beside_batch_size`. TOML: one `[[speed]]` for each row.
//!
//! - `kind` may be a mix such as `v100*2+p100*2`: a gang over several kinds, `gpus` of them in all.
//! - `spread = any` is the speed of a gang spread over nodes; else the gang lies on one node.
//! - `beside_model` makes it the speed on devices shared with one job of that model, on a gang of the same
//!   size. Both jobs of a pair have their row; 0 says that they cannot run so.

use serde::Deserialize;

use super::{Profile, ThroughputEntry, ThroughputError, Throughputs, plain, speed};
use crate::cluster::toml_problem;
use crate::trace::{Column, ColumnTable, MAX_GPUS, Row, Text, TraceError};

const COLUMNS: [&str; 8] =
    ["kind", "model", "batch_size", "gpus", "steps_per_s", "spread", "beside_model", "beside_batch_size"];

pub(super) fn read_csv(text: Text<'_>) -> Result<Throughputs, ThroughputError> {
    let mut rows = ColumnTable::with_header(text)?;
    refuse_unknown(&rows, text.file)?;
    let [kind, model, gpus, steps_per_s] =
        [rows.column("kind")?, rows.column("model")?, rows.column("gpus")?, rows.column("steps_per_s")?];
    let [batch, spread, beside, beside_batch] =
        ["batch_size", "spread", "beside_model", "beside_batch_size"].map(|name| rows.optional(name));
    let mut table = Throughputs::default();
    while let Some(row) = rows.next_row()? {
        let named = |model: &str, batch: Option<&Column>| -> Result<Profile, TraceError> {
            Ok(Profile { model: model.into(), batch_size: batch_size(&row, batch)?, gpus: row.gpus(&gpus)? })
        };
        let profile = named(row.text(&model)?, batch.as_ref())?;
        let beside =
            row.filled(beside.as_ref())?.map(|(_, other)| named(other, beside_batch.as_ref())).transpose()?;
        let kind = mix(row.text(&kind)?, profile.gpus)
            .map_err(|problem| row.bad(&kind, row.text(&kind).unwrap_or_default(), &problem, MIX))?;
        let spread =
            row.filled(spread.as_ref())?.map(|(column, text)| spread_of(&row, column, text)).transpose()?;
        let steps_per_s = speed(&row, &steps_per_s)?;
        let entry = ThroughputEntry { kind, profile, beside, spread: spread.unwrap_or(false), steps_per_s };
        let line = row.line;
        table.add_named(text.file, || format!("of line {line}"), entry)?;
    }
    Ok(table)
}

fn refuse_unknown(table: &ColumnTable<'_>, file: &str) -> Result<(), TraceError> {
    let unknown: Vec<&str> =
        table.names().iter().map(String::as_str).filter(|name| !COLUMNS.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let (columns, allowed) = (plain(&unknown.join(", ")), COLUMNS.join(", "));
    Err(TraceError::UnknownColumns { file: file.to_owned(), columns, allowed })
}

fn batch_size(row: &Row<'_>, column: Option<&Column>) -> Result<Option<u32>, TraceError> {
    row.filled(column)?.map(|(column, _)| row.batch_size(column)).transpose()
}

fn spread_of(row: &Row<'_>, column: &Column, text: &str) -> Result<bool, TraceError> {
    match text {
        "any" => Ok(true),
        "node" => Ok(false),
        _ => Err(row.bad(column, text, "is no spread", SPREAD)),
    }
}

const SPREAD: &str = "a gang lies on one node, or on any";
const MIX: &str = "a kind is a name, or a mix such as v100*2+p100*2 of `gpus` devices in all";

/// A kind as it is looked up: a mix in order of its kinds' names.
fn mix(text: &str, gpus: u32) -> Result<Box<str>, String> {
    if !text.contains(['+', '*']) {
        return if text.is_empty() { Err("is empty".into()) } else { Ok(text.into()) };
    }
    let mut parts = super::parts(text).ok_or("is no mix of kinds")?;
    parts.sort_unstable();
    if parts.len() < 2 || parts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("does not name two kinds or more, each once".into());
    }
    let total = parts.iter().fold(0u32, |sum, part| sum.saturating_add(part.1));
    if total != gpus {
        return Err(format!("has {total} devices where gpus is {gpus}"));
    }
    Ok(parts.iter().map(|(kind, n)| format!("{kind}*{n}")).collect::<Vec<_>>().join("+").into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThroughputFile {
    #[serde(default)]
    speed: Vec<ThroughputLine>,
}

/// A row of the TOML form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThroughputLine {
    kind: String,
    model: String,
    batch_size: Option<u32>,
    gpus: u32,
    steps_per_s: f64,
    spread: Option<String>,
    beside_model: Option<String>,
    beside_batch_size: Option<u32>,
}

pub(super) fn read_toml(text: Text<'_>) -> Result<Throughputs, ThroughputError> {
    let broken = |problem: String| ThroughputError::Toml { file: text.file.to_owned(), problem };
    let source = std::str::from_utf8(text.bytes).map_err(|_| broken("it is not UTF-8".into()))?;
    let file: ThroughputFile =
        toml::from_str(source).map_err(|error| broken(toml_problem(&error, source)))?;
    let mut table = Throughputs::default();
    for (at, line) in file.speed.into_iter().enumerate() {
        let place = || plain(&format!("speed {} ({} on {})", at + 1, line.model, line.kind));
        let bad = |problem: String, allowed| ThroughputError::Entry {
            file: text.file.to_owned(),
            entry: place(),
            problem,
            allowed,
        };
        if !(1..=MAX_GPUS).contains(&line.gpus) {
            return Err(bad(format!("gpus = {}", line.gpus), "gpus are a whole number from 1 to 1000000"));
        }
        let spread = match line.spread.as_deref() {
            None | Some("node") => false,
            Some("any") => true,
            Some(other) => return Err(bad(format!("spread = {other:?}"), SPREAD)),
        };
        let kind = mix(&line.kind, line.gpus).map_err(|problem| bad(format!("kind {problem}"), MIX))?;
        let gpus = line.gpus;
        let profile = Profile { model: line.model.as_str().into(), batch_size: line.batch_size, gpus };
        let other = |model: &String| Profile {
            model: model.as_str().into(),
            batch_size: line.beside_batch_size,
            gpus,
        };
        let beside = line.beside_model.as_ref().map(other);
        table.add_named(
            text.file,
            place,
            ThroughputEntry { kind, profile, beside, spread, steps_per_s: line.steps_per_s },
        )?;
    }
    Ok(table)
}
