//! How results are shown: tables for people, JSON for programs; everything else goes to stderr.

#![expect(clippy::print_stderr, reason = "this is where the binary speaks to stderr")]

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::Context;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// How to print results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// A message for the person at the terminal.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// An error, as one sentence.
pub(crate) fn complain(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

/// Whether whoever reads our output has had enough.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether somebody watches stderr.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// A plain table; columns from `numbers` on are aligned to the right.
pub(crate) fn table(header: &[&str], numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|name| Cell::new(name).add_attribute(comfy_table::Attribute::Bold)));
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Seconds as people say them.
pub(crate) fn human(seconds: Option<f64>) -> String {
    match seconds {
        None => "–".into(),
        Some(s) if s < 120.0 => format!("{s:.1} s"),
        Some(s) if s < 7200.0 => format!("{:.1} min", s / 60.0),
        Some(s) if s < 172_800.0 => format!("{:.2} h", s / 3600.0),
        Some(s) => format!("{:.2} d", s / 86_400.0),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let part = part_of(path);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Where a file grows until it is whole.
pub(crate) fn part_of(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
