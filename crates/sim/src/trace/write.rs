//! Writing a trace in the native format.

use std::io::{self, Write};

use yard_core::Time;

use super::formats::YARD_COLUMNS;
use super::{Trace, TraceJob, Work, after, close, host, scaling, sharing};

/// Writes `trace` in the native format, with the columns that some job uses.
///
/// Read back, the jobs are equal, but for `line`: numbers are written to the last digit that
/// matters, and instants below 2⁵¹ µs (71 years) are exact. Rows are in the order of the trace.
pub fn write(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let (used, sharing) = (used_columns(&trace.jobs), used_for_sharing(&trace.jobs));
    let (scaling, host) = (used_for_scaling(&trace.jobs), used_of_host(&trace.jobs));
    let close = used_of_close(&trace.jobs);
    // A name that begins with # is quoted, or it would come back as a comment.
    let mut writer = csv::WriterBuilder::new().comment(Some(b'#')).from_writer(out);
    let names = used.iter().map(|&column| YARD_COLUMNS[column]);
    let names = names.chain(scaling.iter().map(|&column| scaling::COLUMNS[column]));
    let names = names.chain(sharing.iter().map(|&column| sharing::COLUMNS[column]));
    let names = names.chain(host.iter().map(|&column| host::COLUMNS[column]));
    let names = names.chain(close.iter().map(|&column| close::COLUMNS[column]));
    writer.write_record(names).map_err(io_error)?;
    let mut field = Vec::new();
    for job in &trace.jobs {
        for &column in &used {
            field.clear();
            write_field(&mut field, job, column)?;
            writer.write_field(&field).map_err(io_error)?;
        }
        for &column in &scaling {
            field.clear();
            scaling::write_field(&mut field, job, column)?;
            writer.write_field(&field).map_err(io_error)?;
        }
        for &column in &sharing {
            field.clear();
            job.sharing.iter().try_for_each(|said| sharing::write_field(&mut field, said, column))?;
            writer.write_field(&field).map_err(io_error)?;
        }
        for &column in &host {
            field.clear();
            job.host.iter().try_for_each(|asked| host::write_field(&mut field, asked, column))?;
            writer.write_field(&field).map_err(io_error)?;
        }
        for &column in &close {
            field.clear();
            job.close.iter().try_for_each(|asked| close::write_field(&mut field, asked, column))?;
            writer.write_field(&field).map_err(io_error)?;
        }
        writer.write_record(None::<&[u8]>).map_err(io_error)?;
    }
    writer.flush()
}

/// The error itself: the conversion that `csv` brings forgets what kind it was.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The columns in which some job differs from one that does not give them.
fn used_columns(jobs: &[TraceJob]) -> Vec<usize> {
    let steps = jobs.iter().filter(|job| matches!(job.work, Work::Steps(_))).count();
    let plain = |job: &TraceJob| matches!(job.work, Work::Seconds(_)) && job.regimes.is_none();
    let any = |used: fn(&TraceJob) -> bool| jobs.iter().any(used);
    let used = [
        true,
        true,
        true,
        jobs.iter().any(plain) || jobs.is_empty(),
        steps > 0,
        any(|job| job.model.is_some()),
        any(|job| job.batch_size.is_some()),
        any(|job| job.user.is_some()),
        any(|job| job.tenant.is_some()),
        any(|job| job.weight != 1.0),
        any(|job| job.priority != 0),
        any(|job| job.deadline.is_some()),
        any(|job| job.min_gpus.is_some()),
        any(|job| job.max_gpus.is_some()),
        any(|job| !job.kinds.is_empty()),
        any(|job| !job.after.is_empty()),
    ];
    (0..YARD_COLUMNS.len()).filter(|&column| used[column]).collect()
}

fn used_for_scaling(jobs: &[TraceJob]) -> Vec<usize> {
    let said = |column| jobs.iter().any(|job| scaling::says(job, column));
    (0..scaling::COLUMNS.len()).filter(|&column| said(column)).collect()
}

fn used_for_sharing(jobs: &[TraceJob]) -> Vec<usize> {
    let said =
        |column| jobs.iter().filter_map(|job| job.sharing.as_deref()).any(|said| sharing::says(said, column));
    (0..sharing::COLUMNS.len()).filter(|&column| said(column)).collect()
}

fn used_of_host(jobs: &[TraceJob]) -> Vec<usize> {
    let said = |column| jobs.iter().filter_map(|job| job.host.as_deref()).any(|ask| host::says(ask, column));
    (0..host::COLUMNS.len()).filter(|&column| said(column)).collect()
}

fn used_of_close(jobs: &[TraceJob]) -> Vec<usize> {
    let said = |column| jobs.iter().filter_map(|job| job.close.as_ref()).any(|ask| close::says(ask, column));
    (0..close::COLUMNS.len()).filter(|&column| said(column)).collect()
}

fn write_field(out: &mut Vec<u8>, job: &TraceJob, column: usize) -> io::Result<()> {
    match (YARD_COLUMNS[column], job.work) {
        ("job_id", _) => out.write_all(job.name.as_bytes()),
        ("submit_s", _) => write_time(out, job.submit),
        ("gpus", _) => write!(out, "{}", job.gpus),
        ("duration_s", Work::Seconds(_)) if job.regimes.is_some() => Ok(()),
        ("duration_s", Work::Seconds(amount)) | ("steps", Work::Steps(amount)) => write!(out, "{amount}"),
        ("duration_s" | "steps", _) => Ok(()),
        ("model", _) => write_word(out, job.model.as_deref()),
        ("batch_size", _) => write_count(out, job.batch_size),
        ("user", _) => write_word(out, job.user.as_deref()),
        ("tenant", _) => write_word(out, job.tenant.as_deref()),
        ("weight", _) => write!(out, "{}", job.weight),
        ("priority", _) => write!(out, "{}", job.priority),
        ("deadline_s", _) => job.deadline.map_or(Ok(()), |deadline| write_time(out, deadline)),
        ("min_gpus", _) => write_count(out, job.min_gpus),
        ("max_gpus", _) => write_count(out, job.max_gpus),
        ("kinds", _) => out.write_all(job.kinds.join("|").as_bytes()),
        (_, _) => out.write_all(after::field(&job.after).as_bytes()),
    }
}

fn write_word(out: &mut Vec<u8>, word: Option<&str>) -> io::Result<()> {
    out.write_all(word.unwrap_or_default().as_bytes())
}

fn write_count(out: &mut Vec<u8>, count: Option<u32>) -> io::Result<()> {
    count.map_or(Ok(()), |count| write!(out, "{count}"))
}

/// Seconds with as many decimals as there are.
fn write_time(out: &mut Vec<u8>, time: Time) -> io::Result<()> {
    const MICROS: u64 = 1_000_000;
    let (seconds, micros) = (time.0 / MICROS, time.0 % MICROS);
    write!(out, "{seconds}")?;
    if micros > 0 {
        write!(out, ".{micros:06}")?;
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    Ok(())
}
