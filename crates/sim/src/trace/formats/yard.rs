//! The native format: CSV with a header, `#` comments, columns in any order.
//!
//! `job_id`, `submit_s`, `gpus`, and `duration_s` or `steps`; all others are optional. Where both
//! `duration_s` and `steps` are columns, each row fills one of them. `deadline_s` is an instant on
//! the clock of `submit_s`; `kinds` are separated by `|`, and so are the jobs that one comes `after`. What jobs say of
//! growing and of sharing stands in columns of its own. A row with a `mode` may give neither duration nor steps: it
//! trains to the end of its model's profile.

use super::super::after;
use super::super::bytes::Text;
use super::super::close::{self, CloseColumns};
use super::super::host::{self, HostColumns};
use super::super::jobs::TraceJobs;
use super::super::scaling::{self, ScalingColumns};
use super::super::sharing::{self, SharingColumns};
use super::super::table::{Column, ColumnTable, MAX_GPUS, Row, SECONDS};
use super::super::{TraceError, TraceJob, Work};
use super::Head;

/// The columns, in the order in which they are written; those of growing and of sharing follow.
pub(crate) const COLUMNS: [&str; 16] = [
    "job_id",
    "submit_s",
    "gpus",
    "duration_s",
    "steps",
    "model",
    "batch_size",
    "user",
    "tenant",
    "weight",
    "priority",
    "deadline_s",
    "min_gpus",
    "max_gpus",
    "kinds",
    "after",
];

/// All columns.
fn all_columns() -> impl Iterator<Item = &'static str> + Clone {
    COLUMNS
        .into_iter()
        .chain(scaling::COLUMNS)
        .chain(sharing::COLUMNS)
        .chain(host::COLUMNS)
        .chain(close::COLUMNS)
}

/// Loose on purpose: a file that is nearly native gets a message about its columns.
pub(super) fn detect(head: &Head<'_>) -> bool {
    head.has(&["submit_s"]) || head.has(&["job_id", "gpus"])
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::with_header(text)?;
    let columns = Columns::of(&table, text.file)?;
    let before = jobs.list.len();
    while let Some(row) = table.next_row()? {
        columns.add_job(&row, jobs)?;
    }
    refuse_repeated(text.file, &jobs.list[before..])?;
    let read = jobs.list.split_off(before);
    jobs.list.extend(after::order(text.file, read)?);
    Ok(())
}

struct Columns {
    job_id: Column,
    submit: Column,
    gpus: Column,
    duration: Option<Column>,
    steps: Option<Column>,
    model: Option<Column>,
    batch_size: Option<Column>,
    user: Option<Column>,
    tenant: Option<Column>,
    weight: Option<Column>,
    priority: Option<Column>,
    deadline: Option<Column>,
    min_gpus: Option<Column>,
    max_gpus: Option<Column>,
    kinds: Option<Column>,
    after: Option<Column>,
    scaling: ScalingColumns,
    sharing: SharingColumns,
    host: HostColumns,
    close: CloseColumns,
}

impl Columns {
    fn of(table: &ColumnTable<'_>, file: &str) -> Result<Columns, TraceError> {
        refuse_unknown(table, file)?;
        if table.optional("mode").is_none() && table.optional("regimes").is_none() {
            table.either(["duration_s", "steps"])?;
        }
        Ok(Columns {
            job_id: table.column("job_id")?,
            submit: table.column("submit_s")?,
            gpus: table.column("gpus")?,
            duration: table.optional("duration_s"),
            steps: table.optional("steps"),
            model: table.optional("model"),
            batch_size: table.optional("batch_size"),
            user: table.optional("user"),
            tenant: table.optional("tenant"),
            weight: table.optional("weight"),
            priority: table.optional("priority"),
            deadline: table.optional("deadline_s"),
            min_gpus: table.optional("min_gpus"),
            max_gpus: table.optional("max_gpus"),
            kinds: table.optional("kinds"),
            after: table.optional("after"),
            scaling: ScalingColumns::of(table),
            sharing: SharingColumns::of(table),
            host: HostColumns::of(table),
            close: CloseColumns::of(table),
        })
    }

    fn add_job(&self, row: &Row<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
        let (submit, gpus) = (row.time(&self.submit, SECONDS)?, row.gpus(&self.gpus)?);
        let [model, user, tenant] = [&self.model, &self.user, &self.tenant].map(|c| row.filled(c.as_ref()));
        let (model, user, tenant) = (model?, user?, tenant?);
        let model = model.and_then(|(_, name)| jobs.word(name));
        let user = user.and_then(|(_, name)| jobs.word(name));
        let tenant = tenant.and_then(|(_, name)| jobs.word(name));
        let kinds = jobs.kinds(row.filled(self.kinds.as_ref())?.map_or("", |(_, list)| list));
        let sharing = self.sharing.read(row, jobs)?;
        let job = jobs.add(row.name(&self.job_id)?, submit, gpus, self.work(row)?, row.line);
        (job.model, job.user, job.tenant, job.kinds) = (model, user, tenant, kinds);
        job.sharing = sharing;
        job.host = self.host.read(row)?;
        job.close = self.close.read(row, gpus)?;
        job.after =
            row.filled(self.after.as_ref())?.map_or_else(Box::default, |(_, list)| after::names(list));
        self.fill_numbers(row, job)?;
        self.scaling.read(row, job)
    }

    fn fill_numbers(&self, row: &Row<'_>, job: &mut TraceJob) -> Result<(), TraceError> {
        if let Some((column, _)) = row.filled(self.batch_size.as_ref())? {
            job.batch_size = Some(row.batch_size(column)?);
        }
        if let Some((column, _)) = row.filled(self.weight.as_ref())? {
            job.weight = row.weight(column)?;
        }
        if let Some((column, text)) = row.filled(self.priority.as_ref())? {
            job.priority = text.parse().map_err(|_| bad_priority(row, column, text))?;
        }
        if let Some((column, _)) = row.filled(self.deadline.as_ref())? {
            job.deadline = Some(row.deadline(column, job.submit)?);
        }
        if let Some((column, _)) = row.filled(self.min_gpus.as_ref())? {
            job.min_gpus = Some(row.count(column, 1, job.gpus, "min_gpus, at most the job's gpus, is")?);
        }
        if let Some((column, _)) = row.filled(self.max_gpus.as_ref())? {
            job.max_gpus =
                Some(row.count(column, job.gpus, MAX_GPUS, "max_gpus, at least the job's gpus, is")?);
        }
        Ok(())
    }

    fn work(&self, row: &Row<'_>) -> Result<Work, TraceError> {
        let duration = row.filled(self.duration.as_ref())?;
        let steps = row.filled(self.steps.as_ref())?;
        match (duration, steps) {
            (Some((column, _)), None) => Ok(Work::Seconds(row.duration(column, SECONDS)?)),
            (None, Some((column, _))) => Ok(Work::Steps(row.steps(column)?)),
            (Some((_, seconds)), Some((column, steps))) => {
                let problem = format!("stands beside duration_s {seconds:?}");
                Err(row.bad(column, steps, &problem, ONE_OF_BOTH))
            }
            (None, None) => {
                let empty = |column| row.bad(column, "", "is empty", ONE_OF_BOTH);
                let column = self.duration.as_ref().or(self.steps.as_ref()).unwrap_or(&self.job_id);
                self.scaling.work(row)?.ok_or_else(|| empty(column))
            }
        }
    }
}

const ONE_OF_BOTH: &str = "each row gives one of duration_s and steps";

fn bad_priority(row: &Row<'_>, column: &Column, text: &str) -> TraceError {
    let allowed = format!("a priority is a whole number from {} to {}", i32::MIN, i32::MAX);
    row.bad(column, text, "is not one", &allowed)
}

fn refuse_unknown(table: &ColumnTable<'_>, file: &str) -> Result<(), TraceError> {
    let unknown = |name: &&String| all_columns().all(|known| known != name.as_str());
    let unknown: Vec<_> = table.names().iter().filter(unknown).map(|name| format!("{name:?}")).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let columns = super::shorten(&unknown.join(", "));
    let allowed = all_columns().collect::<Vec<_>>().join(", ");
    Err(TraceError::UnknownColumns { file: file.to_owned(), columns, allowed })
}

/// Results name jobs by `job_id`, so two of one name could not be told apart.
fn refuse_repeated(file: &str, jobs: &[TraceJob]) -> Result<(), TraceError> {
    let mut by_name: Vec<(u64, &TraceJob)> = jobs.iter().map(|job| (prefix(&job.name), job)).collect();
    by_name.sort_unstable_by(|(a_prefix, a), (b_prefix, b)| {
        a_prefix.cmp(b_prefix).then_with(|| a.name.cmp(&b.name)).then(a.line.cmp(&b.line))
    });
    match by_name.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1.name == pair[1].1.name) {
        None => Ok(()),
        Some(pair) => Err(TraceError::RepeatedJob {
            file: file.to_owned(),
            line: pair[1].1.line,
            name: super::shorten(&pair[1].1.name),
            first: pair[0].1.line,
        }),
    }
}

/// The first eight bytes in the order of strings: most names differ there, which spares a million
/// jobs the look at their names in memory.
fn prefix(name: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    u64::from_be_bytes(bytes)
}
