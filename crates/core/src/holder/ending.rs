//! Exits, and what they say of a part. An exit that a signal of ours may have caused is nobody's fault.

use super::part::{Exit, Part, Phase};
use super::{Act, Cause, Holder};
use crate::message::Why;
use crate::part::{Ending, How, PartId, Told};
use crate::units::Time;

impl Holder {
    pub(super) fn exited(&mut self, now: Time, id: PartId, rank: u32, exit: Exit, out: &mut Vec<Act>) {
        if self.frozen.get(&id.job).is_some_and(|frozen| frozen.part == id) {
            return self.exited_frozen(id, rank, exit, out);
        }
        let recorded = self.parts.contains_key(&id);
        let Some((id, part)) = self.live(id) else {
            return out.extend((!recorded).then_some(Act::Forget { part: id }));
        };
        let Some(known) = part.rank(rank).filter(|rank| rank.exit.is_none()) else { return };
        (known.exit, known.speaks) = (Some(exit), false);
        let excused = known.excused;
        if !excused && part.dies_of_freezing(exit) {
            return self.lose_dead(now, id, out);
        }
        if part.alive(|_| true).is_empty() {
            return self.close(now, id, out);
        }
        if !exit.is_success() && !excused && part.phase == Phase::Freezing {
            part.failed.get_or_insert(exit); // The others are ended once the driver has let go of them.
        } else if !exit.is_success() && !excused {
            self.rank_failed(now, id, exit, out);
        } else {
            part.agree(id, out);
        }
    }

    /// One rank failed: the others cannot go on without it.
    fn rank_failed(&mut self, now: Time, id: PartId, exit: Exit, out: &mut Vec<Act>) {
        let Some((_, part)) = self.live(id) else { return };
        part.failed.get_or_insert(exit);
        self.stop(now, id, Cause::Failed, out);
    }

    /// Stopped processes died, by whatever hand: what is left of them is of no use. One that was done just before it
    /// was stopped is remembered: it has finished as soon as it may go on.
    fn exited_frozen(&mut self, id: PartId, rank: u32, exit: Exit, out: &mut Vec<Act>) {
        let Some(frozen) = self.frozen.get_mut(&id.job) else { return };
        let at = rank.checked_sub(frozen.start.ranks.first).map(|at| at as usize);
        let Some(known) = at.and_then(|at| frozen.ranks.get_mut(at)).filter(|rank| rank.exit.is_none())
        else {
            return;
        };
        known.exit = Some(exit);
        if !exit.is_success() {
            self.discard(id.job, out);
        }
    }

    /// The last process of a part is gone.
    pub(super) fn close(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        if matches!(part.phase, Phase::Spawning | Phase::Thawing) && part.lost.is_none() {
            part.run(now, id, out); // Quicker than the word that it had started.
        }
        if part.untold {
            part.tell_progress(now, id, out);
        }
        let ending = part.ending();
        part.end(id, ending, out);
    }

    pub(super) fn spawn_failed(
        &mut self,
        id: PartId,
        code: Option<i32>,
        message: String,
        out: &mut Vec<Act>,
    ) {
        let Some((id, part)) = self.live(id) else { return };
        if !matches!(part.phase, Phase::Reserving | Phase::Spawning) {
            return;
        }
        let how = if code.is_some() { How::Crashed } else { How::Refused };
        out.push(Act::Kill { part: id });
        part.end(id, Ending { how, step: None, code, signal: None, message: Some(message) }, out);
    }
}

impl Part {
    pub(super) fn end(&mut self, id: PartId, ending: Ending, out: &mut Vec<Act>) {
        (self.phase, self.stop, self.untold) = (Phase::Ended(ending.clone()), None, false);
        out.push(Act::Tell { part: id, told: Told::Ended(ending) });
    }

    /// How it ended, now that every rank has.
    fn ending(&self) -> Ending {
        let fault = self.failed.or_else(|| {
            let guilty = self.ranks.iter().filter(|rank| !rank.excused).filter_map(|rank| rank.exit);
            guilty.into_iter().find(|exit| !exit.is_success())
        });
        let bad = self.ranks.iter().filter_map(|rank| rank.exit).find(|exit| !exit.is_success());
        let how = self.how(fault, bad);
        let exit = fault.or(bad).unwrap_or(Exit { code: Some(0), ..Exit::default() });
        let step = if how == How::Finished { self.came().map(|(step, _)| step) } else { self.safe() };
        let message = self.message(how, exit);
        Ending { how, step, code: exit.code, signal: exit.signal, message }
    }

    fn how(&self, fault: Option<Exit>, bad: Option<Exit>) -> How {
        let done = self.came().is_some_and(|(step, total)| Some(step) == total);
        // One that was still being frozen, say, had been told nothing.
        let untold = self.stop.is_some_and(|stop| !stop.begun) && !self.killed;
        match self.stop.map(|stop| stop.cause) {
            _ if self.lost.is_some() => How::Lost,
            _ if bad.is_none() && (done || untold) => How::Finished,
            Some(Cause::Expired) => How::Expired,
            _ if fault.is_some() => How::Crashed,
            Some(_) => How::Saved,
            None => How::Finished,
        }
    }

    fn message(&self, how: How, exit: Exit) -> Option<String> {
        match (how, exit.code, exit.signal) {
            (How::Lost, ..) => self.lost.clone(),
            (How::Expired, ..) => Some("it reached its time limit".into()),
            (How::Saved, ..) => self.message_saved(),
            (How::Crashed, ..) if exit.starved.is_some() => exit.starved.map(|starved| starved.to_string()),
            (How::Crashed, Some(code), _) => Some(format!("{} exited with code {code}", self.which(exit))),
            (How::Crashed, None, Some(signal)) => {
                Some(format!("{} was killed by signal {}", self.which(exit), signal_name(signal)))
            }
            _ => None,
        }
    }

    /// The first rank that ended so.
    fn which(&self, exit: Exit) -> String {
        let at = self.ranks.iter().position(|rank| rank.exit == Some(exit) && !rank.excused);
        let number = at.map(|at| self.start.ranks.first + at as u32);
        number.map_or_else(|| "a process".into(), |rank| format!("rank {rank}"))
    }

    fn message_saved(&self) -> Option<String> {
        let cause = self.stop.map(|stop| stop.cause);
        if cause == Some(Cause::Ordered(Why::Killed)) {
            return Some("it was killed by its user".into());
        }
        let grace = cause.map_or(self.start.grace, |cause| self.grace_for(cause));
        let killed = format!("it did not stop within {grace} and was killed");
        match &self.unfrozen {
            Some(reason) if self.killed => Some(format!("it could not be frozen ({reason}), and {killed}")),
            Some(reason) => Some(format!("it could not be frozen and was stopped instead: {reason}")),
            None => self.killed.then_some(killed),
        }
    }
}

/// A signal by the name that people know, where it is a usual one.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return signal.to_string(),
    };
    format!("{signal} ({name})")
}
