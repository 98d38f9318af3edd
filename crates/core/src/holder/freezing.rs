//! Freezing and thawing: what a part has on its cards goes to the host's memory and back. Both take time and both
//! may fail. A freeze that fails leaves the processes running, and they are stopped the next way: they save where
//! they talk, else they get their signal. A thaw that fails leaves nothing of use.

use super::part::{Exit, Frozen, Part, Phase, Rank, Stop};
use super::{Act, Cause, Holder};
use crate::ids::JobId;
use crate::part::{Ending, How, PartId, Told};
use crate::units::{MICROS, Span, Time};

/// The slowest that freezing is waited for, in bytes a second: half of what one H200 does (2 GB/s with driver 580).
const FREEZE_RATE_MIN: u64 = 1_000_000_000;

/// How fast one H200 froze and thawed, in bytes a second (driver 580): what is guessed before it has been seen.
const FREEZE_RATE: u64 = 2_000_000_000;
const THAW_RATE: u64 = 5_600_000_000;

/// How many jobs that cannot be frozen are remembered.
const UNFREEZABLE_MAX: usize = 1000;

/// What is said of a node whose memory is not for frozen jobs.
const NOWHERE: &str = "this node cannot freeze jobs";

/// How a part waits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Its processes are stopped; what they have on cards stays there.
    Stopped,
    /// What they have on cards is moved to the host's memory first.
    Frozen,
}

impl Holder {
    /// Whether a part can be frozen, as far as is known; jobs that lie frozen may have to go for it.
    pub(super) fn may_freeze(&mut self, now: Time, id: PartId, stop: Stop, out: &mut Vec<Act>) -> bool {
        let reason = self.unfreezable.get(&id.job).cloned();
        let Some((_, part)) = self.live(id) else { return false };
        part.unfrozen = reason;
        // Nobody waits for it any longer once the node's lease is over.
        let late = stop.cause == Cause::Lapsed && part.freeze_time() > part.start.lapsed_grace();
        if part.unfrozen.is_some() || late {
            return false;
        }
        let made = self.make_room(now, id, out);
        let full = if self.room == 0 { NOWHERE } else { "the memory of this node for frozen jobs is full" };
        if let Some((_, part)) = self.live(id).filter(|_| !made) {
            part.unfrozen = Some(full.into());
        }
        made
    }

    pub(super) fn begin_freeze(&mut self, id: PartId, stop: Stop, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let grace = part.start.grace;
        let more = Span(part.freeze_time().0.saturating_sub(grace.0));
        part.phase = Phase::Freezing;
        part.stop = Some(Stop { kill: stop.kill + more, ..stop });
        out.push(Act::Freeze { part: id, deep: true });
    }

    /// The processes of a part lie stopped: it gives its devices back.
    pub(super) fn rest(&mut self, now: Time, id: PartId, deep: bool, bytes: u64, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let ranks = part.ranks.iter().cloned().map(Rank::fresh).collect();
        let (start, loss) = (part.start.clone(), part.loss(now));
        let ending = Ending { how: How::Paused, step: part.safe(), code: None, signal: None, message: None };
        part.end(id, ending, out);
        self.frozen.insert(id.job, Frozen { part: id, start, ranks, deep, bytes, loss });
    }

    pub(super) fn frozen(&mut self, now: Time, id: PartId, bytes: u64, took: Span, out: &mut Vec<Act>) {
        let Some((id, part)) = self.freezing(id) else { return };
        if part.failed.is_some() {
            return part.end_rest(id, out);
        }
        out.push(Act::Tell { part: id, told: Told::Cost { save: Some(took), load: None, bytes } });
        self.rest(now, id, true, bytes, out);
        self.keep_room(out);
    }

    pub(super) fn freeze_failed(
        &mut self,
        now: Time,
        id: PartId,
        reason: String,
        forever: bool,
        out: &mut Vec<Act>,
    ) {
        let Some((id, part)) = self.freezing(id) else { return };
        if part.failed.is_some() {
            return part.end_rest(id, out);
        }
        part.phase = Phase::Running;
        part.unfrozen = Some(reason.clone());
        // It hears only now that it should stop.
        part.stop_from(now);
        if forever {
            self.remember_unfreezable(id.job, reason);
        }
        self.tell_processes(id, out);
    }

    /// A part that is being frozen and is not doomed.
    fn freezing(&mut self, id: PartId) -> Option<(PartId, &mut Part)> {
        self.live(id).filter(|(_, part)| part.phase == Phase::Freezing && !part.killed && part.lost.is_none())
    }

    pub(super) fn remember_unfreezable(&mut self, job: JobId, reason: String) {
        self.unfreezable.insert(job, reason);
        if self.unfreezable.len() > UNFREEZABLE_MAX {
            self.unfreezable.pop_first();
        }
    }

    pub(super) fn thawed(&mut self, now: Time, id: PartId, took: Span, out: &mut Vec<Act>) {
        let Some((id, part)) = self.thawing(id) else { return };
        part.run(now, id, out);
        part.stop_from(now);
        let bytes = part.bytes.unwrap_or(0);
        out.push(Act::Tell { part: id, told: Told::Cost { save: None, load: Some(took), bytes } });
        self.begin_stop(now, id, out);
    }

    pub(super) fn thaw_failed(&mut self, id: PartId, reason: &str, out: &mut Vec<Act>) {
        let Some((id, _)) = self.thawing(id) else { return };
        self.lose(id, &format!("its frozen processes could not continue: {reason}"), out);
    }

    fn thawing(&mut self, id: PartId) -> Option<(PartId, &mut Part)> {
        self.live(id).filter(|(_, part)| part.phase == Phase::Thawing && !part.killed && part.lost.is_none())
    }

    /// A process died in the driver's hands: what is left of the part is of no use.
    pub(super) fn lose_dead(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id) else { return };
        let doing = if part.phase == Phase::Thawing { "thawed" } else { "frozen" };
        let over = part.alive(|_| true).is_empty();
        self.lose(id, &format!("a process died while it was being {doing}"), out);
        if over {
            self.close(now, id, out);
        }
    }

    /// What a part holds on its cards. Until it has been frozen once, the server is told what that would cost.
    pub(super) fn uses(&mut self, id: PartId, bytes: u64, out: &mut Vec<Act>) {
        let Some((id, part)) = self.live(id).filter(|(_, part)| part.phase == Phase::Running) else { return };
        part.bytes = Some(bytes);
        let apart = part.guessed.is_none_or(|before| before.abs_diff(bytes) > before.max(bytes) / 10);
        if part.rest() == Some(Rest::Frozen) && part.was.is_none() && apart {
            part.guessed = Some(bytes);
            let (save, load) = (Some(time(bytes, FREEZE_RATE)), Some(time(bytes, THAW_RATE)));
            out.push(Act::Tell { part: id, told: Told::Cost { save, load, bytes } });
        }
    }
}

impl Part {
    /// Its processes lay stopped and go on.
    pub(super) fn thaw(&mut self, now: Time, id: PartId, frozen: Frozen, out: &mut Vec<Act>) {
        let Frozen { part: was, ranks, deep, bytes, loss, .. } = frozen;
        (self.was, self.ranks, self.unsafe_before) = (Some(was), ranks, loss);
        let deep = deep && !self.alive(|_| true).is_empty();
        out.push(Act::Thaw { part: was, as_part: id, deep });
        if deep {
            (self.phase, self.bytes) = (Phase::Thawing, Some(bytes));
        } else {
            self.run(now, id, out);
        }
    }

    /// Its time to stop runs from now, if it is to stop.
    fn stop_from(&mut self, now: Time) {
        let (hurry, kill) = (Some(now + Span(self.start.grace.0 / 2)), now + self.start.grace);
        self.stop = self.stop.map(|stop| Stop { hurry, kill, ..stop });
    }

    /// How long freezing or thawing it may take; nothing where it is not known what it holds.
    pub(super) fn freeze_time(&self) -> Span {
        time(self.bytes.unwrap_or(0), FREEZE_RATE_MIN)
    }

    /// Whether an exit is the driver's doing, or that of a machine without memory, rather than the job's.
    pub(super) fn dies_of_freezing(&self, exit: Exit) -> bool {
        let thawing = self.phase == Phase::Thawing && !exit.is_success();
        let freezing = self.phase == Phase::Freezing && self.failed.is_none();
        thawing || (freezing && exit.signal.is_some())
    }

    /// A rank failed by itself while the part was being frozen: the others cannot go on without it.
    fn end_rest(&mut self, id: PartId, out: &mut Vec<Act>) {
        self.phase = Phase::Running;
        self.ranks.iter_mut().filter(|rank| rank.exit.is_none()).for_each(|rank| rank.excused = true);
        out.push(Act::Kill { part: id });
    }
}

/// How long it takes to move so much.
fn time(bytes: u64, rate: u64) -> Span {
    Span((u128::from(bytes) * u128::from(MICROS) / u128::from(rate)) as u64)
}
