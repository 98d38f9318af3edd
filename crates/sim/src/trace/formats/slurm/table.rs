//! `sacct --parsable2 --format=JobID,User,Account,State,Submit,Eligible,Elapsed,ReqTRES,AllocTRES`, header included.

use yard_core::Time;

use super::super::super::TraceError;
use super::super::super::bytes::Text;
use super::super::super::jobs::TraceJobs;
use super::super::super::table::{Column, ColumnTable, Row, SECONDS};
use super::super::civil;
use super::{GpuRequest, SlurmRun, SlurmRuns, elapsed, tres};

struct SacctColumns {
    id: Column,
    state: Column,
    submit: Column,
    elapsed: Column,
    elapsed_raw: bool,
    allocated: Column,
    requested: Option<Column>,
    eligible: Option<Column>,
    user: Option<Column>,
    account: Option<Column>,
}

pub(super) fn read(text: Text<'_>, runs: &mut SlurmRuns, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let mut table = ColumnTable::separated(text, b'|')?;
    let columns = SacctColumns::of(&table)?;
    while let Some(row) = table.next_row()? {
        match columns.run(&row)? {
            Some(run) => runs.add(run, jobs),
            None => jobs.leave_out("it is a step of a job"),
        }
    }
    Ok(())
}

impl SacctColumns {
    fn of(table: &ColumnTable<'_>) -> Result<SacctColumns, TraceError> {
        Ok(SacctColumns {
            id: table.column("JobID")?,
            state: table.column("State")?,
            submit: table.column("Submit")?,
            elapsed: table.either(["ElapsedRaw", "Elapsed"])?,
            elapsed_raw: table.optional("ElapsedRaw").is_some(),
            allocated: table.either(["AllocTRES", "ReqTRES"])?,
            requested: table.optional("ReqTRES"),
            eligible: table.optional("Eligible"),
            user: table.optional("User"),
            account: table.optional("Account"),
        })
    }

    fn run(&self, row: &Row<'_>) -> Result<Option<SlurmRun>, TraceError> {
        let name = row.name(&self.id)?;
        if name.contains('.') {
            return Ok(None);
        }
        let text = |column: &Option<Column>| {
            Ok::<_, TraceError>(
                row.filled(column.as_ref())?.map_or(String::new(), |(_, text)| text.to_owned()),
            )
        };
        Ok(Some(SlurmRun {
            name: name.to_owned(),
            user: text(&self.user)?,
            account: text(&self.account)?,
            state: row.text(&self.state)?.to_owned(),
            eligible: self.eligible(row)?,
            elapsed_s: self.elapsed(row)?,
            gpus: self.gpus(row)?,
            line: row.line,
        }))
    }

    /// When the job could first have run.
    fn eligible(&self, row: &Row<'_>) -> Result<Option<Time>, TraceError> {
        let known = |text: &str| !matches!(text, "" | "Unknown" | "None");
        match row.filled(self.eligible.as_ref())? {
            Some((column, text)) if known(text) => Ok(Some(civil::instant(row, column)?)),
            Some(_) => Ok(None),
            None => Ok(Some(civil::instant(row, &self.submit)?)),
        }
    }

    fn elapsed(&self, row: &Row<'_>) -> Result<f64, TraceError> {
        if self.elapsed_raw {
            return row.duration_or_zero(&self.elapsed, SECONDS);
        }
        let text = row.text(&self.elapsed)?;
        let allowed = "Slurm writes [days-]hours:minutes:seconds";
        elapsed::seconds(text).ok_or_else(|| row.bad(&self.elapsed, text, "is not a duration", allowed))
    }

    /// As many GPUs as it had, or asked for if it had none; of the kind that it asked for.
    fn gpus(&self, row: &Row<'_>) -> Result<GpuRequest, TraceError> {
        let had = gpus_of(row, &self.allocated)?;
        let Some(requested) = &self.requested else { return Ok(GpuRequest { kind: String::new(), ..had }) };
        let asked = gpus_of(row, requested)?;
        Ok(GpuRequest { count: if had.count > 0 { had.count } else { asked.count }, kind: asked.kind })
    }
}

fn gpus_of(row: &Row<'_>, column: &Column) -> Result<GpuRequest, TraceError> {
    let text = row.text(column)?;
    tres::gpus(text).map_err(|problem| {
        row.bad(column, text, &format!("is no list of resources: {problem}"), "GPUs are written gres/gpu=4")
    })
}
