//! What the server wants: starts and who is refused, `Go`, stops, and what may be forgotten.

use super::part::{Part, Phase};
use super::{Act, Cause, Holder, devices};
use crate::ids::JobId;
use crate::message::Why;
use crate::part::{Ending, How, Master, Order, PartId, Ranks, Start, Told, overlap};
use crate::units::Time;

/// Most ranks of one part; more is a mistake and no order.
const RANKS_MAX: u32 = 4096;

impl Holder {
    pub(super) fn order(&mut self, now: Time, order: Order, out: &mut Vec<Act>) {
        match order {
            Order::Start(start) => self.start_part(now, start, out),
            Order::Go { part, master } => self.go(now, part, master, out),
            Order::Stop { part, why: Why::Killed } => self.kill_part(now, part, out),
            Order::Stop { part, why } => self.stop_part(now, part, Cause::Ordered(why), out),
            Order::StopAt { part, step } => self.stop_at(part, step, out),
            Order::Forget { part } => self.forget(part, out),
            Order::Discard { job } => self.discard(job, out),
        }
    }

    fn start_part(&mut self, now: Time, start: Start, out: &mut Vec<Act>) {
        let id = start.part;
        if let Some(known) = self.parts.get(&id) {
            return out.extend(known.facts().into_iter().map(|told| Act::Tell { part: id, told }));
        }
        let refusal = self.objection(now, &start);
        self.see(&start);
        if let Some(message) = refusal {
            let mut refused =
                Part::new(Start { ranks: Ranks { count: 0, ..start.ranks }, ..start }, Phase::Reserving);
            refused.end(id, refusal_ending(How::Refused, message), out);
            self.parts.insert(id, refused);
            return;
        }
        if !start.thaw {
            self.discard(id.job, out);
        }
        out.push(Act::Tell { part: id, told: Told::Accepted });
        let gang = start.is_gang();
        self.parts.insert(id, Part::new(start, Phase::Reserving));
        if gang {
            out.push(Act::Reserve { part: id });
        } else {
            self.launch(now, id, None, out);
        }
    }

    /// Why an order to start cannot be followed.
    fn objection(&self, now: Time, start: &Start) -> Option<String> {
        let id = start.part;
        let newest = devices(&start.devices).filter_map(|device| self.seen.get(&device)).max();
        let live = || self.parts.iter().filter(|(_, part)| part.is_live());
        let holder = live().find(|(other, part)| {
            let shares = other.job == id.job || overlap(&part.start.devices, &start.devices);
            other.lease != id.lease && shares
        });
        if start.ranks.count == 0 || start.ranks.count > RANKS_MAX {
            Some(format!("{} ranks on one node are not between 1 and {RANKS_MAX}", start.ranks.count))
        } else if now >= self.valid_until {
            Some("this node had lost contact with the server when the order came".into())
        } else if let Some(newest) = newest.filter(|newest| **newest > id.lease) {
            Some(format!("lease {} is older than lease {newest}, which had the same devices since", id.lease))
        } else if self.over.contains_key(&id) {
            Some("it has already been here and is over".into())
        } else if let Some((other, _)) = holder {
            Some(format!("job {} still runs here under lease {}", other.job, other.lease))
        } else if start.thaw && start.is_gang() && !self.can_thaw(start) {
            Some("its stopped processes are gone; it must restart on all its nodes".into())
        } else {
            None
        }
    }

    /// Remembers the lease for its devices, and drops what is now fenced off by it.
    fn see(&mut self, start: &Start) {
        for device in devices(&start.devices) {
            let seen = self.seen.entry(device).or_default();
            *seen = (*seen).max(start.part.lease);
        }
        let seen = &self.seen;
        self.over.retain(|id, held| devices(held).any(|device| seen.get(&device) == Some(&id.lease)));
    }

    fn can_thaw(&self, start: &Start) -> bool {
        self.frozen.get(&start.part.job).is_some_and(|frozen| frozen.fits(start))
    }

    fn go(&mut self, now: Time, id: PartId, master: Master, out: &mut Vec<Act>) {
        let waits = |part: &Part| matches!(part.phase, Phase::Reserving | Phase::Ready);
        match self.parts.get(&id) {
            Some(part) if waits(part) => self.launch(now, id, Some(master), out),
            Some(part) if part.is_live() => {}
            _ => self.answer_ended(id, out),
        }
    }

    /// Starts the processes of a part, or lets those that lie stopped go on.
    fn launch(&mut self, now: Time, id: PartId, master: Option<Master>, out: &mut Vec<Act>) {
        let thaws = self.parts.get(&id).is_some_and(|part| part.start.thaw && self.can_thaw(&part.start));
        let frozen = if thaws { self.frozen.remove(&id.job) } else { None };
        self.discard(id.job, out);
        let part = self.parts.get_mut(&id).expect("only parts on record are launched");
        match frozen {
            Some(frozen) => {
                part.thaw(now, id, frozen, out);
                if part.alive(|_| true).is_empty() {
                    self.close(now, id, out);
                }
            }
            None => {
                part.phase = Phase::Spawning;
                out.push(Act::Spawn { part: id, master });
            }
        }
    }

    fn stop_part(&mut self, now: Time, id: PartId, cause: Cause, out: &mut Vec<Act>) {
        if self.parts.get(&id).is_some_and(Part::is_live) {
            self.stop(now, id, cause, out);
        } else {
            self.answer_ended(id, out);
        }
    }

    fn kill_part(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        if self.parts.get(&id).is_some_and(Part::is_live) {
            self.kill(now, id, out);
        } else {
            self.answer_ended(id, out);
        }
    }

    /// How a part ended, for an order that comes too late.
    pub(super) fn answer_ended(&mut self, id: PartId, out: &mut Vec<Act>) {
        let told = match self.parts.get(&id).map(|part| &part.phase) {
            Some(Phase::Ended(ending)) => ending.clone(),
            _ => refusal_ending(How::Lost, "this node knows nothing of it".into()),
        };
        out.push(Act::Tell { part: id, told: Told::Ended(told) });
    }

    fn forget(&mut self, id: PartId, out: &mut Vec<Act>) {
        if self.parts.get(&id).is_none_or(Part::is_live) {
            return;
        }
        let Some(part) = self.parts.remove(&id) else { return };
        let current = devices(&part.start.devices).any(|device| self.seen.get(&device) == Some(&id.lease));
        if current {
            self.over.insert(id, part.start.devices);
        }
        out.extend(part.was.map(|was| Act::Forget { part: was }));
        if !self.frozen.values().any(|frozen| frozen.part == id) {
            out.push(Act::Forget { part: id });
        }
    }

    pub(super) fn discard(&mut self, job: JobId, out: &mut Vec<Act>) {
        if let Some(frozen) = self.frozen.remove(&job) {
            out.push(Act::Drop { part: frozen.part });
        }
    }
}

/// The end of what never ran here.
fn refusal_ending(how: How, message: String) -> Ending {
    Ending { how, step: None, code: None, signal: None, message: Some(message) }
}
