//! TOML files of users: every mistake is one sentence with file, field and remedy.

use std::path::Path;

use anyhow::{Context, anyhow};
use serde::de::DeserializeOwned;
use yard_planner::Flaw;

/// A file of no more than this is read.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = text(path)?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map_or(String::new(), |line| format!(", line {line}"));
        anyhow!("{}{place}: {}", path.display(), error.message().replace('\n', " "))
    })
}

/// The text of a file.
pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    let unreadable = || format!("{}: the file cannot be read", path.display());
    let size = std::fs::metadata(path).with_context(unreadable)?.len();
    anyhow::ensure!(
        size <= BYTES_MAX,
        "{}: {size} bytes are more than a description of a model has",
        path.display()
    );
    std::fs::read_to_string(path).with_context(unreadable)
}

/// A flaw of a field, with its file.
pub(super) fn of(path: &Path) -> impl Fn(Flaw) -> anyhow::Error {
    move |flaw| anyhow!("{}: {flaw}", path.display())
}
