//! One job under one lease: what each agent said of its part, and what follows for the whole. Parts of a gang start
//! together or not at all, stop before the same step, and end as one.

use super::resting::Resting;
use super::{FromGang, GangJob, GangNews};
use crate::ids::{AgentId, LeaseId};
use crate::message::Why;
use crate::part::{Ending, How, Master, Order, PartId, Start, Told};
use crate::units::Span;

/// What is known of the part on one agent.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    /// The agent has it on record.
    accepted: bool,
    port: Option<u16>,
    started: bool,
    came: Option<(u64, Option<u64>)>,
    safe: Option<u64>,
    boundary: Option<u64>,
    /// What freezing and thawing it last took.
    save: Option<Span>,
    load: Option<Span>,
    stuck: bool,
    ending: Option<Ending>,
}

/// A job under a lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gang {
    pub(super) job: GangJob,
    /// Its processes lie stopped where it starts.
    thaw: bool,
    /// By the positions of the job's parts.
    known: Vec<Known>,
    /// It is to stop.
    stop: Option<Why>,
    /// Where its ranks meet, once all were ready.
    master: Option<Master>,
    /// Before which step it stops, once all have said when they can.
    agreed: Option<u64>,
    started_reported: bool,
    safe_reported: Option<u64>,
    stuck_reported: Option<bool>,
    end_reported: bool,
}

impl Gang {
    pub(super) fn new(job: GangJob, thaw: bool, stop: Option<Why>) -> Gang {
        let twice = |at: usize| job.parts[..at].iter().any(|part| part.agent == job.parts[at].agent);
        assert!(
            !job.parts.is_empty() && !(0..job.parts.len()).any(twice),
            "each agent has one part of a job"
        );
        let known = vec![Known::default(); job.parts.len()];
        Gang {
            job,
            thaw,
            known,
            stop,
            master: None,
            agreed: None,
            started_reported: false,
            safe_reported: None,
            stuck_reported: None,
            end_reported: false,
        }
    }

    /// Which of its parts an agent has.
    pub(super) fn place(&self, agent: AgentId) -> Option<usize> {
        self.job.parts.iter().position(|part| part.agent == agent)
    }

    pub(super) fn is_live_at(&self, agent: AgentId) -> bool {
        self.place(agent).is_some_and(|at| self.known[at].ending.is_none())
    }

    /// Whether its end was reported.
    pub(super) fn is_over(&self) -> bool {
        self.end_reported
    }

    /// The order that starts one of its parts.
    pub(super) fn start(&self, lease: LeaseId, at: usize) -> FromGang {
        let part = &self.job.parts[at];
        let order = Order::Start(Start {
            part: self.job.part(lease),
            devices: part.devices.clone(),
            ranks: part.ranks,
            pause: self.job.pause,
            grace: self.job.grace,
            limit: self.job.limit,
            card: part.card,
            thaw: self.thaw,
            claim: self.job.claim,
            loss_max: self.job.loss_max,
        });
        FromGang::Order { agent: part.agent, order }
    }

    pub(super) fn stop(&mut self, part: PartId, why: Why, out: &mut Vec<FromGang>) {
        if self.stop.is_none() || why == Why::Killed {
            self.stop = Some(why);
        }
        self.order_live(|| Order::Stop { part, why }, out);
    }

    fn order_live(&self, order: impl Fn() -> Order, out: &mut Vec<FromGang>) {
        let live = self.job.parts.iter().zip(&self.known).filter(|(_, known)| known.ending.is_none());
        out.extend(live.map(|(part, _)| FromGang::Order { agent: part.agent, order: order() }));
    }

    /// An agent's part is gone with it.
    pub(super) fn lose(&mut self, agent: AgentId, message: &str) {
        let Some(at) = self.place(agent) else { return };
        let message = Some(message.to_owned());
        let ending = Ending { how: How::Lost, step: None, code: None, signal: None, message };
        self.known[at].ending.get_or_insert(ending);
    }

    /// Takes note of what an agent says.
    pub(super) fn hear(&mut self, part: PartId, at: usize, told: Told, out: &mut Vec<FromGang>) {
        let known = &mut self.known[at];
        if known.ending.is_some() {
            return;
        }
        known.accepted = true;
        match told {
            Told::Accepted => {}
            Told::Ready { port } => known.port = Some(port),
            Told::Started => known.started = true,
            Told::Progress { step, total } => {
                (known.started, known.came) = (true, Some((step, total)));
                self.report_progress(part, at, out);
            }
            Told::Checkpointed { step, took } => {
                known.safe = known.safe.max(Some(step));
                self.report_safe(part, took, out);
            }
            Told::Boundary { step } => {
                known.boundary = Some(step);
                let (agent, agreed) = (self.job.parts[at].agent, self.agreed);
                let order = agreed.map(|step| Order::StopAt { part, step });
                out.extend(order.map(|order| FromGang::Order { agent, order }));
            }
            Told::Cost { save, load, .. } => {
                (known.save, known.load) = (save.or(known.save), load.or(known.load));
                self.report_costs(part, out);
            }
            Told::Stuck(stuck) => {
                known.stuck = stuck;
                self.report_stuck(part, out);
            }
            Told::Ended(ending) => known.ending = Some(ending),
        }
    }

    /// The whole is frozen when its last part is.
    fn report_costs(&self, part: PartId, out: &mut Vec<FromGang>) {
        let save = self.known.iter().filter_map(|known| known.save).max();
        let load = self.known.iter().filter_map(|known| known.load).max();
        out.push(report(part, GangNews::Costs { save, load }));
    }

    /// One part that cannot be paused is enough.
    fn report_stuck(&mut self, part: PartId, out: &mut Vec<FromGang>) {
        let stuck = self.known.iter().any(|known| known.stuck);
        if self.stuck_reported.replace(stuck) != Some(stuck) {
            out.push(report(part, GangNews::Stuck(stuck)));
        }
    }

    /// Progress is that of the first part that has any.
    fn report_progress(&self, part: PartId, at: usize, out: &mut Vec<FromGang>) {
        if self.known.iter().position(|known| known.came.is_some()) == Some(at) {
            let came = self.known[at].came;
            out.extend(came.map(|(step, total)| report(part, GangNews::Progress { step, total })));
        }
    }

    fn report_safe(&mut self, part: PartId, took: Span, out: &mut Vec<FromGang>) {
        let safe = self.safe();
        if safe > self.safe_reported {
            self.safe_reported = safe;
            out.extend(safe.map(|step| report(part, GangNews::Checkpointed { step, took })));
        }
    }

    /// What every part that saves at all has saved.
    fn safe(&self) -> Option<u64> {
        self.known.iter().filter_map(|known| known.safe).min()
    }

    /// What follows from what is known.
    pub(super) fn react(&mut self, part: PartId, out: &mut Vec<FromGang>) {
        self.stop_rest(part, out);
        self.go(part, out);
        self.agree(part, out);
        if !self.started_reported && self.known.iter().all(|known| known.started) {
            self.started_reported = true;
            out.push(report(part, GangNews::Started));
        }
        if !self.end_reported && self.known.iter().all(|known| known.ending.is_some()) {
            self.end_reported = true;
            out.push(report(part, GangNews::Ended(self.ending())));
        }
    }

    /// A part that ended without being done takes the others with it. One that is done does not: the others are
    /// about to be, and the last of them may still be writing.
    fn stop_rest(&mut self, part: PartId, out: &mut Vec<FromGang>) {
        let cut = |known: &Known| known.ending.as_ref().is_some_and(|ending| ending.how != How::Finished);
        if self.stop.is_none() && self.known.iter().any(cut) {
            self.stop(part, Why::Lost, out);
        }
        // One of them stops by itself, because its time is up: all stop before the same step.
        if self.stop.is_none() && self.known.iter().any(|known| known.boundary.is_some()) {
            self.stop(part, Why::Drained, out);
        }
    }

    fn go(&mut self, part: PartId, out: &mut Vec<FromGang>) {
        let ready = self.known.iter().all(|known| known.port.is_some());
        if self.known.len() < 2 || self.master.is_some() || self.stop.is_some() || !ready {
            return;
        }
        let (Some(first), Some(port)) = (self.job.parts.first(), self.known[0].port) else { return };
        let master = Master { address: first.address.clone(), port };
        self.master = Some(master.clone());
        self.order_live(|| Order::Go { part, master: master.clone() }, out);
    }

    fn agree(&mut self, part: PartId, out: &mut Vec<FromGang>) {
        let mut live = self.known.iter().filter(|known| known.ending.is_none()).peekable();
        if self.agreed.is_some() || self.stop.is_none() || live.peek().is_none() {
            return;
        }
        let steps: Option<Vec<u64>> = live.map(|known| known.boundary).collect();
        if let Some(step) = steps.and_then(|steps| steps.into_iter().max()) {
            self.agreed = Some(step);
            self.order_live(|| Order::StopAt { part, step }, out);
        }
    }

    /// An agent is back and has its part: what it may have missed is said again.
    pub(super) fn remind(&self, part: PartId, at: usize, out: &mut Vec<FromGang>) {
        let known = &self.known[at];
        if known.ending.is_some() {
            return;
        }
        let go = self.master.clone().filter(|_| !known.started).map(|master| Order::Go { part, master });
        let stop = self.stop.map(|why| Order::Stop { part, why });
        let stop_at = self.agreed.map(|step| Order::StopAt { part, step });
        let go = go.filter(|_| stop.is_none());
        let agent = self.job.parts[at].agent;
        out.extend([go, stop, stop_at].into_iter().flatten().map(|order| FromGang::Order { agent, order }));
    }

    /// An agent is back and does not know its part: it never came, or is lost.
    pub(super) fn missing(&mut self, part: PartId, at: usize, rests: bool, out: &mut Vec<FromGang>) {
        if self.known[at].ending.is_some() {
            return;
        }
        let begun = self.master.is_some() || self.known.iter().any(|known| known.started);
        if self.known[at].accepted || begun {
            self.lose(self.job.parts[at].agent, "its node came back without it");
        } else if self.stop.is_some() {
            let ending = Ending { how: How::Saved, step: None, code: None, signal: None, message: None };
            self.known[at].ending = Some(ending);
        } else {
            self.thaw |= rests && self.known.len() == 1;
            out.push(self.start(part.lease, at));
        }
    }

    /// How the whole ended. Time that is used up and nodes that are lost explain what else went wrong.
    fn ending(&self) -> Ending {
        let all = || self.known.iter().filter_map(|known| known.ending.as_ref());
        let first = |which: fn(How) -> bool| all().find(|ending| which(ending.how));
        let told = first(|how| how == How::Expired)
            .map(|ending| (How::Expired, ending))
            .or_else(|| Some((How::Lost, first(|how| matches!(how, How::Lost | How::Refused))?)))
            .or_else(|| Some((How::Crashed, first(|how| how == How::Crashed)?)))
            .or_else(|| self.rests().and(Some((How::Paused, all().next()?))))
            .or_else(|| Some((How::Saved, first(|how| how != How::Finished)?)))
            .or_else(|| Some((How::Finished, all().next()?)));
        let (how, ending) = told.expect("a gang that ended has parts");
        let step =
            if how == How::Finished { ending.step } else { self.known.iter().filter_map(Known::kept).min() };
        Ending { how, step, ..ending.clone() }
    }

    /// Where its processes lie stopped.
    pub(super) fn paused_at(&self) -> impl Iterator<Item = AgentId> + '_ {
        let places = self.job.parts.iter().zip(&self.known);
        places.filter(|(_, known)| known.is_paused()).map(|(part, _)| part.agent)
    }

    /// Its places, where all its processes lie stopped.
    pub(super) fn rests(&self) -> Option<Vec<Resting>> {
        let rest = |part: &super::GangPart| Resting { agent: part.agent, part: Some(part.clone()) };
        self.known.iter().all(Known::is_paused).then(|| self.job.parts.iter().map(rest).collect())
    }
}

impl Known {
    /// Steps that are safe in a part that ended. One that finished says how far it came, not what it saved.
    fn kept(&self) -> Option<u64> {
        let ending = self.ending.as_ref().filter(|ending| ending.how != How::Finished);
        ending.map_or(self.safe, |ending| ending.step)
    }

    fn is_paused(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.how == How::Paused)
    }
}

fn report(part: PartId, news: GangNews) -> FromGang {
    FromGang::Report { lease: part.lease, job: part.job, news }
}
