//! What a job of a native trace says of how it may grow and how soon it should be done: five columns, read and
//! written here.

use std::io::{self, Write};
use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{Late, Reward};

use super::table::{Column, ColumnTable, MAX_SECONDS, Row};
use super::{Scaling, TraceError, TraceJob, TracePhase, Work};

/// The columns, in the order in which they are written.
pub(crate) const COLUMNS: [&str; 5] = ["mode", "batch_max", "regimes", "rewards", "late"];

const LATES: [(&str, Late); 2] = [("try", Late::Try), ("refuse", Late::Refuse)];

/// The columns of a table that say something of it.
pub(crate) struct ScalingColumns([Option<Column>; 5]);

impl ScalingColumns {
    pub(crate) fn of(table: &ColumnTable<'_>) -> ScalingColumns {
        ScalingColumns(COLUMNS.map(|name| table.optional(name)))
    }

    /// The work of a row that gives neither a duration nor steps: that of its regimes, or of its model's profile.
    pub(crate) fn work(&self, row: &Row<'_>) -> Result<Option<Work>, TraceError> {
        if let Some((column, text)) = row.filled(self.0[2].as_ref())? {
            let phases = phases(row, column, text)?;
            return Ok(Some(Work::Seconds(phases.iter().map(|phase| phase.epochs * phase.epoch_s).sum())));
        }
        Ok(row.filled(self.0[0].as_ref())?.map(|_| Work::Profile))
    }

    /// Fills in what a row says.
    pub(crate) fn read(&self, row: &Row<'_>, job: &mut TraceJob) -> Result<(), TraceError> {
        let [mode, batch_max, regimes, rewards, late] = &self.0;
        if let Some((column, text)) = row.filled(mode.as_ref())? {
            let allowed = "a mode is rigid, strong or adaptive";
            job.mode =
                Some(Scaling::named(text).ok_or_else(|| row.bad(column, text, "is not one", allowed))?);
        }
        if let Some((column, _)) = row.filled(batch_max.as_ref())? {
            let least = job.batch_size.unwrap_or(1);
            job.batch_max =
                Some(row.count(column, least, u32::MAX, "batch_max, at least the batch size, is")?);
        }
        if let Some((column, text)) = row.filled(regimes.as_ref())? {
            job.regimes = Some(phases(row, column, text)?);
        }
        if let Some((column, text)) = row.filled(rewards.as_ref())? {
            read_rewards(row, column, text, job)?;
        }
        if let Some((column, text)) = row.filled(late.as_ref())? {
            let known = LATES.iter().find(|(name, _)| *name == text).map(|(_, late)| *late);
            let allowed = "a job whose deadline cannot be promised is to try or to refuse";
            job.late = known.ok_or_else(|| row.bad(column, text, "is neither", allowed))?;
        }
        Ok(())
    }
}

/// Parts separated by `|`, each of `N` numbers separated by `:`.
fn parts<const N: usize>(text: &str) -> Option<Vec<[f64; N]>> {
    let part = |part: &str| -> Option<[f64; N]> {
        let numbers: Option<Vec<f64>> = part.split(':').map(|number| number.trim().parse().ok()).collect();
        numbers?.try_into().ok()
    };
    text.split('|').map(part).collect()
}

fn phases(row: &Row<'_>, column: &Column, text: &str) -> Result<Arc<[TracePhase]>, TraceError> {
    let sound = |[batch, epochs, seconds]: &[f64; 3]| {
        let whole = batch.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(batch);
        whole && *epochs > 0.0 && *epochs <= MAX_SECONDS && *seconds > 0.0 && *seconds <= MAX_SECONDS
    };
    let in_bounds = |phases: &Vec<[f64; 3]>| phases.iter().map(|p| p[1] * p[2]).sum::<f64>() <= MAX_SECONDS;
    let phases = parts::<3>(text).filter(|phases| phases.iter().all(sound) && in_bounds(phases));
    let phase = |[batch, epochs, epoch_s]: [f64; 3]| TracePhase { batch_size: batch as u32, epochs, epoch_s };
    let phases = phases.map(|phases| phases.into_iter().map(phase).collect());
    let allowed =
        "regimes are batch size, epochs and seconds of an epoch as 32:10:61.5, all above 0, with | between";
    phases.ok_or_else(|| row.bad(column, text, "is none", allowed))
}

/// Rewards fall, and the first is for the deadline.
fn read_rewards(row: &Row<'_>, column: &Column, text: &str, job: &mut TraceJob) -> Result<(), TraceError> {
    let sound =
        |[by, worth]: &[f64; 2]| (0.0..=MAX_SECONDS).contains(by) && *worth > 0.0 && worth.is_finite();
    let allowed = "rewards are a time and its worth as 600:10, above 0, with | between, times ascending and worths falling";
    let rewards = parts::<2>(text).filter(|rewards| rewards.iter().all(sound));
    let rewards = rewards.ok_or_else(|| row.bad(column, text, "is none", allowed))?;
    let reward = |[by, worth]: [f64; 2]| Reward { by: Time::from_secs(by), worth };
    let rewards: Arc<[Reward]> = rewards.into_iter().map(reward).collect();
    if !rewards.windows(2).all(|pair| pair[0].by < pair[1].by && pair[0].worth >= pair[1].worth) {
        return Err(row.bad(column, text, "is not in order", allowed));
    }
    let first = rewards[0].by;
    if first < job.submit {
        let problem = format!("begins before the job's submission at {}", job.submit);
        return Err(row.bad(column, text, &problem, allowed));
    }
    if job.deadline.is_some_and(|deadline| deadline != first) {
        let problem = "begins at another time than deadline_s";
        return Err(row.bad(column, text, problem, "the first reward is for the deadline"));
    }
    (job.deadline, job.rewards) = (Some(first), Some(rewards));
    Ok(())
}

/// Whether something is to be written in this column.
pub(crate) fn says(job: &TraceJob, column: usize) -> bool {
    match column {
        0 => job.mode.is_some(),
        1 => job.batch_max.is_some(),
        2 => job.regimes.is_some(),
        3 => job.rewards.is_some(),
        _ => job.late != Late::Try,
    }
}

/// Writes a field; nothing where the job says nothing there.
pub(crate) fn write_field(out: &mut Vec<u8>, job: &TraceJob, column: usize) -> io::Result<()> {
    if !says(job, column) {
        return Ok(());
    }
    match column {
        0 => out.write_all(job.mode.map_or("", Scaling::name).as_bytes()),
        1 => job.batch_max.map_or(Ok(()), |size| write!(out, "{size}")),
        2 => {
            let phase =
                |phase: &TracePhase| format!("{}:{}:{}", phase.batch_size, phase.epochs, phase.epoch_s);
            write_list(out, job.regimes.iter().flat_map(|phases| phases.iter()).map(phase))
        }
        3 => {
            let reward = |reward: &Reward| format!("{}:{}", reward.by.secs(), reward.worth);
            write_list(out, job.rewards.iter().flat_map(|rewards| rewards.iter()).map(reward))
        }
        _ => {
            let name = LATES.iter().find(|(_, late)| *late == job.late).map_or("", |(name, _)| name);
            out.write_all(name.as_bytes())
        }
    }
}

fn write_list(out: &mut Vec<u8>, parts: impl Iterator<Item = String>) -> io::Result<()> {
    out.write_all(parts.collect::<Vec<_>>().join("|").as_bytes())
}
