//! Rows of a CSV with a header, and fields that say where they stand when they are wrong.

use csv::{ByteRecord, Reader, ReaderBuilder};
use yard_core::Time;

use super::TraceError;
use super::bytes::Text;
use super::error::{BadField, shorten};

/// The largest time and duration, in seconds: some 30 000 years, far under what [`Time`] holds.
pub(crate) const MAX_SECONDS: f64 = 1e12;
/// The most devices a job may ask for.
pub(crate) const MAX_GPUS: u32 = 1_000_000;
/// The most steps a job may have.
const MAX_STEPS: f64 = 1e15;

/// The unit of a column of times.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    name: &'static str,
    seconds: f64,
}

pub(crate) const SECONDS: Unit = Unit { name: "seconds", seconds: 1.0 };
pub(crate) const MILLIS: Unit = Unit { name: "milliseconds", seconds: 1e-3 };
pub(crate) const MINUTES: Unit = Unit { name: "minutes", seconds: 60.0 };

/// A column of a table.
pub(crate) struct Column {
    index: usize,
    name: Box<str>,
}

/// A table being read, row by row.
pub(crate) struct ColumnTable<'a> {
    file: &'a str,
    names: Vec<String>,
    reader: Reader<&'a [u8]>,
    record: ByteRecord,
    rows: u64,
    bytes: &'a [u8],
    comments: bool,
}

/// One row; its fields are trimmed.
pub(crate) struct Row<'t> {
    file: &'t str,
    record: &'t ByteRecord,
    /// The line it begins on, from 1.
    pub(crate) line: u64,
    /// Its number among the rows, from 0.
    pub(crate) index: u64,
}

impl<'a> ColumnTable<'a> {
    /// A CSV with a header; lines that begin with `#` are comments.
    pub(crate) fn with_header(text: Text<'a>) -> Result<ColumnTable<'a>, TraceError> {
        let mut table = ColumnTable::over(text, ReaderBuilder::new().comment(Some(b'#')));
        table.comments = true;
        if table.advance()? {
            table.names = (0..table.record.len()).map(|i| lossy(&table.record[i])).collect();
        }
        table.refuse_repeated()?;
        table.rows = 0;
        Ok(table)
    }

    /// Lines of fields between separators, without quotes or comments, the first of them a header.
    pub(crate) fn separated(text: Text<'a>, separator: u8) -> Result<ColumnTable<'a>, TraceError> {
        let mut table = ColumnTable::over(text, ReaderBuilder::new().delimiter(separator).quoting(false));
        if table.advance()? {
            table.names = (0..table.record.len()).map(|i| lossy(&table.record[i])).collect();
        }
        table.refuse_repeated()?;
        table.rows = 0;
        Ok(table)
    }

    /// A CSV without a header, whose columns have these names.
    pub(crate) fn without_header(text: Text<'a>, names: &[&str]) -> ColumnTable<'a> {
        let mut table = ColumnTable::over(text, &mut ReaderBuilder::new());
        table.names = names.iter().map(|&name| name.to_owned()).collect();
        table
    }

    /// Tab-separated lines without header or quotes, whose columns have these names.
    pub(crate) fn tabbed(text: Text<'a>, names: &[&str]) -> ColumnTable<'a> {
        let mut table = ColumnTable::over(text, ReaderBuilder::new().delimiter(b'\t').quoting(false));
        table.names = names.iter().map(|&name| name.to_owned()).collect();
        table
    }

    fn over(text: Text<'a>, builder: &mut ReaderBuilder) -> ColumnTable<'a> {
        let reader = builder.has_headers(false).flexible(true).from_reader(text.bytes);
        let (names, record) = (Vec::new(), ByteRecord::new());
        ColumnTable { file: text.file, names, reader, record, rows: 0, bytes: text.bytes, comments: false }
    }

    fn refuse_repeated(&self) -> Result<(), TraceError> {
        let mut names: Vec<&String> = self.names.iter().collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                Err(TraceError::RepeatedColumn { file: self.file.to_owned(), column: shorten(pair[0]) })
            }
            None => Ok(()),
        }
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The column of this name, if there is one.
    pub(crate) fn optional(&self, name: &str) -> Option<Column> {
        self.names.iter().position(|n| n == name).map(|index| Column { index, name: name.into() })
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Result<Column, TraceError> {
        self.optional(name).ok_or_else(|| self.missing(name))
    }

    /// The column of the first of these names that is there: some formats changed a name over time.
    pub(crate) fn either(&self, names: [&str; 2]) -> Result<Column, TraceError> {
        let found = names.iter().find_map(|name| self.optional(name));
        found.ok_or_else(|| self.missing(&names.join(" or ")))
    }

    fn missing(&self, column: &str) -> TraceError {
        let header = shorten(&self.names.join(", "));
        TraceError::MissingColumn { file: self.file.to_owned(), column: column.to_owned(), header }
    }

    /// The next row, with as many fields as there are columns.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        if !self.advance()? {
            return Ok(None);
        }
        let line = self.line();
        let (found, expected) = (self.record.len(), self.names.len());
        if found != expected {
            return Err(TraceError::RowLength { file: self.file.to_owned(), line, found, expected });
        }
        Ok(Some(Row { file: self.file, record: &self.record, line, index: self.rows - 1 }))
    }

    fn advance(&mut self) -> Result<bool, TraceError> {
        self.rows += 1;
        let read = self.reader.read_byte_record(&mut self.record);
        read.map_err(|error| TraceError::Unreadable { file: self.file.to_owned(), source: error.into() })
    }

    /// The line on which the row begins. The reader's position is where the row before it ended, so blank
    /// lines, comments and the rest of a line end lie in between.
    fn line(&self) -> u64 {
        let Some(position) = self.record.position() else { return 0 };
        let (mut line, mut rest) = (position.line(), &self.bytes[position.byte() as usize..]);
        while let Some(first) = rest.first() {
            match first {
                b'\n' => {
                    line += 1;
                    rest = &rest[1..];
                }
                b'\r' => rest = &rest[1..],
                b'#' if self.comments => {
                    rest = &rest[rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())..]
                }
                _ => break,
            }
        }
        line
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

impl<'t> Row<'t> {
    /// The field as text, trimmed.
    pub(crate) fn text(&self, column: &Column) -> Result<&'t str, TraceError> {
        let bytes = &self.record[column.index];
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.trim()),
            Err(_) => Err(self.bad(column, &lossy(bytes), "is not UTF-8", "a field is UTF-8 text")),
        }
    }

    /// The field as text, none where it is empty or the column is absent.
    pub(crate) fn filled<'c>(
        &self,
        column: Option<&'c Column>,
    ) -> Result<Option<(&'c Column, &'t str)>, TraceError> {
        let Some(column) = column else { return Ok(None) };
        let text = self.text(column)?;
        Ok((!text.is_empty()).then_some((column, text)))
    }

    /// A name: any text but none.
    pub(crate) fn name(&self, column: &Column) -> Result<&'t str, TraceError> {
        match self.text(column)? {
            "" => Err(self.bad(column, "", "is empty", "each job has a name")),
            name => Ok(name),
        }
    }

    /// An instant in `unit`.
    pub(crate) fn time(&self, column: &Column, unit: Unit) -> Result<Time, TraceError> {
        Ok(Time::from_secs(self.measure(column, "time", unit, false)?))
    }

    /// A deadline on the clock of the submissions; one before its own submission is a duration
    /// written by mistake.
    pub(crate) fn deadline(&self, column: &Column, submit: Time) -> Result<Time, TraceError> {
        let deadline = self.time(column, SECONDS)?;
        if deadline < submit {
            let problem = format!("is before the job's submission at {submit}");
            let allowed = "a deadline is an instant on the clock of the submissions";
            return Err(self.bad(column, self.text(column)?, &problem, allowed));
        }
        Ok(deadline)
    }

    /// A duration in seconds, above 0.
    pub(crate) fn duration(&self, column: &Column, unit: Unit) -> Result<f64, TraceError> {
        self.measure(column, "duration", unit, true)
    }

    /// A duration in seconds that may be 0, for formats where such rows are left out.
    pub(crate) fn duration_or_zero(&self, column: &Column, unit: Unit) -> Result<f64, TraceError> {
        self.measure(column, "duration", unit, false)
    }

    fn measure(&self, column: &Column, what: &str, unit: Unit, positive: bool) -> Result<f64, TraceError> {
        let allowed = || {
            let from = if positive { "above 0" } else { "from 0 up" };
            format!("a {what} is a number of {} {from}", unit.name)
        };
        Ok(self.number(column, positive, MAX_SECONDS / unit.seconds, allowed)? * unit.seconds)
    }

    /// A number of steps, above 0.
    pub(crate) fn steps(&self, column: &Column) -> Result<f64, TraceError> {
        self.number(column, true, MAX_STEPS, || "steps are a number above 0".to_owned())
    }

    /// A weight, above 0.
    pub(crate) fn weight(&self, column: &Column) -> Result<f64, TraceError> {
        self.number(column, true, MAX_SECONDS, || "a weight is a number above 0".to_owned())
    }

    /// A finite number from 0, or above it, up to `max`.
    pub(crate) fn number(
        &self,
        column: &Column,
        positive: bool,
        max: f64,
        allowed: impl Fn() -> String,
    ) -> Result<f64, TraceError> {
        let text = self.text(column)?;
        match check(text, positive, max) {
            Ok(number) => Ok(number),
            Err(problem) => Err(self.bad(column, text, &problem, &allowed())),
        }
    }

    /// A number of devices that a job can ask for.
    pub(crate) fn gpus(&self, column: &Column) -> Result<u32, TraceError> {
        self.count(column, 1, MAX_GPUS, "gpus are")
    }

    /// A number of devices that may be 0, for formats where such rows are left out.
    pub(crate) fn gpus_or_zero(&self, column: &Column) -> Result<u32, TraceError> {
        self.count(column, 0, MAX_GPUS, "gpus are")
    }

    /// A batch size.
    pub(crate) fn batch_size(&self, column: &Column) -> Result<u32, TraceError> {
        self.count(column, 1, u32::MAX, "a batch size is")
    }

    /// A whole number within bounds; `4.0` is one, as data frames write it.
    pub(crate) fn count(&self, column: &Column, min: u32, max: u32, what: &str) -> Result<u32, TraceError> {
        let text = self.text(column)?;
        let number = text.parse::<u32>().map(f64::from).or_else(|_| text.parse::<f64>());
        match number {
            Ok(n) if n >= f64::from(min) && n <= f64::from(max) && n == n.trunc() => Ok(n as u32),
            number => {
                let problem = whole_problem(number.ok(), f64::from(min), f64::from(max));
                Err(self.bad(column, text, problem, &format!("{what} a whole number from {min} to {max}")))
            }
        }
    }

    /// The error for this field.
    pub(crate) fn bad(&self, column: &Column, value: &str, problem: &str, allowed: &str) -> TraceError {
        TraceError::Field(Box::new(BadField {
            file: self.file.to_owned(),
            line: self.line,
            field: column.name.to_string(),
            value: shorten(value),
            problem: problem.to_owned(),
            allowed: allowed.to_owned(),
        }))
    }
}

/// The number in `text`, or what is wrong with it.
fn check(text: &str, positive: bool, max: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "is not a number".to_owned())?;
    if !number.is_finite() {
        Err("is not a finite number".to_owned())
    } else if number < 0.0 {
        Err("is negative".to_owned())
    } else if positive && number == 0.0 {
        Err("is zero".to_owned())
    } else if number > max {
        Err(format!("is above {max:e}, more than can be meant"))
    } else {
        // Adding zero turns the -0 that "-0" parses to into 0.
        Ok(number + 0.0)
    }
}

fn whole_problem(number: Option<f64>, min: f64, max: f64) -> &'static str {
    match number {
        None => "is not a number",
        Some(n) if !n.is_finite() => "is not a finite number",
        Some(n) if n < 0.0 => "is negative",
        Some(n) if n > max => "is too large",
        Some(0.0) => "is zero",
        Some(n) if n < min => "is too small",
        Some(_) => "is not whole",
    }
}
