//! What a job of a native trace asks of its hosts, on each node that it runs on: three columns, read and written here.

use std::io::{self, Write};
use std::sync::Arc;

use super::TraceError;
use super::table::{Column, ColumnTable, Row};

/// The columns, in the order in which they are written.
pub(crate) const COLUMNS: [&str; 3] = ["cpus", "memory_mib", "resources"];

const CPUS_MAX: f64 = 100_000.0;
const AMOUNT_MAX: u32 = 100_000_000;

/// What a job asks of each of its hosts. What it does not name it has with its devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostAsk {
    /// Cores.
    pub cpus: Option<f64>,
    /// Memory.
    pub memory_mib: Option<u32>,
    /// Whatever else is counted, by name.
    pub counts: Vec<(Box<str>, u32)>,
}

/// The columns of a table that say something of hosts.
pub(crate) struct HostColumns([Option<Column>; 3]);

impl HostColumns {
    pub(crate) fn of(table: &ColumnTable<'_>) -> HostColumns {
        HostColumns(COLUMNS.map(|name| table.optional(name)))
    }

    /// What a row says; none where it says nothing.
    pub(crate) fn read(&self, row: &Row<'_>) -> Result<Option<Arc<HostAsk>>, TraceError> {
        let [cpus, memory, counts] = &self.0;
        let mut asked = HostAsk::default();
        if let Some((column, text)) = row.filled(cpus.as_ref())? {
            let cores = text.parse().ok().filter(|cores| *cores > 0.0 && *cores <= CPUS_MAX);
            let allowed = format!("cpus is a number of cores above 0, up to {CPUS_MAX}");
            asked.cpus = Some(cores.ok_or_else(|| row.bad(column, text, "is not one", &allowed))?);
        }
        if let Some((column, _)) = row.filled(memory.as_ref())? {
            asked.memory_mib = Some(row.count(column, 1, AMOUNT_MAX, "memory_mib is")?);
        }
        if let Some((column, text)) = row.filled(counts.as_ref())? {
            let allowed = "resources are names and whole numbers, as in scratch_gb=100|licence=1";
            asked.counts = list(text).ok_or_else(|| row.bad(column, text, "cannot be read", allowed))?;
        }
        Ok((asked != HostAsk::default()).then(|| Arc::new(asked)))
    }
}

fn list(text: &str) -> Option<Vec<(Box<str>, u32)>> {
    let one = |part: &str| {
        let (name, count) = part.split_once('=')?;
        let count = count.trim().parse().ok().filter(|count| *count <= AMOUNT_MAX)?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.into(), count))
    };
    text.split('|').map(one).collect()
}

/// Whether something is to be written in this column.
pub(crate) fn says(asked: &HostAsk, column: usize) -> bool {
    match column {
        0 => asked.cpus.is_some(),
        1 => asked.memory_mib.is_some(),
        _ => !asked.counts.is_empty(),
    }
}

/// Writes a field; nothing where the job says nothing there.
pub(crate) fn write_field(out: &mut Vec<u8>, asked: &HostAsk, column: usize) -> io::Result<()> {
    match column {
        0 => asked.cpus.map_or(Ok(()), |cpus| write!(out, "{cpus}")),
        1 => asked.memory_mib.map_or(Ok(()), |memory| write!(out, "{memory}")),
        _ => {
            let counts: Vec<_> = asked.counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
            out.write_all(counts.join("|").as_bytes())
        }
    }
}
