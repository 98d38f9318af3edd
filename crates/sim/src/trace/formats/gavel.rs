//! Gavel's traces (stanford-futuredata/gavel, `scheduler/traces`): tab-separated lines, no header.
//!
//! `job_type, command, working directory, steps argument, needs data, steps, scale factor, weight,
//! SLO, arrival`. The work is in steps, so it takes a throughput table to run one. An SLO of -1 is
//! none; another is a multiple of a duration that the file does not give, so it makes no deadline.

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{Column, ColumnTable, Row, SECONDS};
use super::super::{TraceError, Work};
use super::Head;

const COLUMNS: [&str; 10] = [
    "job_type",
    "command",
    "working_directory",
    "steps_argument",
    "needs_data",
    "steps",
    "scale_factor",
    "weight",
    "SLO",
    "arrival",
];

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.line.split('\t').count() == COLUMNS.len()
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::tabbed(text, &COLUMNS);
    let [job_type, steps, gpus, weight, slo, arrival] =
        ["job_type", "steps", "scale_factor", "weight", "SLO", "arrival"].map(|name| table.column(name));
    let (job_type, steps, gpus, weight, slo, arrival) = (job_type?, steps?, gpus?, weight?, slo?, arrival?);
    while let Some(row) = table.next_row()? {
        let (model, batch_size) = split_model(row.text(&job_type)?);
        let model = jobs.word(model);
        note_slo(&row, &slo, jobs)?;
        let submit = row.time(&arrival, SECONDS)?;
        let work = Work::Steps(row.steps(&steps)?);
        let job = jobs.add(&row.index.to_string(), submit, row.gpus(&gpus)?, work, row.line);
        (job.model, job.batch_size, job.weight) = (model, batch_size, row.weight(&weight)?);
    }
    Ok(())
}

fn note_slo(row: &Row<'_>, column: &Column, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let text = row.text(column)?;
    match text.parse::<f64>() {
        Ok(slo) if slo < 0.0 => {}
        Ok(slo) if slo.is_finite() => {
            jobs.remark("the SLO is not used: it is a multiple of a duration that the file does not give");
        }
        _ => return Err(row.bad(column, text, "is not a number", "an SLO is a number, -1 for none")),
    }
    Ok(())
}

/// `ResNet-18 (batch size 128)` as model and batch size; a name without one stays whole.
pub(crate) fn split_model(template: &str) -> (&str, Option<u32>) {
    let batch = |rest: &str| rest.strip_suffix(')').and_then(|size| size.parse().ok());
    match template.split_once(" (batch size ") {
        Some((model, rest)) if batch(rest).is_some() => (model, batch(rest)),
        _ => (template, None),
    }
}

#[cfg(test)]
mod tests {
    use super::split_model;

    #[test]
    fn templates_split() {
        assert_eq!(split_model("ResNet-18 (batch size 128)"), ("ResNet-18", Some(128)));
        assert_eq!(split_model("A3C"), ("A3C", None));
        assert_eq!(split_model("X (batch size many)"), ("X (batch size many)", None));
    }
}
