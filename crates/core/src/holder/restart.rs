//! What an agent finds when it is back: its own record against the processes that are alive.

use std::collections::BTreeSet;

use super::part::{Exit, Part, Phase};
use super::{Act, Holder};
use crate::part::PartId;
use crate::units::Time;

/// What is said of processes of which nobody saw the end.
const VANISHED: &str = "its processes disappeared while the agent was down";

impl Holder {
    pub(super) fn restarted(&mut self, now: Time, alive: Vec<(PartId, u32)>, out: &mut Vec<Act>) {
        let alive: BTreeSet<(PartId, u32)> = alive.into_iter().collect();
        let ids: Vec<PartId> = self.parts.keys().copied().collect();
        for id in ids {
            self.find_again(now, id, &alive, out);
        }
        self.find_frozen(&alive, out);
        let known = |id: &PartId| {
            let live = |(own, part): (&PartId, &Part)| part.is_live() && (own == id || part.was == Some(*id));
            self.parts.iter().any(live) || self.frozen.values().any(|frozen| frozen.part == *id)
        };
        let strangers: BTreeSet<PartId> = alive.iter().map(|(id, _)| *id).filter(|id| !known(id)).collect();
        out.extend(strangers.into_iter().map(|part| Act::Kill { part }));
    }

    fn find_again(&mut self, now: Time, id: PartId, alive: &BTreeSet<(PartId, u32)>, out: &mut Vec<Act>) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        if part.phase == Phase::Reserving {
            return out.push(Act::Reserve { part: id });
        }
        if !part.has_processes() {
            return;
        }
        let is_alive = |rank: u32| {
            alive.contains(&(id, rank)) || part.was.is_some_and(|was| alive.contains(&(was, rank)))
        };
        let missing: Vec<u32> = part.alive(|_| true).into_iter().filter(|rank| !is_alive(*rank)).collect();
        part.resume(id, |was| alive.iter().any(|(id, _)| id == was), out);
        // Who talked will say hello again and is told again; a signal is not repeated.
        part.ranks.iter_mut().for_each(|rank| (rank.speaks, rank.told) = (false, rank.excused));
        if missing.is_empty() && part.lost.is_none() {
            self.spawned(now, id, out);
        } else {
            self.lose(id, VANISHED, out);
            missing.into_iter().for_each(|rank| self.exited(now, id, rank, Exit::default(), out));
        }
    }

    /// Processes are gone and nobody knows how, or are of no use: the others cannot go on alone.
    pub(super) fn lose(&mut self, id: PartId, reason: &str, out: &mut Vec<Act>) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        part.lost.get_or_insert_with(|| reason.to_owned());
        part.ranks.iter_mut().for_each(|rank| rank.excused = true);
        out.push(Act::Kill { part: id });
    }

    /// Stopped processes must be stopped, and all there.
    fn find_frozen(&mut self, alive: &BTreeSet<(PartId, u32)>, out: &mut Vec<Act>) {
        let mut gone = Vec::new();
        for (job, frozen) in &mut self.frozen {
            frozen.ranks.iter_mut().for_each(|rank| rank.speaks = false);
            let ranks = frozen.ranks.iter().zip(frozen.start.ranks.first..);
            let mut expected = ranks.filter(|(rank, _)| rank.exit.is_none());
            if expected.all(|(_, rank)| alive.contains(&(frozen.part, rank))) {
                out.push(Act::Freeze { part: frozen.part, deep: false });
            } else {
                gone.push(*job);
            }
        }
        gone.into_iter().for_each(|job| self.discard(job, out));
    }
}

impl Part {
    /// What was under way goes on; done twice it does no harm.
    fn resume(&self, id: PartId, is_alive: impl Fn(&PartId) -> bool, out: &mut Vec<Act>) {
        let again = match (&self.phase, self.was) {
            (Phase::Freezing, _) => Some(Act::Freeze { part: id, deep: true }),
            (Phase::Thawing, Some(was)) => Some(Act::Thaw { part: was, as_part: id, deep: true }),
            (_, Some(was)) if is_alive(&was) => Some(Act::Thaw { part: was, as_part: id, deep: false }),
            _ => None,
        };
        out.extend(again);
    }
}
