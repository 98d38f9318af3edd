//! From a path to texts: plain or gzip by content, and a tar archive as its CSV members.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::TraceError;

/// Unpacked bytes that a trace may have: some forty million jobs. A small gzip file can claim any
/// size, so what is unpacked is counted rather than trusted.
const LIMIT_BYTES: u64 = 2 << 30;

/// One text of rows: a file, or a member of an archive.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    /// The file as messages name it, `archive#member` for a member.
    pub(crate) file: &'a str,
    /// Its content.
    pub(crate) bytes: &'a [u8],
}

/// A member of an archive: where its bytes lie in the archive's.
pub(crate) struct Member {
    /// The file's name without folder and `.csv`.
    pub(crate) stem: String,
    /// Where its bytes are.
    pub(crate) at: Range<usize>,
}

/// The bytes of `path`, and the member named after a `#` unless a file has that very name.
pub(crate) fn load(path: &Path) -> Result<(Vec<u8>, Option<String>), TraceError> {
    let name = path.to_string_lossy();
    match name.rsplit_once('#') {
        Some((archive, member)) if !path.exists() => {
            Ok((read_file(Path::new(archive))?, Some(member.to_owned())))
        }
        _ => Ok((read_file(path)?, None)),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TraceError> {
    let name = path.display().to_string();
    let unreadable = |source| TraceError::Unreadable { file: name.clone(), source };
    let file = File::open(path).map_err(unreadable)?;
    read_bounded(file, &name, unreadable)
}

fn read_bounded(
    from: impl Read,
    file: &str,
    failed: impl Fn(io::Error) -> TraceError,
) -> Result<Vec<u8>, TraceError> {
    let mut bytes = Vec::new();
    from.take(LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(TraceError::TooLarge { file: file.to_owned(), limit: LIMIT_BYTES });
    }
    Ok(bytes)
}

/// The content of `bytes`, unpacked where they begin as gzip does, whatever the name says.
pub(crate) fn unpack<'a>(file: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, TraceError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(bytes));
    }
    let damaged = |source| TraceError::Damaged { file: file.to_owned(), container: "gzip", source };
    read_bounded(MultiGzDecoder::new(bytes), file, damaged).map(Cow::Owned)
}

/// Whether this is a tar archive: the magic word stands at a fixed place of the first header.
pub(crate) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// The CSV members of a tar archive in order of name, so that the order of packing does not matter.
pub(crate) fn members(file: &str, bytes: &[u8]) -> Result<Vec<Member>, TraceError> {
    let damaged = |source| TraceError::Damaged { file: file.to_owned(), container: "tar", source };
    let mut found = Vec::new();
    for entry in tar::Archive::new(bytes).entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        if let Some(stem) = csv_stem(&entry) {
            found.push(Member { stem, at: extent(&entry, bytes.len()).map_err(damaged)? });
        }
    }
    found.sort_by(|a, b| a.stem.cmp(&b.stem));
    Ok(found)
}

/// The stem of a member that is a plain `*.csv` file; sparse files, links and licences are not.
fn csv_stem<R: Read>(entry: &tar::Entry<'_, R>) -> Option<String> {
    let plain = entry.header().entry_type().is_file();
    let path = entry.path().ok()?;
    let csv = path.extension().is_some_and(|extension| extension == "csv");
    (plain && csv).then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).flatten()
}

/// Where a member lies, checked against what is there: its header may claim any size.
fn extent<R: Read>(entry: &tar::Entry<'_, R>, len: usize) -> io::Result<Range<usize>> {
    let start = entry.raw_file_position();
    let end = start.checked_add(entry.size()).filter(|&end| end <= len as u64);
    match end {
        Some(end) => Ok(start as usize..end as usize),
        None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a member is longer than the archive")),
    }
}
