//! A question what would become of a job: it is checked like a submission, and a copy of all that is known is handed to
//! who asked. Nothing is staged, and the driver does no more for it than that copy.

use super::Driver;
use crate::handle::{Refusal, Reply, Who};
use crate::offers::Offers;
use crate::request::JobRequest;
use crate::what_if::{Question, ways};

impl Driver {
    pub(super) fn take_what_if(&self, who: &Who, request: &JobRequest, others: bool, reply: Reply<Question>) {
        // Who asked may have gone.
        let _ = reply.send(self.question(who, request, others));
    }

    fn question(&self, who: &Who, request: &JobRequest, others: bool) -> Result<Question, Refusal> {
        let none = "this server foretells nothing; start it with estimates";
        let (how, make) = self.forecaster.how().ok_or_else(|| Refusal::Unavailable(none.into()))?;
        self.deadline(request)?;
        self.predecessors(who, request)?;
        let offers = if Offers::matter(request) { self.agents.offers() } else { Offers::default() };
        let ways = ways(&who.user, request, self.kinds(), &*self.config.catalog, &offers, others)?;
        Ok(Question {
            state: self.engine.state().clone(),
            at: self.clock.peek().max(self.engine.now()),
            past: self.forecaster.past(),
            moves: self.forecaster.moves(self.engine.now()),
            how,
            make,
            ways,
            seed: self.seq,
        })
    }
}
