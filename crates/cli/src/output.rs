//! How results are shown: tables for people, JSON for programs; everything else goes to stderr.

#![expect(clippy::print_stderr, reason = "this is where the binary speaks to stderr")]

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Context;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// How to print results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// How to print a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Listing {
    /// A table for people.
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    /// JSON for programs.
    Json,
}

/// A message for the person at the terminal.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// An error, as one sentence.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors name their cause themselves.
        if !said.ends_with(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    eprintln!("error: {}", said.replace('\n', " "));
}

/// Whether whoever reads our output has had enough.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut io = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Text of others as it may go to a terminal: one line, and nothing that moves the cursor.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' {
                ' '
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// JSON for programs.
pub(crate) fn json(value: &impl serde::Serialize, out: &mut dyn io::Write) -> anyhow::Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_string_pretty(value)?)?)
}

/// Whether somebody watches stderr.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// A plain table; columns from `numbers` on are aligned to the right. Without names it has no header.
pub(crate) fn table(header: &[&str], numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !header.is_empty() {
        table.set_header(
            header.iter().map(|name| Cell::new(name).add_attribute(comfy_table::Attribute::Bold)),
        );
    }
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

/// A length of time in few letters, for tables.
pub(crate) fn brief(seconds: f64) -> String {
    match seconds.max(0.0) {
        s if s < 60.0 => format!("{s:.0}s"),
        s if s < 3600.0 => format!("{:.0}m", (s / 60.0).floor()),
        s if s < 86_400.0 => format!("{:.0}h{:02.0}m", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
        s => format!("{:.0}d{:02.0}h", (s / 86_400.0).floor(), (s % 86_400.0 / 3600.0).floor()),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = std::fs::write(growing(path), bytes);
    finish(path, written)
}

/// Where a file grows until it is whole: beside its place, or there where it is no plain file.
pub(crate) fn growing(path: &Path) -> PathBuf {
    if path.exists() && !path.is_file() {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Puts a file that has grown in its place, or takes it away if it could not be written.
pub(crate) fn finish(path: &Path, written: io::Result<()>) -> anyhow::Result<()> {
    let part = growing(path);
    let done = written.and_then(|()| if part == path { Ok(()) } else { std::fs::rename(&part, path) });
    if done.is_err() && part != path {
        // It may not even have been made; the error that counts is the first.
        let _ = std::fs::remove_file(&part);
    }
    done.with_context(|| format!("cannot write {}", path.display()))
}

/// Whether a file can be written there, as far as can be told without writing.
pub(crate) fn check_target(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let problem = if path.is_dir() {
        "Is a directory"
    } else if !folder.is_dir() {
        "No such file or directory"
    } else {
        return Ok(());
    };
    anyhow::bail!("cannot write {}: {problem}", path.display())
}
