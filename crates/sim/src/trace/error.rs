//! What can be wrong with a trace: one sentence each, with the place, the value and what is allowed.

use std::io;

/// Why a trace, or another table of input, was not read. Each message is one sentence for the user,
/// who has to repair the file or name another; a program has nothing to retry.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be opened or read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A gzip stream or tar archive that ends early or is no such thing after its first bytes.
    #[error("{file}: the {container} data are damaged or cut short: {source}")]
    Damaged {
        /// The file as it was named.
        file: String,
        /// `gzip` or `tar`.
        container: &'static str,
        /// What the decoder said.
        source: io::Error,
    },
    /// More bytes than any trace has.
    #[error("{file}: holds more than {limit} bytes once unpacked, which is more than a trace may have")]
    TooLarge {
        /// The file as it was named.
        file: String,
        /// The bound.
        limit: u64,
    },
    /// `archive#member` names a member that is not there.
    #[error("{file}: has no member {member:?}; its CSV members are: {members}")]
    NoMember {
        /// The archive.
        file: String,
        /// The member asked for.
        member: String,
        /// Those it has, separated by commas.
        members: String,
    },
    /// No such format.
    #[error("format {name:?} is unknown; the formats are: auto, {known}")]
    UnknownFormat {
        /// The name given.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
    /// The header fits no format.
    #[error("{file}: no format has the header {header:?}; name one of: {known}")]
    Undetectable {
        /// The file as it was named.
        file: String,
        /// The first line, shortened.
        header: String,
        /// All names, separated by commas.
        known: String,
    },
    /// A column that the format needs is not in the header.
    #[error("{file}: the header has no column {column}; it has: {header}")]
    MissingColumn {
        /// The file as it was named.
        file: String,
        /// The column, or `a or b`.
        column: String,
        /// The columns there are.
        header: String,
    },
    /// Columns that the format does not know.
    #[error("{file}: the header has unknown columns: {columns}; allowed are: {allowed}")]
    UnknownColumns {
        /// The file as it was named.
        file: String,
        /// The columns in question.
        columns: String,
        /// The columns of the format.
        allowed: String,
    },
    /// A column twice.
    #[error("{file}: the header has the column {column:?} twice")]
    RepeatedColumn {
        /// The file as it was named.
        file: String,
        /// The column.
        column: String,
    },
    /// A row with more or fewer fields than the header.
    #[error("{file}, line {line}: the row has {found} fields, and {expected} are expected")]
    RowLength {
        /// The file as it was named.
        file: String,
        /// The line, from 1.
        line: u64,
        /// Fields in the row.
        found: usize,
        /// Fields in the header.
        expected: usize,
    },
    /// A value that cannot be what its column says.
    #[error(transparent)]
    Field(#[from] Box<BadField>),
    /// Not the JSON of a format.
    #[error("{file}: not the JSON of a trace: {source}")]
    Json {
        /// The file as it was named.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// An element of JSON that is no job.
    #[error("{file}, job {element}, counted from 0: {problem}")]
    Element {
        /// The file as it was named.
        file: String,
        /// Its place in the array.
        element: usize,
        /// What is wrong.
        problem: String,
    },
    /// Two jobs of one name, where names identify jobs.
    #[error(
        "{file}, line {line}, field job_id: {name:?} is also on line {first}; each job has a name of its own"
    )]
    RepeatedJob {
        /// The file as it was named.
        file: String,
        /// The later line.
        line: u64,
        /// The name.
        name: String,
        /// The earlier line.
        first: u64,
    },
    /// Nothing to run.
    #[error("{file}: there are no jobs in it{why}")]
    Empty {
        /// The file as it was named.
        file: String,
        /// Empty, or why rows were left out, in brackets.
        why: String,
    },
}

/// A value that cannot be what its column says.
#[derive(Debug, thiserror::Error)]
#[error("{file}, line {line}, field {field}: {value:?} {problem}; {allowed}")]
pub struct BadField {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column.
    pub field: String,
    /// The value, shortened.
    pub value: String,
    /// What is wrong, as in "is negative".
    pub problem: String,
    /// What is allowed.
    pub allowed: String,
}

/// A value as messages show it: whole when short, else its beginning; what would break the line or move the
/// cursor is shown as a question mark.
pub(crate) fn shorten(value: &str) -> String {
    const SHOWN: usize = 80;
    let plain = |c: char| if c.is_control() { '?' } else { c };
    let shown: String = value.chars().take(SHOWN).map(plain).collect();
    if value.chars().nth(SHOWN).is_some() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(shorten("short"), "short");
        assert_eq!(shorten(&"ä".repeat(100)), format!("{}…", "ä".repeat(80)));
    }
}
