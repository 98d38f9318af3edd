//! What the engine believes of speeds, and where that shows: in how fast it takes its jobs to be.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Engine;
use crate::belief::Belief;
use crate::ids::{JobIdx, LeaseId};
use crate::job::JobState;
use crate::state::State;

impl Engine {
    pub(super) fn believe(&mut self, belief: Belief) {
        let state = &mut self.state;
        state.belief = Arc::new(belief.sound());
        state.changed.all = true;
        state.dirty |= !state.rows.is_empty();
    }
}

impl State {
    /// The jobs on a lease's devices changed, or what is believed of them: how fast each is taken to be, anew.
    pub(super) fn set_paces(&mut self, lease: LeaseId) {
        let Some(lease) = self.leases.get(lease) else { return };
        let works = |job: &JobIdx| self.run(*job).state == JobState::Running;
        let working: SmallVec<[JobIdx; 2]> = lease.jobs.iter().copied().filter(works).collect();
        for job in &working {
            self.set_pace(*job, &working);
        }
    }

    fn set_pace(&mut self, job: JobIdx, company: &[JobIdx]) {
        let (now, spec, at) = (self.now, &self.specs[job.index()], self.run(job).shape as usize);
        let others =
            company.iter().filter(|other| **other != job).map(|other| self.specs[other.index()].profile);
        let speed = spec.speeds[at] * self.belief.kept(spec.profile, others, &spec.shapes[at].needs);
        if self.run(job).speed != speed {
            let run = self.run_mut(job);
            (run.done, run.as_of, run.speed) = (run.done_at(now), now, speed);
            self.changed.touched.push(job);
        }
    }
}
