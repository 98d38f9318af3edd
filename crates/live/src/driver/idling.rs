//! Liveness, watched: while nobody holds a device, a job that may run does not wait for long. If one does, something is
//! wrong with the scheduler or its policy, and whoever runs the server is told: by a metric, and by one line in the log.

use std::time::Duration;

use yard_core::ids::JobId;
use yard_core::units::Span;

use super::Driver;

/// Who waits, and since when by the clock that only grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idling {
    since: Option<(JobId, Span)>,
    /// Whether the log says so already.
    told: bool,
}

impl Idling {
    /// A job waits, or none does any more. For how long that has been so.
    fn note(&mut self, job: Option<JobId>, now: Span) -> Span {
        let Some(job) = job else {
            *self = Idling::default();
            return Span::ZERO;
        };
        let (_, since) = *self.since.get_or_insert((job, now));
        Span(now.0.saturating_sub(since.0))
    }

    /// The job that has waited too long, once.
    fn tell(&mut self, waited: Span, longest: Span) -> Option<JobId> {
        let (job, _) = self.since.filter(|_| waited > longest && !self.told)?;
        self.told = true;
        Some(job)
    }
}

impl Driver {
    /// Looks whether a job waits that could run.
    pub(super) fn look_for_waste(&mut self) {
        // What cannot be written is not decided, so that nobody is to blame.
        let job = if self.failing.is_none() { self.engine.idles_for(false) } else { None };
        let waited = self.idling.note(job, self.clock.elapsed());
        self.config.meter.wasted(Duration::from_micros(waited.0));
        if let Some(job) = self.idling.tell(waited, self.engine.idles_at_most()) {
            let (seconds, policy) = (waited.secs(), &self.config.policy);
            tracing::warn!(
                %job, seconds, %policy,
                "a job that could run is waiting although all devices are idle: see yard explain; unless the \
                 policy intends this, please report it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_waits_too_long_is_named_once() {
        let (mut idling, longest) = (Idling::default(), Span(10));
        assert_eq!(idling.note(Some(JobId(3)), Span(5)), Span::ZERO);
        assert_eq!(idling.tell(Span::ZERO, longest), None);
        let waited = idling.note(Some(JobId(4)), Span(16));
        assert_eq!((waited, idling.tell(waited, longest)), (Span(11), Some(JobId(3))), "since nobody runs");
        assert_eq!(idling.tell(waited, longest), None, "once is enough");
        assert_eq!(idling.note(None, Span(17)), Span::ZERO);
        idling.note(Some(JobId(4)), Span(20));
        assert_eq!(idling.tell(Span(11), longest), Some(JobId(4)), "the next time is said again");
    }
}
