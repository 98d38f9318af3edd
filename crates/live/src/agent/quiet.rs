//! Keeps opportunistic jobs from disturbing guaranteed ones on this node: what parts do goes to `yard_core::guard`, and
//! whom it wants quiet, the keeper stops where they are. A part that says how far it is, is judged by its steps; one
//! that does not, by how much it computes, as far as the driver tells.

use yard_core::Time;
use yard_core::guard::{Quiet, Watch};
use yard_core::part::PartId;

use super::keeper::KeeperAsk;
use super::serve::Agent;
use crate::wire::{CardNow, FromAgent};

/// Work of a part that does not say how far it is: seconds in which it computed, up to when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computed {
    seconds: f64,
    until: Time,
}

impl Agent {
    /// Something happened to a part; whom it concerns is hushed or woken.
    pub(super) fn watch(&mut self, what: Watch) {
        let (now, mut out) = (self.now(), Vec::new());
        self.parts.guard.step(now, what, &mut out);
        for quiet in out {
            let (part, hushed) = match quiet {
                Quiet::Hush(part) => (part, true),
                Quiet::Wake(part) => (part, false),
            };
            let word = if hushed { "paused: it slows a guaranteed job" } else { "woken" };
            tracing::info!(job = part.job.0, "{word}");
            self.keeper.ask(&KeeperAsk::Hush { part, hushed });
            self.say(FromAgent::Hushed { part, hushed });
        }
    }

    /// A part runs from now on.
    pub(super) fn watch_part(&mut self, part: PartId) {
        let Some(start) = self.state.holder.start(part) else { return };
        let (devices, claim, loss_max) = (start.devices.clone(), start.claim, start.loss_max);
        self.watch(Watch::Came { part, devices, claim, loss_max });
    }

    /// A part is over or told to stop, which it cannot do in its sleep.
    pub(super) fn unwatch(&mut self, part: PartId) {
        self.parts.computed.remove(&part);
        self.watch(Watch::Gone { part });
    }

    /// What parts that do not say how far they are were seen to compute since the last look.
    pub(super) fn watch_cards(&mut self, cards: &[CardNow]) {
        let now = self.now();
        for (part, busy, _) in cards.iter().flat_map(|card| &card.parts) {
            let silent = !self.state.holder.speaks(*part);
            let Some(busy) = busy.filter(|busy| silent && busy.is_finite()) else { continue };
            let fresh = Computed { seconds: 0.0, until: now };
            let known = self.parts.computed.entry(*part).or_insert(fresh);
            known.seconds += busy * (now - known.until).secs();
            known.until = now;
            let (part, work) = (*part, known.seconds);
            self.watch(Watch::Worked { part, work });
        }
    }
}
