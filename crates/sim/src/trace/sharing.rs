//! What a job of a native trace says of sharing its devices: nine columns, read and written here.

use std::io::{self, Write};
use std::sync::Arc;

use yard_core::job::{Claim, Sharing, Usage};

use super::TraceError;
use super::jobs::TraceJobs;
use super::table::{Column, ColumnTable, Row};

/// The columns, in the order in which they are written.
pub(crate) const COLUMNS: [&str; 9] = [
    "class",
    "max_slowdown",
    "gpu_fraction",
    "gpu_limit",
    "gpu_memory_mib",
    "gpu_busy",
    "affinity",
    "anti_affinity",
    "exclusion",
];

/// The most memory that a job may ask for on a device.
const MEMORY_MIB_MAX: u32 = 100_000_000;

const CLASSES: [(&str, Claim); 3] = [
    ("ordinary", Claim::Ordinary),
    ("guaranteed", Claim::Guaranteed),
    ("opportunistic", Claim::Opportunistic),
];

/// The columns of a table that say something of sharing.
pub(crate) struct SharingColumns([Option<Column>; 9]);

impl SharingColumns {
    pub(crate) fn of(table: &ColumnTable<'_>) -> SharingColumns {
        SharingColumns(COLUMNS.map(|name| table.optional(name)))
    }

    /// What a row says; none where it says nothing else than one without these columns.
    pub(crate) fn read(
        &self,
        row: &Row<'_>,
        jobs: &mut TraceJobs,
    ) -> Result<Option<Arc<Sharing>>, TraceError> {
        if self.0.iter().all(Option::is_none) {
            return Ok(None);
        }
        let [class, slowdown, fraction, limit, memory, busy, affinity, anti_affinity, exclusion] = &self.0;
        let mut said = Sharing::PLAIN;
        if let Some((column, text)) = row.filled(class.as_ref())? {
            said.claim = claim(row, column, text)?;
        }
        if let Some((column, _)) = row.filled(slowdown.as_ref())? {
            said.loss_max = part(row, column, false, "the part of its speed that a job may lose")?;
        }
        if let Some((column, _)) = row.filled(fraction.as_ref())? {
            said.request = part(row, column, true, "the part of a device that a job asks for")?;
        }
        if let Some((column, text)) = row.filled(limit.as_ref())? {
            said.limit = part(row, column, true, "the part of a device that a job may have")?;
            if said.limit < said.request {
                let problem = format!("is below gpu_fraction, {}", said.request);
                return Err(row.bad(column, text, &problem, "a job may have what it asks for"));
            }
        }
        if let Some((column, _)) = row.filled(memory.as_ref())? {
            said.memory_mib = Some(row.count(column, 1, MEMORY_MIB_MAX, "gpu_memory_mib is")?);
        }
        if let Some((column, _)) = row.filled(busy.as_ref())? {
            let busy = part(row, column, false, "the part of the time in which a job computes")?;
            said.usage = Some(Usage { busy, memory_mib: said.memory_mib.unwrap_or(0) });
        }
        let mut word = |column: &Option<Column>| -> Result<_, TraceError> {
            Ok(row.filled(column.as_ref())?.and_then(|(_, text)| jobs.word(text)))
        };
        said.affinity = word(affinity)?;
        said.anti_affinity = word(anti_affinity)?;
        said.exclusion = word(exclusion)?;
        Ok(jobs.sharing(said))
    }
}

fn claim(row: &Row<'_>, column: &Column, text: &str) -> Result<Claim, TraceError> {
    let known = CLASSES.iter().find(|(name, _)| *name == text).map(|(_, claim)| *claim);
    let allowed = "a class is ordinary, guaranteed or opportunistic";
    known.ok_or_else(|| row.bad(column, text, "is not one", allowed))
}

fn part(row: &Row<'_>, column: &Column, positive: bool, what: &str) -> Result<f64, TraceError> {
    let text = row.text(column)?;
    let number = text.parse().ok().filter(|part| (0.0..=1.0).contains(part) && !(positive && *part == 0.0));
    let from = if positive { "above 0" } else { "from 0" };
    // Adding zero turns the -0 that "-0" parses to into 0.
    let bad =
        || row.bad(column, text, "is out of range or not a number", &format!("it is {what}, {from} up to 1"));
    number.map(|part: f64| part + 0.0).ok_or_else(bad)
}

/// Whether something is to be written in this column.
pub(crate) fn says(said: &Sharing, column: usize) -> bool {
    let plain = &Sharing::PLAIN;
    match column {
        0 => said.claim != plain.claim,
        1 => said.loss_max != plain.loss_max,
        2 => said.request != plain.request,
        3 => said.limit != plain.limit,
        4 => said.memory_mib.is_some(),
        5 => said.usage.is_some(),
        6 => said.affinity.is_some(),
        7 => said.anti_affinity.is_some(),
        _ => said.exclusion.is_some(),
    }
}

/// Writes a field; nothing where the job says nothing there.
pub(crate) fn write_field(out: &mut Vec<u8>, said: &Sharing, column: usize) -> io::Result<()> {
    let word = |word: &Option<Arc<str>>| word.as_deref().unwrap_or_default().to_owned();
    if !says(said, column) {
        return Ok(());
    }
    match column {
        0 => {
            let name = CLASSES.iter().find(|(_, claim)| *claim == said.claim).map_or("", |(name, _)| name);
            out.write_all(name.as_bytes())
        }
        1 => write!(out, "{}", said.loss_max),
        2 => write!(out, "{}", said.request),
        3 => write!(out, "{}", said.limit),
        4 => said.memory_mib.map_or(Ok(()), |memory| write!(out, "{memory}")),
        5 => said.usage.map_or(Ok(()), |usage| write!(out, "{}", usage.busy)),
        6 => out.write_all(word(&said.affinity).as_bytes()),
        7 => out.write_all(word(&said.anti_affinity).as_bytes()),
        _ => out.write_all(word(&said.exclusion).as_bytes()),
    }
}
