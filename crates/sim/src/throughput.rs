//! Throughput tables: how many steps a second a model makes, by kind of device and gang.
//!
//! Three forms are read: Gavel's JSON, a folder of ElasticFlow's CSV files (one a model), and the
//! native CSV `kind,model,batch_size,gpus,steps_per_s`. A speed of 0 says that it cannot run there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::trace::{Column, Row, Table, Text, TraceError, load, split_model, unpack};

/// No device makes more steps a second.
const MAX_SPEED: f64 = 1e12;

/// Speeds by kind, model, batch size and gang.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughputs {
    /// By kind and model, in order of batch size and gang.
    speeds: BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<Speed>>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Speed {
    shape: (Option<u32>, u32),
    steps_per_s: f64,
}

/// Why a throughput table was not read. Each message is one sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum ThroughputError {
    /// A file or a row that cannot be read.
    #[error(transparent)]
    Input(#[from] TraceError),
    /// A folder that cannot be listed.
    #[error("{folder}: the folder cannot be read: {source}")]
    Folder {
        /// The folder.
        folder: String,
        /// What the system said.
        source: io::Error,
    },
    /// Not the JSON of a throughput table.
    #[error("{file}: not a throughput table in Gavel's JSON: {source}")]
    Json {
        /// The file.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// An entry that cannot be a speed.
    #[error("{file}, entry {entry}: {problem}; {allowed}")]
    Entry {
        /// The file.
        file: String,
        /// The kind and the key.
        entry: String,
        /// What is wrong.
        problem: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The same shape twice.
    #[error("{file}: {entry} is there twice; each shape has one speed")]
    Repeated {
        /// The file or folder.
        file: String,
        /// Kind, model, batch size and gang.
        entry: String,
    },
    /// No speeds at all.
    #[error("{file}: there are no throughputs in it")]
    Empty {
        /// The file or folder.
        file: String,
    },
}

impl Throughputs {
    /// Reads a table: a folder as ElasticFlow's, a file that begins with `{` as Gavel's, else the
    /// native CSV; files may be gzipped.
    pub fn open(path: &Path) -> Result<Throughputs, ThroughputError> {
        let mut table = if path.is_dir() { open_folder(path)? } else { open_file(path)? };
        table.sort(&path.display().to_string())?;
        Ok(table)
    }

    /// Steps a second of a gang of `gpus` devices of `kind`; none where the table has no such entry
    /// or says that it cannot run. Batch sizes match exactly: none matches only an entry with none.
    pub fn speed(&self, kind: &str, model: &str, batch: Option<u32>, gpus: u32) -> Option<f64> {
        let speeds = self.speeds.get(kind)?.get(model)?;
        let at = speeds.binary_search_by(|speed| speed.shape.cmp(&(batch, gpus))).ok()?;
        Some(speeds[at].steps_per_s).filter(|&speed| speed > 0.0)
    }

    /// The kinds, in order of name.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.speeds.keys().map(|kind| &**kind)
    }

    /// The models of all kinds, in order of name.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let models: BTreeSet<&str> =
            self.speeds.values().flat_map(|m| m.keys().map(|model| &**model)).collect();
        models.into_iter()
    }

    fn add(&mut self, kind: &str, model: &str, batch: Option<u32>, gpus: u32, steps_per_s: f64) {
        let models = self.speeds.entry(kind.into()).or_default();
        models.entry(model.into()).or_default().push(Speed { shape: (batch, gpus), steps_per_s });
    }

    fn sort(&mut self, file: &str) -> Result<(), ThroughputError> {
        if self.speeds.is_empty() {
            return Err(ThroughputError::Empty { file: file.to_owned() });
        }
        for (kind, models) in &mut self.speeds {
            for (model, speeds) in models {
                speeds.sort_by_key(|speed| speed.shape);
                if let Some(pair) = speeds.windows(2).find(|pair| pair[0].shape == pair[1].shape) {
                    let (batch, gpus) = pair[0].shape;
                    let batch = batch.map_or(String::new(), |size| format!(" (batch size {size})"));
                    let entry = format!("{model}{batch} on {gpus} of {kind}");
                    return Err(ThroughputError::Repeated { file: file.to_owned(), entry });
                }
            }
        }
        Ok(())
    }
}

fn open_file(path: &Path) -> Result<Throughputs, ThroughputError> {
    let file = path.display().to_string();
    let (bytes, _) = load(path)?;
    let bytes = unpack(&file, &bytes)?;
    let text = Text { file: &file, bytes: &bytes };
    if bytes.trim_ascii_start().starts_with(b"{") { read_gavel(text) } else { read_native(text) }
}

/// An entry of Gavel's table: the speed alone, and those beside each other job, which are not read.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "null")]
    alone: Option<f64>,
}

/// `{"v100": {"('ResNet-18 (batch size 128)', 1)": {"null": 12.3, …}, …}, …}`. The kinds
/// `*_unconsolidated` hold the speeds of gangs spread over servers, and are not read.
fn read_gavel(text: Text<'_>) -> Result<Throughputs, ThroughputError> {
    let kinds: BTreeMap<String, BTreeMap<String, Entry>> = serde_json::from_slice(text.bytes)
        .map_err(|source| ThroughputError::Json { file: text.file.to_owned(), source })?;
    let mut table = Throughputs::default();
    for (kind, entries) in kinds.iter().filter(|(kind, _)| !kind.ends_with("_unconsolidated")) {
        for (key, entry) in entries {
            let Some(speed) = entry.alone else { continue };
            let bad = |problem: String, allowed| ThroughputError::Entry {
                file: text.file.to_owned(),
                entry: format!("{kind} {key}"),
                problem,
                allowed,
            };
            let (template, gpus) = split_key(key)
                .ok_or_else(|| bad("the key is no shape".into(), "a key is like ('A3C', 1)"))?;
            if !(0.0..=MAX_SPEED).contains(&speed) {
                return Err(bad(format!("{speed} is no speed"), "a speed is a number from 0 to 1e12"));
            }
            let (model, batch) = split_model(template);
            table.add(kind, model, batch, gpus, speed);
        }
    }
    Ok(table)
}

/// `('ResNet-18 (batch size 128)', 1)` as its two parts.
fn split_key(key: &str) -> Option<(&str, u32)> {
    let (template, gpus) = key.strip_prefix("('")?.strip_suffix(')')?.rsplit_once("', ")?;
    gpus.parse().ok().filter(|&gpus| gpus > 0).map(|gpus| (template, gpus))
}

/// One file a model, one row a global batch size, one column a gang; the folder `throughputs_A100`
/// is of the kind `a100`.
fn open_folder(folder: &Path) -> Result<Throughputs, ThroughputError> {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let kind = name.rsplit_once("throughputs_").map_or(name.as_str(), |(_, kind)| kind);
    let mut table = Throughputs::default();
    for path in csv_files(folder)? {
        let file = path.display().to_string();
        let model = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let (bytes, _) = load(&path)?;
        let bytes = unpack(&file, &bytes)?;
        read_model(Text { file: &file, bytes: &bytes }, kind, &model, &mut table)?;
    }
    Ok(table)
}

fn csv_files(folder: &Path) -> Result<Vec<PathBuf>, ThroughputError> {
    let failed = |source| ThroughputError::Folder { folder: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_model(
    text: Text<'_>,
    kind: &str,
    model: &str,
    table: &mut Throughputs,
) -> Result<(), ThroughputError> {
    let mut rows = Table::with_header(text)?;
    let batch_size = rows.column("global_batch_size")?;
    let gangs = gangs(&rows, text.file)?;
    while let Some(row) = rows.next_row()? {
        let batch = row.batch_size(&batch_size)?;
        for (gpus, column) in &gangs {
            if let Some(speed) = speed_or_none(&row, column)? {
                table.add(kind, model, Some(batch), *gpus, speed);
            }
        }
    }
    Ok(())
}

fn gangs(table: &Table<'_>, file: &str) -> Result<Vec<(u32, Column)>, ThroughputError> {
    let mut gangs = Vec::new();
    for name in table.names().iter().filter(|name| *name != "global_batch_size") {
        let gpus =
            name.parse().ok().filter(|&gpus: &u32| gpus > 0).ok_or_else(|| ThroughputError::Entry {
                file: file.to_owned(),
                entry: format!("column {name:?}"),
                problem: "is no number of gpus".to_owned(),
                allowed: "the columns are global_batch_size and numbers of gpus",
            })?;
        gangs.push((gpus, table.column(name)?));
    }
    Ok(gangs)
}

/// ElasticFlow writes nothing, `nan` or 0 where a shape cannot run.
fn speed_or_none(row: &Row<'_>, column: &Column) -> Result<Option<f64>, TraceError> {
    match row.text(column)? {
        text if text.is_empty() || text.eq_ignore_ascii_case("nan") => Ok(None),
        _ => speed(row, column).map(Some),
    }
}

fn read_native(text: Text<'_>) -> Result<Throughputs, ThroughputError> {
    let mut rows = Table::with_header(text)?;
    let (kind, model, gpus) = (rows.column("kind")?, rows.column("model")?, rows.column("gpus")?);
    let (batch_size, steps_per_s) = (rows.optional("batch_size"), rows.column("steps_per_s")?);
    let mut table = Throughputs::default();
    while let Some(row) = rows.next_row()? {
        let batch = row.filled(batch_size.as_ref())?.map(|(column, _)| row.batch_size(column)).transpose()?;
        let speed = speed(&row, &steps_per_s)?;
        table.add(row.text(&kind)?, row.text(&model)?, batch, row.gpus(&gpus)?, speed);
    }
    Ok(table)
}

fn speed(row: &Row<'_>, column: &Column) -> Result<f64, TraceError> {
    row.number(column, false, MAX_SPEED, || "a speed is a number of steps a second from 0 up".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(text: &str) -> Result<Throughputs, ThroughputError> {
        let mut table = read_native(Text { file: "t.csv", bytes: text.as_bytes() })?;
        table.sort("t.csv").map(|()| table)
    }

    fn gavel(text: &str) -> Result<Throughputs, ThroughputError> {
        read_gavel(Text { file: "t.json", bytes: text.as_bytes() })
    }

    #[test]
    fn native_tables_look_up_exact_shapes() {
        let table =
            native("kind,model,batch_size,gpus,steps_per_s\nk,m,8,2,3.5\nk,m,,1,2\nk,m,8,1,0\n").unwrap();
        assert_eq!(table.speed("k", "m", Some(8), 2), Some(3.5));
        assert_eq!(table.speed("k", "m", None, 1), Some(2.0));
        assert_eq!(table.speed("k", "m", Some(8), 1), None);
        assert_eq!(table.speed("k", "m", Some(8), 4), None);
        assert_eq!(table.speed("x", "m", Some(8), 2), None);
        assert_eq!(
            (table.kinds().collect::<Vec<_>>(), table.models().collect::<Vec<_>>()),
            (vec!["k"], vec!["m"])
        );
    }

    #[test]
    fn bad_tables_name_the_entry() {
        let message = |error: ThroughputError| error.to_string();
        assert_eq!(
            message(native("kind,model,gpus,steps_per_s\nk,m,1,-2\n").unwrap_err()),
            "t.csv, line 2, field steps_per_s: \"-2\" is negative; a speed is a number of steps a second from 0 up"
        );
        assert_eq!(
            message(native("kind,model,gpus,steps_per_s\nk,m,1,2\nk,m,1,3\n").unwrap_err()),
            "t.csv: m on 1 of k is there twice; each shape has one speed"
        );
        assert_eq!(
            message(gavel(r#"{"v100": {"('A3C', 1)": {"null": -1.0}}}"#).unwrap_err()),
            "t.json, entry v100 ('A3C', 1): -1 is no speed; a speed is a number from 0 to 1e12"
        );
        assert_eq!(
            message(gavel(r#"{"v100": {"A3C": {"null": 1.0}}}"#).unwrap_err()),
            "t.json, entry v100 A3C: the key is no shape; a key is like ('A3C', 1)"
        );
        assert!(message(gavel("{\"v100\": 3}").unwrap_err()).starts_with("t.json: not a throughput table"));
        assert_eq!(
            message(native("kind,model,gpus,steps_per_s\n").unwrap_err()),
            "t.csv: there are no throughputs in it"
        );
    }

    #[test]
    fn gavel_reads_speeds_alone_only() {
        let table = gavel(
            r#"{"v100": {"('LM (batch size 5)', 2)": {"null": 4.5, "('A3C', 1)": [1.0, 2.0]}},
                "v100_unconsolidated": {"('LM (batch size 5)', 2)": {"null": 1.5}}}"#,
        );
        let table = table.unwrap();
        assert_eq!(table.speed("v100", "LM", Some(5), 2), Some(4.5));
        assert_eq!(table.kinds().collect::<Vec<_>>(), ["v100"]);
    }
}
