//! The host's memory that frozen jobs may hold. Where one more does not fit, those whose loss costs least go, if
//! they cost less together than the newcomer would; and a job that could not be frozen now, and does not save by
//! itself, is named ahead of time, so that nobody stops it for others.

use super::freezing::Rest;
use super::part::{Part, Phase};
use super::{Act, Holder};
use crate::ids::JobId;
use crate::part::{PartId, Told};
use crate::units::{Span, Time};

/// How long a job has to say its first word before it counts as one that does not talk.
const SHY: Span = Span::from_whole_secs(10);

impl Holder {
    /// Host memory that frozen jobs hold, or are about to, or still do.
    pub fn frozen_bytes(&self) -> u64 {
        let moves = |part: &&Part| matches!(part.phase, Phase::Freezing | Phase::Thawing);
        let moving = self.parts.values().filter(moves).map(|part| part.bytes.unwrap_or(0));
        self.frozen.values().map(|frozen| frozen.bytes).chain(moving).fold(0, u64::saturating_add)
    }

    /// Whether so much more fits. Where it is not known how much, it is tried while anything is left.
    fn fits(&self, bytes: Option<u64>) -> bool {
        let used = self.frozen_bytes();
        bytes.map_or(used < self.room, |bytes| used.saturating_add(bytes) <= self.room)
    }

    /// Makes room for a part, if that loses less than the part would; whether there is room.
    pub(super) fn make_room(&mut self, now: Time, id: PartId, out: &mut Vec<Act>) -> bool {
        let Some((_, part)) = self.live(id) else { return false };
        let (bytes, loss) = (part.bytes, if part.spoke() { Span::ZERO } else { part.loss(now) });
        if self.fits(bytes) {
            return true;
        }
        let (mut gone, mut lost, mut freed) = (Vec::new(), Span::ZERO, 0u64);
        let missing = self.frozen_bytes().saturating_add(bytes.unwrap_or(1)).saturating_sub(self.room);
        for (other, cost, size) in self.by_loss() {
            (lost, freed) = (lost + cost, freed.saturating_add(size));
            gone.push(other);
            if freed >= missing {
                break;
            }
        }
        let worth = freed >= missing && lost < loss;
        gone.into_iter().filter(|_| worth).for_each(|job| self.discard(job, out));
        worth
    }

    /// What is frozen turned out larger than was thought: those whose loss costs least go until the rest fits.
    pub(super) fn keep_room(&mut self, out: &mut Vec<Act>) {
        for (job, ..) in self.by_loss() {
            if self.frozen_bytes() <= self.room {
                break;
            }
            self.discard(job, out);
        }
    }

    /// Jobs that hold memory while they are frozen, with what is lost and freed with them; the least loss first.
    fn by_loss(&self) -> Vec<(JobId, Span, u64)> {
        let deep = self.frozen.iter().filter(|(_, frozen)| frozen.bytes > 0);
        let mut jobs: Vec<_> = deep.map(|(job, frozen)| (*job, frozen.loss, frozen.bytes)).collect();
        jobs.sort_by_key(|(job, loss, _)| (*loss, *job));
        jobs
    }

    /// Names the parts that would lose all they did if they were stopped now, where that is news.
    pub(super) fn tell_stuck(&mut self, now: Time, out: &mut Vec<Act>) {
        let settled = |part: &Part| part.phase == Phase::Running && part.stop.is_none();
        let news = self.parts.iter().filter(|(_, part)| settled(part)).filter_map(|(id, part)| {
            let stuck = self.is_stuck(now, id.job, part);
            (stuck != part.stuck.unwrap_or(false)).then_some((*id, stuck))
        });
        for (id, stuck) in news.collect::<Vec<(PartId, bool)>>() {
            self.parts.get_mut(&id).into_iter().for_each(|part| part.stuck = Some(stuck));
            out.push(Act::Tell { part: id, told: Told::Stuck(stuck) });
        }
    }

    fn is_stuck(&self, now: Time, job: JobId, part: &Part) -> bool {
        let mute = !part.spoke() && now >= part.since + SHY;
        let freezes = part.rest() == Some(Rest::Frozen);
        mute && freezes && (self.unfreezable.contains_key(&job) || !self.fits(part.bytes))
    }
}
