//! Opening a trace of any format.

use std::path::Path;

use super::bytes::{Member, Text, is_tar, load, members, unpack};
use super::formats::{Format, choose};
use super::jobs::TraceJobs;
use super::{Trace, TraceError};

/// A trace, and what there is to say about its reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The trace.
    pub trace: Trace,
    /// Rows left out or not used whole, a sentence for each reason:
    /// "205 of 30940 rows left out: num_gpu is 0".
    pub notes: Vec<String>,
}

/// Opens a trace in the format of this name, or in the one that its header shows (`None`, `auto`).
///
/// The file may be gzipped, and a tar archive whose CSV members are read together, each job's
/// tenant being its member where the format gives none. `archive.tar.gz#member` reads one member.
pub fn open(path: &Path, format: Option<&str>) -> Result<Opened, TraceError> {
    let (bytes, member) = load(path)?;
    read_member(&path.display().to_string(), &bytes, member.as_deref(), format)
}

/// Reads a trace from bytes, as [`open`] does from a file; `source` names them in messages.
pub fn read(source: &str, bytes: &[u8], format: Option<&str>) -> Result<Opened, TraceError> {
    read_member(source, bytes, None, format)
}

fn read_member(
    source: &str,
    bytes: &[u8],
    member: Option<&str>,
    format: Option<&str>,
) -> Result<Opened, TraceError> {
    let bytes = unpack(source, bytes)?;
    let mut jobs = TraceJobs::default();
    let format = if is_tar(&bytes) || member.is_some() {
        read_archive(source, &bytes, member, format, &mut jobs)?
    } else {
        read_text(Text { file: source, bytes: &bytes }, format, &mut jobs)?
    };
    finish(source, format, jobs)
}

fn read_text(
    text: Text<'_>,
    format: Option<&str>,
    jobs: &mut TraceJobs,
) -> Result<&'static Format, TraceError> {
    let format = choose(format, text)?;
    (format.parse)(text, jobs)?;
    Ok(format)
}

/// The first member decides the format of all.
fn read_archive(
    source: &str,
    bytes: &[u8],
    only: Option<&str>,
    format: Option<&str>,
    jobs: &mut TraceJobs,
) -> Result<&'static Format, TraceError> {
    let all = members(source, bytes)?;
    let mut chosen = None;
    for member in select(source, &all, only)? {
        let file = format!("{}#{}", source.split('#').next().unwrap_or(source), member.stem);
        let text = Text { file: &file, bytes: &bytes[member.at.clone()] };
        let before = jobs.list.len();
        chosen = Some(read_text(text, chosen.map(|format: &Format| format.name).or(format), jobs)?);
        let tenant = jobs.word(&member.stem);
        for job in &mut jobs.list[before..] {
            job.tenant = job.tenant.take().or_else(|| tenant.clone());
        }
    }
    chosen.ok_or_else(|| {
        let why = " (an archive without CSV members)".to_owned();
        TraceError::Empty { file: source.to_owned(), why }
    })
}

fn select<'m>(source: &str, all: &'m [Member], only: Option<&str>) -> Result<Vec<&'m Member>, TraceError> {
    let Some(only) = only else { return Ok(all.iter().collect()) };
    let stem = only.strip_suffix(".csv").unwrap_or(only);
    match all.iter().find(|member| member.stem == stem) {
        Some(member) => Ok(vec![member]),
        None => Err(TraceError::NoMember {
            file: source.to_owned(),
            member: only.to_owned(),
            members: all.iter().map(|member| member.stem.as_str()).collect::<Vec<_>>().join(", "),
        }),
    }
}

fn finish(source: &str, format: &'static Format, mut jobs: TraceJobs) -> Result<Opened, TraceError> {
    let notes = jobs.notes();
    if jobs.list.is_empty() {
        let why = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        return Err(TraceError::Empty { file: source.to_owned(), why });
    }
    // Stable: jobs of one instant keep the order of the file.
    jobs.list.sort_by_key(|job| job.submit);
    Ok(Opened { trace: Trace { source: source.to_owned(), format: format.name, jobs: jobs.list }, notes })
}
