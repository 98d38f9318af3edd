//! The sizes in which a job may run that can grow and shrink, and how fast it is in each where only its time on the
//! devices it asks for is known.

use std::collections::BTreeSet;

use yard_core::ids::KindId;

use super::{WorkloadError, WorkloadSite};
use crate::trace::{Scaling, TraceJob, Work};

impl WorkloadSite<'_> {
    /// What of a job is the scheduler's choice: as the run says, as the trace does, or its bounds where it has some.
    pub(super) fn scaling(&self, job: &TraceJob) -> Scaling {
        let bounded = job.min_gpus.is_some() || job.max_gpus.is_some();
        let said = self.options.scaling.or(job.mode);
        said.unwrap_or(if bounded { Scaling::Strong } else { Scaling::Rigid })
    }

    /// The fewest and the most devices of a job that may grow and shrink.
    pub(super) fn bounds(&self, job: &TraceJob) -> (u32, u32) {
        match (job.min_gpus, job.max_gpus) {
            (None, None) => (1, u32::MAX),
            (min, max) => (min.unwrap_or(job.gpus), max.unwrap_or(job.gpus)),
        }
    }

    /// The sizes of a job on a kind: all that the table knows within its bounds; where it knows none, powers of two.
    pub(super) fn sizes(&self, job: &TraceJob, kind: KindId) -> Result<Vec<u32>, WorkloadError> {
        match self.scaling(job) {
            Scaling::Rigid => return Ok(vec![job.gpus]),
            Scaling::Strong => {}
            Scaling::Adaptive => return Err(self.no_profile(job)),
        }
        let (min, max) = self.bounds(job);
        let max = max.min(self.totals[kind.index()]);
        let known = self.known_sizes(job, self.cluster.kinds.name(kind));
        let doubled = std::iter::successors(Some(1), |size: &u32| size.checked_mul(2));
        let plain = || doubled.take_while(|size| *size <= max).chain([min, max]).collect();
        let mut sizes: BTreeSet<u32> = if known.is_empty() { plain() } else { known };
        sizes.insert(job.gpus);
        Ok(sizes.into_iter().filter(|size| (min..=max).contains(size)).collect())
    }

    fn known_sizes(&self, job: &TraceJob, kind: &str) -> BTreeSet<u32> {
        let Some((table, model)) = self.options.table.zip(job.model.as_deref()) else {
            return BTreeSet::new();
        };
        table.sizes(kind, model, job.batch_size).collect()
    }

    /// Seconds of work a second, on other devices than those for which they are given: as the table has it, else in
    /// proportion to the devices.
    pub(super) fn seconds_speed(&self, job: &TraceJob, gpus: u32, kind: &str) -> f64 {
        if gpus == job.gpus {
            return 1.0;
        }
        let table = self.options.table.zip(job.model.as_deref());
        let speed = |gpus| table.and_then(|(table, model)| table.speed(kind, model, job.batch_size, gpus));
        match (speed(gpus), speed(job.gpus)) {
            (Some(here), Some(asked)) => here / asked,
            _ => f64::from(gpus) / f64::from(job.gpus),
        }
    }

    /// What there is to say of how jobs were made.
    pub(super) fn notes(&self) -> Vec<String> {
        let grows = |job: &&TraceJob| self.scaling(job) == Scaling::Strong;
        let seconds = |job: &&TraceJob| matches!(job.work, Work::Seconds(_)) && job.regimes.is_none();
        let unknown = |job: &&TraceJob| {
            let mut kinds = self.cluster.kinds.ids();
            kinds.all(|kind| self.known_sizes(job, self.cluster.kinds.name(kind)).is_empty())
        };
        let linear = self.trace.jobs.iter().filter(grows).filter(seconds).filter(unknown).count();
        let note = format!(
            "of {linear} jobs only the time on their gpus is known: on other sizes they are taken to be faster or slower in proportion"
        );
        if linear > 0 { vec![note] } else { Vec::new() }
    }
}
