//! Why a job waits: the engine knows, `explain` says it.

use yard_core::ids::JobId;

use super::Driver;
use crate::explain::{Names, words};
use crate::handle::{Refusal, Reply};
use crate::views::Explanation;

impl Driver {
    pub(super) fn take_explain(&self, job: JobId, reply: Reply<Explanation>) {
        let over = || Refusal::Conflict(format!("job {job} is over; to see how it ended: yard show {job}"));
        // Who asked may have gone.
        let _ = reply.send(self.explained(job).ok_or_else(over));
    }

    fn explained(&self, job: JobId) -> Option<Explanation> {
        let (told, run) = (self.engine.explain(job)?, self.engine.job(job)?);
        let state = format!("{:?}", run.state).to_lowercase();
        let names = Names {
            kind: &|kind| self.engine.kinds().name(kind).to_owned(),
            resource: &|resource| self.engine.resources().name(resource).to_owned(),
            node: &|node| self.engine.nodes().get(node).spec.name.clone(),
        };
        let mut explanation = words(&told, &state, self.engine.now(), &names);
        if let Some(record) = self.records.all.get(&job).filter(|_| run.held) {
            let held = record.held();
            explanation.text = format!("The job is {held}. It gets no devices until it is released.");
            explanation.remedies = vec![format!("release it: yard release {job}")];
        }
        Some(explanation)
    }
}
