//! Reading a folder of applications.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use yard_core::Span;
use yard_core::training::Noise;

use super::timings::{TimingCurve, Timings, first_rotation};
use super::{App, KNOWN, START_S};
use crate::throughput::{ThroughputError, Throughputs};
use crate::trace::{Column, ColumnTable, Row, Text, TraceError, load, unpack};

/// The longest time that a step may take.
const STEP_MAX_S: f64 = 1e6;

/// Whether a folder holds profiles in this form: some folder in it has a `validation-BATCH.csv`.
pub(in crate::throughput) fn is_folder(folder: &Path) -> bool {
    let runs = |path: &PathBuf| files(path, "validation-").is_ok_and(|files| !files.is_empty());
    folders(folder).is_ok_and(|folders| folders.iter().any(runs))
}

pub(in crate::throughput) fn open_folder(folder: &Path) -> Result<Throughputs, ThroughputError> {
    let mut apps = BTreeMap::new();
    for path in folders(folder)? {
        let name: Arc<str> =
            path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default().as_ref().into();
        if let Some(app) = open_app(&path, name.clone())? {
            apps.insert(name, Arc::new(app));
        }
    }
    Ok(Throughputs { apps, ..Throughputs::default() })
}

/// None where the folder has no runs.
fn open_app(folder: &Path, name: Arc<str>) -> Result<Option<App>, ThroughputError> {
    let mut runs = Vec::new();
    for (batch, path) in files(folder, "validation-")? {
        let size = batch.parse().ok().filter(|size: &u32| *size > 0);
        let size = size.ok_or_else(|| bad_name(&path, "validation-BATCH.csv names a batch size"))?;
        runs.push((size, read(&path, read_run)?));
    }
    runs.sort_by_key(|(size, _)| *size);
    let known = KNOWN.iter().find(|(app, ..)| *app == &*name);
    let epochs_max = known.map_or(usize::MAX, |known| known.1);
    let epochs = runs.iter().map(|(_, run)| run.len()).min().unwrap_or(0).min(epochs_max);
    if epochs == 0 {
        return Ok(None);
    }
    let by_end = |epoch: usize| runs.iter().map(|(_, run)| run[epoch].0).fold(f64::INFINITY, f64::min);
    let ends: Vec<f64> = (0..epochs).map(by_end).collect();
    if let Some(at) = (1..epochs).find(|at| ends[*at] <= ends[at - 1]) {
        let path = folder.join("validation-*.csv");
        return Err(bad_name(&path, &format!("progress does not grow in epoch {}", at + 1)));
    }
    let noise = runs.into_iter().map(|(size, run)| (size, run.into_iter().map(|(_, noise)| noise).collect()));
    let [start, believed] = known.map_or([START_S; 2], |known| [known.3, known.4]);
    Ok(Some(App {
        kinds: open_kinds(folder, &name)?,
        name,
        epochs: ends,
        noise: noise.collect(),
        slowdown: known.map_or(1.0, |known| known.2),
        starts: [start, believed].map(Span::from_whole_secs),
    }))
}

/// Kinds without a measurement on one device are left out: pipelines over several are not simulated.
fn open_kinds(folder: &Path, name: &str) -> Result<BTreeMap<Box<str>, Arc<Timings>>, ThroughputError> {
    let mut kinds = BTreeMap::new();
    for (kind, path) in files(folder, "placements-")? {
        let placed = read(&path, read_placements)?;
        let scaled = folder.join(format!("scalability-{kind}.csv"));
        let sized = if scaled.is_file() { read(&scaled, read_sizes)? } else { BTreeMap::new() };
        if placed.contains_key(&vec![1]) {
            let mut timings = Timings::new(placed, sized);
            // The artifact's own exception: more does not fit there beside what else is needed.
            if (name, &*kind) == ("deepspeech2", "rtx") {
                timings.most = timings.most.min(57);
            }
            kinds.insert(kind, Arc::new(timings));
        }
    }
    Ok(kinds)
}

/// Progress and noise at the end of each epoch.
fn read_run(text: Text<'_>) -> Result<Vec<(f64, Noise)>, TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let [progress, sqr, var] = ["progress", "grad_sqr", "grad_var"].map(|name| table.column(name));
    let (progress, sqr, var) = (progress?, sqr?, var?);
    let mut run = Vec::new();
    while let Some(row) = table.next_row()? {
        let number = |column: &Column, what: &str| {
            row.number(column, false, f64::MAX, || format!("{what} is a number from 0 up"))
        };
        let noise =
            Noise { sqr: number(&sqr, "a gradient's square")?, var: number(&var, "a gradient's variance")? };
        run.push((number(&progress, "progress")?, noise));
    }
    Ok(run)
}

fn read_placements(text: Text<'_>) -> Result<BTreeMap<Vec<u32>, TimingCurve>, TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let placement = table.column("placement")?;
    let times = Times::of(&table)?;
    let mut placed: BTreeMap<Vec<u32>, TimingCurve> = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        let digits = row.text(&placement)?;
        let counts: Option<Vec<u32>> =
            digits.chars().map(|digit| digit.to_digit(10).filter(|count| *count > 0)).collect();
        let counts = counts.filter(|counts| !counts.is_empty()).ok_or_else(|| {
            row.bad(&placement, digits, "is none", "a placement is a digit from 1 to 9 for each node")
        })?;
        placed.entry(first_rotation(&counts)).or_default().push(times.read(&row)?);
    }
    placed.values_mut().for_each(tidy);
    Ok(placed)
}

fn read_sizes(text: Text<'_>) -> Result<BTreeMap<(u32, u32), TimingCurve>, TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let (nodes, devices) = (table.column("num_nodes")?, table.column("num_replicas")?);
    let times = Times::of(&table)?;
    let mut sized: BTreeMap<(u32, u32), TimingCurve> = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        let size = (row.gpus(&nodes)?, row.gpus(&devices)?);
        sized.entry(size).or_default().push(times.read(&row)?);
    }
    sized.values_mut().for_each(tidy);
    Ok(sized)
}

/// The columns of a measurement.
struct Times {
    local: Column,
    step: Column,
    sync: Column,
}

impl Times {
    fn of(table: &ColumnTable<'_>) -> Result<Times, TraceError> {
        Ok(Times {
            local: table.column("local_bsz")?,
            step: table.column("step_time")?,
            sync: table.column("sync_time")?,
        })
    }

    fn read(&self, row: &Row<'_>) -> Result<(f64, [f64; 2]), TraceError> {
        let seconds = |column, positive| {
            row.number(column, positive, STEP_MAX_S, || "a step takes seconds, at most 1e6".to_owned())
        };
        let local = f64::from(row.batch_size(&self.local)?);
        Ok((local, [seconds(&self.step, true)?, seconds(&self.sync, false)?]))
    }
}

/// In order of examples, each once; the first measurement counts.
fn tidy(curve: &mut TimingCurve) {
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    curve.dedup_by(|again, first| again.0 == first.0);
}

fn read<T>(path: &Path, form: fn(Text<'_>) -> Result<T, TraceError>) -> Result<T, ThroughputError> {
    let file = path.display().to_string();
    let (bytes, _) = load(path)?;
    let bytes = unpack(&file, &bytes)?;
    Ok(form(Text { file: &file, bytes: &bytes })?)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, ThroughputError> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// Files named `prefixWORD.csv`, each with its word.
fn files(folder: &Path, prefix: &str) -> Result<Vec<(Box<str>, PathBuf)>, ThroughputError> {
    let word = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let word = name.strip_prefix(prefix)?.strip_suffix(".csv")?.into();
        Some((word, path))
    };
    Ok(entries(folder)?.into_iter().filter_map(word).collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ThroughputError> {
    let failed = |source| ThroughputError::Folder { folder: folder.display().to_string(), source };
    let entries: Result<Vec<_>, _> = folder.read_dir().map_err(failed)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn bad_name(path: &Path, problem: &str) -> ThroughputError {
    ThroughputError::Profile { file: path.display().to_string(), problem: problem.to_owned() }
}
