//! How a part is stopped. Ranks that talk agree on a step: each names the first boundary at which it could stop, the
//! greatest of them holds for all, over all agents of a gang (the server tells). Ranks that do not talk get a
//! signal. Whoever has not agreed by half of the grace stops as well as it can, and at its end all are killed.

use super::freezing::Rest;
use super::part::{Part, Phase, Rank, Stop};
use super::{Act, Cause, Holder};
use crate::message::Why;
use crate::part::{Ending, How, PartId, Pause, Told};
use crate::units::{Span, Time};

/// How long ranks live on after another one failed: long enough for their own last words.
const FAILED_GRACE: Span = Span::from_whole_secs(5);

/// How long until processes that a kill did not end are killed again.
const KILL_AGAIN: Span = Span::from_whole_secs(10);

impl Holder {
    /// Stops a part that is not over; where it is already being stopped, that goes on.
    pub(super) fn stop(&mut self, now: Time, id: PartId, cause: Cause, out: &mut Vec<Act>) {
        // The server counts from when the lease lapsed, whenever that was noticed.
        let from = if cause == Cause::Lapsed { self.valid_until } else { now };
        let Some((id, part)) = self.live(id) else { return };
        if part.stop.is_some() {
            return;
        }
        let grace = part.grace_for(cause);
        // One that is being thawed is told only when that is done.
        let first = if part.phase == Phase::Thawing { part.freeze_time() } else { Span::ZERO };
        let (hurry, kill) = (Some(from + Span(grace.0 / 2)), from + first + grace);
        part.stop = Some(Stop { cause, begun: false, asked: false, at: None, hurry, kill });
        if !part.has_processes() {
            part.end_unstarted(id, out);
        } else if part.phase == Phase::Running {
            self.begin_stop(now, id, out);
        }
    }

    /// Kills a part that is not over, also one that is already being stopped.
    pub(super) fn kill(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        let valid_until = self.valid_until;
        let Some((id, part)) = self.live(id) else { return };
        if !part.has_processes() {
            return part.end_unstarted(id, out);
        }
        let (cause, at) = (Cause::Ordered(Why::Killed), part.stop.and_then(|stop| stop.at));
        part.stop = Some(Stop { cause, begun: true, asked: true, at, hurry: None, kill: now });
        part.tick(now, valid_until, id, out);
    }

    /// Stops a part in memory where that is its way and can be, else tells its processes.
    pub(super) fn begin_stop(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let Some(stop) = part.stop else { return };
        match part.rest() {
            Some(Rest::Stopped) if stop.cause.may_freeze() => {
                out.push(Act::Freeze { part: id, deep: false });
                self.rest(now, id, false, 0, out);
            }
            Some(Rest::Frozen) if stop.cause.may_freeze() && self.may_freeze(now, id, stop, out) => {
                self.begin_freeze(id, stop, out);
            }
            _ => self.tell_processes(id, out),
        }
    }

    /// Tells the processes of a part to stop.
    pub(super) fn tell_processes(&mut self, id: PartId, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let Some(stop) = part.stop.as_mut() else { return };
        stop.begun = true;
        match stop.cause {
            Cause::Failed => part.signal(id, |_| true, out),
            // It was killed while it was being started or thawed, and may have missed that.
            Cause::Ordered(Why::Killed) => out.push(Act::Kill { part: id }),
            _ if part.start.ranks.world == 1 => part.stop_single(id, out),
            _ => part.hold(id, out),
        }
    }

    pub(super) fn stop_at(&mut self, id: PartId, step: u64, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return self.answer_ended(id, out) };
        if part.stop.is_some_and(|stop| stop.begun && stop.at.is_none()) {
            part.stop_at(id, step, out);
        }
    }

    pub(super) fn hello(&mut self, id: PartId, rank: u32, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let Some(known) = part.rank(rank) else { return };
        (known.speaks, known.spoke) = (true, true);
        if known.excused {
            return; // Its signal came first.
        }
        let Some(stop) = part.stop.filter(|stop| stop.begun && stop.cause != Cause::Failed) else { return };
        match stop.at {
            Some(at) => part.tell_stop(id, vec![rank], Some(at), out),
            None if part.start.ranks.world == 1 => part.tell_stop(id, vec![rank], None, out),
            None => out.push(Act::Hold { part: id, ranks: vec![rank] }),
        }
    }

    pub(super) fn silent(&mut self, id: PartId, rank: u32, out: &mut Vec<Act>) {
        let frozen = self.frozen.get_mut(&id.job).filter(|frozen| frozen.part == id);
        if let Some(rank) = frozen.and_then(|frozen| frozen.rank(rank)) {
            rank.speaks = false;
        }
        let Some((id, part)) = self.live(id) else { return };
        let Some(rank) = part.rank(rank) else { return };
        rank.speaks = false;
        part.agree(id, out);
    }

    pub(super) fn boundary(&mut self, id: PartId, rank: u32, step: u64, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        if part.stop.is_none_or(|stop| stop.asked || stop.at.is_some()) {
            return; // Too late: the others have been told.
        }
        let Some(rank) = part.rank(rank).filter(|rank| !rank.told) else { return };
        rank.boundary = Some(step);
        part.agree(id, out);
    }
}

impl Part {
    /// How it waits in memory, where it does that rather than being told to save.
    pub(super) fn rest(&self) -> Option<Rest> {
        match self.start.pause {
            Pause::Stop => Some(Rest::Stopped),
            Pause::Freeze => Some(Rest::Frozen),
            Pause::Auto if self.spoke() => None,
            Pause::Auto if self.start.card => Some(Rest::Frozen),
            Pause::Auto => Some(Rest::Stopped),
            Pause::Checkpoint | Pause::Never => None,
        }
    }

    /// Whether a rank has ever talked, so that it can be told to save.
    pub(super) fn spoke(&self) -> bool {
        self.ranks.iter().any(|rank| rank.spoke)
    }

    /// How long it may take to stop, by what it is stopped for.
    pub(super) fn grace_for(&self, cause: Cause) -> Span {
        match cause {
            Cause::Failed => self.start.grace.min(FAILED_GRACE),
            Cause::Lapsed => self.start.lapsed_grace(),
            Cause::Ordered(_) | Cause::Expired => self.start.grace,
        }
    }

    /// It ends before it had any process.
    fn end_unstarted(&mut self, id: PartId, out: &mut Vec<Act>) {
        let ending = Ending { how: How::Saved, step: None, code: None, signal: None, message: None };
        self.end(id, ending, out);
    }

    fn stop_single(&mut self, id: PartId, out: &mut Vec<Act>) {
        let speaking = self.alive(|rank| rank.speaks);
        self.tell_stop(id, speaking, None, out);
        self.signal(id, |rank| !rank.spoke, out);
    }

    /// Asks ranks that talk where they could stop, and signals the others.
    fn hold(&mut self, id: PartId, out: &mut Vec<Act>) {
        self.signal(id, |rank| !rank.spoke, out);
        let ranks = self.alive(|rank| rank.speaks);
        if !ranks.is_empty() {
            out.push(Act::Hold { part: id, ranks });
        }
        self.agree(id, out);
    }

    /// Once all ranks here have said where they could stop, they are told, or the server is.
    pub(super) fn agree(&mut self, id: PartId, out: &mut Vec<Act>) {
        let open =
            |stop: &Stop| stop.begun && !stop.asked && stop.at.is_none() && stop.cause != Cause::Failed;
        let Some(mut stop) = self.stop.filter(open) else { return };
        let waits = !self.alive(|rank| rank.spoke && !rank.told && rank.boundary.is_none()).is_empty();
        if self.start.ranks.world == 1 || waits {
            return;
        }
        let step = self.boundary();
        if self.start.is_gang() {
            stop.asked = true;
            self.stop = Some(stop);
            out.push(Act::Tell { part: id, told: Told::Boundary { step } });
        } else {
            self.stop_at(id, step, out);
        }
    }

    /// All ranks that talk stop before this step.
    fn stop_at(&mut self, id: PartId, step: u64, out: &mut Vec<Act>) {
        let at = Some(step);
        self.stop = self.stop.map(|stop| Stop { at, ..stop });
        let ranks = self.alive(|rank| rank.speaks);
        self.tell_stop(id, ranks, at, out);
    }

    fn tell_stop(&mut self, id: PartId, ranks: Vec<u32>, at: Option<u64>, out: &mut Vec<Act>) {
        let Some(stop) = self.stop.filter(|_| !ranks.is_empty()) else { return };
        for rank in &ranks {
            self.rank(*rank).into_iter().for_each(|rank| rank.told = true);
        }
        let grace = self.grace_for(stop.cause);
        out.push(Act::Stop { part: id, ranks, at, cause: stop.cause, grace });
    }

    fn signal(&mut self, id: PartId, which: impl Fn(&Rank) -> bool, out: &mut Vec<Act>) {
        let ranks = self.alive(which);
        for rank in &ranks {
            self.rank(*rank).into_iter().for_each(|rank| (rank.told, rank.excused) = (true, true));
        }
        if !ranks.is_empty() {
            out.push(Act::Signal { part: id, ranks });
        }
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Time, valid_until: Time, id: PartId, out: &mut Vec<Act>) {
        if self.untold && self.told + super::PROGRESS_EVERY <= now {
            self.tell_progress(now, id, out);
        }
        if self.stop.is_some_and(|stop| stop.begun && stop.hurry.is_some_and(|hurry| now >= hurry)) {
            self.hurry(id, out);
        }
        if self.kill_at(valid_until).is_some_and(|kill| now >= kill) {
            let kill = now + KILL_AGAIN;
            self.stop = self.stop.map(|stop| Stop { kill, ..stop });
            self.killed = true;
            self.ranks.iter_mut().filter(|rank| rank.exit.is_none()).for_each(|rank| rank.excused = true);
            out.push(Act::Kill { part: id });
        }
    }

    /// Half of the grace is over: whoever still waits for others stops as well as it can.
    fn hurry(&mut self, id: PartId, out: &mut Vec<Act>) {
        self.stop = self.stop.map(|stop| Stop { hurry: None, ..stop });
        if self.start.ranks.world > 1 && self.stop.is_some_and(|stop| stop.at.is_none()) {
            self.stop_at(id, self.boundary(), out);
        }
        self.signal(id, |rank| !rank.told, out);
    }
}
