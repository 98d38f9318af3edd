//! ElasticFlow's form: a folder of CSV files, one a model, one row a global batch size, one column a gang.

use std::path::{Path, PathBuf};

use super::{Profile, ThroughputEntry, ThroughputError, Throughputs, speed};
use crate::trace::{Column, ColumnTable, Row, Text, TraceError, load, unpack};

/// The folder `throughputs_A100` is of the kind `a100`.
pub(super) fn open_folder(folder: &Path) -> Result<Throughputs, ThroughputError> {
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
    let mut rows = ColumnTable::with_header(text)?;
    let batch_size = rows.column("global_batch_size")?;
    let gangs = gangs(&rows, text.file)?;
    while let Some(row) = rows.next_row()? {
        let batch = row.batch_size(&batch_size)?;
        for (gpus, column) in &gangs {
            if let Some(speed) = speed_or_none(&row, column)? {
                let profile = Profile { model: model.into(), batch_size: Some(batch), gpus: *gpus };
                table.add(text.file, ThroughputEntry::alone(kind, profile, speed))?;
            }
        }
    }
    Ok(())
}

fn gangs(table: &ColumnTable<'_>, file: &str) -> Result<Vec<(u32, Column)>, ThroughputError> {
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
