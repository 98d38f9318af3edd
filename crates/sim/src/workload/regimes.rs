//! Jobs whose batch size changes by itself as they train. Their steps are epochs, and their speeds those of the
//! regime in which they begin.

use std::sync::Arc;

use yard_core::training::Regime;

use super::{Made, WorkloadError, WorkloadSite};
use crate::course::{Course, CourseWay, Stretch};
use crate::trace::{TraceJob, TracePhase};

impl WorkloadSite<'_> {
    /// A job that goes through its regimes on the devices it asks for.
    pub(super) fn through_regimes(&self, job: &TraceJob) -> Result<Made, WorkloadError> {
        let phases = job.regimes.as_deref().unwrap_or_default();
        let made = self.at_speeds(job, phases.iter().map(|phase| phase.epochs).sum())?;
        let Some(first) = phases.first() else { return Ok(made) };
        let (shapes, speeds) = made.ways;
        let speeds = speeds.iter().map(|speed| speed / first.epoch_s).collect();
        let regimes = regimes(phases);
        let ideal_s = phases.iter().map(|phase| phase.epochs * phase.epoch_s).sum();
        let way = CourseWay::Regimes(stretches(phases, &regimes));
        let course = Some(Arc::new(Course { way, costs: made.costs, ideal_s }));
        Ok(Made { ways: (shapes, speeds), profiled: false, regimes: Some(regimes), course, ..made })
    }
}

/// The regimes that there are: the one in which the job begins, then the others by batch size, so that their order
/// does not give away which comes when. The time of an epoch is the mean over all epochs of its batch size.
fn regimes(phases: &[TracePhase]) -> Arc<[Regime]> {
    let mut batches: Vec<u32> = phases.iter().map(|phase| phase.batch_size).collect();
    let first = batches[0];
    batches.sort_unstable_by_key(|batch| (*batch != first, *batch));
    batches.dedup();
    let mean = |batch: u32| {
        let of = || phases.iter().filter(|phase| phase.batch_size == batch);
        of().map(|phase| phase.epochs * phase.epoch_s).sum::<f64>()
            / of().map(|phase| phase.epochs).sum::<f64>()
    };
    batches.into_iter().map(|batch| Regime { batch, seconds: mean(batch) }).collect()
}

fn stretches(phases: &[TracePhase], regimes: &[Regime]) -> Vec<Stretch> {
    let mut end = 0.0;
    let stretch = |phase: &TracePhase| {
        end += phase.epochs;
        let regime = regimes.iter().position(|regime| regime.batch == phase.batch_size).unwrap_or(0);
        Stretch { regime: regime as u16, end, pace: phases[0].epoch_s / phase.epoch_s }
    };
    phases.iter().map(stretch).collect()
}
