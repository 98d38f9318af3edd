//! Liveness, watched: on a cluster where nobody runs, a job that may run does so within a few rounds, whatever was
//! learned, reported or believed, and whatever else is still to come.

use yard_core::ids::JobId;
use yard_core::policy::Policy;
use yard_core::{Engine, Span, Time};

/// What may be expected of a policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleSense {
    /// When it begins to have sense.
    pub from: Time,
    /// How long it may have a job wait on purpose.
    pub patience: Span,
}

/// How long a cluster has been idle though a job may run.
pub(super) struct Idle {
    /// None: nothing is expected.
    sense: Option<IdleSense>,
    /// Whether the policy has jobs wait by giving them no share.
    blocking: bool,
    /// Since when, and for whom.
    since: Option<(JobId, Time)>,
    /// The first job that was left waiting.
    left: Option<(JobId, Span)>,
}

impl Idle {
    pub(super) fn new(policy: &dyn Policy, sense: Option<IdleSense>) -> Idle {
        Idle { sense, blocking: policy.blocking(), since: None, left: None }
    }

    /// Called after each step. What was so after the last one was so until now.
    pub(super) fn look(&mut self, engine: &Engine, now: Time) {
        let Some(sense) = self.sense.filter(|sense| now >= sense.from) else { return };
        let waited = self.since.map(|(job, since)| (job, now - since));
        let longest = engine.idles_at_most() + sense.patience;
        self.left = self.left.or(waited.filter(|(_, waited)| *waited > longest));
        self.since = engine.idles_for(self.blocking).map(|job| self.since.unwrap_or((job, now)));
    }

    /// Who was left waiting, if anybody was.
    pub(super) fn left_waiting(&self) -> Option<String> {
        let (job, waited) = self.left?;
        Some(format!("job {job} may run, and waited for {waited} on an idle cluster"))
    }
}
