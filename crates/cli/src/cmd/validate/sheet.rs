//! Reference data as comma-separated values without quotes: a header, then rows whose cells are asked for by name.

use std::path::Path;

use anyhow::{Context, bail};

/// A file of reference data.
pub(crate) struct Sheet {
    names: Vec<String>,
    /// The file, for messages.
    file: String,
    lines: Vec<(usize, Vec<String>)>,
}

/// A row of it.
#[derive(Clone, Copy)]
pub(crate) struct SheetRecord<'a> {
    sheet: &'a Sheet,
    line: usize,
    cells: &'a [String],
}

impl Sheet {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Sheet> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let names = lines.next().map(|(_, line)| cells(line)).with_context(|| format!("{file} is empty"))?;
        let lines: Vec<_> = lines.map(|(at, line)| (at + 1, cells(line))).collect();
        if let Some((line, row)) = lines.iter().find(|(_, row)| row.len() != names.len()) {
            bail!("{file}, line {line}: {} cells where the header has {}", row.len(), names.len());
        }
        Ok(Sheet { names, file, lines })
    }

    /// Whether it has a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = SheetRecord<'_>> {
        self.lines.iter().map(|(line, cells)| SheetRecord { sheet: self, line: *line, cells })
    }
}

impl<'a> SheetRecord<'a> {
    pub(crate) fn text(&self, name: &str) -> anyhow::Result<&'a str> {
        let at = self.sheet.names.iter().position(|known| known == name);
        let at = at.with_context(|| format!("{}: there is no column {name}", self.sheet.file))?;
        Ok(&self.cells[at])
    }

    /// A number, or nothing where the cell is empty or a dash.
    pub(crate) fn maybe(&self, name: &str) -> anyhow::Result<Option<f64>> {
        let text = self.text(name)?;
        if matches!(text, "" | "-") {
            return Ok(None);
        }
        let place = || format!("{}, line {}, {name}: {text:?} is not a number", self.sheet.file, self.line);
        text.parse().map(Some).with_context(place)
    }

    pub(crate) fn number(&self, name: &str) -> anyhow::Result<f64> {
        let missing = || format!("{}, line {}, {name}: a number is missing", self.sheet.file, self.line);
        self.maybe(name)?.with_context(missing)
    }

    /// A whole number above 0.
    pub(crate) fn count(&self, name: &str) -> anyhow::Result<u32> {
        let number = self.number(name)?;
        if number < 1.0 || number.fract() != 0.0 || number > f64::from(u32::MAX) {
            bail!("{}, line {}, {name}: {number} is no whole number above 0", self.sheet.file, self.line);
        }
        Ok(number as u32)
    }
}
