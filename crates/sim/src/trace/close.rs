//! On how many nodes a job of a native trace runs, and how close together: four columns, read and written here.

use std::io::{self, Write};

use yard_core::cluster::Level;
use yard_core::job::{Close, Shape};

use super::TraceError;
use super::table::{Column, ColumnTable, Row};

/// The columns, in the order in which they are written.
pub(crate) const COLUMNS: [&str; 4] = ["nodes", "segment", "close", "prefer"];

/// Most nodes that a job may name.
const NODES_MAX: u32 = 1 << 16;

/// On how many nodes a job runs, and how close together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CloseAsk {
    /// Exactly so many, with as many devices on each.
    pub nodes: Option<u32>,
    /// So many at a time are close, and not all of them.
    pub segment: Option<u32>,
    /// How close they must be.
    pub close: Option<Level>,
    /// How close they should be.
    pub prefer: Option<Level>,
}

impl CloseAsk {
    /// Whether so many devices can be shared evenly by the nodes it names.
    pub(crate) fn allows(&self, devices: u32) -> bool {
        self.nodes.is_none_or(|nodes| devices.is_multiple_of(nodes))
    }

    /// A shape as close together as it says, and on as many nodes. One that must be on one node stays so.
    pub(crate) fn laid(&self, shape: Shape) -> Shape {
        let asked = if self.nodes == Some(1) { Level::Node } else { self.close.unwrap_or_default() };
        let required = asked.min(shape.level());
        let preferred = self.prefer.unwrap_or(required).min(required);
        let nodes = self.nodes.filter(|nodes| *nodes > 1);
        Shape {
            close: Close { required, preferred },
            nodes,
            segment: self.segment.filter(|_| nodes.is_some()),
            ..shape
        }
    }
}

/// The columns of a table that say something of this.
pub(crate) struct CloseColumns([Option<Column>; 4]);

impl CloseColumns {
    pub(crate) fn of(table: &ColumnTable<'_>) -> CloseColumns {
        CloseColumns(COLUMNS.map(|name| table.optional(name)))
    }

    /// What a row says; none where it says nothing.
    pub(crate) fn read(&self, row: &Row<'_>, gpus: u32) -> Result<Option<CloseAsk>, TraceError> {
        let [nodes, segment, close, prefer] = &self.0;
        let mut asked = CloseAsk {
            close: level(row, close.as_ref())?,
            prefer: level(row, prefer.as_ref())?,
            ..CloseAsk::default()
        };
        if let Some((column, text)) = row.filled(nodes.as_ref())? {
            let count = row.count(column, 1, NODES_MAX, "nodes is")?;
            let allowed = format!("the {gpus} GPUs of the job must be as many on each of its nodes");
            asked.nodes = Some(count);
            if !asked.allows(gpus) {
                return Err(row.bad(column, text, "does not divide them", &allowed));
            }
        }
        if let Some((column, text)) = row.filled(segment.as_ref())? {
            let count = row.count(column, 1, NODES_MAX, "segment is")?;
            let whole = asked.nodes.is_some_and(|nodes| nodes.is_multiple_of(count));
            if !whole || (asked.close.is_none() && asked.prefer.is_none()) {
                let allowed = "segment needs nodes, of which it is a whole part, and close or prefer";
                return Err(row.bad(column, text, "cannot be a segment", allowed));
            }
            asked.segment = Some(count);
        }
        if let (Some((column, text)), Some(prefer)) = (row.filled(prefer.as_ref())?, asked.prefer)
            && prefer > asked.close.unwrap_or_default()
        {
            return Err(row.bad(column, text, "is wider than close", "prefer is no wider than close"));
        }
        Ok((asked != CloseAsk::default()).then_some(asked))
    }
}

fn level(row: &Row<'_>, column: Option<&Column>) -> Result<Option<Level>, TraceError> {
    let Some((column, text)) = row.filled(column)? else { return Ok(None) };
    let allowed = "it is node, clique, rack, block, zone or any";
    Level::named(text).map(Some).ok_or_else(|| row.bad(column, text, "is no level", allowed))
}

/// Whether something is to be written in this column.
pub(crate) fn says(asked: &CloseAsk, column: usize) -> bool {
    match column {
        0 => asked.nodes.is_some(),
        1 => asked.segment.is_some(),
        2 => asked.close.is_some(),
        _ => asked.prefer.is_some(),
    }
}

/// Writes a field; nothing where the job says nothing there.
pub(crate) fn write_field(out: &mut Vec<u8>, asked: &CloseAsk, column: usize) -> io::Result<()> {
    let count = |count: Option<u32>| count.map_or_else(String::new, |count| count.to_string());
    let level = |level: Option<Level>| level.map_or_else(String::new, |level| level.name().to_owned());
    let text = match column {
        0 => count(asked.nodes),
        1 => count(asked.segment),
        2 => level(asked.close),
        _ => level(asked.prefer),
    };
    out.write_all(text.as_bytes())
}
