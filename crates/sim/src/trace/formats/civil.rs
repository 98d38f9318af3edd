//! Wall-clock times without a zone, taken as they stand; submissions count from the first.

use jiff::civil::DateTime;
use yard_core::Time;

use super::super::TraceError;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, Row};

/// Seconds since the year 1, which every timestamp is after.
pub(super) fn instant(row: &Row<'_>, column: &Column) -> Result<Time, TraceError> {
    const EPOCH: DateTime = DateTime::constant(1, 1, 1, 0, 0, 0, 0);
    let text = row.text(column)?;
    let allowed = "a timestamp is like 2017-10-09 07:01:55";
    let at: DateTime = text.parse().map_err(|_| row.bad(column, text, "is not a date and time", allowed))?;
    let seconds = at.duration_since(EPOCH).as_secs_f64();
    if seconds < 0.0 {
        return Err(row.bad(column, text, "is before the year 1", allowed));
    }
    Ok(Time::from_secs(seconds))
}

/// Has the submissions of the jobs from `from` on count from the first of them.
pub(super) fn count_from_first(jobs: &mut TraceJobs, from: usize) {
    let list = &mut jobs.list[from..];
    let first = list.iter().map(|job| job.submit).min().unwrap_or_default();
    for job in list {
        job.submit = Time((job.submit - first).0);
    }
}
