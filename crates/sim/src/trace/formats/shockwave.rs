//! Shockwave's jobs (github.com/uw-mad-dash/shockwave) with the schedules that its profiles give them, as JSON: an
//! array of `job_id, submit_s, gpus, model` and `regimes`, each with its `batch_size`, `epochs` and `epoch_s`. Other
//! keys are not read. The work is the time of all epochs on the devices that the job asks for.

use std::sync::Arc;

use serde::Deserialize;
use yard_core::Time;

use super::super::bytes::Text;
use super::super::jobs::TraceJobs;
use super::super::table::{MAX_GPUS, MAX_SECONDS};
use super::super::{TraceError, TracePhase, Work};
use super::Head;

pub(super) fn detect(head: &Head<'_>) -> bool {
    head.line.trim_start().starts_with('[')
}

#[derive(Deserialize)]
struct Job {
    job_id: u64,
    submit_s: f64,
    gpus: u32,
    model: Option<String>,
    regimes: Vec<TraceRegime>,
}

#[derive(Deserialize)]
struct TraceRegime {
    batch_size: u32,
    epochs: u32,
    epoch_s: f64,
}

pub(super) fn parse(text: Text<'_>, jobs: &mut TraceJobs) -> Result<(), TraceError> {
    let list: Vec<Job> = serde_json::from_slice(text.bytes)
        .map_err(|source| TraceError::Json { file: text.file.to_owned(), source })?;
    for (at, job) in list.iter().enumerate() {
        let phases = phases(job).map_err(|problem| TraceError::Element {
            file: text.file.to_owned(),
            element: at,
            problem,
        })?;
        let seconds = phases.iter().map(|phase| phase.epochs * phase.epoch_s).sum();
        let model = jobs.word(job.model.as_deref().unwrap_or_default());
        let submit = Time::from_secs(job.submit_s);
        let name = job.job_id.to_string();
        let line = at as u64 + 1;
        let added = jobs.add(&name, submit, job.gpus, Work::Seconds(seconds), line);
        (added.model, added.batch_size) = (model, phases.first().map(|phase| phase.batch_size));
        added.regimes = Some(phases);
    }
    Ok(())
}

/// The schedule of a job, or what is wrong with the job.
fn phases(job: &Job) -> Result<Arc<[TracePhase]>, String> {
    let Job { submit_s, gpus, regimes, .. } = job;
    if !(0.0..=MAX_SECONDS).contains(submit_s) {
        return Err(format!("submit_s {submit_s} is not a number of seconds from 0 up"));
    }
    if !(1..=MAX_GPUS).contains(gpus) {
        return Err(format!("gpus {gpus} is not a number from 1 to {MAX_GPUS}"));
    }
    if regimes.is_empty() {
        return Err("there are no regimes in it; a job has at least one".to_owned());
    }
    let seconds: f64 = regimes.iter().map(|regime| f64::from(regime.epochs) * regime.epoch_s).sum();
    if seconds > MAX_SECONDS {
        return Err(format!("its epochs take {seconds:e} seconds, more than can be meant"));
    }
    let phase = |regime: &TraceRegime| {
        let TraceRegime { batch_size, epochs, epoch_s } = *regime;
        let sound = batch_size > 0 && epochs > 0 && epoch_s > 0.0 && epoch_s <= MAX_SECONDS;
        let phase = TracePhase { batch_size, epochs: f64::from(epochs), epoch_s };
        sound.then_some(phase).ok_or_else(|| {
            format!("a regime of batch_size {batch_size}, {epochs} epochs and epoch_s {epoch_s} is none; all three are above 0")
        })
    };
    regimes.iter().map(phase).collect()
}
